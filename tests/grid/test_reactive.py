"""Reactive limits: the rule holds in every row, pandapower agrees, neighbours don't matter."""

from dataclasses import replace

import numpy as np
import pandapower
import pytest

from gridshift.errors import GridshiftError
from gridshift.grid.limited_balance import check_limited
from gridshift.grid.powerflow import RowStatus, solve
from gridshift.grid.reactive import bus_limits
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.grid.scenarios import LoadScenarios, named_rng, nominal_loads, sample_loads
from gridshift.grid.statistics import Limits
from gridshift.grid.streaming import stream_rows
from tests.reference.limited_newton import Limited, LimitedGrid


def drawn(network, num_rows, spread=0.4):
    rng = named_rng(network.name, "limits")
    return sample_loads(network, rng, num_rows, spread=spread, regime="fixed")


def assert_kept(network, loads, solution):
    """The rule, and the power balance with it, in plain numpy."""
    low, high = bus_limits(network)
    ok, pv, pq = solution.solved, network.pv, network.pq
    assert ok.any()
    v, side = solution.voltage[ok], solution.at_limit[ok][:, pv]
    power = v * (network.admittance @ v.T).T.conj()
    power -= network.injected(loads.load_p + 1j * loads.load_q)[ok]
    assert np.abs(power.real[:, network.non_slack]).max() < 1e-7
    assert np.abs(power.imag[:, pq]).max() < 1e-7
    given, off = power.imag[:, pv], np.abs(v[:, pv]) - network.bus_v_set[pv]
    held = side == 0
    assert np.abs(off[held]).max() < 1e-7
    assert np.maximum(given - high[pv], low[pv] - given)[held].max() < 1e-7
    assert np.abs(given - high[pv])[side > 0].max(initial=0) < 1e-7
    assert np.abs(given - low[pv])[side < 0].max(initial=0) < 1e-7
    assert off[side > 0].max(initial=0) < 1e-7
    assert off[side < 0].min(initial=0) > -1e-7


def by_pandapower(net, network):
    with quiet_pandapower():
        pandapower.runpp(
            net, enforce_q_lims=True, tolerance_mva=1e-10, calculate_voltage_angles=True
        )
    bus = net.res_bus.loc[[int(label.partition(":")[2]) for label in network.bus_labels]]
    return bus.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(bus.va_degree.to_numpy()))


@pytest.mark.parametrize("outage", ["", "line:20", "line:50"])
def test_voltages_are_pandapowers_with_enforced_limits(case118, outage):
    net, network = builtin_net("case118"), case118
    if outage:
        net.line.at[int(outage.partition(":")[2]), "in_service"] = False
        network = case118.without([outage])
    found = solve(network, nominal_loads(network), tol=1e-10, q_limits=True)
    assert np.abs(found.at_limit).sum() > 3
    np.testing.assert_allclose(found.voltage[0], by_pandapower(net, network), rtol=0, atol=1e-8)


def test_every_row_keeps_the_rule(case118, case14):
    for network in (case118, case14.without(["line:2"]), tightened(case14)):
        loads = drawn(network, 120)
        assert_kept(network, loads, solve(network, loads, q_limits=True))


def tightened(network, room=0.02):
    """Limits close around the nominal reactive power, so that rows differ in what is reached."""
    v = solve(network, nominal_loads(network)).voltage[0]
    power = v * (network.admittance @ v).conj() - network.injected(network.load_power)
    given = power.imag[network.gen_bus]
    return replace(
        network, gen_q_min=given - room, gen_q_max=given + room, outage_of=None
    )  # fmt: skip


def test_buses_that_reach_no_limit_leave_rows_bit_for_bit(case14):
    network = tightened(case14)
    loads = drawn(network, 200, spread=0.1)
    plain, kept = solve(network, loads), solve(network, loads, q_limits=True)
    untouched = ~kept.at_limit.any(1)
    assert 0 < untouched.sum() < 200
    np.testing.assert_array_equal(kept.voltage[untouched], plain.voltage[untouched])


@pytest.mark.parametrize("make", [lambda n: n, lambda n: tightened(n, 0.1)])
def test_rows_depend_on_no_neighbour_and_no_thread(case118, make):
    network = make(case118)
    loads = drawn(network, 70)
    whole = solve(network, loads, q_limits=True)
    parts = [solve(network, loads.rows(np.array(rows)), q_limits=True, threads=2)
             for rows in (range(3), range(3, 41), range(41, 70))]  # fmt: skip
    for name in ("voltage", "status", "mismatch", "at_limit"):
        joined = np.concatenate([getattr(one, name) for one in parts])
        np.testing.assert_array_equal(joined, getattr(whole, name))


def test_a_row_without_a_solution_leaves_nothing_behind(case118):
    loads = drawn(case118, 64)
    alone = solve(case118, loads, q_limits=True)
    heavy = loads.load_p.copy()
    heavy[:40] *= 1e3
    solve(case118, LoadScenarios(load_p=heavy, load_q=loads.load_q), q_limits=True)
    again = solve(case118, loads, q_limits=True)
    np.testing.assert_array_equal(again.voltage, alone.voltage)


