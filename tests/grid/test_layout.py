import subprocess
import sys

import numpy as np
import pytest

from gridshift.grid.layout import UNITS, Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import sample_loads
from tests.adapt.grids import small_grid
from tests.reference.grids import BusKind, branch_two_port, make_network


@pytest.fixture(scope="module")
def grid():
    return small_grid()


@pytest.mark.parametrize(
    ("case", "num_inputs", "num_outputs"),
    [("case30", 52, 60), ("case118", 306, 236), ("case300", 524, 600)],
)
def test_the_papers_grids_have_the_papers_widths(case, num_inputs, num_outputs):
    layout = Layout.of(read_grid(case))
    assert (layout.num_inputs, layout.num_outputs) == (num_inputs, num_outputs)


def test_entries_name_quantity_element_and_bus_in_the_papers_order(grid):
    layout = Layout.of(grid)
    assert [e.name for e in layout.outputs] == [
        "p_slack bus:1",
        "q_gen bus:1", "q_gen bus:2", "q_gen bus:4",
        "v bus:0", "v bus:3", "v bus:5",
        "theta bus:0", "theta bus:2", "theta bus:3", "theta bus:4", "theta bus:5",
    ]  # fmt: skip
    assert [e.name for e in layout.inputs] == [
        *(f"p_load load:{i}" for i in range(5)),
        *(f"q_load load:{i}" for i in range(5)),
        "v_set bus:1", "v_set bus:2", "v_set bus:4",
        "p_gen gen:0", "p_gen gen:1", "p_gen gen:2",
        "theta_slack bus:1",
    ]  # fmt: skip
    assert layout.inputs[2].bus == "bus:3"
    assert layout.inputs[14].bus == "bus:2"
    assert {e.unit for e in (*layout.inputs, *layout.outputs)} == set(UNITS.values())


def test_slices_cover_x_and_y_without_gap_or_overlap(grid):
    layout = Layout.of(grid)
    for slices, entries in ((layout.x_slices, layout.inputs), (layout.y_slices, layout.outputs)):
        numbers = [i for s in slices.values() for i in range(s.start, s.stop)]
        assert numbers == list(range(len(entries)))
        for quantity, s in slices.items():
            assert {e.quantity for e in entries[s]} == {quantity}


def test_every_topology_of_a_grid_has_the_same_layout(grid):
    base, outage = Layout.of(grid), Layout.of(grid.without(["line:1", "line:6"]))
    assert base == outage
    assert base.digest == outage.digest


@pytest.fixture(params=[(), ("line:1",), ("line:1", "line:6")], ids=["base", "n-1", "n-2"])
def solved(request, grid):
    network = grid.without(request.param) if request.param else grid
    loads = sample_loads(network, np.random.default_rng(3), 20)
    return network, loads, solve(network, loads).require_converged().voltage


def test_voltages_come_back_from_x_and_y(solved):
    network, loads, voltage = solved
    layout = Layout.of(network)
    x = layout.pack_inputs(network, loads)
    y = layout.pack_outputs(network, loads, voltage)
    # round-off of abs, angle, cos, sin
    np.testing.assert_allclose(layout.unpack_voltage(x, y), voltage, atol=1e-14)
    assert np.array_equal(layout.unpack_loads(x).load_power, loads.load_power)


def test_packed_generation_closes_the_power_balance_of_every_bus(solved):
    """Kirchhoff, bus by bus and branch by branch: generation - demand + fixed = flow away."""
    network, loads, voltage = solved
    layout = Layout.of(network)
    y = layout.pack_outputs(network, loads, voltage)
    for row, v in enumerate(voltage):
        away = network.bus_shunt.conj() * np.abs(v) ** 2
        for e in np.flatnonzero(network.branch_in_service):
            f, t = network.branch_from[e], network.branch_to[e]
            yff, yft, ytf, ytt = network.branch_y[e]
            away[f] += v[f] * np.conj(yff * v[f] + yft * v[t])
            away[t] += v[t] * np.conj(ytf * v[f] + ytt * v[t])
        generation = away - network.bus_fixed
        for load, bus in enumerate(network.load_bus):
            generation[bus] += loads.load_power[row, load]
        np.testing.assert_allclose(
            y[row, layout.y_slices["q_gen"]], generation[[1, 2, 4]].imag, atol=1e-12
        )
        np.testing.assert_allclose(y[row, layout.y_slices["p_slack"]], generation[1].real)
        # the solver's tolerance is 1e-8 on what a bus specifies
        np.testing.assert_allclose(generation[[2, 4]].real, [0.4, 0.35], atol=1.1e-8)
        np.testing.assert_allclose(generation[[0, 3, 5]], 0, atol=2e-8)


def test_the_slack_angle_of_the_source_is_an_input(grid):
    layout = Layout.of(grid)
    loads = sample_loads(grid, np.random.default_rng(0), 2)
    x = layout.pack_inputs(grid, loads)
    np.testing.assert_allclose(x[:, layout.x_slices["theta_slack"]], np.deg2rad(4.0))


def test_unpacked_voltages_of_a_perfect_prediction_solve_the_power_flow(solved):
    network, loads, voltage = solved
    layout = Layout.of(network)
    x = layout.pack_inputs(network, loads)
    back = layout.unpack_voltage(x, layout.pack_outputs(network, loads, voltage))
    power = back * (back @ network.admittance.toarray().T).conj()
    off = power - network.injected(loads.load_power)
    # the solver's tolerance
    assert np.abs(off.real[:, layout.non_slack]).max() < 1.1e-8
    assert np.abs(off.imag[:, layout.pq]).max() < 1.1e-8


def test_the_layout_needs_no_torch():
    code = "import gridshift.adapt.datasets, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_angles_do_not_wrap_behind_a_transformer_that_turns_by_half_a_turn():
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.PQ],
        [
            (0, 1, branch_two_port(0.0, 0.05, shift=np.pi)),
            (1, 2, branch_two_port(0.01, 0.05)),
        ],
        [(1, 0.5 + 0.1j), (2, -0.5 + 0.1j)],  # angles on both sides of half a turn
    )
    layout = Layout.of(network)
    loads = sample_loads(network, np.random.default_rng(0), 200, spread=0.9, regime="fixed")
    solution = solve(network, loads)
    y = layout.pack_outputs(network, loads, solution.voltage)
    theta = y[:, layout.y_slices["theta"]]
    assert np.ptp(theta, axis=0).max() < 0.5
    x = layout.pack_inputs(network, loads)
    assert np.abs(layout.unpack_voltage(x, y) - solution.voltage).max() < 1e-12
