"""`CompensatedModel`: a fitted model with the compensation of a change, in files and as ONNX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Real
from gridshift.errors import StorageError
from gridshift.learn.compensation import FEATURES, RESTS, Compensated, Compensation, Touched
from gridshift.learn.compensation_graph import CompensatedPart
from gridshift.learn.model_file import AroundModel, Stored, array, field
from gridshift.learn.onnx_graph import OnnxGraph

MODEL, PREFIX = "model.", "compensation."
"""Before the names of the model's arrays, and of the compensation's."""
NONE = -1
"""Number of a column that isn't there."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CompensatedModel(Compensated, AroundModel):
    """A `Compensated` that is a `FittedModel` itself, as its base is one."""

    kind: ClassVar[str] = "compensated"
    base: Any
    """A `FittedModel`."""

    @property
    def inner(self) -> Any:
        """The base."""
        return self.base

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers, by the names that a file has them under."""
        own = _compensation_arrays(self.compensation)
        inner = {MODEL + name: values for name, values in self.base.arrays().items()}
        return inner | own

    def about(self) -> dict[str, Any]:
        """Everything else that a file has, as JSON values."""
        from gridshift.learn.models import model_fields

        return {
            "model": model_fields(self.base),
            "compensation": _compensation_fields(self.compensation),
        }

    @classmethod
    def restored(cls, stored: Stored) -> "CompensatedModel":
        """The model that was stored.

        Raises:
            GridshiftError: a field or an array is missing, unknown, or can't be.
        """
        from gridshift.learn.models import restored_model

        inner, about = stored.inner("model", MODEL), field(stored.about, "compensation", dict)
        if inner.about.get("kind") == cls.kind:
            raise StorageError("a compensated model of a compensated model")
        return cls(
            base=restored_model(inner),
            compensation=_restored_compensation(about, stored.arrays, stored.shape),
        )

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the model and what the change adds, in float64; the name of y."""
        return CompensatedPart(base=(self.base,), compensated=self).add_to_graph(graph)

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X)."""
        return CompensatedPart(base=(self.base,), compensated=self).round_off(x)


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
