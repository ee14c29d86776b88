"""An adaptive number of scenarios, and how sure the results are."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from gridshift.errors import GridshiftError
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.study.risk import risk_of, rows_for, severity, wilson
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen


@pytest.fixture
def few(tmp_path):
    (tmp_path / "few.txt").write_text("line:9\nline:24\nline:3\nline:33\n")
    return str(tmp_path / "few.txt")


@pytest.mark.parametrize(("violated", "rows"), [(0, 50), (3, 40), (20, 40), (50, 50)])
def test_the_interval_is_wilsons_as_scipy_knows_it(violated, rows):
    found = wilson(violated / rows, rows)
    expected = binomtest(violated, rows).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert found.standard_error == pytest.approx((expected.high - expected.low) / 2 / 1.959964)


@pytest.mark.parametrize("precision", [0.1, 0.01, 0.003])
def test_the_rows_that_a_precision_takes_at_most_are_just_enough(precision):
    rows = rows_for(precision)
    assert wilson(0.5, rows).half_width <= precision * (1 + 1e-9)
    assert wilson(0.5, rows - 1).half_width > precision


def test_probability_and_standard_errors_are_those_of_the_scenarios(case30, few):
    config = ScreenConfig(
        grid="case30", contingencies=few, num_scenarios=300, workers=1, spread=0.5, v_min=0.95
    )
    rows = {row.outage: row for row in screen(config, network=case30).rows}
    loads = sample_loads(case30, named_rng("case30", "scenarios"), 300, spread=0.5, regime="drawn")
    from gridshift.study.limits import with_limits

    left = with_limits(case30.without(["line:9"]), v_min=0.95)
    each = np.array([risk_of(left, v[None]).excess for v in solve(left, loads).voltage])
    row = rows["line:9"]
    assert row.violation_probability == pytest.approx((each > 0).mean())
    assert row.standard_error == wilson(float((each > 0).mean()), 300).standard_error
    assert row.severity_standard_error == pytest.approx(each.std() / np.sqrt(300), rel=1e-6)
    assert row.severity == pytest.approx(severity(excess=each.mean(), unsolved=0), rel=1e-6)


def adaptive(contingencies, **options):
    given = {"num_scenarios": 20_000, "precision": 0.02, "spread": 0.4, "workers": 1} | options
    return ScreenConfig(grid="case30", contingencies=contingencies, **given)


def test_scenarios_are_solved_until_the_precision_is_reached_and_no_more(case30, few):
    study = screen(adaptive(few), network=case30)
    numbers = {row.num_scenarios for row in study.rows}
    assert len(numbers) > 1  # outages differ in what they take
    for row in study.rows:
        assert row.stopped == "precision"
        assert row.standard_error * 1.96 <= 0.02
        assert row.severity_standard_error <= 0.02 * row.excess * 1.001
        assert 256 <= row.num_scenarios < 20_000
    (note,) = [note for note in study.notes if "scenarios were solved" in note]
    assert f"{sum(row.num_solves for row in study.rows):,}" in note
    assert "4 reached the precision of 0.02" in note


def test_the_scenarios_are_the_first_of_those_that_a_fixed_number_takes(case30, few):
    (row,) = [r for r in screen(adaptive(few), network=case30).rows if r.outage == "line:24"]
    loads = sample_loads(
        case30, named_rng("case30", "scenarios"), 20_000, spread=0.4, regime="drawn"
    )
    left = case30.without(["line:24"])
    risk = risk_of(left, solve(left, loads.rows(slice(row.num_scenarios))).voltage)
    assert row.excess == pytest.approx(risk.excess, rel=1e-6)
    assert row.any_overload == risk.any_overload


def test_results_don_t_depend_on_workers_threads_or_order(case30, few, tmp_path):
    def told(study):
        rows = [row.stored() | {"cost": None} for row in study.rows]
        return json.dumps(rows, default=np.ndarray.tolist)

    (tmp_path / "back.txt").write_text("line:33\nline:3\nline:24\nline:9\n")
    one = screen(adaptive(few), network=case30)
    other = screen(adaptive(str(tmp_path / "back.txt"), workers=7), network=case30)
    assert told(one) == told(other)


def test_outages_surely_below_the_threshold_stop_early_and_too_few_scenarios_are_told(case30, few):
    # no limit is ever exceeded with such wide ones
    wide = {"v_min": 0.5, "v_max": 1.5, "spread": 0.1}
    harmless = screen(adaptive(few, ignore_below=0.05, precision=0.001, **wide), network=case30)
    stopped = {row.outage: row.stopped for row in harmless.rows}
    quiet = [o for o in stopped if stopped[o] == "harmless"]
    for row in harmless.rows:
        if row.outage in quiet:
            assert wilson(row.violation_probability, row.num_solves).high < 0.05
            assert row.num_solves == 256
    short = screen(adaptive(few, num_scenarios=300, precision=0.001), network=case30)
    assert {row.stopped for row in short.rows} == {"all"}
    assert any("4 used all 300 scenarios" in note for note in short.notes)


@pytest.mark.parametrize(
    "given",
    [
        {"precision": 0.0},
        {"precision": 0.7},
        {"precision": 0.1, "method": "icw"},
        {"precision": None, "ignore_below": 0.1},
    ],
)
def test_what_means_nothing_is_refused(given):
    with pytest.raises(GridshiftError):
        adaptive("lines", **given)
