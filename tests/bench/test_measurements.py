"""What a measurement holds. Speed itself is nothing that a test could be about."""

import json

import numpy as np
import pytest

from gridshift.bench.case import Case
from gridshift.bench.outages import connected_branches, n_minus_one, set_up, sweep_lines
from gridshift.bench.peer import Peer, Solved
from gridshift.bench.peers import PEERS
from gridshift.bench.phases import chord_phases
from gridshift.bench.solve import compare
from gridshift.bench.tables import peers_table, ratios_table
from gridshift.bench.threads import scaling
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import sample_loads
from gridshift.study.text import json_value


@pytest.fixture(scope="module")
def case14():
    return compare("case14", num_rows=40, rounds=2)


def test_every_peer_is_timed_or_says_why_not(case14):
    assert {p.name for p in case14.peers} | set(case14.left_out) == {p.name for p in PEERS}
    assert all(p.us_per_row > 0 and p.num_converged == p.num_rows for p in case14.peers)
    assert case14.left_out["power-grid-model"] == "has no buses of given voltage (PV)"


def test_answers_are_checked_against_the_equations(case14):
    assert max(p.worst_mismatch for p in case14.peers) <= case14.tol * 1.001
    assert max(p.max_dv for p in case14.peers) < 1e-7  # both within 1e-8 of balance


def test_the_ratio_is_to_the_fastest_mode_that_keeps_all_rows():
    class Stub(Peer):
        def __init__(self, name, lost, seconds):
            self.name, self.lost, self.seconds = name, lost, seconds

        def prepare(self, case, load_p, load_q, tol):
            exact = PEERS[0].solve(case, load_p, load_q, tol)
            done = exact.converged.copy()
            done[: self.lost] = False
            rounds = range(int(self.seconds * 1e6))

            def run():
                sum(rounds)
                return Solved(exact.voltage, done, exact.iterations)

            return run

    slow = Stub("lightsim2grid, keeps", 0, 0.05)
    quick = Stub("lightsim2grid, loses", 1, 0.001)
    found = compare("case14", num_rows=8, rounds=1, peers=(PEERS[0], quick, slow))
    assert found.fastest_lightsim2grid is not None
    assert found.fastest_lightsim2grid.name == slow.name


def test_a_result_survives_json_and_becomes_tables(case14):
    found = json.loads(json.dumps(json_value(case14.as_dict())))
    assert found["us_per_row"] == found["peers"][0]["us_per_row"]
    assert found["ratio_to_lightsim2grid"] == pytest.approx(case14.ratio_to_lightsim2grid)
    assert "case14" in ratios_table([found]).markdown()
    assert len(peers_table(found).rows) == len(case14.peers)


def test_phases_move_nothing_and_count_what_the_plan_holds():
    network = read_grid("case14")
    prepared = prepare(network)
    engine, topology = prepared.engine, prepared.topology
    rows = sample_loads(network, np.random.default_rng(0), 40, regime="fixed")
    before = engine.solve(topology, rows.load_p, rows.load_q).voltage
    phases = {p.name: p for p in chord_phases(engine, topology, rows.load_p, rows.load_q)}
    assert np.array_equal(engine.solve(topology, rows.load_p, rows.load_q).voltage, before)
    assert phases["substitute"].fma == engine.symbolic.num_factors
    # an entry of the admittance matrix that isn't in a slack row costs one complex product
    rows_of_slack = np.diff(network.admittance.indptr)[network.slack].sum()
    entries = network.admittance.nnz - rows_of_slack
    assert phases["mismatch"].fma == 4 * entries + 2 * engine.symbolic.num_unknowns
    assert all(phase.ns > 0 for phase in phases.values())


def test_the_sweep_solves_every_line_outage_that_keeps_case30_connected():
    found = sweep_lines("case30", num_rows=8, threads=2, rounds=1)
    assert (found.num_outages, found.num_solved) == (38, 38 * 8)  # findings: 38 of 41
    assert found.setup_s < found.cpu_s


def test_outages_are_those_of_lightsim2grid_with_the_same_solutions():
    found = n_minus_one("case118", rounds=1)
    assert found.num_outages == 177  # 166 lines and 11 transformers
    assert found.peers_solved["default"] == found.num_solved == 177
    assert found.max_dv < 1e-7  # both within 1e-8 of balance
    assert found.published_ms == 0.054


def test_a_sample_of_outages_says_that_it_is_one():
    found = n_minus_one("case30", most=10, rounds=1)
    assert found.sampled
    assert found.num_outages == 10


def test_outages_of_the_list_cut_nothing_off():
    network = read_grid("case30")
    left = {network.branch_labels[b] for b in connected_branches(network)}
    for label in network.elements:
        assert (len(network.without([label]).cut_off_buses()) == 0) == (label in left)


def test_set_up_tells_the_plan_from_the_topologies():
    found = set_up("case14")
    assert min(found.plan_s, found.alone_ms, found.together_ms) > 0


def test_a_case_with_an_outage_has_it_in_both_of_its_forms():
    case = Case.of("case30", ("line:9",))
    assert not case.net.line.in_service[9]
    assert not case.network.branch_in_service[9]
    assert np.abs(case.start[case.bus_rows] - case.nominal).max() == 0


def test_scaling_times_every_number_of_threads():
    found = scaling("case14", num_rows=70, threads=(1, 2, 3), rounds=1)
    assert list(found.seconds) == [1, 2, 3]
    assert all(0 < seconds < 60 for seconds in found.seconds.values())
