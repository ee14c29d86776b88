"""What adaptation starts from and what it gives: `Context` and `Predictor`."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.datasets import Dataset
from gridshift.arrays import Real
from gridshift.grid.network import Network


@dataclass(frozen=True, kw_only=True, eq=False)
class Context:
    """What is known of a new topology before any prediction on it."""

    network: Network
    x: Real
    """(R, X) inputs of its solved cases."""
    y: Real
    """(R, Y) their outputs."""
    num_solves: int
    """Solves that were paid for, failed ones included."""

    @classmethod
    def of(cls, data: Dataset) -> "Context":
        """The context of a data set's rows."""
        return cls(network=data.network, x=data.x, y=data.y, num_solves=data.num_solves)

    @classmethod
    def empty(cls, network: Network, base: Base) -> "Context":
        """A context without solved cases, for methods that need none."""
        x, y = base.layout.num_inputs, base.layout.num_outputs
        return cls(network=network, x=np.empty((0, x)), y=np.empty((0, y)), num_solves=0)


class Predictor(Protocol):
    """What adaptation gives: predictions for one topology."""

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class SummedPredictor:
    """The sum of what several predictors give, for instance of a tangent and of a network."""

    parts: tuple[Predictor, ...]
    left_out_mae: float | None = None
    """Mean absolute error of each row of the context by a fit to all others, if that is known."""

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        first, *others = self.parts
        y = first.predict(x)
        for part in others:
            y = y + part.predict(x)
        return y
