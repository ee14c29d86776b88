"""Loads of constant power, current and impedance, against pandapower and their own equations."""

import copy
import warnings

import numpy as np
import pytest

import gridshift as gs
from gridshift.errors import GridshiftError, GridshiftWarning
from gridshift.grid.balance import StateRows, check
from gridshift.grid.contingency import cut_off_buses
from gridshift.grid.powerflow import solve
from gridshift.grid.quantities import quantities
from gridshift.grid.readers.pandapower_source import builtin_net
from gridshift.grid.scenarios import nominal_loads, sample_loads
from gridshift.grid.statistics import Limits, Statistics
from gridshift.grid.streaming import stream_rows
from gridshift.grid.tangent import Tangent
from gridshift.grid.voltage_dependence import drawn
from tests.reference.small_nets import pandapowers_voltages, ring

AGREED = 1e-8
SHARES = ("const_z_p_percent", "const_i_p_percent", "const_z_q_percent", "const_i_q_percent")


def with_shares(net, z_p=30.0, i_p=20.0, z_q=30.0, i_q=20.0):
    net = copy.deepcopy(net)
    for column, value in zip(SHARES, (z_p, i_p, z_q, i_q), strict=True):
        net.load[column] = value
    return net


@pytest.fixture(scope="module")
def net118():
    return with_shares(builtin_net("case118"))


@pytest.fixture(scope="module")
def zip118(net118):
    return gs.from_pandapower(net118)


@pytest.fixture(scope="module")
def drawn118(zip118):
    return sample_loads(zip118, np.random.default_rng(2), 40, spread=0.4)


@pytest.mark.parametrize(
    "shares", [(100, 0, 100, 0), (0, 100, 0, 100), (30, 20, 10, 60), (0, 0, 50, 50)]
)
def test_shares_of_active_and_reactive_power_are_followed_apart(shares):
    net = with_shares(ring(), *shares)
    net.load[["p_mw", "q_mvar"]] *= 4
    network = gs.from_pandapower(net)
    found = solve(network, nominal_loads(network), tol=1e-10)
    assert np.abs(found.voltage[0] - pandapowers_voltages(net)).max() < 1e-9
    constant = gs.from_pandapower(with_shares(net, 0, 0, 0, 0))
    other = solve(constant, nominal_loads(constant), tol=1e-10)
    assert np.abs(found.voltage - other.voltage).max() > 1e-5


def test_rows_of_outages_agree_with_pandapower(net118, zip118, drawn118):
    lines = ["line:3", "line:50", "line:100", "trafo:2"]
    assert not any(len(cut) for cut in cut_off_buses(zip118, [(line,) for line in lines]))
    for row, line in enumerate(lines):
        found = solve(zip118.without([line]), drawn118, tol=1e-10)
        assert found.solved.all()
        net = copy.deepcopy(net118)
        kind, _, index = line.partition(":")
        net[kind].loc[int(index), "in_service"] = False
        net.load["p_mw"] = drawn118.load_p[row] * zip118.base_mva
        net.load["q_mvar"] = drawn118.load_q[row] * zip118.base_mva
        assert np.abs(found.voltage[row] - pandapowers_voltages(net)).max() < AGREED


def test_a_row_balances_what_loads_draw_at_its_voltages(zip118, drawn118):
    found = solve(zip118, drawn118)
    taken = np.zeros((40, zip118.num_buses), complex)
    v = np.abs(found.voltage[:, zip118.load_bus])
    share = 0.5 + 0.2 * v + 0.3 * v**2
    np.add.at(taken.T, zip118.load_bus, (drawn118.load_power * share).T)
    power = found.voltage * (zip118.admittance @ found.voltage.T).T.conj()
    off = power + taken - zip118.scheduled
    assert np.abs(off[:, zip118.pq]).max() < 2e-8
    assert np.abs(off[:, zip118.pv].real).max() < 2e-8
    np.testing.assert_allclose(
        drawn(zip118, drawn118.load_power, found.voltage), drawn118.load_power * share, rtol=1e-12
    )
    # so says the certificate, of these and of other voltages
    known = check(zip118, drawn118, StateRows.of_voltage(zip118, found.voltage))
    assert np.abs(known.mismatch - found.mismatch).max() < 1e-10
    moved = found.voltage.copy()
    moved[:, zip118.pq] *= 1.001
    far = check(zip118, drawn118, StateRows.of_voltage(zip118, moved))
    power = moved * (zip118.admittance @ moved.T).T.conj() - zip118.scheduled
    np.add.at(power.T, zip118.load_bus, drawn(zip118, drawn118.load_power, moved).T)
    own = np.maximum(np.abs(power[:, zip118.non_slack].real).max(1),
                     np.abs(power[:, zip118.pq].imag).max(1))  # fmt: skip
    np.testing.assert_allclose(far.mismatch, own, rtol=1e-9)


