"""What a comparison holds. Speed itself is nothing that a test could be about."""

import io
import json

import numpy as np
import pytest
from benchmarks.engine.tables import ratios_table
from rich.console import Console

from gridshift.cli.bench import peers_table
from gridshift.grid.readers import read_grid
from gridshift.peers.case import Case, connected_branches
from gridshift.peers.comparison import compare
from gridshift.peers.peer import Peer, Solved
from gridshift.peers.roster import PEERS
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
    terminal = Console(record=True, file=io.StringIO())
    terminal.print(peers_table(found))
    shown = terminal.export_text()
    assert all(p.name in shown for p in case14.peers)


def test_outages_of_the_list_cut_nothing_off():
    network = read_grid("case30")
    left = {network.branch_labels[b] for b in connected_branches(network)}
    for label in network.elements:
        assert (len(network.without([label]).cut_off_buses()) == 0) == (label in left)


def test_a_case_with_an_outage_has_it_in_both_of_its_forms():
    case = Case.of("case30", ("line:9",))
    assert not case.net.line.in_service[9]
    assert not case.network.branch_in_service[9]
    assert np.abs(case.start[case.bus_rows] - case.nominal).max() == 0
