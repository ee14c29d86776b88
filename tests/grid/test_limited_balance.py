"""States against reactive limits: each row by its own kinds of buses; those beyond are solved."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.grid.balance import Origin, StateRows, repair
from gridshift.grid.limited_balance import check_limited
from gridshift.grid.powerflow import solve
from gridshift.grid.reactive import bus_limits
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads


@pytest.fixture(scope="module")
def network():
    return read_grid("case14")


@pytest.fixture(scope="module")
def loads(network):
    rng = named_rng("case14", "limited balance")
    return sample_loads(network, rng, 60, spread=0.5, regime="fixed")


def test_each_row_is_judged_by_its_own_kinds_of_buses(network, loads):
    limited, plain = solve(network, loads, q_limits=True), solve(network, loads)
    assert limited.solved.all()
    at_limit = limited.at_limit.any(1)
    assert 5 < at_limit.sum() < 55
    # mismatch 1e-8, and set-points held to rounding
    assert check_limited(network, loads, limited.voltage).max() < 2e-8
    found = check_limited(network, loads, plain.voltage)
    assert (found[at_limit] > 1e-6).all()
    assert found[~at_limit].max() < 2e-8
    # what a generator gives beyond its limit, by hand
    row, low_high = int(np.flatnonzero(at_limit)[0]), bus_limits(network)
    v = plain.voltage[row]
    power = v * (network.admittance @ v).conj() - network.injected(loads.load_power[row])
    beyond = np.maximum(power.imag - low_high[1], low_high[0] - power.imag)[network.pv].max()
    assert found[row] == pytest.approx(beyond, abs=2e-8)


def test_a_bus_on_the_wrong_side_is_off_by_its_voltage(network, loads):
    """At its upper limit and above its set-point: what pandapower may leave."""
    limited = solve(network, loads, q_limits=True)
    row = int(np.flatnonzero((limited.at_limit > 0).any(1))[0])
    bus = int(np.flatnonzero(limited.at_limit[row] > 0)[0])
    v_set = network.bus_v_set.copy()
    v_set[bus] = np.abs(limited.voltage[row, bus]) - 0.01
    other = replace(network, bus_v_set=v_set, outage_of=None)
    found = check_limited(other, loads.rows(slice(row, row + 1)), limited.voltage[[row]])
    assert found[0] == pytest.approx(0.01, abs=1e-7)


def test_predictions_beyond_limits_are_solved_and_the_others_kept(network, loads):
    exact = solve(network, loads, q_limits=True)
    rng, plain = np.random.default_rng(0), solve(network, loads).voltage
    off = 1 + 1e-3 * (rng.normal(size=plain.shape) + 1j * rng.normal(size=plain.shape))
    state = StateRows.of_voltage(network, plain * off)
    found = repair(network, loads, state, tol=1e-7, q_limits=True)
    at_limit = exact.at_limit.any(1)
    assert (found.origin[at_limit] == Origin.SOLVED).all()
    assert (found.origin[~at_limit] < Origin.SOLVED).sum() > 5
    np.testing.assert_array_equal(found.at_limit, exact.at_limit)
    # 1e-7 p.u. of power, times the condition of the grid
    np.testing.assert_allclose(found.voltage, exact.voltage, rtol=0, atol=1e-6)
    assert check_limited(network, loads, found.voltage).max() < 2e-7
