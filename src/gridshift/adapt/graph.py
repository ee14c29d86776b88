"""A topology as the graph that graph networks work on, in PowerFlowNet's terms.

The state of a bus is (|V|, theta, P, Q), P and Q net consumption: a slack bus knows the first two,
a generator bus P and |V|, a load bus P and Q; the others are exactly the entries of y. An edge is
a branch in service, one in each direction, with its series r and x. As in PowerFlowNet, taps, phase
shifts, line charging and shunts are left out; they are the same in every topology, and learned.
"""

import numpy as np

from gridshift.arrays import Bool, Complex, Real
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.backbones.graph import NUM_FEATURES, NodeGraph

V, THETA, P, Q = range(NUM_FEATURES)
"""Features of a bus."""


def graph_of(network: Network, layout: Layout, input_mean: Real, input_scale: Real) -> NodeGraph:
    """The graph of a topology, for x scaled by `input_mean` and `input_scale` (X,).

    Each feature of the buses that know it is brought to mean 0 and variance 1 over these buses and
    over rows. This follows from the scaling, without rows: inputs vary independently, and one of
    scale 1 is constant (`learn.fitted_network.input_scaling`).
    """
    known = _known(layout)
    weight, offset = _state_of_inputs(network, layout)
    deviation = np.where(input_scale == 1.0, 0.0, input_scale)
    mean = (weight @ input_mean + offset).reshape(known.shape)
    variance = (weight**2 @ deviation**2).reshape(known.shape)
    center, spread = _moments_over_buses(known, mean, variance)

    per_slot = np.where(known, 1.0 / spread, 0.0)
    edges = np.stack([network.branch_from, network.branch_to])[:, network.branch_in_service]
    features = _edge_features(network)[network.branch_in_service]
    return NodeGraph(
        num_nodes=network.num_buses,
        edges=np.concatenate([edges, edges[::-1]], axis=1),
        edge_features=np.concatenate([features, features]),
        known=known,
        inputs_to_nodes=weight * input_scale * per_slot.reshape(-1, 1),
        offset=(per_slot * (mean - center)).ravel(),
        output_slots=_output_slots(layout),
    )


def _known(layout: Layout) -> Bool:
    """(B, 4) whether a bus knows a feature."""
    known = np.zeros((layout.num_buses, NUM_FEATURES), bool)
    known[layout.controlled, V] = True
    known[layout.slack, THETA] = True
    known[layout.non_slack, P] = True
    known[layout.pq, Q] = True
    return known


def _output_slots(layout: Layout) -> np.ndarray:
    """(Y,) `bus * 4 + feature` of each entry of y."""
    places = {"p_slack": (layout.slack, P), "q_gen": (layout.controlled, Q),
              "v": (layout.pq, V), "theta": (layout.non_slack, THETA)}  # fmt: skip
    slots = np.empty(layout.num_outputs, np.int64)
    for quantity, (bus, feature) in places.items():
        slots[layout.y_slices[quantity]] = bus * NUM_FEATURES + feature
    return slots


def _state_of_inputs(network: Network, layout: Layout) -> tuple[Real, Real]:
    """(4 B, X) and (4 B,): state of the buses = the first @ x + the second, in per unit, radians.

    Right at the known slots; at the others it is what x says of them, to be masked.
    """
    weight = np.zeros((layout.num_buses, NUM_FEATURES, layout.num_inputs))
    gen_bus = network.gen_bus[layout.scheduled_gen]
    places = {"p_load": (layout.load_bus, P, 1.0), "q_load": (layout.load_bus, Q, 1.0),
              "v_set": (layout.controlled, V, 1.0), "p_gen": (gen_bus, P, -1.0),
              "theta_slack": (layout.slack, THETA, 1.0)}  # fmt: skip
    for quantity, (bus, feature, sign) in places.items():
        entries = np.arange(layout.num_inputs)[layout.x_slices[quantity]]
        weight[bus, feature, entries] = sign
    offset = np.zeros((layout.num_buses, NUM_FEATURES))
    offset[:, P], offset[:, Q] = -network.bus_fixed.real, -network.bus_fixed.imag
    return weight.reshape(-1, layout.num_inputs), offset.ravel()


def _moments_over_buses(known: Bool, mean: Real, variance: Real) -> tuple[Real, Real]:
    """(4,) mean and deviation over rows and over the buses that know a feature; 1 if constant.

    The variance is the mean of the buses' own and the variance of their means.
    """
    num = np.maximum(known.sum(0), 1)
    center = (mean * known).sum(0) / num
    total = ((variance + (mean - center) ** 2) * known).sum(0) / num
    spread = np.sqrt(total)
    return center, np.where(spread > 1e-9, spread, 1.0)


def _edge_features(network: Network) -> Real:
    """(branches, 2) r and x, each with mean 0 and variance 1 over the intact grid's branches."""
    z = series_impedance(network.branch_y)
    features = np.stack([z.real, z.imag], axis=1)
    intact = features[network.intact.branch_in_service]
    spread = intact.std(0)
    return (features - intact.mean(0)) / np.where(spread > 1e-9, spread, 1.0)


def series_impedance(branch_y: Complex) -> Complex:
    """(branches,) r + jx of two-ports yff, yft, ytf, ytt (branches, 4) with an ideal transformer.

    With series admittance y and ratio t at the from end, yft = -y / conj(t), ytf = -y / t and
    yff = ytt / |t|^2, so y^2 = yft ytf |ytt / yff|. The root is the one on the side of -yft - ytf,
    which holds for phase shifts below a quarter turn; beyond that r and x come out negative, and
    are turned.
    """
    yff, yft, ytf, ytt = branch_y.T
    y = np.sqrt(yft * ytf * np.abs(ytt / yff))
    y = np.where((y * -(yft + ytf).conj()).real < 0, -y, y)
    z = 1 / y
    return np.where((z.real < 0) & (z.imag < 0), -z, z)
