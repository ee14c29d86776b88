"""What moments do: whiteners, parts of a context's moments, the third moment, several contexts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gridshift.learn.moments import EPS, Moments
from gridshift_paper.context_size import TAIL
from gridshift_paper.outages import COMPENSATION, compensated
from gridshift_paper.protocol import GRIDS, Experiment
from gridshift_paper.records import Book
from gridshift_paper.third_moment import THIRD, Bent
from gridshift_paper.variants import DRAWS, VARIANTS, drawn, drawn_factor
from gridshift_paper.whitening import PROPOSITION, _distortion, _own, _whiteners
from tests.paper.conftest import TINY

OUTAGE = GRIDS["case30"].double
SCALE = replace(TINY, num_context=80, num_rows=400)


def only(study, **wanted):
    """The tasks whose keys have these values."""

    def keys(scale):
        return (k for k in study.keys(scale) if all(k[n] == v for n, v in wanted.items()))

    return replace(study, keys=keys)


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    book = Book(tmp_path_factory.mktemp("moments"), SCALE)
    for study in (
        PROPOSITION, TAIL, only(THIRD, base="exact"), only(DRAWS, transform="zca"),
        only(VARIANTS, backbone="mlp", transform="zca"), only(COMPENSATION, of="standard"),
    ):  # fmt: skip
        book.run(study)
    return book


def test_distortion_and_correlation_are_those_of_the_sample():
    y = Experiment(SCALE).training().y
    covariance = Moments.of(y).covariance
    whitener = _whiteners(covariance, np.ones(y.shape[1]))["ZCA"]
    centred = y - y.mean(0)
    z = centred @ whitener.T
    moved = (len(y) / (len(y) - 1)) * ((z - centred) ** 2).sum(1).mean()
    assert _distortion(whitener, covariance) == pytest.approx(moved, rel=1e-9)
    sample = [np.corrcoef(z[:, i], y[:, i])[0, 1] for i in range(y.shape[1])]
    np.testing.assert_allclose(_own(whitener, covariance), sample, atol=1e-6)


def test_no_rotation_moves_the_outputs_less_and_one_of_both_topologies_cancels(book):
    frame = book.rows(PROPOSITION).set_index("whitener")
    drawn_at_random = frame.loc["random rotations"]
    assert drawn_at_random.better == 0
    assert drawn_at_random.distortion > frame.distortion["ZCA"]
    assert frame.overall["one random rotation"] == pytest.approx(frame.overall["ZCA"], rel=1e-6)
    assert frame.own_mean["ZCA of correlations"] == frame.own_mean.max()


def test_knowing_both_moments_is_better_than_knowing_a_part(book):
    error = book.rows(TAIL).groupby("known").overall.mean()
    assert error.idxmin() == "both known"
    assert error["both known"] < 0.8 * error["context"]


@pytest.mark.parametrize("recentred", ["no", "mean", "mean and variance"])
def test_a_bent_map_inverts_and_matches_once_more_what_it_says(recentred):
    y = Experiment(SCALE, outage=OUTAGE).context(300).y
    bent = Bent.of(y, 0.5, recentred, EPS)
    z = bent.forward(y)
    np.testing.assert_allclose(bent.inverse(z), y, atol=1e-9)
    assert np.abs(bent.skew).max() <= 0.5
    moved = np.abs(z.mean(0)).max()
    assert moved < 1e-6 if recentred != "no" else moved > 1e-3
    if "variance" in recentred:
        assert z.std(0)[bent.scale > 1e-3] == pytest.approx(1, rel=1e-4)


def test_level_three_without_its_mean_matched_again_is_worse(book):
    frame = book.rows(THIRD)
    error = frame[(frame.topology == "N-2") & (frame.bound.isin([0.0, 2.0])) & (frame.eps == EPS)]
    error = error.set_index(["bound", "recentred"]).overall
    assert error[2.0, "no"] > 1.2 * error[0.0, "no"]
    assert error[2.0, "mean"] < error[2.0, "no"]


def test_the_first_of_several_contexts_is_that_of_the_table(book):
    draws, table = book.rows(DRAWS), book.rows(VARIANTS)
    first = draws[(draws.draw == 0) & (draws.statistics == "ctx")].set_index("topology").overall
    one = table[table.statistics == "ctx"].set_index("topology").overall
    pd.testing.assert_series_equal(first, one, check_names=False)
    rows = {DRAWS.name: draws}
    part = draws[(draws.topology == "N-2") & (draws.statistics == "ctx")]
    assert drawn(rows, "N-2", "v").item() == pytest.approx(part.v.mean())
    frozen = draws[(draws.topology == "N-2") & (draws.statistics == "frozen")].v.item()
    assert drawn_factor(rows, "N-2", "v").item() == pytest.approx(frozen / part.v.mean())


def test_compensation_stands_beside_icw_with_its_cases_and_errors(book):
    found = compensated({COMPENSATION.name: book.rows(COMPENSATION)}, "case30", OUTAGE)
    assert list(found) == [10, 50, 400]
    assert found[10].item() < 3e-4  # ICW of the paper has 5.6e-4 with 400
