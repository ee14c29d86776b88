"""Every way to adapt a surrogate to a new topology, behind one signature and in one roster."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.moment_methods import (
    adapt_auto,
    adapt_frozen,
    adapt_icw_paired,
    adapt_icw_shrunk,
    adapt_residual_paired,
    adapt_with_context_statistics,
    adapt_zscore_paired,
)
from gridshift.adapt.ridge import adapt_ridge, adapt_ridge_features
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.tangent_methods import adapt_corrected_tangent, adapt_tangent
from gridshift.errors import ContextError, SurrogateMismatchError

Need = Literal["nothing", "solved cases", "network", "gradient steps"]


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
    may_use: tuple[Need, ...] = ()
    """What it makes use of if the context has it, and does without if not."""

    @property
    def gradient(self) -> bool:
        """Whether it takes gradient steps on the new topology."""
        return "gradient steps" in self.needs

    @property
    def uses_solved_cases(self) -> bool:
        """Whether a context of solved cases is of any use to it."""
        return "solved cases" in (*self.needs, *self.may_use)

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
        if "solved cases" in self.needs or (self.uses_solved_cases and len(context.x)):
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


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            name="frozen",
            summary="the surrogate as it is, statistics of the grid it was trained on",
            needs=("nothing",),
            source="paper, table I",
            adapt=adapt_frozen,
        ),
        Method(
            name="residual",
            summary="mean re-estimated from the context",
            needs=("solved cases",),
            source="paper, table I, Residual(ctx)",
            adapt=adapt_with_context_statistics,
            transform="residual",
        ),
        Method(
            name="zscore",
            summary="mean and variance of each output re-estimated from the context",
            needs=("solved cases",),
            source="paper, table I, Z-Score(ctx)",
            adapt=adapt_with_context_statistics,
            transform="zscore",
        ),
        Method(
            name="icw",
            summary="mean and covariance re-estimated from the context",
            needs=("solved cases",),
            source="paper, section III, In-Context Whitening",
            adapt=adapt_with_context_statistics,
            transform="zca",
        ),
        Method(
            name="residual-paired",
            summary="predictions moved by their mean error on the context",
            needs=("solved cases",),
            source="gridshift; control variates",
            adapt=adapt_residual_paired,
            transform="zca",
        ),
        Method(
            name="zscore-paired",
            summary="mean and variance of each output, against predictions for the same inputs",
            needs=("solved cases",),
            source="gridshift, paired moments",
            adapt=adapt_zscore_paired,
            transform="zca",
        ),
        Method(
            name="icw-paired",
            summary="mean and covariance, against predictions for the same inputs",
            needs=("solved cases",),
            source="gridshift, paired moments",
            adapt=adapt_icw_paired,
            transform="zca",
        ),
        Method(
            name="icw-shrunk",
            summary="as icw-paired, correlations shrunk towards zero",
            needs=("solved cases",),
            source="gridshift; Schäfer and Strimmer 2005",
            adapt=adapt_icw_shrunk,
            transform="zca",
        ),
        Method(
            name="ridge",
            summary="linear regression of y on x over the context, no surrogate",
            needs=("solved cases",),
            source="Hoerl and Kennard 1970; penalty by leave-one-out",
            adapt=adapt_ridge,
        ),
        Method(
            name="ridge-features",
            summary="linear regression of y on the surrogate's output and x over the context",
            needs=("solved cases",),
            source="gridshift; penalty by leave-one-out",
            adapt=adapt_ridge_features,
        ),
        Method(
            name="icw-auto",
            summary="the best on the context of all above that need solved cases only",
            needs=("solved cases",),
            source="gridshift; cross-validation",
            adapt=adapt_auto,
            transform="zca",
        ),
        Method(
            name="tangent",
            summary="first-order expansion around the new topology's nominal point",
            needs=("network",),
            source="Newton's method; docs/tangent.md",
            adapt=partial(adapt_tangent, order=1),
        ),
        Method(
            name="tangent2",
            summary="second-order expansion around the new topology's nominal point",
            needs=("network",),
            source="chord method; docs/tangent.md",
            adapt=partial(adapt_tangent, order=2),
        ),
        Method(
            name="tangent-icw",
            summary="tangent and learned curvature, recalibrated if there is a context",
            needs=("network",),
            may_use=("solved cases",),
            source="gridshift, docs/tangent.md",
            adapt=adapt_corrected_tangent,
            transform="tangent",
        ),
        Method(
            name="tangent2-icw",
            summary="tangent2 and learned third order, recalibrated if there is a context",
            needs=("network",),
            may_use=("solved cases",),
            source="gridshift, docs/tangent.md",
            adapt=adapt_corrected_tangent,
            transform="tangent2",
        ),
    )
}
"""The roster that tables, tests and the command line iterate over."""
