"""`NodeGraph`: a graph of nodes with features, and how flat x and z belong to it; arrays only."""

import hashlib
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import make_read_only
from gridshift.errors import GridshiftError

NUM_FEATURES = 4
"""Features of a node's state, some known and the others predicted."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeGraph:
    """Nodes with four features each, of which some are known from x and the others make up z.

    Axes: B nodes, E directed edges, X entries of x, Y entries of z. A slot is a feature of a node;
    its flat index is `node * 4 + feature`. Arrays are read-only.
    """

    num_nodes: int
    edges: NDArray[np.int64] = field(repr=False)
    """(2, E) node that an edge starts from, node that it ends at; each edge in both directions."""
    edge_features: NDArray[np.float64] = field(repr=False)
    """(E, F), of mean 0 and variance 1 over the edges of the full graph."""
    known: NDArray[np.bool_] = field(repr=False)
    """(B, 4) whether a slot is known; the others are predicted."""
    inputs_to_nodes: NDArray[np.float64] = field(repr=False)
    """(4 B, X) state of the nodes = `inputs_to_nodes` @ x + `offset`; zero at unknown slots."""
    offset: NDArray[np.float64] = field(repr=False)
    """(4 B,)"""
    output_slots: NDArray[np.int64] = field(repr=False)
    """(Y,) slot of each entry of z."""

    def __post_init__(self) -> None:
        num_slots, num_edges = NUM_FEATURES * self.num_nodes, len(self.edge_features)
        shapes = {
            "edges": (2, num_edges),
            "known": (self.num_nodes, NUM_FEATURES),
            "inputs_to_nodes": (num_slots, self.num_inputs),
            "offset": (num_slots,),
        }
        for name, shape in shapes.items():
            if getattr(self, name).shape != shape:
                raise GridshiftError(
                    f"{name} of a graph of {self.num_nodes} nodes and {num_edges} edges has shape "
                    f"{getattr(self, name).shape}, not {shape}"
                )
        if self.known.ravel()[self.output_slots].any():
            raise GridshiftError("output_slots of a graph must not be slots that are known")
        make_read_only(self)

    @property
    def num_inputs(self) -> int:
        """X, width of the flat inputs."""
        return self.inputs_to_nodes.shape[1]

    @property
    def num_outputs(self) -> int:
        """Y, width of the flat outputs."""
        return len(self.output_slots)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of every number of the graph."""
        state = hashlib.sha256()
        for f in fields(self):
            array = np.ascontiguousarray(getattr(self, f.name))
            state.update(f"{f.name} {array.shape}".encode() + array.tobytes())
        return state.hexdigest()

    @property
    def in_degree(self) -> NDArray[np.int64]:
        """(B,) edges that end at each node, parallel ones counted."""
        return np.bincount(self.edges[1], minlength=self.num_nodes)

    def normalized_adjacency(self) -> NDArray[np.float64]:
        """(B, B) D^-1/2 A D^-1/2, A the number of edges from column to row; no self-loops.

        Symmetric, as each edge is there in both directions; zero for nodes without edges.
        """
        adjacency = np.zeros((self.num_nodes, self.num_nodes))
        np.add.at(adjacency, (self.edges[1], self.edges[0]), 1.0)
        root = np.sqrt(np.maximum(self.in_degree, 1))
        return adjacency / root / root[:, None]
