"""ONNX form of a compensated base model, in float64: `Touched.features` node by node."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Real
from gridshift.learn.compensation import Compensated, Touched
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph, OnnxPart


@dataclass(frozen=True, kw_only=True, eq=False)
class CompensatedPart:
    """What a compensated base predicts, all of it, from the parts of the base."""

    base: Sequence[OnnxPart]
    compensated: Compensated

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the base and what the change adds; the name of y.

        Raises:
            GridshiftError: the base has no ONNX form.
        """
        y = graph.total([part.add_to_graph(graph) for part in self.base])
        own = self.compensated.compensation
        columns = _feature_nodes(own.touched, own.features, graph, y, own.center)
        if len(own.columns):
            source = "x" if own.rest == "inputs" else y
            columns.append(graph.add("Gather", source, graph.constant(own.columns), axis=1))
        added = graph.constant(own.bias)
        if columns:
            features = graph.add("Concat", *columns, axis=1)
            product = graph.add("MatMul", features, graph.constant(own.weight))
            added = graph.add("Add", product, added)
        return graph.add("Add", y, added)

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X).

        What features make of an error in a column is told by moving the column by it.
        """
        own, y = self.compensated.compensation, self.compensated.base.predict(x)
        base_error = np.sum([part.round_off(x) for part in self.base], axis=0)
        error = base_error + DOUBLE * np.abs(y).max(0, initial=0.0)
        features = own.touched.features(own.features, y, own.center)
        spread = DOUBLE * np.abs(features)
        for number in own.touched.columns:
            moved = y.copy()
            moved[:, number] += error[number]
            change = own.touched.features(own.features, moved, own.center) - features
            spread = spread + np.abs(change)
        rest = np.abs((x if own.rest == "inputs" else y)[:, own.columns]) * DOUBLE
        if own.rest == "state":
            rest = rest + error[own.columns]
        both = np.hstack([spread, rest]) @ np.abs(own.weight) + DOUBLE * np.abs(own.bias)
        return error + both.max(0, initial=0.0)


def _feature_nodes(
    touched: Touched, kind: str, graph: OnnxGraph, y: str, center: Real
) -> list[str]:
    """Names of the columns of `touched.features(kind, y, center)` in a graph, one or more each."""
    if kind == "nothing":
        return []

    def number(value: float) -> str:
        return graph.constant(np.array([[value]]))

    def output(at: int) -> str:
        return graph.add("Gather", y, graph.constant(np.array([at])), axis=1)

    def angle(i: int, j: int) -> str:
        known = [touched.angles[i], touched.angles[j]]
        # a slack's is 0, in as many rows as there are
        ends = [graph.add("Mul", output(0), number(0.0)) if c is None else output(c) for c in known]
        return graph.add("Mul", graph.add("Sub", *ends), number(touched.angle_unit))

    def sized(value: str, i: int, j: int) -> str:
        for bus in (i, j):
            if (c := touched.magnitudes[bus]) is not None:
                value = graph.add("Mul", output(c), value)
        return value

    def cosine(of: str) -> str:
        """1 - 2 sin^2(a/2): runtimes have Cos in float64 more seldom than Sin."""
        half = graph.add("Sin", graph.add("Mul", of, number(0.5)))
        twice = graph.add("Mul", graph.add("Mul", half, half), number(2.0))
        return graph.add("Sub", number(1.0), twice)

    magnitudes = [output(c) for c in touched.magnitudes if c is not None]
    others = [output(c) for c in touched.others]
    angles = [angle(*branch) for branch in touched.branches]
    if kind == "flows":
        both = list(zip(angles, touched.branches, strict=True))
        sines = [sized(graph.add("Sin", each), *branch) for each, branch in both]
        cosines = [sized(cosine(each), *branch) for each, branch in both]
        return [*sines, *cosines, *(graph.add("Mul", m, m) for m in magnitudes), *others]
    first = [*angles, *magnitudes, *others]
    if kind == "differences" or not first:
        return first
    joined = graph.add("Concat", *first, axis=1)
    at = graph.constant(touched.features("differences", center[None]))
    moved = graph.add("Sub", joined, at)
    i, j = (graph.constant(numbers) for numbers in np.tril_indices(len(first)))
    pair = (graph.add("Gather", moved, numbers, axis=1) for numbers in (i, j))
    return [joined, graph.add("Mul", *pair)]
