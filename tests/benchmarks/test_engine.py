"""What the engine's measurements hold. Speed itself is nothing that a test could be about."""

import numpy as np
from benchmarks.engine.outages import n_minus_one, set_up, sweep_lines
from benchmarks.engine.phases import chord_phases
from benchmarks.engine.threads import scaling

from gridshift.grid.prepared import prepare
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import sample_loads


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


def test_set_up_tells_the_plan_from_the_topologies():
    found = set_up("case14")
    assert min(found.plan_s, found.alone_ms, found.together_ms) > 0


def test_scaling_times_every_number_of_threads():
    found = scaling("case14", num_rows=70, threads=(1, 2, 3), rounds=1)
    assert list(found.seconds) == [1, 2, 3]
    assert all(0 < seconds < 60 for seconds in found.seconds.values())
