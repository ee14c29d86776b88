"""`FittedModel`: what a surrogate, an estimator, a file and an ONNX export hold, whatever it is.

A model that was fitted once maps x to y and can be written down as arrays and a few JSON values. A
new kind is one class and one entry of `MODELS`. One that can also be given another way back to y
is a `RefoldableModel`; adapting by moments needs one.
"""

from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Int, Real
from gridshift.errors import StorageError
from gridshift.learn.compensated_model import CompensatedModel
from gridshift.learn.fitted_network import FittedNetwork
from gridshift.learn.model_file import Stored, field
from gridshift.learn.onnx_graph import OnnxGraph
from gridshift.learn.regression import Regression
from gridshift.learn.whitened_model import WhitenedModel
from gridshift.learn.whitening import Transform


@runtime_checkable
class FittedModel(Protocol):
    """A fitted map from inputs x (R, X) to outputs y (R, Y)."""

    kind: ClassVar[str]
    """Name in `MODELS`."""

    @property
    def input_mean(self) -> Real:
        """(X,) mean of the inputs that it was fitted to; the value of one that never varied."""
        ...

    @property
    def varied(self) -> Int:
        """(V,) numbers of the inputs that varied where it was fitted."""
        ...

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X), float64."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers of it, by the names that a file has them under."""
        ...

    def about(self) -> dict[str, Any]:
        """Everything else that a file has of it, as JSON values."""
        ...

    @classmethod
    def restored(cls, stored: Stored) -> "FittedModel":
        """The model that was stored.

        Raises:
            GridshiftError: a field or an array is missing, unknown, or can't be.
        """
        ...

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add it to an ONNX graph that has x as 'x'; the name of y there.

        Raises:
            GridshiftError: it has no ONNX form.
        """
        ...

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X)."""
        ...


@runtime_checkable
class RefoldableModel(FittedModel, Protocol):
    """A model that predicts transformed outputs z, and finds y by the transform's inverse."""

    @property
    def transform(self) -> Transform:
        """Between y and z."""
        ...

    @property
    def constants(self) -> Real | None:
        """(Y,) outputs given as they are, NaN for the others; None: no such care."""
        ...

    def predict_transformed(self, x: Real) -> Real:
        """(R, Y) z of inputs (R, X)."""
        ...

    def refolded(self, transform: Transform, constants: Real | None = None) -> "RefoldableModel":
        """The same with another way back to y; this one stays."""
        ...


MODELS: dict[str, type[FittedModel]] = {
    FittedNetwork.kind: FittedNetwork,
    Regression.kind: Regression,
    WhitenedModel.kind: WhitenedModel,
    CompensatedModel.kind: CompensatedModel,
}
"""Kind to class."""


def model_fields(model: FittedModel) -> dict[str, Any]:
    """What a file says of a model besides its arrays, as JSON values."""
    return {"kind": model.kind, **model.about()}


def restored_model(stored: Stored) -> FittedModel:
    """The model whose `model_fields` and arrays were stored.

    Raises:
        GridshiftError: something is missing, unknown, or can't be, or predictions aren't finite.
    """
    kind = field(stored.about, "kind", str)
    if kind not in MODELS:
        raise StorageError(f"no model {kind}; known are {', '.join(MODELS)}")
    model = MODELS[kind].restored(stored)
    require_finite(model)
    return model


def require_finite(model: FittedModel) -> None:
    """Pass if the prediction for the mean of the inputs is finite.

    Raises:
        StorageError: it isn't.
    """
    if not np.isfinite(model.predict(model.input_mean[None])).all():
        raise StorageError("its numbers give predictions that are not finite")
