"""Every way to adapt a surrogate to a new topology, behind one signature and in one roster."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.fine_tune import adapt_fine_tune, adapt_scratch
from gridshift.adapt.baselines.pi_ttt import adapt_pi_ttt
from gridshift.adapt.baselines.ttf_ensemble import adapt_ttf_ensemble, start_ttf_ensemble
from gridshift.adapt.cache import cached_surrogate
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
from gridshift.adapt.surrogate_config import ZCA_SAS, SurrogateConfig
from gridshift.adapt.tangent_methods import adapt_corrected_tangent, adapt_tangent
from gridshift.errors import ContextError, SurrogateMismatchError
from gridshift.grid.network import Network
from gridshift.learn.backbones import BACKBONES
from gridshift.learn.training import Progress

Need = Literal["nothing", "solved cases", "network", "gradient steps"]


@dataclass(frozen=True, kw_only=True)
class Method:
    """A way to adapt a surrogate, or another base, which itself is never changed."""

    name: str
    summary: str
    """One line for people."""
    needs: tuple[Need, ...]
    """What it takes from the context; the cost ledger charges for exactly that."""
    source: str
    """Paper, equation, or 'gridshift'."""
    adapt: Callable[[Any, Context], Predictor]
    """The work itself, from the base that `start` gives; `fit` checks first."""
    transform: str | None = None
    """Transform that the surrogate must have been trained with; None: any."""
    backbone: str | None = None
    """Backbone that the surrogate must have; None: any."""
    base: Callable[[Network, SurrogateConfig, Progress | None], Base] | None = None
    """What trains a base of its own kind for `start`; None: the method starts from a surrogate."""
    may_use: tuple[Need, ...] = ()
    """What it makes use of if the context has it, and does without if not."""

    @property
    def gradient(self) -> bool:
        """Whether it takes gradient steps on the new topology."""
        return "gradient steps" in self.needs

    @property
    def fast(self) -> bool:
        """Whether it takes no gradient steps, and starts from an ordinary surrogate."""
        return not self.gradient and self.base is None and self.backbone is None

    @property
    def uses_solved_cases(self) -> bool:
        """Whether a context of solved cases is of any use to it."""
        return "solved cases" in (*self.needs, *self.may_use)

    def start(
        self, network: Network, config: SurrogateConfig, *, progress: Progress | None = None
    ) -> Base:
        """What the method starts from, trained if it isn't in the cache yet.

        Args:
            network: the new topology; a base that several topologies teach has seen no outage of
                an element that is out here.
            config: spread, seed and training; the method decides about transform and backbone.
            progress: called while training with (step, number of steps, loss).
        """
        if self.base is not None:
            return self.base(network, config, progress)
        if self.transform is not None:
            config = replace(config, transform=self.transform)
        if self.backbone not in (None, config.backbone.name):
            config = replace(config, backbone=BACKBONES[self.backbone]())
        return cached_surrogate(network, config, progress=progress)

    def check_base(self, base: Base) -> None:
        """Pass if the method can start from this.

        Raises:
            SurrogateMismatchError: it was trained with another transform or backbone, or is of
                another kind, than this method needs.
        """
        if (self.base is None) != isinstance(base, Surrogate):
            needed = "a surrogate" if self.base is None else "a model of its own"
            raise SurrogateMismatchError(
                f"method {self.name} starts from {needed}, not from {type(base).__name__}; leave "
                "--surrogate out, and what it needs is trained"
            )
        if self.base is not None:
            return
        has = {"transform": base.config.transform, "backbone": base.config.backbone.name}
        for what, needed in (("transform", self.transform), ("backbone", self.backbone)):
            if needed not in (None, has[what]):
                raise SurrogateMismatchError(
                    f"method {self.name} needs a surrogate trained with {what} {needed}; this one "
                    f"was trained with {has[what]}: train another with "
                    f"'gridshift train {base.grid} --{what} {needed} --out DIR'"
                )

    def fit(self, base: Base, context: Context) -> Predictor:
        """A predictor for the topology of the context.

        Raises:
            SurrogateMismatchError: the base is of another grid, or not what this method needs.
            ContextError: fewer than two solved cases, a wrong width, or NaN.
        """
        base.check(context.network)
        self.check_base(base)
        if "solved cases" in self.needs or (self.uses_solved_cases and len(context.x)):
            _check_solved_cases(self.name, base, context)
        if isinstance(base, Surrogate):
            base = base.on(context.network)
        return self.adapt(base, context)


def _check_solved_cases(method: str, base: Base, context: Context) -> None:
    layout = base.layout
    expected = (len(context.x), layout.num_inputs), (len(context.x), layout.num_outputs)
    if (context.x.shape, context.y.shape) != expected:
        raise ContextError(
            f"context has x of shape {context.x.shape} and y of shape {context.y.shape}; "
            f"{base.grid} needs (N, {layout.num_inputs}) and (N, {layout.num_outputs})"
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
            name="icw-sas",
            summary="as icw, then the skewness of each whitened output re-estimated too",
            needs=("solved cases",),
            source="paper, appendix B, third level",
            adapt=adapt_with_context_statistics,
            transform=ZCA_SAS,
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
        Method(
            name="pfgnn",
            summary="PowerFlowNet's graph network, given the new topology's graph",
            needs=("network",),
            source="Lin et al. 2024, PowerFlowNet",
            adapt=adapt_frozen,
            transform="zscore",
            backbone="pfgnn",
        ),
        Method(
            name="fine-tune",
            summary="all weights of the surrogate trained on, on the context",
            needs=("solved cases", "gradient steps"),
            source="paper, section IV and appendix on cost",
            adapt=adapt_fine_tune,
            transform="zscore",
        ),
        Method(
            name="scratch",
            summary="the surrogate's architecture trained anew on the context alone",
            needs=("solved cases", "gradient steps"),
            source="paper, appendix on cost",
            adapt=adapt_scratch,
        ),
        Method(
            name="ttf-ensemble",
            summary="five networks of the intact grid, each fine-tuned on the context; their mean",
            needs=("solved cases", "gradient steps"),
            source="Jia et al. 2024, as the paper describes it",
            adapt=adapt_ttf_ensemble,
            base=start_ttf_ensemble,
        ),
        Method(
            name="pi-ttt",
            summary="last layer moved until unlabelled rows satisfy the power balance better",
            needs=("network", "gradient steps"),
            source="Dogoulis et al. 2025, physics-informed test-time training",
            adapt=adapt_pi_ttt,
            transform="zca",
        ),
    )
}
"""The roster that tables, tests and the command line iterate over."""
