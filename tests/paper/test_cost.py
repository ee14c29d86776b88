"""Cost: what a point of the plane consists of, and the paper's arithmetic."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gridshift_paper import band, cost_plane, gradient_steps
from gridshift_paper import deployment as table_4
from gridshift_paper.band import BAND, band_ratios, picks
from gridshift_paper.claims import PAPER
from gridshift_paper.deployment import SWEEP, TIMES, Seconds, totals
from gridshift_paper.gradient_steps import (
    CLOSED_FORM,
    CURVES,
    PAPER_SCRATCH,
    closed_form,
    curve,
    steps_of,
)
from gridshift_paper.protocol import SCALES, Experiment, network_of
from gridshift_paper.records import Book, Study
from tests.paper.conftest import TINY

DOUBLE = Experiment(TINY, outage="line:9,line:28")


def quick(study: Study) -> Study:
    """The study without PowerFlowNet, whose base surrogates take longest."""
    return replace(
        study,
        keys=lambda scale: (key for key in study.keys(scale) if key.get("backbone") != "pfgnn"),
    )


ARTEFACTS = (*cost_plane.ARTEFACTS, *gradient_steps.ARTEFACTS, *band.ARTEFACTS, *table_4.ARTEFACTS)
STUDIES = tuple(map(quick, (TIMES, SWEEP, CLOSED_FORM, CURVES, BAND)))


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return Book(tmp_path_factory.mktemp("book"), TINY)


@pytest.fixture(scope="module")
def rows(book):
    for study in STUDIES:
        book.run(study)
    return {study.name: book.rows(study) for study in STUDIES}


def paper_times(grid: str) -> dict[str, pd.DataFrame]:
    """The paper's own seconds an outage, as our studies would have measured them."""
    number, data, icw, tuned, gradient, *_ = PAPER.deployment[grid]
    solve = {"grid": grid, "part": "solve", "backbone": "", "engine_s": 0.0, "exact_s": 0.0}
    network = {"grid": grid, "part": "network", "backbone": "mlp", "fit_s": 0.0}
    return {
        "adaptation-times": pd.DataFrame(
            [
                solve | {"pandapower_s": 48 * data / 400},
                network | {"predict_s": icw, "predict_tuned_s": tuned, "step_s": gradient / 4_000},
            ]
        ),
        "deployment-sweep": pd.DataFrame(
            [{"grid": grid, "num_outages": number, "num_context": 400}]
        ),
    }


@pytest.mark.parametrize("grid", PAPER.deployment)
def test_the_papers_seconds_give_the_papers_totals(grid):
    icw, tuned = totals(paper_times(grid), grid).values()
    # the paper prints whole seconds, of parts given to a millisecond
    assert icw == pytest.approx(PAPER.deployment[grid][5], abs=0.6)
    assert tuned == pytest.approx(PAPER.deployment[grid][6], abs=0.6)


def test_a_cost_is_solves_and_steps_and_prediction():
    seconds = Seconds(engine=2.0, pandapower=30.0, fit=5.0, predict=7.0, predict_tuned=11.0, step=3)
    assert seconds.icw(10) == 20 + 5 + 7
    assert seconds.gradient(10, 100) == 20 + 300 + 11
    assert seconds.gradient(10, 100, solver="pandapower") == 300 + 300 + 11


def test_budgets_are_the_papers_as_far_as_a_scale_affords_them():
    assert steps_of(SCALES["full"], "mlp") == (100, 200, 400, 800, 1000, 2000, 4000)
    assert steps_of(SCALES["paper"], "pfgnn") == tuple(PAPER_SCRATCH["no-norm", 400])
    assert steps_of(SCALES["full"], "pfgnn") == (100, 200, 400, 800, 1000, 2000, 4000)
    assert steps_of(SCALES["small"], "mlp") == (1, 2, 4, 8, 10, 20, 40)


def test_a_point_is_fine_tuning_of_the_base_that_its_targets_call_for(rows):
    """Weights trained by hand on raw y, from those of the surrogate of raw y."""
    points = curve(rows, "overall", "case30", kind="fine-tune", target="no-norm", num_context=400)
    one = points[0]
    assert one.num_steps == 1
    base, test = DOUBLE.base(transform="identity"), DOUBLE.test()
    before = np.abs(base.predict(test.x) - test.y).mean()
    # one AdamW step moves every weight by the learning rate at most, so errors move a little
    assert one.error != before
    assert one.error == pytest.approx(before, rel=0.2)
    assert points[-1].error < before


