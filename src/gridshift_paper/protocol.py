"""The paper's setting, in one place: grids, outages, sizes, and at which scale they are run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate import Surrogate, fit_output_transform
from gridshift.adapt.surrogate_config import (
    PAPER_SURROGATE,
    PRODUCT_TRAINING,
    SurrogateConfig,
    default_num_rows,
)
from gridshift.adapt.surrogate_config import base_config as product_config
from gridshift.adapt.training_rows import draw_rows
from gridshift.arrays import Bool, Real
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import Spread, named_rng, sample_loads
from gridshift.learn.backbones import BACKBONES
from gridshift.learn.whitening import Transform
from gridshift.trial.metrics import mean_absolute_errors

SPREAD, WIDE_SPREAD = 0.2, 0.5
"""Spread of the loads, and the harder one of two of the paper's experiments."""
TOPOLOGIES = ("base", "N-1", "N-2")
"""What most tables measure on."""
QUANTITIES = {
    "overall": "overall", "p_slack": "P slack", "q_gen": "Q gen", "v": "|V|", "theta": "θ",
}  # fmt: skip
"""Columns of errors, as tables name them."""
BACKBONE_LABELS = {"mlp": "MLP", "transformer": "Transformer", "pfgnn": "PFGNN"}
"""As the paper writes them."""
EXACT, WIDE = "exact", "mlp-1024"
"""In the place of a backbone: exact solutions of the intact grid, and the MLP that fits case300."""
FIT_300 = {EXACT: "exact solutions", WIDE: "width 1,024"}
"""Between which the paper's network of case300 was, and how tables name them."""
WIDE_SETTINGS = {"dropout": 0.0, "hidden": 1_024}
"""What this one has otherwise than appendix C; found on rows of the intact grid (`fit-300`)."""


@dataclass(frozen=True, kw_only=True)
class PaperGrid:
    """One of the paper's networks and its standard outages (docs/conventions.md)."""

    name: str
    label: str
    """As the paper writes it."""
    single: str
    """'N-1 Most': the most heavily loaded line that neither islands nor lacks a solution."""
    double: str
    """'N-2 Most': the two most heavily loaded ones."""
    num_single: int
    """Single-line outages that keep the grid connected."""

    @property
    def topologies(self) -> dict[str, str]:
        """Outage of each topology of the tables: none, 'N-1 Most' and 'N-2 Most'."""
        return dict(zip(TOPOLOGIES, ("", self.single, self.double), strict=True))


