"""`WhitenedModel`: any fitted model seen through a transform of its outputs, so that it can adapt.

A network is trained in the space of a transform, and its moments are adapted there. A model that
predicts y itself is given the same way out: z = before(y_hat), and y by the inverse of another
transform, which for affine ones is a linear layer behind the model.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Real
from gridshift.errors import StorageError
from gridshift.learn.model_file import AroundModel, Stored
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph
from gridshift.learn.transform_file import restored_constants, restored_transform
from gridshift.learn.whitening import Affine, Transform

MODEL, BEFORE = "model.", "before."
"""Before the names of arrays of the model, and of its own transform."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WhitenedModel(AroundModel):
    """A `RefoldableModel`: y = transform.inverse(before.forward(model's y))."""

    kind: ClassVar[str] = "whitened"
    model: Any
    """A `FittedModel`."""
    before: Affine
    """Fitted on the outputs that the model was fitted to."""
    transform: Affine
    """The way back; `before` until it is refolded, so that y is the model's."""
    constants: Real | None = None
    """(Y,) outputs given as they are, NaN for the others; None: no such care."""

    @property
    def inner(self) -> Any:
        """The model."""
        return self.model

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        y = self.model.predict(x)
        if self.transform is not self.before:
            weight, bias = self._layer()
            y = y @ weight.T + bias
        return y

    def predict_transformed(self, x: Real) -> Real:
        """(R, Y) z of inputs (R, X)."""
        return self.before.forward(self.model.predict(x))

    def refolded(self, transform: Transform, constants: Real | None = None) -> "WhitenedModel":
        """The same model with another way back to y; this one stays."""
        assert isinstance(transform, Affine)
        return replace(self, transform=transform, constants=constants)

    def _layer(self) -> tuple[Real, Real]:
        """Weight (Y, Y) and bias (Y,) from the model's y to y."""
        shift, whitener = self.before.shift, self.before.whitener
        whitener = np.diag(whitener) if whitener.ndim == 1 else whitener
        weight, bias = self.transform.fold_into_linear(whitener, -(whitener @ shift))
        if self.constants is not None:
            held = np.isfinite(self.constants)
            weight = np.where(held[:, None], 0.0, weight)
            bias = np.where(held, self.constants, bias)
        return weight, bias

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers, by the names that a file has them under."""
        own = {} if self.transform is self.before else self.transform.arrays()
        held = {} if self.constants is None else {"constants": self.constants}
        return {
            **{MODEL + name: values for name, values in self.model.arrays().items()},
            **{f"{BEFORE}transform.{n}": values for n, values in self.before.arrays().items()},
            **{f"transform.{name}": values for name, values in own.items()},
            **held,
        }

    def about(self) -> dict[str, Any]:
        """Everything else that a file has, as JSON values."""
        from gridshift.learn.models import model_fields

        return {
            "model": model_fields(self.model),
            "before": {"transform": self.before.numbers()},
            "transform": None if self.transform is self.before else self.transform.numbers(),
        }

    @classmethod
    def restored(cls, stored: Stored) -> "WhitenedModel":
        """The model that was stored.

        Raises:
            GridshiftError: a field or an array is missing, or can't be.
        """
        from gridshift.learn.models import restored_model

        inner, before_stored = stored.inner("model", MODEL), stored.inner("before", BEFORE)
        if inner.about.get("kind") == cls.kind:
            raise StorageError("a whitened model of a whitened model")
        before = transform = restored_transform(before_stored)
        if stored.about.get("transform") is not None or "transform.shift" in stored.arrays:
            transform = restored_transform(stored)
        if not (isinstance(before, Affine) and isinstance(transform, Affine)):
            raise StorageError("a transform that isn't affine")
        return cls(
            model=restored_model(inner), before=before, transform=transform,
            constants=restored_constants(stored),
        )  # fmt: skip

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the model and the layer behind it; the name of y."""
        y = self.model.add_to_graph(graph)
        if self.transform is self.before:
            return y
        weight, bias = self._layer()
        product = graph.add("MatMul", y, graph.constant(weight.T))
        return graph.add("Add", product, graph.constant(bias))

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X)."""
        error = self.model.round_off(x)
        if self.transform is self.before:
            return error
        weight, bias = self._layer()
        size = np.abs(self.model.predict(x)).max(0, initial=0.0)
        return (error + DOUBLE * size) @ np.abs(weight.T) + DOUBLE * np.abs(bias)