def test_closed_form_errors_are_those_of_the_methods(rows):
    context, test = DOUBLE.context(), DOUBLE.test()
    mean = closed_form(rows, "overall", "context-mean", "case30", 400)
    assert mean.error == pytest.approx(np.abs(context.y.mean(0) - test.y).mean(), rel=1e-12)
    frozen = closed_form(rows, "v", "frozen", "case30", 400)
    at = test.layout.y_slices["v"]
    off = DOUBLE.base().predict(test.x) - test.y
    assert frozen.error == pytest.approx(np.abs(off[:, at]).mean(), rel=1e-6)


def test_scratch_training_needs_no_trained_surrogate_of_its_targets(rows):
    """One step from random weights, of raw outputs of about one, is nowhere near the frozen."""
    raw = curve(rows, "v", "case30", kind="scratch", target="no-norm", num_context=400)
    scaled = curve(rows, "v", "case30", kind="scratch", target="zscore", num_context=400)
    assert raw[0].error > 0.5
    assert scaled[0].error < 0.01


def test_a_study_that_was_cut_off_goes_on(book, rows, tmp_path):
    again = Book(tmp_path, TINY)
    study = quick(CURVES)
    path = again.path(study)
    path.parent.mkdir(parents=True)
    frame = rows["gradient-curves"]
    frame.iloc[: len(frame) - 2].to_parquet(path)
    assert len(again.missing(study)) == 2
    assert again.run(study) == 2
    columns = ["num_steps", "target", "overall"]
    pd.testing.assert_frame_equal(again.rows(study)[columns], frame[columns])


def test_the_band_takes_outages_of_all_difficulties_each_once(rows):
    picked = picks(Experiment(TINY), 1)
    assert set(picked) == {"low", "mid", "high"}
    base = DOUBLE.base()
    errors = []
    for (outage,) in (picked[name] for name in ("low", "mid", "high")):
        test = Experiment(TINY, outage=outage).test(TINY.num_test // 5)
        off = base.predict(test.x) - test.y
        errors.append(np.abs(off[:, test.layout.y_slices["v"]]).mean())
        assert network_of("case30").without([outage]) is not None
    assert errors == sorted(errors)
    assert set(rows["band-30"].outage) == {outage for (outage,) in picked.values()}


def test_a_ratio_is_the_error_of_icw_over_that_of_fine_tuning(rows):
    ratios, frame = band_ratios(rows, "zscore"), rows["band-30"]
    assert ratios.shape == (3, 1 + len(steps_of(TINY, "mlp")))
    seed, third, outage = ratios.index[0]
    mine = frame[(frame.outage == outage) & (frame.target == "zscore")].set_index("method")
    expected = mine.overall["icw"] / mine.overall["frozen"]
    assert ratios.loc[(seed, third, outage), 0] == pytest.approx(expected)


def test_the_sweep_predicts_the_test_rows_of_every_outage(rows):
    row = rows["deployment-sweep"].iloc[0]
    assert row.num_outages == TINY.max_outages
    assert row.num_rows == row.num_outages * TINY.num_test
    assert row.data_s + row.fit_s + row.predict_s <= row.with_test_rows_s


@pytest.mark.parametrize("artefact", ARTEFACTS, ids=lambda artefact: artefact.name)
def test_artefacts_are_made_from_rows_and_say_so_if_there_are_none(artefact, rows, book):
    tables = artefact.tables(rows)
    if artefact.name == "cost-300":  # the tiny scale has no case300
        assert not tables
    else:
        assert tables
        assert all(len(table.columns) == len(line) for table in tables for line in table.rows)
        assert artefact.comments(rows)
        assert artefact.draw is None or artefact.draw(rows).axes


def test_the_papers_numbers_stand_beside_ours(rows):
    assert PAPER.band_ratio == 0.83
    speed_ups, table = list(table_4.tables(rows))[:2]
    assert speed_ups.rows[0][:2] == ("case30", "34×")
    ours, paper = table.rows[:2]
    assert ours[0] == "case30"
    assert paper[:2] == ("paper", 38)
