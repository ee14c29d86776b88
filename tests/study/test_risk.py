"""Limit violations counted against naive loops and by hand."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.errors import GridshiftError
from gridshift.grid.statistics import Limits, Statistics
from gridshift.study.limits import limit_notes, with_limits
from gridshift.study.risk import (
    LOST_SUPPLY,
    UNSOLVED_SCENARIO,
    lost_supply_severity,
    risk_from,
    risk_of,
    severity,
)


def _states(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    magnitude = rng.uniform(0.9, 1.1, (rows, 3))
    return magnitude * np.exp(1j * rng.uniform(-0.06, 0.06, (rows, 3)))


def test_statistics_are_those_of_a_loop_over_scenarios(triangle):
    states = _states()
    risk = risk_of(triangle, states)
    reactance, ratings = {0: (0, 1, 0.1), 1: (1, 2, 0.1)}, {0: 0.5, 1: 0.2}  # the tighter end
    excess, any_voltage, any_overload = 0.0, 0, 0
    under, beyond = np.zeros(3), np.zeros(3)
    for state in states:
        outside, overloaded = False, False
        for bus in (0, 1):
            v = abs(state[bus])
            under[bus] += v < 0.95
            excess += max(0, 0.95 - v, v - 1.05) / 0.05
            outside |= v < 0.95 or v > 1.05
        for branch, (f, t, x) in reactance.items():
            loading = abs(state[f] - state[t]) / x / ratings[branch]
            beyond[branch] += max(0, loading - 1)
            overloaded |= loading > 1
        any_voltage += outside
        any_overload += overloaded
    assert risk.num_rows == len(states)
    np.testing.assert_allclose(risk.under_probability[:2], under[:2] / len(states), rtol=1e-12)
    np.testing.assert_allclose(risk.overload[:2], beyond[:2] / len(states), rtol=1e-12)
    assert risk.any_voltage == any_voltage / len(states)
    assert risk.any_overload == any_overload / len(states)
    assert risk.voltage_excess == pytest.approx(excess / len(states))
    assert risk.excess == pytest.approx((excess + beyond.sum()) / len(states))


def test_a_bus_without_limits_and_a_branch_without_a_rating_have_no_statistics(triangle):
    risk = risk_of(triangle, _states())
    assert np.isnan([risk.under_probability[2], risk.over_probability[2]]).all()
    assert np.isnan([risk.overload_probability[2], risk.loading[2]]).all()
    assert np.isfinite(risk.bus_probability).all()
    assert risk.bus_probability[2] == 0


def test_counting_in_blocks_gives_the_same(triangle):
    states, statistics = _states(), Statistics(Limits.of(triangle))
    for block in np.array_split(states, 7):
        statistics.add_complex(block)
    once, blocks = risk_of(triangle, states), risk_from(triangle, statistics)
    np.testing.assert_array_equal(blocks.under_probability, once.under_probability)
    assert blocks.excess == once.excess


def test_a_scenarios_worst_is_that_of_a_loop_over_buses_and_branches(triangle):
    states = _states()
    risk = risk_of(triangle, states)
    voltage, loading, excess = [], [], []
    for state in states:
        size = [abs(state[bus]) for bus in (0, 1)]
        voltage.append(max(abs(v - 1.0) / 0.05 for v in size))
        reactances, ratings = (0.1, 0.1), (0.5, 0.2)
        flows = [abs(state[e] - state[e + 1]) / reactances[e] / ratings[e] for e in (0, 1)]
        loading.append(max(flows))
        violations = [max(0, abs(v - 1.0) / 0.05 - 1) for v in size]
        excess.append(sum(violations) + sum(max(0, flow - 1) for flow in flows))
    rounding = 1e-10  # of a square to a multiple of 2^-40, over the half width of 0.05
    for found, by_hand in (
        (risk.worst_voltage, voltage), (risk.worst_loading, loading), (risk.scenario_excess, excess)
    ):  # fmt: skip
        ordered = sorted(by_hand)
        assert found.mean == pytest.approx(np.mean(by_hand), rel=rounding)
        assert found.max == pytest.approx(ordered[-1], rel=rounding)
        assert found.p95 == pytest.approx(ordered[379], rel=rounding)  # 380 of 400 are at most this
        assert found.p99 == pytest.approx(ordered[395], rel=rounding)
        assert found.tail == pytest.approx(np.mean(ordered[380:]), rel=rounding)
    assert risk.scenario_excess.mean == pytest.approx(risk.excess, rel=1e-9)  # sums are rounded
    assert risk.worst_bus_share.sum() == pytest.approx(1)
    assert risk.worst_bus_share[2] == 0  # it has no limits
    assert np.nansum(risk.worst_branch_share) == pytest.approx(1)


def test_the_spread_of_voltages_and_loadings_is_that_of_sorted_values(triangle):
    states = _states(rows=1000)
    risk = risk_of(triangle, states)
    size = np.abs(states)
    np.testing.assert_allclose(risk.voltage[:, 0], size.min(0), atol=1e-12)
    np.testing.assert_allclose(risk.voltage[:, 2], size.mean(0), atol=1e-12)
    np.testing.assert_allclose(risk.voltage[:, 4], size.max(0), atol=1e-12)
    bins = 1 / 256  # a quantile is interpolated within a bin of this width
    np.testing.assert_allclose(risk.voltage[:, 1], np.quantile(size, 0.05, axis=0), atol=bins)
    np.testing.assert_allclose(risk.voltage[:, 3], np.quantile(size, 0.95, axis=0), atol=bins)
    narrow = risk_of(triangle, 1 + 1e-4 * (states - 1))  # never further off than the extremes
    band = np.ptp(np.abs(1 + 1e-4 * (states - 1)), axis=0)
    assert (narrow.voltage[:, 3] - narrow.voltage[:, 1] <= band).all()


def test_rows_without_a_solution_do_not_touch_the_others(triangle):
    states = _states()
    poisoned = np.insert(states, [0, 7, 400], np.nan, axis=0)
    a, b = risk_of(triangle, poisoned), risk_of(triangle, states)
    assert a.num_rows == b.num_rows
    assert a.excess == b.excess


def test_no_rows_at_all_give_nan_not_zero(triangle):
    risk = risk_of(triangle, np.full((3, 3), np.nan + 0j))
    assert risk.num_rows == 0
    assert np.isnan(risk.excess)
    assert np.isnan(risk.overload[:2]).all()


def test_a_set_point_on_its_limit_is_no_violation(triangle):
    states = np.full((1, 3), 1.05 + 0j)
    assert risk_of(triangle, states * np.exp(0.3j)).any_voltage == 0


def test_a_branch_out_of_service_is_never_overloaded(triangle):
    risk = risk_of(triangle.without(("line:0",)), _states())
    assert risk.overload_probability[0] == 0


def test_apparent_power_is_compared_where_ratings_are_powers(triangle):
    state = np.array([[1.0, 0.8, 0.8]], complex)
    by_power = risk_of(replace(triangle, rating_kind="power"), state)
    # 2 p.u. of current at both ends; 2 p.u. of power at the end with 1 p.u. voltage
    assert by_power.loading[0] == pytest.approx(2 / 0.5)
    assert risk_of(triangle, 2 * state).loading[0] == pytest.approx(4 / 0.5)
    by_power = risk_of(replace(triangle, rating_kind="power"), 2 * state)
    assert by_power.loading[0] == pytest.approx(8 / 0.5)


def test_users_limits_replace_those_of_the_buses_and_fill_in_missing_ratings(triangle):
    limited = with_limits(triangle, v_min=0.97, rating_mva=50)
    np.testing.assert_array_equal(limited.bus_v_min, 0.97)
    np.testing.assert_array_equal(limited.bus_v_max, triangle.bus_v_max)
    np.testing.assert_array_equal(limited.branch_rating[2], 0.5)
    np.testing.assert_array_equal(limited.branch_rating[:2], triangle.branch_rating[:2])
    assert limit_notes(with_limits(triangle, v_min=0.9, v_max=1.1, rating_mva=50)) == []


@pytest.mark.parametrize(
    "given", [{"v_min": 1.1, "v_max": 1.0}, {"rating_mva": 0}, {"v_max": np.nan}, {"v_min": -1}]
)
def test_impossible_limits_are_refused(triangle, given):
    with pytest.raises(GridshiftError):
        with_limits(triangle, **given)


def test_what_is_missing_is_said(triangle):
    notes = limit_notes(triangle)
    assert any("1 of 3 buses have no voltage limits" in note for note in notes)
    assert any("1 of 3 branches have no rating" in note for note in notes)
    none = replace(triangle, branch_rated=np.zeros(3, bool), bus_v_min=np.full(3, np.nan),
                   bus_v_max=np.full(3, np.nan))  # fmt: skip
    notes = limit_notes(none)
    assert any("no bus has voltage limits" in note for note in notes)
    assert any("no branch has a rating" in note for note in notes)
    assert np.isnan(risk_of(none, _states()).any_overload)


def test_severity_grows_with_violations_and_with_unsolved_scenarios():
    assert severity(excess=0, unsolved=0) == 0
    assert severity(excess=2, unsolved=0) > severity(excess=1, unsolved=0)
    assert severity(excess=1, unsolved=0.02) > severity(excess=1, unsolved=0.01)
    assert severity(excess=np.nan, unsolved=1) == UNSOLVED_SCENARIO


def test_lost_supply_is_above_everything_and_ordered_by_megawatts():
    assert lost_supply_severity(0) >= LOST_SUPPLY > severity(excess=1e4, unsolved=1)
    assert lost_supply_severity(20) > lost_supply_severity(10)


@pytest.mark.parametrize("given", [{"v_max": 0.85}, {"v_min": 1.2}])
def test_one_limit_beyond_the_grids_own_other_one_is_refused_with_the_bus(triangle, given):
    with pytest.raises(GridshiftError, match=r"above 0.85 at bus:0|1.2 above"):
        with_limits(triangle, **given)  # its own are at some buses only
