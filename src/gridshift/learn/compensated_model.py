"""`CompensatedModel`: a fitted model with the compensation of a change, in files and as ONNX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Int, Real
from gridshift.errors import StorageError
from gridshift.learn.compensation import FEATURES, RESTS, Compensation, Touched
from gridshift.learn.model_file import array, field, part_of
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph

MODEL, PREFIX = "model.", "compensation."
"""Before the names of the model's arrays, and of the compensation's."""
NONE = -1
"""Number of a column that isn't there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CompensatedModel:
    """y = compensation.add(x, model's y); it has what a `FittedModel` predicts and exports by."""

    kind: ClassVar[str] = "compensated"
    model: Any
    """A `FittedModel`."""
    compensation: Compensation

    @property
    def input_mean(self) -> Real:
        """(X,) of the model."""
        return self.model.input_mean

    @property
    def varied(self) -> Int:
        """(V,) of the model."""
        return self.model.varied

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        return self.compensation.add(x, self.model.predict(x))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers, by the names that a file has them under."""
        own = _compensation_arrays(self.compensation)
        inner = {MODEL + name: values for name, values in self.model.arrays().items()}
        return inner | own

    def about(self) -> dict[str, Any]:
        """Everything else that a file has, as JSON values."""
        from gridshift.learn.models import model_fields

        return {
            "model": model_fields(self.model),
            "compensation": _compensation_fields(self.compensation),
        }

    @classmethod
    def restored(
        cls,
        about: dict[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        shape: tuple[int, int],
        make_graph: Any = None,
    ) -> "CompensatedModel":
        """The model of `about` and `arrays`, with so many inputs and outputs.

        Raises:
            GridshiftError: a field or an array is missing, unknown, or can't be.
        """
        from gridshift.learn.models import restored_model

        found = field(about, "model", dict)
        if found.get("kind") == cls.kind:
            raise StorageError("a compensated model of a compensated model")
        return cls(
            model=restored_model(found, part_of(arrays, MODEL), shape, make_graph),
            compensation=_restored_compensation(field(about, "compensation", dict), arrays, shape),
        )

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the model and what the change adds, in float64; the name of y."""
        own, y = self.compensation, self.model.add_to_graph(graph)
        columns = _feature_nodes(own.touched, own.features, graph, y, own.center)
        if len(own.columns):
            source = "x" if own.rest == "inputs" else y
            columns.append(graph.add("Gather", source, graph.constant(own.columns), axis=1))
        added = graph.constant(own.bias[None])
        if columns:
            features = graph.add("Concat", *columns, axis=1)
            product = graph.add("MatMul", features, graph.constant(own.weight))
            added = graph.add("Add", product, graph.constant(own.bias))
        return graph.add("Add", y, added)

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X).

        What features make of an error in a column is told by moving the column by it.
        """
        own, y = self.compensation, self.model.predict(x)
        touched, base_error = own.touched, self.model.round_off(x)
        error = base_error + DOUBLE * np.abs(y).max(0, initial=0.0)
        features = touched.features(own.features, y, own.center)
        spread = DOUBLE * np.abs(features)
        for number in _columns(touched):
            moved = y.copy()
            moved[:, number] += error[number]
            spread = spread + np.abs(touched.features(own.features, moved, own.center) - features)
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


def _compensation_arrays(fitted: Compensation) -> dict[str, NDArray[Any]]:
    """All numbers of a compensation, by the names that a file has them under."""
    own = {name: getattr(fitted, name) for name in ("columns", "center", "weight", "bias")}
    touched = fitted.touched
    own |= {
        name: np.array([NONE if number is None else number for number in numbers], np.int64)
        for name, numbers in vars(touched).items() if name in ("angles", "magnitudes", "others")
    }  # fmt: skip
    own["branches"] = np.array(touched.branches, np.int64).reshape(-1, 2)
    own |= {"angle_unit": np.array([touched.angle_unit]), "left_out": fitted.left_out}
    return {PREFIX + name: values for name, values in own.items()}


def _compensation_fields(fitted: Compensation) -> dict[str, Any]:
    """Everything else that a file has of it, as JSON values."""
    return {
        "features": fitted.features, "rest": fitted.rest, "candidates": fitted.candidates,
        "num_rows": len(fitted.left_out),
    }  # fmt: skip


def _restored_compensation(
    about: dict[str, Any], arrays: Mapping[str, NDArray[Any]], shape: tuple[int, int]
) -> Compensation:
    """The compensation of `_compensation_fields` and its arrays, with so many inputs and outputs.

    Raises:
        StorageError: a field or an array is missing, unknown, or can't be.
    """
    num_inputs, width = shape
    features, rest = field(about, "features", str), field(about, "rest", str)
    if features not in FEATURES or rest not in RESTS:
        raise StorageError(f"a compensation by {features} and {rest}")
    touched = _restored_touched(arrays, width)
    columns = _numbers(arrays, "columns", {"nothing": 0, "inputs": num_inputs}.get(rest, width))
    center = array(arrays, PREFIX + "center", (width,))
    own = touched.features(features, center[None], center).shape[1]
    num_rows = field(about, "num_rows", int)
    candidates = field(about, "candidates", dict)
    return Compensation(
        touched=touched, features=features, rest=rest, columns=columns, center=center,
        weight=array(arrays, PREFIX + "weight", (own + len(columns), width)),
        bias=array(arrays, PREFIX + "bias", (width,)),
        left_out=array(arrays, PREFIX + "left_out", (num_rows, width)),
        candidates={name: field(candidates, name, float) for name in candidates},
    )  # fmt: skip


def _restored_touched(arrays: Mapping[str, NDArray[Any]], width: int) -> Touched:
    angles = _numbers(arrays, "angles", width, least=NONE)
    magnitudes = _numbers(arrays, "magnitudes", width, least=NONE)
    branches = _numbers(arrays, "branches", len(angles), num_axes=2)
    unit = array(arrays, PREFIX + "angle_unit", (1,))[0]
    if branches.shape[1] != 2 or not unit > 0:
        raise StorageError("branches that don't join two buses, or angles without a unit")
    return Touched(
        angles=tuple(None if number == NONE else int(number) for number in angles),
        magnitudes=tuple(None if number == NONE else int(number) for number in magnitudes),
        branches=tuple((int(i), int(j)) for i, j in branches),
        others=tuple(_numbers(arrays, "others", width).tolist()), angle_unit=float(unit),
    )  # fmt: skip


def _numbers(
    arrays: Mapping[str, NDArray[Any]], name: str, num: int, *, least: int = 0, num_axes: int = 1
) -> NDArray[np.int64]:
    """The array of that name, if it holds numbers from `least` to below `num`."""
    found = array(arrays, PREFIX + name, np.shape(arrays.get(PREFIX + name, ())), kind=np.int64)
    if found.ndim != num_axes or not ((found >= least) & (found < num)).all():
        raise StorageError(f"array {PREFIX}{name} holds numbers of what isn't there")
    return found


def _columns(touched: Touched) -> list[int]:
    """All columns that it names, each once."""
    named = (*touched.angles, *touched.magnitudes, *touched.others)
    return sorted({number for number in named if number is not None})
