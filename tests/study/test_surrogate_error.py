"""A surrogate's error widens the interval: against exact rows, and counted by a plain loop."""

import numpy as np
import pytest

from gridshift.adapt.methods import METHODS, Method
from gridshift.grid.equations import branch_loading
from gridshift.grid.layout import Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.grid.statistics import Limits
from gridshift.study.limits import with_limits
from gridshift.study.risk import wilson
from gridshift.study.screening import ScreenConfig
from gridshift.study.surrogate_error import Predicted
from gridshift.study.sweep import screen
from tests.adapt.grids import Exact


@pytest.fixture
def lower(case14, monkeypatch):
    """A method that predicts the voltages of all PQ buses 0.003 p.u. too low."""
    layout = Layout.of(case14)

    class Lower(Exact):
        def predict(self, x):
            y = super().predict(x)
            y[:, layout.y_slices["v"]] -= 0.003
            return y

    method = Method(
        name="lower", summary="", needs=("network",), source="test",
        adapt=lambda base, context: Lower(context.network), uses_surrogate=False,
    )  # fmt: skip
    monkeypatch.setitem(METHODS, "lower", method)


def studied(case14, tmp_path, method, **options):
    (tmp_path / "list.txt").write_text("line:9\n")
    given = {
        "contingencies": str(tmp_path / "list.txt"), "num_scenarios": 600, "workers": 1,
        "num_holdout": 50, "v_max": 1.1,
    } | options  # fmt: skip
    (row,) = screen(ScreenConfig(grid="case14", method=method, **given), network=case14).rows
    return row


@pytest.mark.parametrize("v_min", [0.993, 0.998, 1.003])
def test_exact_rows_lie_within_the_interval_where_that_of_the_scenarios_alone_misses_them(
    case14, tmp_path, lower, v_min
):
    truth = studied(case14, tmp_path, "newton", v_min=v_min).violation_probability
    row = studied(case14, tmp_path, "lower", v_min=v_min)
    alone = wilson(row.violation_probability, row.num_scenarios)
    assert not alone.low <= truth <= alone.high
    assert row.violation_low <= truth <= row.violation_high
    assert row.violation_low <= alone.low < alone.high <= row.violation_high
    width = row.violation_high - row.violation_low
    assert row.standard_error == pytest.approx(width / 2 / 1.959964, rel=1e-6)
    few = studied(case14, tmp_path, "lower", v_min=v_min, num_holdout=1)
    assert few.violation_high - few.violation_low >= min(1, width)


def test_undecided_scenarios_are_those_of_a_loop(case14):
    left = case14.without(["line:9"])
    limited = with_limits(left, v_min=0.995, v_max=1.095, rating_mva=175.0)
    loads = sample_loads(case14, named_rng("case14", "test"), 200, spread=0.2, regime="fixed")
    voltage = solve(left, loads).voltage
    free = case14.pq
    predicted = Predicted.of(Limits.of(limited), limited)
    predicted.statistics.add_complex(voltage)
    errors = np.array([0.02, 0.01])
    sure = possible = 0
    for state in voltage:
        worst = (np.abs(np.abs(state[free]) - 1.045) / 0.05).max()
        loading = branch_loading(limited, state[None]).max()
        sure += worst - 0.02 > 1 or loading - 0.01 > 1
        possible += worst + 0.02 > 1 or loading + 0.01 > 1
    assert 0 < sure < possible < 200
    found = predicted.exceeded(errors, num_holdout=99, num_rows=200)
    assert found.low == pytest.approx(max(0, wilson(sure / 200, 200).low - 0.01))
    assert found.high == pytest.approx(min(1, wilson(possible / 200, 200).high + 0.01))
    more = predicted.exceeded(errors, num_holdout=99, num_rows=250)  # 50 were no finite numbers
    assert more.high == pytest.approx(min(1, wilson((possible + 50) / 250, 250).high + 0.01))


def test_a_set_point_at_its_limit_is_no_doubt_and_one_beyond_it_is_none_either(case14):
    at = with_limits(case14, v_max=float(np.nanmax(case14.bus_v_set)), v_min=0.5)
    loads = sample_loads(case14, named_rng("case14", "test"), 50, spread=0.1, regime="fixed")
    for limited, share in ((at, 0.0), (with_limits(case14, v_max=1.05, v_min=0.5), 1.0)):
        predicted = Predicted.of(Limits.of(limited), limited)
        predicted.statistics.add_complex(solve(case14, loads).voltage)
        found = predicted.exceeded(np.full(2, 1e-6), num_holdout=50, num_rows=50)
        assert found.share == share
        assert found.high - found.low == pytest.approx(
            wilson(share, 50).high - wilson(share, 50).low + 1 / 51
        )


def test_errors_are_the_largest_and_without_bound_where_a_prediction_is_none(case14):
    limited = with_limits(case14, v_min=0.9, v_max=1.1)
    predicted = Predicted.of(Limits.of(limited), limited)
    loads = sample_loads(case14, named_rng("case14", "test"), 20, spread=0.1, regime="fixed")
    exact = solve(case14, loads).voltage
    other = exact.copy()
    other[3] *= 1.01
    band = (
        np.abs(np.abs(exact[3, case14.pq]) - 1).max(),
        np.abs(np.abs(other[3, case14.pq]) - 1).max(),
    )
    found = predicted.largest_errors(other, exact)
    assert found[0] == pytest.approx((band[1] - band[0]) / 0.1, rel=1e-9)
    other[4, 2] = np.nan
    assert np.isinf(predicted.largest_errors(other, exact)).all()
    assert (predicted.largest_errors(exact[:0], exact[:0]) == 0).all()
