"""`Method`: a way to adapt to a new topology, what it needs and what it starts from."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.surrogate_config import SurrogateConfig, default_backbone
from gridshift.errors import ContextError, GridshiftError, SurrogateMismatchError
from gridshift.grid.network import Network
from gridshift.learn.regression import REGRESSIONS
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
    """Transform that a network must have been trained with; None: any."""
    backbone: str | None = None
    """Backbone that the surrogate must have; None: any."""
    closed_form: bool | None = None
    """Whether a base in closed form will do; None: if neither of these two is asked for."""
    base: Callable[[Network, SurrogateConfig, Progress | None], Base] | None = None
    """What trains a base of its own kind for `start`; None: the method starts from a surrogate."""
    uses_surrogate: bool = True
    """Whether it is of any use to the method that its base was trained; if not, nothing is."""
    exportable: bool = True
    """Whether its predictions have an ONNX form, with a backbone that has one."""
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
    def takes_closed_form(self) -> bool:
        """Whether it can start from a base in closed form, as most that need a network can't."""
        asks = self.transform or self.backbone or self.base
        return not asks if self.closed_form is None else self.closed_form

    @property
    def default_base(self) -> str:
        """Name of the base that it starts from unless another is asked for, in `BASES`."""
        asks = self.transform or not self.takes_closed_form
        return self.backbone or ("mlp" if asks else "quadratic")

    @property
    def uses_solved_cases(self) -> bool:
        """Whether a context of solved cases is of any use to it."""
        return "solved cases" in (*self.needs, *self.may_use)

    def start(
        self, network: Network, config: SurrogateConfig, *, progress: Progress | None = None
    ) -> Base:
        """What the method starts from, trained if the method uses it and it isn't in the cache.

        Args:
            network: the new topology; a base that several topologies teach has seen no outage of
                an element that is out here.
            config: spread, seed and training; the method decides about transform and backbone.
        """
        if self.base is not None:
            return self.base(network, config, progress)
        config = self.surrogate_config(config)
        if not self.uses_surrogate:
            return Base.untrained(network, config)
        return cached_surrogate(network, config, progress=progress)

    def surrogate_config(self, config: SurrogateConfig) -> SurrogateConfig:
        """The configuration with the transform and the backbone that the method needs.

        Raises:
            SurrogateMismatchError: it is of a base in closed form, and the method needs a network.
        """
        if config.closed_form:
            self._check_closed_form(config.backbone.name)
            return config
        if self.transform is not None:
            config = replace(config, transform=self.transform)
        if self.backbone not in (None, config.backbone.name):
            config = replace(config, backbone=default_backbone(self.backbone))
        return config

    def base_name(self, base: Base) -> str | None:
        """Name of this base, in `BASES`; None if the method uses none, or a model of its own."""
        return base.config.backbone.name if self.uses_surrogate and self.base is None else None

    def check_base_name(self, name: str) -> None:
        """Pass if the method can start from a base of this name, in `BASES`.

        Raises:
            SurrogateMismatchError: it needs another, or has a model of its own.
        """
        if self.base is not None or self.backbone not in (None, name):
            own = "a model of its own" if self.base is not None else f"base {self.backbone}"
            raise SurrogateMismatchError(
                f"method {self.name} starts from {own}, not from base {name}; leave --base out"
            )
        if name in REGRESSIONS:
            self._check_closed_form(name)

    def _check_closed_form(self, name: str) -> None:
        if not self.takes_closed_form:
            raise SurrogateMismatchError(
                f"method {self.name} works on the layers or the transform of a network, and base "
                f"{name} has none; take base mlp, or one of the methods compensation, "
                "ridge-features, icw-auto and frozen, which start from any base"
            )

    def check_num_context(self, num_context: int) -> None:
        """Pass if the method can work with a context of so many scenarios.

        Raises:
            ContextError: a negative number, or too few for what it needs.
        """
        fewest = 2 if "solved cases" in self.needs else 0
        # one case has no variance: a method that may do without takes none, or at least two
        if num_context < fewest or (self.uses_solved_cases and num_context == 1):
            none = " or none" if self.uses_solved_cases and not fewest else ""
            raise ContextError(
                f"method {self.name} needs a context of at least {2 if none else fewest} solved "
                f"cases{none}, not {num_context}; ask for a larger one, for instance 400"
            )

    def check_exportable(self) -> None:
        """Pass if what the method predicts has an ONNX form.

        Raises:
            GridshiftError: it has none.
        """
        if not self.exportable:
            raise GridshiftError(
                f"predictions of method {self.name} have no ONNX form; those of the methods icw, "
                "icw-paired, ridge, tangent and tangent-icw have one, for instance"
            )

    def check_base(self, base: Base) -> None:
        """Pass if the method can start from this.

        Raises:
            SurrogateMismatchError: it was trained with another transform or backbone, or is of
                another kind, than this method needs.
        """
        if not self.uses_surrogate:
            return
        if (self.base is None) != isinstance(base, Surrogate):
            needed = "a surrogate" if self.base is None else "a model of its own"
            raise SurrogateMismatchError(
                f"method {self.name} starts from {needed}, not from {type(base).__name__}; leave "
                "--surrogate out, and what it needs is trained"
            )
        if self.base is not None:
            return
        if base.config.closed_form:
            self._check_closed_form(base.config.backbone.name)
            return
        has = {"transform": base.config.transform, "backbone": base.config.backbone.name}
        wanted = {"transform": self.transform, "backbone": self.backbone}
        for what, needed in wanted.items():
            if needed not in (None, has[what]):
                right = {name: wanted[name] or has[name] for name in has}
                flags = f"--transform {right['transform']}"
                flags += f" --base {right['backbone']}" if right["backbone"] != "mlp" else ""
                raise SurrogateMismatchError(
                    f"method {self.name} needs a surrogate trained with {what} {needed}; this one "
                    f"was trained with {has[what]}: train another with "
                    f"'gridshift train {base.grid} {flags} --out DIR'"
                )

    def suits(self, base: Base) -> bool:
        """Whether `check_base` passes."""
        try:
            self.check_base(base)
        except SurrogateMismatchError:
            return False
        return True

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
        return self.adapt(base.on(context.network), context)


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
