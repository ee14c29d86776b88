from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.baselines.deepopf_ft import admittance_ratios, embedded_topologies
from gridshift.adapt.baselines.topologies import (
    held_out_elements,
    solved_rows,
    training_topologies,
)
from gridshift.adapt.datasets import generate
from gridshift.grid.contingency import enumerate_outages
from gridshift.grid.scenarios import named_rng, sample_loads
from tests.adapt.conftest import quick_config


@pytest.mark.parametrize("outage", [["line:1"], ["line:1", "line:4"]])
def test_no_training_topology_has_a_held_out_element_out(grid, outage):
    network = grid.without(outage)
    topologies = training_topologies(network, multi=True)
    assert topologies[0] is grid
    assert {label for t in topologies for label in t.outaged}.isdisjoint(outage)
    others = [o for o in enumerate_outages(grid) if not set(o) & set(outage)]
    assert [t.outaged for t in topologies[1:]] == others


def test_the_twin_of_an_outaged_circuit_is_held_out_too(grid):
    doubled = replace(
        grid,
        branch_from=np.append(grid.branch_from, grid.branch_to[1]),
        branch_to=np.append(grid.branch_to, grid.branch_from[1]),
        branch_y=np.vstack([grid.branch_y, grid.branch_y[1][::-1]]),
        branch_in_service=np.ones(9, bool),
        branch_labels=(*grid.branch_labels, "line:8"),
        branch_rating=np.full((9, 2), np.inf),
        branch_rated=np.zeros(9, bool),
    )
    assert held_out_elements(doubled.without(["line:1"])) == {"line:1", "line:8"}
    assert held_out_elements(doubled.without(["line:0"])) == {"line:0"}
    topologies = training_topologies(doubled.without(["line:1"]), multi=True)
    assert {"line:1", "line:8"}.isdisjoint(label for t in topologies for label in t.outaged)


def test_outages_without_a_nominal_solution_are_skipped(grid):
    # bus 0 hangs on line 1 alone
    weak = grid.without(["line:0"])
    weak = replace(weak, outage_of=None, outaged=())
    topologies = training_topologies(weak, multi=True)
    assert ("line:1",) not in [t.outaged for t in topologies]


def test_embedded_topologies_leave_held_out_lines_alone(grid):
    network = grid.without(["line:1", "line:4"])
    found = embedded_topologies(network, 40, seed=0)
    told = np.stack([admittance_ratios(grid, t).reshape(2, -1) for t in found])
    assert (told[:, :, [1, 4]] == 1).all()
    # a part of the whole admittance: conductance and susceptance shrink together
    np.testing.assert_allclose(told[:, 0], told[:, 1], rtol=1e-12)
    changed = (told[:, 0] != 1).sum(1)
    assert set(changed) == {1, 2}


def test_rows_are_shared_out_and_each_is_solved_on_its_topology(grid):
    topologies = training_topologies(grid.without(["line:1"]), multi=True)
    rows = solved_rows(topologies, quick_config(), num_rows=160)
    assert (np.bincount(rows.topology) == 160 // len(topologies)).all()
    assert rows.record()["num_solves"] == rows.num_solves == len(rows.x)
    for number in (0, 3):
        network = topologies[number]
        mine = rows.topology == number
        loads = rows.layout.unpack_loads(rows.x[mine])
        np.testing.assert_allclose(generate(network, loads).y, rows.y[mine], atol=1e-9)


def test_a_single_topology_gives_the_rows_that_a_surrogate_is_trained_on(grid):
    config = quick_config()
    rows = solved_rows(training_topologies(grid, multi=False), config)
    drawn = sample_loads(grid, named_rng(grid.name, "training", seed=config.seed), 200)
    assert np.array_equal(rows.x, generate(grid, drawn).x)
