"""ONNX form of a compensated base model: `Touched.features` as maps that are linear in y.

Differences, magnitudes and other columns are y @ matrix; flows and squares are products of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridshift.arrays import Real
from gridshift.learn.compensation import Compensated
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph, OnnxPart


@dataclass(frozen=True, kw_only=True, eq=False)
class CompensatedPart:
    """What a compensated base predicts, all of it, from the parts of the base."""

    base: Sequence[OnnxPart]
    compensated: Compensated

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the base and the compensation in float64, and return the name of y.

        Raises:
            GridshiftError: the base has no ONNX form.
        """
        y = graph.total([part.add_to_graph(graph) for part in self.base])
        own, features = self.compensated.compensation, self._features(graph, y)
        if len(own.columns):
            of = "x" if own.rest == "inputs" else y
            features.append(graph.add("Gather", of, graph.constant(own.columns), axis=1))
        if not features:
            return graph.add("Add", y, graph.constant(own.bias))
        all_features = graph.add("Concat", *features, axis=1)
        moved = graph.add("MatMul", all_features, graph.constant(own.weight))
        return graph.add("Add", y, graph.add("Add", moved, graph.constant(own.bias)))

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X)."""
        own = self.compensated.compensation
        error = np.sum([part.round_off(x) for part in self.base], axis=0)
        y = self.compensated.base.predict(x)
        size, moved = self._sizes(np.abs(y).max(0, initial=0.0), error)
        if own.rest == "inputs":
            rest = np.abs(x[:, own.columns]).max(0, initial=0.0)
            size, moved = np.append(size, rest), np.append(moved, 0 * rest)
        elif own.rest == "state":
            rest = np.abs(y[:, own.columns]).max(0, initial=0.0)
            size, moved = np.append(size, rest), np.append(moved, error[own.columns])
        weight = np.abs(own.weight)
        return (
            error + (moved + (len(size) + 1) * DOUBLE * size) @ weight + DOUBLE * np.abs(own.bias)
        )

    @cached_property
    def _maps(self) -> dict[str, Real]:
        """(Y, ...) matrices: differences of angles, both ends, magnitudes, other columns."""
        own = self.compensated.compensation
        touched, width = own.touched, len(own.bias)

        def columns(numbers: Sequence[int | None], signs: float = 1.0) -> Real:
            matrix = np.zeros((width, len(numbers)))
            for place, column in enumerate(numbers):
                if column is not None:
                    matrix[column, place] = signs
            return matrix

        starts, stops = ([pair[end] for pair in touched.branches] for end in (0, 1))
        return {
            "angles": columns([touched.angles[b] for b in starts])
            + columns([touched.angles[b] for b in stops], -1.0),
            "from": columns([touched.magnitudes[b] for b in starts]),
            "to": columns([touched.magnitudes[b] for b in stops]),
            "magnitudes": columns([c for c in touched.magnitudes if c is not None]),
            "others": columns(touched.others),
        }  # fmt: skip

    @property
    def _linear(self) -> Real:
        """(Y, F) matrix of the features that are linear."""
        return np.hstack([self._maps[name] for name in ("angles", "magnitudes", "others")])

    def _features(self, graph: OnnxGraph, y: str) -> list[str]:
        """Names of groups of features, in the order of `Touched.features`; none without columns."""
        own, maps = self.compensated.compensation, self._maps

        def mapped(matrix: Real, offset: Real | None = None) -> str:
            value = graph.add("MatMul", y, graph.constant(matrix))
            return value if offset is None else graph.add("Add", value, graph.constant(offset))

        if own.features == "nothing":
            return []
        if own.features != "flows":
            if not self._linear.shape[1]:
                return []
            found = [mapped(self._linear)]
            if own.features == "squares":
                moved = mapped(self._linear, -(own.center @ self._linear))
                i, j = (graph.constant(n) for n in np.tril_indices(self._linear.shape[1]))
                both = (graph.add("Gather", moved, numbers, axis=1) for numbers in (i, j))
                found.append(graph.add("Mul", *both))
            return found
        found = []
        if maps["angles"].shape[1]:
            # a controlled magnitude, which is no output, counts as 1
            ends = (mapped(maps[end], 1 - maps[end].sum(0)) for end in ("from", "to"))
            size, angle = graph.add("Mul", *ends), mapped(maps["angles"])
            found += [graph.add("Mul", size, graph.add(wave, angle)) for wave in ("Sin", "Cos")]
        if maps["magnitudes"].shape[1]:
            magnitude = mapped(maps["magnitudes"])
            found.append(graph.add("Mul", magnitude, magnitude))
        return found + ([mapped(maps["others"])] if maps["others"].shape[1] else [])

    def _sizes(self, size: Real, error: Real) -> tuple[Real, Real]:
        """(F,) and (F,) largest size of each feature and how far it may move, from those of y."""
        own, maps = self.compensated.compensation, self._maps
        linear = np.abs(self._linear)
        if own.features == "nothing":
            return np.zeros(0), np.zeros(0)
        if own.features != "flows":
            first, moved = size @ linear, error @ linear
            if own.features == "differences":
                return first, moved
            i, j = np.tril_indices(len(first))
            span = first + np.abs(own.center) @ linear
            products = span[i] * span[j]
            return (
                np.append(first, products),
                np.append(moved, span[i] * moved[j] + span[j] * moved[i] + moved[i] * moved[j]),
            )
        ends = [size @ maps[end] + (1 - maps[end].sum(0)) for end in ("from", "to")]
        moves = [error @ maps[end] for end in ("from", "to")]
        flow = ends[0] * ends[1]
        by_ends = ends[0] * moves[1] + ends[1] * moves[0] + moves[0] * moves[1]
        wave = by_ends + (flow + by_ends) * (error @ np.abs(maps["angles"]))
        magnitude, off = size @ maps["magnitudes"], error @ maps["magnitudes"]
        others = size @ maps["others"], error @ maps["others"]
        return (
            np.concatenate([flow, flow, magnitude**2, others[0]]),
            np.concatenate([wave, wave, 2 * magnitude * off + off**2, others[1]]),
        )
