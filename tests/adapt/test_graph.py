import numpy as np
import pandapower as pp
import pandapower.networks
import pytest

from gridshift.adapt.datasets import generate
from gridshift.adapt.graph import THETA, P, Q, V, graph_of, series_impedance
from gridshift.grid.layout import Layout
from gridshift.grid.network import BusKind
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import sample_loads
from gridshift.learn.fitted_network import input_scaling
from tests.reference.grids import branch_two_port, make_network


def unscaled(network):
    """The graph for inputs as they are, of mean 0 and scale 1."""
    layout = Layout.of(network)
    return graph_of(network, layout, np.zeros(layout.num_inputs), np.ones(layout.num_inputs))


@pytest.mark.parametrize(
    ("case", "num_outputs"), [("case30", 60), ("case118", 236), ("case300", 600)]
)
def test_outputs_are_exactly_the_unknown_slots(case, num_outputs):
    graph = unscaled(read_grid(case))
    slots = np.sort(graph.output_slots)
    assert len(slots) == num_outputs
    assert np.array_equal(slots, np.flatnonzero(~graph.known))


def test_a_bus_knows_what_its_kind_specifies(grid):
    graph = unscaled(grid)
    knows = {BusKind.SLACK: [V, THETA], BusKind.PV: [V, P], BusKind.PQ: [P, Q]}
    for bus, kind in enumerate(grid.bus_kind):
        assert sorted(knows[BusKind(kind)]) == list(np.flatnonzero(graph.known[bus]))
    layout = Layout.of(grid)
    feature = {"p_slack": P, "q_gen": Q, "v": V, "theta": THETA}
    for entry, slot in zip(layout.outputs, graph.output_slots, strict=True):
        assert entry.bus == grid.bus_labels[slot // 4]
        assert feature[entry.quantity] == slot % 4


@pytest.fixture(scope="module")
def rows(grid):
    return generate(grid, sample_loads(grid, np.random.default_rng(6), 4_000))


def test_known_features_have_mean_zero_and_variance_one_over_buses_and_rows(grid, rows):
    mean, scale = input_scaling(rows.x)
    graph = graph_of(grid, rows.layout, mean, scale)
    scaled = (rows.x - mean) / scale
    state = (scaled @ graph.inputs_to_nodes.T + graph.offset).reshape(len(rows), -1, 4)
    assert not state[:, ~graph.known].any()
    for feature in (V, P, Q):
        known = state[:, graph.known[:, feature], feature]
        assert known.mean() == pytest.approx(0, abs=1e-12)
        # the loads' sample correlations, of the order of 1 / sqrt(4000), are taken to be zero
        assert known.std() == pytest.approx(1, abs=0.02)
    assert not state[:, 1, THETA].any(), "one slack bus, one constant angle"


def test_known_powers_are_net_consumption_up_to_scaling(grid, rows):
    mean, scale = input_scaling(rows.x)
    graph = graph_of(grid, rows.layout, mean, scale)
    state = graph.inputs_to_nodes @ ((rows.x[0] - mean) / scale) + graph.offset
    loads = rows.layout.unpack_loads(rows.x[:1])
    consumed = -grid.injected(loads.load_power[0])
    for feature, power in ((P, consumed.real), (Q, consumed.imag)):
        known = graph.known[:, feature]
        slope, _ = np.polyfit(power[known], state.reshape(-1, 4)[known, feature], 1)
        residual = state.reshape(-1, 4)[known, feature] - slope * power[known]
        assert slope > 0
        assert np.ptp(residual) < 1e-12 * slope


def test_an_outage_takes_both_directions_of_its_edge_and_nothing_else(grid):
    intact, out = unscaled(grid), unscaled(grid.without(["line:2"]))
    keep = np.ones(16, bool)
    keep[[2, 10]] = False
    assert np.array_equal(out.edges, intact.edges[:, keep])
    assert np.array_equal(out.edge_features, intact.edge_features[keep])
    assert np.array_equal(out.inputs_to_nodes, intact.inputs_to_nodes)
    assert list(intact.edges[:, 2]) == [1, 2]
    assert list(intact.edges[:, 10]) == [2, 1]


@pytest.mark.parametrize("case", ["case30", "case118", "case300"])
def test_series_impedances_are_those_of_pandapowers_own_branch_table(case):
    net = getattr(pp.networks, case)()
    pp.runpp(net, numba=False)
    r, x = net._ppc["branch"][:, 2:4].real.T
    # both in the order lines, transformers
    np.testing.assert_allclose(
        series_impedance(read_grid(case).branch_y), r + 1j * x, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize(
    ("tap", "shift", "charging"),
    [(1.0, 0.0, 0.0), (1.0, 0.0, 0.3), (0.93, 0.0, 0.1), (1.05, np.deg2rad(30), 0.0)],
)
@pytest.mark.parametrize("z", [0.02 + 0.1j, 0.1j, 0.05, 0.01 - 0.2j])
def test_series_impedance_sees_through_charging_taps_and_shifts(z, tap, shift, charging):
    two_port = branch_two_port(z.real, z.imag, charging, tap, shift)
    assert series_impedance(np.array([two_port]))[0] == pytest.approx(z, rel=1e-12)


def test_a_grid_of_several_slack_buses_and_parallel_lines_is_a_graph_too():
    line = branch_two_port(0.02, 0.1)
    network = make_network(
        [BusKind.SLACK, BusKind.PQ, BusKind.SLACK, BusKind.PV],
        [(0, 1, line), (0, 1, line), (1, 2, line), (2, 3, line)],
        [(0, 0.1 + 0.1j), (1, 0.2 + 0.1j), (3, 0.1 + 0.0j)],
        gens=[(0, 0.0), (2, 0.0), (3, 0.2), (3, 0.1)],
    )
    graph = unscaled(network)
    assert np.array_equal(np.sort(graph.output_slots), np.flatnonzero(~graph.known))
    assert list(graph.in_degree) == [2, 3, 2, 1]
    assert not graph.edge_features.any(), "equal lines differ from their mean by nothing"