GRIDS = {
    grid.name: grid
    for grid in (
        PaperGrid(name="case30", label="30-Bus", single="line:9", double="line:9,line:28",
                  num_single=38),
        PaperGrid(name="case118", label="118-Bus", single="line:34", double="line:34,line:128",
                  num_single=166),
        PaperGrid(name="case300", label="300-Bus", single="line:228", double="line:228,line:170",
                  num_single=253),
    )
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much of a study is run. Rows of different scales never mix: each has a folder."""

    name: str
    seeds: tuple[int, ...] = (0, 1, 2)
    """Root seeds; spread over seeds is what tables give as their uncertainty."""
    num_steps: int = 40_000
    """Gradient steps of base surrogates."""
    num_steps_transformer: int = 40_000
    num_steps_pfgnn: int = 40_000
    num_steps_own: int = 40_000
    """Of competitors with a model of their own (`Method.base`)."""
    num_context: int = 400
    num_test: int = 1_000
    num_rows: int | None = None
    """Training rows; None: the paper's, by size of the grid."""
    grids: tuple[str, ...] = ("case30", "case118", "case300")
    max_outages: int | None = None
    """Of a sweep over outages; None: all."""

    def settings(self, backbone: str = "mlp") -> dict[str, Any]:
        """What a row measured with this backbone depends on besides its key."""
        names = ("name", "num_context", "num_test", "num_rows")
        return {name: getattr(self, name) for name in names} | {"num_steps": self.steps(backbone)}

    def steps(self, backbone: str) -> int:
        """Gradient steps of a base surrogate, or of a model of its 'own'."""
        return getattr(self, f"num_steps_{backbone}", self.num_steps)

    def with_seeds(self, num: int) -> "Scale":
        """The same with this many seeds, from 0."""
        return replace(self, seeds=tuple(range(num)))

    def grids_of(self, *wanted: str) -> tuple[str, ...]:
        """Names of those of the wanted grids that this scale has."""
        return tuple(name for name in wanted if name in self.grids)


SCALES = {
    scale.name: scale
    for scale in (
        Scale(name="paper"),
        Scale(
            name="full", num_steps_transformer=20_000, num_steps_pfgnn=8_000, num_steps_own=10_000
        ),
        Scale(
            name="small", seeds=(0,), num_steps=400, num_steps_transformer=100,
            num_steps_pfgnn=40, num_steps_own=100, num_context=100, num_test=200, num_rows=400,
            grids=("case30",), max_outages=6,
        ),
    )
}  # fmt: skip
"""'paper' trains everything as long as the paper does; 'full' takes fewer steps of what is dear on
a CPU: a Transformer's step takes 8 times an MLP's, a PFGNN's 30 times, and competitors with a model
of their own gain nothing on an outage from more (docs/baselines.md)."""
DEFAULT_SCALE = "full"


@lru_cache(maxsize=8)
def network_of(grid: str) -> Network:
    """The intact grid; read once, so that it keeps its nominal solution."""
    return read_grid(grid)


@lru_cache(maxsize=64)
def topology(grid: str, outage: str) -> Network:
    """The grid without the elements of an outage's text; empty: intact."""
    return network_of(grid).without(outage.split(",")) if outage else network_of(grid)


def base_config(
    scale: Scale, *, transform: str = "zca", backbone: str = "mlp", seed: int = 0,
    spread: float = SPREAD,
) -> SurrogateConfig:  # fmt: skip
    """The paper's surrogate (appendix C) at this scale, or `WIDE`."""
    mlp = backbone in ("mlp", WIDE)
    chosen = PAPER_SURROGATE.backbone if mlp else BACKBONES[backbone]()
    training = replace(PAPER_SURROGATE.training, num_steps=scale.steps(backbone))
    config = replace(
        PAPER_SURROGATE, transform=transform, backbone=chosen, seed=seed, spread=spread,
        training=training, num_rows=scale.num_rows,
    )  # fmt: skip
    return changed(config, **WIDE_SETTINGS) if backbone == WIDE else config


def changed(config: SurrogateConfig, **settings: Any) -> SurrogateConfig:
    """The same with other settings, of the surrogate, its training or its backbone.

    Raises:
        TypeError: none of the three has a setting of that name.
    """
    parts: dict[str, Any] = {}
    for part in ("training", "backbone"):
        whole = getattr(config, part)
        own = {field.name for field in fields(whole)} & settings.keys()
        parts[part] = replace(whole, **{name: settings.pop(name) for name in own})
    return replace(config, **parts, **settings)


@lru_cache(maxsize=16)
def trained(grid: str, config: SurrogateConfig) -> Surrogate:
    """A surrogate of the intact grid, from the cache if it is there, on a GPU if there is one."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return cached_surrogate(network_of(grid), config, device=device)


@dataclass(frozen=True)
class Experiment:
    """One topology of a grid at one scale and seed: what is trained, drawn and solved for it."""

    scale: Scale
    grid: str = "case30"
    outage: str = ""
    """Elements that are out, as text; empty: the intact grid."""
    seed: int = 0
    spread: float = SPREAD
    """Of the loads."""

    @property
    def network(self) -> Network:
        """The grid without those elements."""
        return topology(self.grid, self.outage)

    def topologies(self) -> Iterator[tuple[dict[str, str], "Experiment"]]:
        """Columns 'topology' and 'outage' of each of the tables' topologies, and the same there."""
        for name, outage in GRIDS[self.grid].topologies.items():
            yield {"topology": name, "outage": outage}, replace(self, outage=outage)

    def config(self, **what: Any) -> SurrogateConfig:
        """`base_config` of this scale, seed and spread."""
        return base_config(self.scale, seed=self.seed, spread=self.spread, **what)

    def base(self, **what: Any) -> Surrogate:
        """The trained surrogate of `config`, a surrogate of the intact grid."""
        return trained(self.grid, self.config(**what))

    def base_without_dropout(self) -> Surrogate:
        """The product's network: the paper's MLP and ZCA without dropout; closer on the base grid.

        It shows what the paper's network, rather than adaptation, costs.
        """
        steps = min(self.scale.num_steps, PRODUCT_TRAINING.num_steps)
        training = replace(PRODUCT_TRAINING, num_steps=steps)
        settings = {"num_rows": self.scale.num_rows, "seed": self.seed}
        return trained(self.grid, SurrogateConfig(training=training, **settings))

    def regression(self) -> Surrogate:
        """The product's base 'quadratic'."""
        how = {"seed": self.seed, "spread": self.spread, "num_rows": self.scale.num_rows}
        return trained(self.grid, product_config("quadratic", **how))

    def training(self) -> Dataset:
        """The rows that `base` was trained on."""
        network, config = network_of(self.grid), self.config()
        num_rows = config.num_rows or default_num_rows(network)
        return draw_rows(network, config, num_rows, role="training")

    def context(self, num_rows: int | None = None, *, draw: int = 0) -> Dataset:
        """Solved cases of mixed spread, as for training; rows that have no solution are left out.

        The first `n` of a longer context are the context of `n`: half of them don't have the fixed
        spread then, so draw each size anew where that matters.
        """
        return self._solved("context", num_rows or self.scale.num_context, "mixed", draw=draw)

    def test(self, num_rows: int | None = None, *, loads_of: str | None = None) -> Dataset:
        """Fresh solved cases, each with a spread of its own between 0.05 and `spread`.

        `loads_of` is the outage of whose test rows they have the loads; None: loads of their own.
        """
        return self._solved("test", num_rows or self.scale.num_test, "drawn", loads_of=loads_of)

    def _solved(
        self, role: str, num_rows: int, regime: Spread, *, draw: int = 0,
        loads_of: str | None = None,
    ) -> Dataset:  # fmt: skip
        network, named = self.network, self.outage if loads_of is None else loads_of
        rng = named_rng(network.name, role, outage=named, draw=draw, seed=self.seed)
        loads = sample_loads(network, rng, num_rows, spread=self.spread, regime=regime)
        return generate(network, loads, min_rows=2)

    def exact_base(self, test: Dataset) -> Real:
        """(R, Y) exact outputs of the intact grid for the loads of test rows; NaN: no solution."""
        network, layout = network_of(self.grid), test.layout
        loads = layout.unpack_loads(test.x)
        solution = solve(network, loads)
        y_base = layout.pack_outputs(network, loads, solution.voltage)
        y_base[~solution.solved] = np.nan
        return y_base

    def perfect_icw(self, context: Dataset, test: Dataset, base_transform: Transform) -> Real:
        """(R, Y) y_hat = T_ctx^-1(T_base(y)) around the exact y of the same loads, intact grid.

        What is left of the error is that of the adaptation: sampling of the context's and the
        base's moments, and what no map of this kind can follow. A row whose loads have no solution
        on the intact grid is NaN.

        Args:
            context: solved cases of the new topology.
            test: rows of the new topology.
            base_transform: statistics of the training rows, `Surrogate.transform` for instance;
                the context's are of the same kind, ICW's if it is ZCA.
        """
        new = fit_output_transform(base_transform.name, context.y, base_transform.eps)
        return new.inverse(base_transform.forward(self.exact_base(test)))

    def reference_levels(
        self, context: Dataset, test: Dataset, transforms: Mapping[str, Transform]
    ) -> dict[str, Real]:
        """Levels beside a method: 'context-mean', and `perfect_icw` of each transform."""
        perfect = {name: self.perfect_icw(context, test, base) for name, base in transforms.items()}
        return {"context-mean": context_mean(context, test)} | perfect


def adapted(method: str, base: Surrogate, context: Dataset) -> Predictor:
    """What a method of the roster makes of a surrogate and solved cases of a new topology."""
    return METHODS[method].fit(base, Context.of(context))


def errors_of(predictor: Predictor, test: Dataset) -> dict[str, float]:
    """Mean absolute errors of its predictions on test rows, each quantity and overall."""
    return mean_absolute_errors(test.layout, test.y, predictor.predict(test.x))


def errors_where_given(test: Dataset, y_hat: Real) -> dict[str, float]:
    """Mean absolute errors over the rows that are `given`."""
    rows = given(y_hat)
    return mean_absolute_errors(test.layout, test.y[rows], y_hat[rows])


def given(y_hat: Real) -> Bool:
    """(R,) rows without NaN: `perfect_icw` gives none where only the outage has a solution."""
    return np.asarray(np.isfinite(y_hat).all(1))


def context_mean(context: Dataset, test: Dataset) -> Real:
    """(R, Y) the mean of the context's outputs for every row: x is ignored."""
    return np.tile(context.y.mean(0), (len(test), 1))
