"""Every way to adapt a surrogate to a new topology, behind one signature and in one roster."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from gridshift.adapt.datasets import Dataset
from gridshift.adapt.surrogate import Surrogate
from gridshift.arrays import Real
from gridshift.errors import ContextError, SurrogateMismatchError
from gridshift.grid.network import Network
from gridshift.learn.whitening import fit_transform

Need = Literal["nothing", "solved cases", "network", "gradient steps"]


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
    def empty(cls, network: Network, surrogate: Surrogate) -> "Context":
        """A context without solved cases, for methods that need none."""
        x, y = surrogate.layout.num_inputs, surrogate.layout.num_outputs
        return cls(network=network, x=np.empty((0, x)), y=np.empty((0, y)), num_solves=0)


class Predictor(Protocol):
    """What adaptation gives: predictions for one topology."""

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        ...


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to adapt a surrogate, which itself is never changed."""

    name: str
    summary: str
    """One line for people."""
    needs: tuple[Need, ...]
    """What it takes from the context; the cost ledger charges for exactly that."""
    source: str
    """Paper, equation, or 'gridshift'."""
    adapt: Callable[[Surrogate, Context], Predictor]
    """The work itself; `fit` checks first."""
    transform: str | None = None
    """Transform that the surrogate must have been trained with; None: any."""

    @property
    def gradient(self) -> bool:
        """Whether it takes gradient steps on the new topology."""
        return "gradient steps" in self.needs

    def fit(self, surrogate: Surrogate, context: Context) -> Predictor:
        """A predictor for the topology of the context.

        Raises:
            SurrogateMismatchError: the surrogate is of another grid, or was trained with another
                transform than this method needs.
            ContextError: fewer than two solved cases, a wrong width, or NaN.
        """
        surrogate.check(context.network)
        if self.transform not in (None, surrogate.config.transform):
            raise SurrogateMismatchError(
                f"method {self.name} needs a surrogate trained with transform {self.transform}; "
                f"this one was trained with {surrogate.config.transform}: train another with "
                f"'gridshift train {context.network.name} --transform {self.transform} --out DIR'"
            )
        if "solved cases" in self.needs:
            _check_solved_cases(self.name, surrogate, context)
        return self.adapt(surrogate, context)


def _check_solved_cases(method: str, surrogate: Surrogate, context: Context) -> None:
    layout = surrogate.layout
    expected = (len(context.x), layout.num_inputs), (len(context.x), layout.num_outputs)
    if (context.x.shape, context.y.shape) != expected:
        raise ContextError(
            f"context has x of shape {context.x.shape} and y of shape {context.y.shape}; "
            f"{surrogate.grid} needs (N, {layout.num_inputs}) and (N, {layout.num_outputs})"
        )
    if len(context.y) < 2:
        raise ContextError(
            f"method {method} needs a context of at least 2 solved cases, not {len(context.y)} "
            f"(of {context.num_solves} solved for it); ask for a larger one"
        )
    bad = np.flatnonzero(~np.isfinite(np.hstack([context.x, context.y])).all(1))
    if len(bad):
        raise ContextError(
            f"{len(bad)} of {len(context.x)} context rows hold NaN or infinity, the first is "
            f"row {bad[0]}; keep solved rows only"
        )


def _frozen(surrogate: Surrogate, context: Context) -> Predictor:
    """Statistics of the training topology."""
    return surrogate


def _with_context_statistics(surrogate: Surrogate, context: Context) -> Predictor:
    """y = T_ctx^-1(f(x)), equation 8 of the paper, folded into the last layer."""
    base = surrogate.transform
    return surrogate.with_transform(fit_transform(base.name, context.y, eps=base.eps))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="frozen",
            summary="the surrogate as it is, statistics of the grid it was trained on",
            needs=("nothing",),
            source="paper, table I",
            adapt=_frozen,
        ),
        Method(
            name="residual",
            summary="mean re-estimated from the context",
            needs=("solved cases",),
            source="paper, table I, Residual(ctx)",
            adapt=_with_context_statistics,
            transform="residual",
        ),
        Method(
            name="zscore",
            summary="mean and variance of each output re-estimated from the context",
            needs=("solved cases",),
            source="paper, table I, Z-Score(ctx)",
            adapt=_with_context_statistics,
            transform="zscore",
        ),
        Method(
            name="icw",
            summary="mean and covariance re-estimated from the context",
            needs=("solved cases",),
            source="paper, section III, In-Context Whitening",
            adapt=_with_context_statistics,
            transform="zca",
        ),
    )
}
"""The roster that tables, tests and the command line iterate over."""
