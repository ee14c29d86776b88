"""What a batch solve promises, against a dense textbook Newton."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandapower as pp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gridshift.errors import GridshiftError, NotConvergedError, ScenarioError
from gridshift.grid.engine import Engine
from gridshift.grid.equations import branch_loading, branch_powers
from gridshift.grid.network import BusKind
from gridshift.grid.pivoting import pivoting_newton
from gridshift.grid.powerflow import RowStatus, nominal, solve
from gridshift.grid.prepared import prepare, prepare_all
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng, nominal_loads, sample_loads
from gridshift.peers.case import Case
from tests.reference.grids import branch_two_port, make_network, random_network
from tests.reference.homotopy import operating_root
from tests.reference.newton import dense_newton, off_balance

TOL = 1e-8


def rows_of(network, num_rows, spread=0.2, seed=0):
    return sample_loads(
        network, np.random.default_rng(seed), num_rows, spread=spread, regime="fixed"
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    buses=st.integers(2, 25),
    extra=st.integers(0, 25),
    stress=st.sampled_from([0.5, 1.0, 4.0, 20.0]),
)
def test_no_random_grid_gives_a_wrong_solution_or_loses_one_that_newton_finds(
    seed, buses, extra, stress
):
    rng = np.random.default_rng(seed)
    network = random_network(rng, buses, extra=extra, stress=stress)
    loads = sample_loads(network, rng, 5, spread=0.3, regime="fixed")
    solution = solve(network, loads)
    base = nominal(network)
    for row, demand in enumerate(loads.load_power):
        if solution.solved[row]:
            assert off_balance(network, solution.voltage[row], demand) <= TOL * 1.01
        else:
            assert np.isnan(solution.voltage[row]).all()
        if base.solved[0]:
            v, converged = dense_newton(network, base.voltage[0], demand)
            if converged and np.abs(v).min() > 0.6:
                assert solution.status[row] in (RowStatus.SOLVED, RowStatus.IMPLAUSIBLE)
                if solution.solved[row] and np.abs(solution.voltage[row]).min() > 0.6:
                    assert np.abs(solution.voltage[row] - v).max() < 1e-5


def test_rows_agree_with_the_dense_newton_on_case30(case30):
    loads = rows_of(case30, 20)
    solution = solve(case30, loads, tol=1e-10)
    for row, demand in enumerate(loads.load_power):
        v, converged = dense_newton(case30, case30.v_start, demand, tol=1e-12)
        assert converged
        assert np.abs(solution.voltage[row] - v).max() < 1e-9  # both within 1e-10 of balance


def test_a_tolerance_of_1e10_is_reached(case118):
    assert solve(case118, rows_of(case118, 64), tol=1e-10).mismatch.max() <= 1e-10


def test_every_outage_is_solved_with_the_plan_of_the_intact_grid(case30):
    pairs = list(combinations(case30.elements, 2))[::40]
    for pair in pairs:
        network = case30.without(pair)
        solution = nominal(network)
        if not solution.solved[0]:
            assert solution.status[0] == RowStatus.ISLANDED
            continue
        v, converged = dense_newton(network, case30.v_start, network.load_power)
        assert converged
        assert np.abs(solution.voltage[0] - v).max() < 1e-8


def test_a_poisoned_row_leaves_its_neighbours_bit_for_bit(case118):
    good = rows_of(case118, 70)
    load_p = good.load_p.copy()
    load_p[33, 5] = np.nan
    load_p[40] *= 50  # no solution
    bad = LoadScenarios(load_p=load_p, load_q=good.load_q)
    clean, mixed = solve(case118, good), solve(case118, bad)
    others = np.delete(np.arange(70), [33, 40])
    assert np.array_equal(clean.voltage[others], mixed.voltage[others])
    assert mixed.status[33] == RowStatus.NOT_RUN
    assert "not a finite number" in mixed.reason
    assert mixed.status[40] == RowStatus.NO_CONVERGENCE
    assert np.isnan(mixed.voltage[[33, 40]]).all()
    assert mixed.counts() == {"solved": 68, "no_convergence": 1, "not_run": 1}
    with pytest.raises(NotConvergedError, match="33, 40"):
        mixed.require_converged()


@pytest.mark.parametrize("rows", [1, 7, 8, 31, 32, 33, 100])
def test_results_do_not_depend_on_threads_or_on_the_size_of_the_batch(case30, rows):
    loads = rows_of(case30, 100)
    whole = solve(case30, loads, loading=True)
    some = solve(case30, loads.rows(slice(0, rows)), threads=3, loading=True)
    assert np.array_equal(whole.voltage[:rows], some.voltage)
    assert np.array_equal(whole.loading[:rows], some.loading)


def test_flows_from_the_kernel_are_those_of_the_equations(case300):
    # some rows of case300 go through Newton: both ways of computing flows are seen
    solution = solve(case300, rows_of(case300, 64), powers=True, loading=True)
    ok = solution.solved
    assert ok.sum() > 50
    network = case300
    expected = branch_powers(network, solution.voltage[ok])
    np.testing.assert_allclose(solution.powers[ok], expected, atol=1e-9)
    expected = branch_loading(network, solution.voltage[ok])
    np.testing.assert_allclose(solution.loading[ok], expected, atol=1e-12)
    assert np.isnan(solution.loading[~ok]).all()


def test_rows_of_case300_are_those_that_full_newton_solves_or_more(case300):
    loads = rows_of(case300, 150, seed=5)
    solution = solve(case300, loads)
    start = nominal(case300).voltage[0]
    assert not solution.solved.all()  # the set has rows without solution
    for row in np.flatnonzero(~solution.solved):
        v, converged = dense_newton(case300, start, loads.load_power[row])
        # what Newton's method reaches there all the same are low-voltage roots
        assert not converged or operating_root(case300, loads.load_power[row]) is None, v


def test_topologies_prepared_together_equal_those_prepared_alone(case118):
    labels = [label for label in case118.elements if label.startswith("line")][20:31]
    together = [case118.without([label]) for label in labels]
    for network, prepared in zip(together, prepare_all(together), strict=True):
        alone, shared = prepare(case118.without(network.outaged)).topology, prepared.topology
        assert np.array_equal(alone.point.voltage, shared.point.voltage)
        assert np.array_equal(alone.point.upper, shared.point.upper)


def test_one_scenario_on_many_topologies_is_solved_as_the_dense_newton_solves_each(case118):
    engine = Engine.of(case118)
    removed = [(b,) for b in range(case118.num_branches)]
    together, _ = engine.nominal(removed, threads=2)
    checked = 0
    for b in range(0, case118.num_branches, 9):
        network = case118.without([case118.branch_labels[b]])
        if not len(network.cut_off_buses()):
            found = together.voltage[b].view(complex)
            v, converged = dense_newton(network, case118.v_start, network.load_power)
            assert converged
            assert np.abs(found - v).max() < TOL  # both within 1e-8 of balance
            assert np.abs(found - prepare(network).voltage).max() < 1e-12
            checked += 1
    assert checked > 10


def test_an_islanding_outage_is_islanded_and_says_which_buses(case30):
    solution = nominal(case30.without(["line:0", "line:1"]))
    assert solution.counts() == {"solved": 0, "islanded": 1}
    assert np.isnan(solution.voltage).all()
    assert "and 24 more" in solution.reason  # 29 buses, five are named


def two_buses(load, *, start=1.0):
    """A line of reactance 0.1 feeds P, so v^2 = (1 ± sqrt(1 - 0.04 P^2)) / 2."""
    network = make_network(
        [BusKind.SLACK, BusKind.PQ], [(0, 1, branch_two_port(0.0, 0.1))], [(1, load + 0.0j)]
    )
    return replace(network, v_start=np.array([1.0, start], complex))


def test_a_start_at_the_low_voltage_root_leads_to_the_operating_one():
    found = nominal(two_buses(0.5, start=0.05 * np.exp(-1.5j)))
    assert found.solved[0]
    assert abs(abs(found.voltage[0, 1]) - np.sqrt((1 + np.sqrt(1 - 0.01)) / 2)) < 1e-8


def test_up_to_the_nose_every_row_has_the_upper_root():
    load = 5.0 * (1 - np.logspace(-6, -0.1, 40))  # the nose is at 1 / (2 x) = 5
    network = two_buses(1.0)
    rows = LoadScenarios(load_p=load[:, None], load_q=0 * load[:, None])
    found = solve(network, rows).require_converged()
    upper = np.sqrt((1 + np.sqrt(1 - 0.04 * load**2)) / 2)
    # a mismatch of 1e-8 is dv = 1e-8 / |dP/dv|, which falls to zero at the nose
    allowed = 1e-8 + 2e-9 / np.sqrt(1 - 0.04 * load**2)
    assert (np.abs(np.abs(found.voltage[:, 1]) - upper) < allowed).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), level=st.floats(0.5, 1.2), spread=st.sampled_from([0.2, 0.9]))
def test_near_the_limit_solved_means_the_root_that_grows_out_of_no_load(seed, level, spread):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(2, 12)), extra=int(rng.integers(0, 8)))
    limit = 1.0
    while limit < 200 and operating_root(network, limit * network.load_power) is not None:
        limit *= 1.5
    network = replace(network, load_power=network.load_power * limit / 1.5 * level)
    for label in network.elements:
        if not len(network.without([label]).cut_off_buses()):
            network = network.without([label])
            break
    loads = sample_loads(network, rng, 4, spread=spread, regime="fixed")
    solution = solve(network, loads)
    for row, demand in enumerate(loads.load_power):
        root = operating_root(network, demand)
        if root is None:
            assert not solution.solved[row]
        else:
            assert solution.solved[row]
            # near the nose the voltages of a mismatch of 1e-8 are up to 1e-4 apart
            assert np.abs(solution.voltage[row] - root).max() < 3e-4


def test_case57_without_line_35_is_solved_at_a_low_voltage_on_the_operating_branch():
    network = read_grid("case57").without(["line:35"])
    found = nominal(network)
    root = operating_root(network, network.load_power)
    assert found.solved[0]
    assert np.abs(found.voltage[0] - root).max() < 1e-7
    assert np.abs(root).min() < 0.5


def test_a_load_beyond_the_nose_has_no_solution():
    network = make_network(
        [BusKind.SLACK, BusKind.PQ], [(0, 1, branch_two_port(0.0, 0.1))], [(1, 5.1 + 0.0j)]
    )
    assert nominal(network).counts() == {"solved": 0, "no_convergence": 1}  # limit: 1/(2x) = 5


@pytest.mark.parametrize("x", [1e-8, 1e-5, -0.05, 30.0])
def test_extreme_reactances_are_solved_to_tolerance_or_marked(x):
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.PQ, BusKind.PV],
        [
            (0, 1, branch_two_port(0.01, 0.05)),
            (1, 2, branch_two_port(0.0, x)),
            (2, 3, branch_two_port(0.01, 0.06, 0.02)),
            (0, 3, branch_two_port(0.02, 0.08)),
        ],
        [(1, 0.1 + 0.05j), (2, 0.2 + 0.1j)],
        gens=[(3, 0.1)],
    )
    solution = solve(network, rows_of(network, 9))
    for row, demand in enumerate(rows_of(network, 9).load_power):
        assert solution.solved[row]
        # stamps of 1e8 carry rounding errors of 1e-8: both sums are right to that
        slack = 1e-15 / abs(x) * 10
        assert off_balance(network, solution.voltage[row], demand) <= TOL + slack


def test_a_phase_shift_of_a_right_angle_is_solved():
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.PQ],
        [
            (0, 1, branch_two_port(0.01, 0.05, shift=np.pi / 2)),
            (1, 2, branch_two_port(0.01, 0.05)),
        ],
        [(2, 0.2 + 0.1j)],
    )
    solution = nominal(network)
    assert solution.solved[0]
    assert abs(np.angle(solution.voltage[0, 1]) + np.pi / 2) < 0.1


def test_a_bus_on_its_own_without_load_is_cut_off_not_solved():
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.PQ],
        [(0, 1, branch_two_port(0.01, 0.05)), (1, 2, branch_two_port(0.01, 0.05))],
        [(1, 0.2 + 0.1j)],
    )
    assert nominal(network.without(["line:1"])).counts() == {"solved": 0, "islanded": 1}


def test_a_topology_whose_pivots_vanish_goes_to_the_pivoting_factorisation(monkeypatch):
    # Bus 1 balances an inductive line by a capacitor: its diagonal block is singular at the
    # start, though the whole Jacobian is not.
    series = branch_two_port(0.0, 0.1)
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.PQ],
        [
            (0, 1, branch_two_port(0.0, 0.1)),
            (1, 2, branch_two_port(0.0, -0.1)),
            (2, 0, series),
        ],
        [(1, 0.01 + 0.0j), (2, 0.01 + 0.0j)],
    )
    reached = []

    def watched(*arguments, **settings):
        reached.append(pivoting_newton(*arguments, **settings))
        return reached[-1]

    monkeypatch.setattr("gridshift.grid.prepared.pivoting_newton", watched)
    solution = nominal(network)
    assert not Engine(network).intact.solved()
    assert not Engine(network).intact.trusted
    assert len(reached) == 1
    assert solution.solved[0]
    assert np.abs(reached[0].voltage[0].view(complex) - solution.voltage[0]).max() < TOL
    v, converged = dense_newton(network, network.v_start, network.load_power)
    assert converged
    assert np.abs(solution.voltage[0] - v).max() < 1e-7


def test_demands_of_the_wrong_shape_are_refused(case30):
    with pytest.raises(ScenarioError, match=r"needs real numbers \(rows, 20\)"):
        solve(case30, LoadScenarios(load_p=np.ones((3, 19)), load_q=np.ones((3, 19))))


@pytest.mark.parametrize(
    "setting",
    [
        {"tol": 0.0},
        {"tol": float("inf")},
        {"tol": float("nan")},
        {"threads": 0},
        {"threads": 2.5},
        {"max_iterations": 0},
        {"device": "tpu"},
    ],
)
def test_settings_that_mean_nothing_are_refused(case30, setting):
    with pytest.raises(GridshiftError, match=r"give a|choose one"):
        solve(case30, nominal_loads(case30), **setting)


def test_demands_may_be_lists_but_not_complex(case30):
    one = nominal_loads(case30)
    same = LoadScenarios(load_p=one.load_p.tolist(), load_q=one.load_q.tolist())
    assert np.array_equal(solve(case30, same).voltage, solve(case30, one).voltage)
    with pytest.raises(ScenarioError, match="real numbers"):
        solve(case30, LoadScenarios(load_p=one.load_power, load_q=one.load_q))


def test_no_rows_give_no_rows(case30):
    empty = nominal_loads(case30).rows(slice(0))
    solution = solve(case30, empty, powers=True, loading=True)
    assert solution.powers.shape == (0, case30.num_branches, 4)
    assert solution.counts() == {"solved": 0}


def test_numbers_replaced_in_an_outage_are_what_is_solved(case30):
    outage = case30.without(["line:9"])
    changed = replace(outage, gen_p=outage.gen_p * 1.5, bus_shunt=outage.bus_shunt * 0)
    intact = replace(case30, gen_p=case30.gen_p * 1.5, bus_shunt=case30.bus_shunt * 0)
    found = solve(changed, nominal_loads(changed)).voltage
    expected = solve(intact.without(["line:9"]), nominal_loads(changed)).voltage
    assert np.abs(found - expected).max() < 1e-7
    assert np.abs(found - solve(outage, nominal_loads(outage)).voltage).max() > 1e-4


def test_an_outage_that_cannot_be_followed_counts_but_not_a_bus_at_no_voltage():
    # case145 has no state without load; what Newton's method finds is all there is to go by
    network = read_grid("case145")
    base = nominal(network).voltage[0]
    found = nominal(network.without(["line:137"]))
    v, converged = dense_newton(network.without(["line:137"]), base, network.load_power)
    assert converged
    assert np.abs(found.voltage[0] - v).max() < TOL
    v, converged = dense_newton(network.without(["line:21"]), base, network.load_power)
    assert converged
    assert np.abs(v).min() < 1e-6  # a bus without load, at no voltage
    lifted = nominal(network.without(["line:21"]))
    assert lifted.solved[0]
    assert np.abs(lifted.voltage[0]).min() > 0.9


def test_an_outage_that_its_start_leads_astray_is_followed_from_no_load():
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.PQ],
        [
            (0, 1, branch_two_port(0.0, 0.1)),
            (1, 2, branch_two_port(0.0, 0.1)),
            (0, 2, branch_two_port(0.0, 0.1)),
        ],
        [(1, 0.3 + 0.1j), (2, 0.2 + 0.1j)],
    )
    engine = Engine(network)
    astray = np.array([1.0, 0.02 * np.exp(-1.5j), 0.02 * np.exp(-1.5j)]).view(float)
    found, operating = engine.nominal([(1,)], start=astray)
    assert operating[0]
    expected = operating_root(network.without(["line:1"]), network.load_power)
    assert np.abs(found.voltage[0].view(complex) - expected).max() < TOL


def test_nominal_rows_take_no_step(case118):
    solution = solve(case118, nominal_loads(case118, 3))
    assert solution.iterations.tolist() == [0, 0, 0]


def test_streams_with_other_names_are_other_streams():
    one, two = named_rng("case30", "test"), named_rng("case30", "context")
    assert one.random() != two.random()


def test_a_state_without_load_in_which_a_bus_has_no_voltage_is_not_followed():
    # lines of negative impedance lead to the root at 0 V of three buses of case1888rte
    case = Case.of("case1888rte")
    found = nominal(case.network)
    assert found.solved.all()
    pp.runpp(case.net, init="results", tolerance_mva=1e-8)
    rows = [int(label.partition(":")[2]) for label in case.network.bus_labels]
    assert np.abs(np.abs(found.voltage[0]) - case.net.res_bus.vm_pu.loc[rows]).max() < 1e-8


@pytest.mark.parametrize("outage", ["line:24", "line:34"])
def test_a_bus_without_load_that_fell_to_the_root_at_0_volts_is_lifted(outage):
    # pandapower ends at 0 V there; started from our voltages it stays
    case = Case.of("case145", (outage,))
    found = nominal(case.network)
    assert found.solved.all()
    assert np.abs(found.voltage[0]).min() > 0.9
    assert off_balance(case.network, found.voltage[0], case.network.load_power) < 1e-9
    size, angle = np.abs(found.voltage[0]), np.angle(found.voltage[0], deg=True)
    pp.runpp(case.net, tolerance_mva=1e-8, init_vm_pu=size, init_va_degree=angle)
    assert np.abs(case.net.res_bus.vm_pu - np.abs(found.voltage[0])).max() < 1e-8