def test_streamed_rows_count_what_solved_rows_reach(case118):
    for network in (case118, tightened(case118, 0.1)):
        loads = drawn(network, 90)
        rows = solve(network, loads, q_limits=True)
        counted = stream_rows(network, loads, Limits.of(network), q_limits=True, threads=2)
        np.testing.assert_array_equal(counted.solved, rows.solved)
        np.testing.assert_array_equal(counted.at_limit[0], (rows.at_limit > 0).sum(0))
        np.testing.assert_array_equal(counted.at_limit[1], (rows.at_limit < 0).sum(0))
        assert counted.any_at_limit == rows.at_limit.any(1).sum()
        mean = rows.voltage[rows.solved].mean(0)
        np.testing.assert_allclose(counted.statistics.mean_voltage(), mean, rtol=0, atol=1e-9)


def test_a_bus_without_room_is_a_pq_bus(case14):
    bus = case14.pv[0]
    fixed = np.where(case14.gen_bus == bus, -0.1, np.nan)
    network = replace(
        case14, gen_q_min=np.where(np.isnan(fixed), -np.inf, fixed),
        gen_q_max=np.where(np.isnan(fixed), np.inf, fixed),
    )  # fmt: skip
    loads = nominal_loads(network)
    found = solve(network, loads, q_limits=True, tol=1e-10)
    kind, injected = case14.bus_kind.copy(), case14.bus_fixed.copy()
    kind[bus], injected[bus] = 1, injected[bus] - 0.1j
    as_pq = solve(replace(case14, bus_kind=kind, bus_fixed=injected), loads, tol=1e-10)
    np.testing.assert_allclose(found.voltage, as_pq.voltage, rtol=0, atol=1e-9)


def test_limits_of_generators_at_one_bus_are_summed(case14):
    two = replace(
        case14,
        gen_labels=(*case14.gen_labels, "gen:9"),
        gen_bus=np.append(case14.gen_bus, case14.gen_bus[-1]),
        gen_p=np.append(case14.gen_p, 0.0),
        gen_q_min=np.append(case14.gen_q_min, -0.3),
        gen_q_max=np.append(case14.gen_q_max, np.inf),
    )
    low, high = bus_limits(two)
    bus = case14.gen_bus[-1]
    assert low[bus] == pytest.approx(case14.gen_q_min[-1] - 0.3)
    assert high[bus] == np.inf


def test_a_grid_without_limits_is_solved_as_ever(case14):
    free = replace(case14, gen_q_min=np.full(5, -np.inf), gen_q_max=np.full(5, np.inf))
    loads = drawn(free, 20)
    found = solve(free, loads, q_limits=True)
    assert not found.at_limit.any()
    np.testing.assert_array_equal(found.voltage, solve(free, loads).voltage)


def test_limits_that_are_no_range_are_refused_by_name(case14):
    crossed = replace(case14, gen_q_min=case14.gen_q_max + 1)
    solve(crossed, nominal_loads(crossed))  # of no account where limits are not asked for
    with pytest.raises(GridshiftError, match="gen:0 of case14 can give 150 to 50 Mvar"):
        solve(crossed, nominal_loads(crossed), q_limits=True)


def test_rows_without_a_solution_are_marked(case14):
    heavy = LoadScenarios(load_p=9 * case14.load_power.real[None],
                          load_q=9 * case14.load_power.imag[None])  # fmt: skip
    found = solve(case14, heavy, q_limits=True)
    assert found.status[0] not in (RowStatus.SOLVED, RowStatus.NOT_RUN)
    assert np.isnan(found.voltage).all()
    assert not found.at_limit.any()


def test_rows_are_judged_by_voltages_that_are_known_where_nominal_demand_has_no_solution(case14):
    network = case14.without(["line:0"])
    assert not solve(network, nominal_loads(network), q_limits=True).solved[0]
    rng = named_rng("case14", "scenarios", seed=2)
    loads = sample_loads(network, rng, 400, spread=0.5, regime="fixed").rows(np.array([163, 358]))
    plain = solve(network, loads).voltage
    dense = [LimitedGrid(network).solve(Limited(v, 0.0), power)
             for v, power in zip(plain, loads.load_power, strict=True)]  # fmt: skip
    for tol in (1e-7, 1e-8):  # chord steps end in time for the first alone
        found = solve(network, loads, tol=tol, q_limits=True)
        assert found.solved.all()
        for voltage, one in zip(found.voltage, dense, strict=True):
            assert one is not None
            np.testing.assert_allclose(voltage, one.voltage, rtol=0, atol=10 * tol)


def test_the_certificate_of_limits_sees_what_loads_draw(case14):
    share = np.full(case14.num_loads, 0.4 + 0.2j)
    network = replace(case14, load_current=share, load_impedance=share / 2, outage_of=None)
    loads = drawn(network, 12)
    found = solve(network, loads, q_limits=True)
    assert check_limited(network, loads, found.voltage).max() < 1e-7
