"""`LinearTerms`: a part of y that is affine in x, as a tangent and a linear regression are."""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearTerms:
    """matrix (x[columns] - centre) + offset, in float64: it may be the larger part of y."""

    matrix: Real
    """(Y, C)"""
    columns: Int
    """(C,) entries of x."""
    centre: Real
    """(C,)"""
    offset: Real
    """(Y,)"""

    def predict(self, x: Real) -> Real:
        """(R, Y) of inputs (R, X)."""
        return (x[:, self.columns] - self.centre) @ self.matrix.T + self.offset

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the terms to a graph, and return the name of their sum."""
        chosen = graph.add("Gather", "x", graph.constant(self.columns), axis=1)
        shifted = graph.add("Sub", chosen, graph.constant(self.centre))
        product = graph.add("MatMul", shifted, graph.constant(self.matrix.T))
        return graph.add("Add", product, graph.constant(self.offset))

    def round_off(self, x: Real) -> Real:
        """(Y,) in single precision: our own tangent goes through factors of it."""
        shifted = np.abs(x[:, self.columns] - self.centre)
        size = (shifted @ np.abs(self.matrix.T)).max(0, initial=0.0)
        return DOUBLE * np.abs(self.offset) + len(self.columns) * np.finfo(np.float32).eps * size
