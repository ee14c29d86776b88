"""Message passing and graph convolutions in turn: PowerFlowNet, flat outside and a graph inside.

Lin, Orfanoudakis, Ordonez Cardenas, Giraldo, Vergara, "PowerFlowNet", IJEPES 160 (2024) 110112,
arXiv 2311.03415: its `MaskEmbdMultiMPN` in the configuration of the paper (appendix C), 354,500
parameters. The same sums are done in another order, so that all products are over nodes:

* A message's first linear map is a sum of maps of its two ends and of its edge. Its second one is
  applied after the sum over a node's messages, once a node.
* A graph convolution, sum_k S^k h W_k with S = U diag(s) U', is U of a product of each row of U'h
  with a matrix of its own, sum_k s^k W_k: one product instead of one for each k. That needs dense
  U, which pays up to some 300 nodes.

Shape letters: N rows, X inputs, Y outputs, B nodes, E directed edges, H hidden units, F features
of a node or edge, K = hops + 1. Nodes come first, so that those of an edge are whole blocks.
"""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gridshift.learn.backbones.configs import PfgnnConfig
from gridshift.learn.backbones.dropout import Dropout
from gridshift.learn.backbones.graph import NUM_FEATURES, NodeGraph

BLOCK = 128
"""Rows that are worked on at a time: hidden states of all edges take E * H times as much."""


class Pfgnn(nn.Module):
    """Flat x (N, X) to z (N, Y) over a graph; its state is the weights alone, not the graph."""

    def __init__(self, nodes: "NodeNetwork", graph: NodeGraph):
        super().__init__()
        self.nodes = nodes
        self.graph = _GraphTensors(graph)

    def on(self, graph: NodeGraph) -> "Pfgnn":
        """The same weights, shared, not copied, over another graph of the same x and z."""
        other = Pfgnn(self.nodes, graph)
        other.training = self.training
        return other.to(self.graph.offset.device)

    def forward(self, x_NX: Tensor) -> Tensor:
        """(N, Y) z of scaled inputs (N, X)."""
        return torch.cat([_flat(self.nodes, self.graph, rows) for rows in x_NX.split(BLOCK)])


class PfgnnOnSeveral(nn.Module):
    """The weights of a PFGNN over several graphs of the same x and z, to train them on all.

    Takes whole batches as rows, one at a time (1, N, X + 1), to z (1, N, Y): all N rows are of one
    graph, whose number is the last column.
    """

    def __init__(self, nodes: "NodeNetwork", graphs: Iterable[NodeGraph]):
        super().__init__()
        self.nodes = nodes
        self.graphs = nn.ModuleList(map(_GraphTensors, graphs))

    def forward(self, batches_1NX: Tensor) -> Tensor:
        """(1, N, Y) z of one batch (1, N, X + 1), the graph's number in its last column."""
        (rows_NX,) = batches_1NX
        graph = self.graphs[int(rows_NX[0, -1])]
        return _flat(self.nodes, graph, rows_NX[:, :-1])[None]  # type: ignore[arg-type]


def _flat(nodes: "NodeNetwork", graph: "_GraphTensors", x_NX: Tensor) -> Tensor:
    """Flat x to the states of the nodes, through the network, and to flat z."""
    state = torch.addmm(graph.offset, graph.inputs_to_nodes, x_NX.T)
    state_BNF = state.unflatten(0, (-1, NUM_FEATURES)).transpose(1, 2)
    z_BNF = nodes(state_BNF, graph)
    return z_BNF.transpose(1, 2).flatten(0, 1).index_select(0, graph.output_slots).T


class NodeNetwork(nn.Module):
    """State of the nodes (B, N, 4), unknown features zero, to predicted features (B, N, 4)."""

    def __init__(self, num_edge_features: int, config: PfgnnConfig):
        super().__init__()
        self.mask_embedding = nn.Sequential(
            nn.Linear(NUM_FEATURES, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, NUM_FEATURES),
        )
        self.layers = nn.ModuleList(_layers(num_edge_features, config))
        self.between = nn.Sequential(Dropout(config.dropout), nn.ReLU(inplace=True))

    def forward(self, state_BNF: Tensor, graph: "_GraphTensors") -> Tensor:
        """(B, N, 4) predicted features of every node, known ones among them."""
        h = state_BNF + self.mask_embedding(graph.unknown)[:, None]
        *hidden, last = self.layers
        for layer in hidden:
            h = self.between(layer(h, graph))
        return last(h, graph)