def test_heavy_rows_are_followed_as_far_as_they_have_a_solution():
    network = gs.from_pandapower(with_shares(ring()))
    one = nominal_loads(network, 3)
    heavy = type(one)(
        load_p=one.load_p * [[1], [20], [900]], load_q=one.load_q * [[1], [20], [900]]
    )
    found = solve(network, heavy)
    assert found.status.tolist()[:2] == [0, 0]
    assert np.isnan(found.voltage[2]).all() == (found.status[2] != 0)
    impedance = gs.from_pandapower(with_shares(ring(), 100, 0, 100, 0))
    found = solve(impedance, heavy)
    assert found.solved.all()  # an impedance has no nose


def worst_balance(network, loads, voltage):
    """(R,) largest active mismatch, from demands at the voltages of the rows, p.u."""
    power = voltage * (network.admittance @ voltage.T).T.conj() - network.scheduled
    np.add.at(power.T, network.load_bus, drawn(network, loads.load_power, voltage).T)
    return np.abs(power[:, network.non_slack].real).max(1)


def test_reactive_limits_and_a_distributed_slack_see_what_is_drawn(zip118):
    loads = nominal_loads(zip118)
    limited = solve(zip118, loads, tol=1e-10, q_limits=True)
    power = quantities(zip118, loads, limited.voltage)
    side, pv = limited.at_limit[0, zip118.gen_bus], zip118.bus_kind[zip118.gen_bus] == 2
    limits = np.where(side > 0, zip118.gen_q_max, zip118.gen_q_min) * zip118.base_mva
    assert side.any()
    np.testing.assert_allclose(power.gen_q[0, side != 0], limits[side != 0], atol=1e-5)
    assert (power.gen_q[0, pv] < zip118.gen_q_max[pv] * zip118.base_mva + 1e-5).all()
    # the loads of a bus that isn't held any more draw what they do at its voltage
    moved = zip118.gen_bus[side != 0]
    off = np.abs(limited.voltage[0, moved]) - zip118.bus_v_set[moved]
    assert (np.abs(off) > 1e-4).any()
    assert worst_balance(zip118, loads, limited.voltage)[0] < 1e-9

    shared = solve(zip118, loads, tol=1e-10, distributed_slack="generation")
    power = quantities(zip118, loads, shared.voltage)
    at_slack = zip118.gen_bus == zip118.slack[0]
    given = shared.gen_p[0, at_slack].sum() * zip118.base_mva
    assert abs(power.gen_p[0, at_slack].sum() - given) < 1e-5


def test_results_are_what_pandapower_writes(net118, zip118):
    import pandapower as pp

    found = solve(zip118, nominal_loads(zip118), tol=1e-10)
    net = gs.to_pandapower(net118, found)
    pp.runpp(other := copy.deepcopy(net118), tolerance_mva=1e-10, numba=False)
    for table in ("res_load", "res_bus", "res_ext_grid"):
        assert np.abs(net[table].p_mw - other[table].p_mw).max() < 1e-6, table
    assert np.abs(net.res_load.q_mvar - other.res_load.q_mvar).max() < 1e-6
    # pandapower takes demands at 1 p.u. where it computes what a generator gives
    missing = np.zeros(118)
    np.add.at(missing, net.load.bus, net.load.q_mvar - net.res_load.q_mvar)
    theirs = other.res_gen.q_mvar - missing[net.gen.bus]
    assert np.abs(net.res_gen.q_mvar - theirs).max() < 1e-6
    power = found.voltage[0] * (zip118.admittance @ found.voltage[0]).conj() * zip118.base_mva
    given = power.imag.copy()
    np.add.at(given, net.load.bus, net.res_load.q_mvar)
    assert np.abs(net.res_gen.q_mvar - given[net.gen.bus]).max() < 1e-6
    np.testing.assert_allclose(net.load.p_mw, net118.load.p_mw, rtol=1e-14)


def test_a_bus_where_pandapower_takes_means_is_told():
    import pandapower as pp

    net = ring()
    net.load.loc[1, "const_z_p_percent"] = 80.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.from_pandapower(net)
    pp.create_load(net, 1, 1.0, 0.0)
    with pytest.warns(GridshiftWarning, match=r"bus:1: each load keeps its own shares"):
        network = gs.from_pandapower(net)
    found = solve(network, nominal_loads(network), tol=1e-10)
    v = abs(found.voltage[0, 1])
    taken = 1.5 * (0.2 + 0.8 * v**2) + 1.0
    power = found.voltage[0] * (network.admittance @ found.voltage[0]).conj()
    assert abs(power[1].real + taken) < 1e-9


def test_streamed_rows_are_the_solved_ones(zip118, drawn118):
    limits = Limits.of(zip118)
    streamed = stream_rows(zip118, drawn118, limits)
    solution = solve(zip118, drawn118)
    assert np.array_equal(streamed.mismatch, solution.mismatch)
    whole = Statistics(limits)
    whole.add_complex(solution.voltage)
    for name, values in whole.stored().items():
        assert np.array_equal(streamed.statistics.stored()[name], values), name


def test_what_takes_demands_as_given_refuses_such_loads(zip118):
    with pytest.raises(GridshiftError, match="load:0 and 98 more of case118 depend on the voltage"):
        Tangent.of(zip118)