def _layers(num_edge_features: int, config: PfgnnConfig) -> Iterator[nn.Module]:
    hidden = config.hidden
    for number in range(config.num_layers):
        first, last = number == 0, number == config.num_layers - 1
        width_in, width_out = NUM_FEATURES if first else hidden, NUM_FEATURES if last else hidden
        yield MessagePassing(width_in, num_edge_features, hidden, width_out)
        if not last:
            yield GraphConvolution(hidden, config.hops)


class MessagePassing(nn.Module):
    """Sum over incoming edges of message([state of this end, of the other end, of the edge])."""

    def __init__(self, width_in: int, num_edge_features: int, hidden: int, width_out: int):
        super().__init__()
        self.widths = (width_in, width_in, num_edge_features)
        self.first = nn.Linear(sum(self.widths), hidden)
        self.second = nn.Linear(hidden, width_out)

    def forward(self, h_BNF: Tensor, graph: "_GraphTensors") -> Tensor:
        """(B, N, width_out) state of every node after one round of messages."""
        of_end, of_start, of_edge = self.first.weight.split(self.widths, dim=1)
        at_end_BNH = h_BNF @ of_end.T
        at_start_BNH = h_BNF @ of_start.T
        at_edge_EH = torch.addmm(self.first.bias, graph.edge_features, of_edge.T)

        hidden_ENH = at_end_BNH.index_select(0, graph.end)
        hidden_ENH += at_start_BNH.index_select(0, graph.start)
        hidden_ENH += at_edge_EH[:, None]
        hidden_ENH.relu_()
        sum_BNH = torch.zeros_like(at_end_BNH).index_add_(0, graph.end, hidden_ENH)
        bias_BF = graph.in_degree[:, None] * self.second.bias
        return sum_BNH @ self.second.weight.T + bias_BF[:, None]


class GraphConvolution(nn.Module):
    """TAGConv (Du and others, arXiv 1710.10370): sum_k S^k h W_k + b, S the scaled adjacency."""

    def __init__(self, width: int, hops: int):
        super().__init__()
        self.weight_KHH = nn.Parameter(torch.empty(hops + 1, width, width))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.uniform_(self.weight_KHH, -(width**-0.5), width**-0.5)

    def forward(self, h_BNH: Tensor, graph: "_GraphTensors") -> Tensor:
        """(B, N, H) state of every node, mixed with that of nodes up to `hops` edges away."""
        hops = torch.arange(len(self.weight_KHH), device=h_BNH.device)
        power_BK = graph.eigenvalues[:, None] ** hops
        weight_BHH = (power_BK @ self.weight_KHH.flatten(1)).unflatten(1, self.weight_KHH.shape[1:])
        spectral_BNH = _mix(graph.eigenvectors.T, h_BNH) @ weight_BHH
        return _mix(graph.eigenvectors, spectral_BNH) + self.bias


def _mix(matrix_BB: Tensor, h_BNH: Tensor) -> Tensor:
    """A linear map over nodes."""
    return (matrix_BB @ h_BNH.flatten(1)).view(h_BNH.shape)


class _GraphTensors(nn.Module):
    """A `NodeGraph` in float32, as buffers that move with the network and are not in its state."""

    start: Tensor
    """(E,) in the order of `end`."""
    end: Tensor
    """(E,) ascending."""
    edge_features: Tensor
    in_degree: Tensor
    unknown: Tensor
    """(B, 4) 1 where a feature is predicted."""
    inputs_to_nodes: Tensor
    offset: Tensor
    output_slots: Tensor
    eigenvalues: Tensor
    """(B,) of the normalized adjacency; `eigenvectors` (B, B) in columns."""
    eigenvectors: Tensor

    def __init__(self, graph: NodeGraph):
        super().__init__()
        self.digest = graph.digest
        order = np.argsort(graph.edges[1], kind="stable")
        eigenvalues, eigenvectors = np.linalg.eigh(graph.normalized_adjacency())
        tensors: dict[str, NDArray] = {
            "start": graph.edges[0][order],
            "end": graph.edges[1][order],
            "edge_features": graph.edge_features[order],
            "in_degree": graph.in_degree.astype(np.float64),
            "unknown": 1.0 - graph.known,
            "inputs_to_nodes": graph.inputs_to_nodes,
            "offset": graph.offset[:, None],
            "output_slots": graph.output_slots,
            "eigenvalues": eigenvalues,
            "eigenvectors": eigenvectors,
        }
        for name, array in tensors.items():
            tensor = torch.tensor(array)
            if tensor.is_floating_point():
                tensor = tensor.float()
            self.register_buffer(name, tensor, persistent=False)

    def extra_repr(self) -> str:
        """Tells graphs apart where a network is told by its text, as in a training's checkpoint."""
        return f"nodes={len(self.unknown)}, edges={len(self.end)}, digest={self.digest[:16]}"
