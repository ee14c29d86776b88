"""MMNP: a neural process that takes the new topology's solved cases as its context.

Source: Ly, Chauhan, Singh and Nguyen, Meta-Model Neural Process for Probabilistic Power Flow under
Varying N-1 System Topologies, arXiv 2509.12281, of which the abstract was at hand; what had to be
inferred is in docs/baselines.md.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.neural_process import (
    MmnpConfig,
    NeuralProcess,
    scaling,
    train_episodes,
)
from gridshift.adapt.baselines.topologies import (
    TopologyRows,
    identity,
    plain_config,
    solved_rows,
    training_topologies,
)
from gridshift.adapt.cache import cache_path, cached_arrays
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate import validation_rows
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.arrays import Int, Real
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import stream
from gridshift.learn.folding import input_scaling
from gridshift.learn.training import Progress
from gridshift.threads import Threads

STORED = ("varied", "x_mean", "x_scale", "y_mean", "y_scale")
"""Arrays of an `Mmnp` that are kept beside the weights."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Mmnp(Base):
    """A trained process. Axis V: inputs that varied in training; it doesn't know the others."""

    own: MmnpConfig
    varied: Int
    """(V,) their numbers in x."""
    x_mean: Real
    """(V,)"""
    x_scale: Real
    y_mean: Real
    """(Y,)"""
    y_scale: Real
    model: NeuralProcess

    def scaled_x(self, x: Real) -> Tensor:
        """(R, V) float32."""
        scaled = (x[:, self.varied] - self.x_mean) / self.x_scale
        return torch.from_numpy(scaled.astype(np.float32))

    def scaled_y(self, y: Real) -> Tensor:
        """(R, Y) float32."""
        return torch.from_numpy(((y - self.y_mean) / self.y_scale).astype(np.float32))

    def given(self, x: Real, y: Real) -> "MmnpPredictor":
        """The process with these solved cases as its context; nothing is trained."""
        context_x, context_y = self.scaled_x(x), self.scaled_y(y)
        own, unit = self.own.statistics == "context", (torch.tensor(0.0), torch.tensor(1.0))
        x_scaling, y_scaling = (scaling(rows) if own else unit for rows in (context_x, context_y))
        with torch.inference_mode():
            representation = self.model.encode(
                (context_x - x_scaling[0]) / x_scaling[1], (context_y - y_scaling[0]) / y_scaling[1]
            )
        return MmnpPredictor(
            base=self, x_scaling=x_scaling, y_scaling=y_scaling, representation=representation
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MmnpPredictor:
    """A process and one topology's context, encoded."""

    base: Mmnp
    x_scaling: tuple[Tensor, Tensor]
    y_scaling: tuple[Tensor, Tensor]
    representation: Tensor
    """(H,)"""

    def predict(self, x: Real) -> Real:
        """(R, Y) mean of y for inputs (R, X)."""
        (x_mean, x_scale), (y_mean, y_scale) = self.x_scaling, self.y_scaling
        with torch.inference_mode():
            rows = (self.base.scaled_x(x) - x_mean) / x_scale
            mean, _ = self.base.model.decode(rows, self.representation)
        z = mean.numpy().astype(np.float64) * y_scale.numpy() + y_mean.numpy()
        return z * self.base.y_scale + self.base.y_mean


def start_mmnp(
    network: Network,
    config: SurrogateConfig,
    progress: Progress | None = None,
    *,
    own: MmnpConfig | None = None,
    multi: bool = False,
) -> Mmnp:
    """Train the process on the intact grid, or with topologies as tasks, or read a trained one."""
    own = own or MmnpConfig()
    root, layout = network.root, Layout.of(network)
    named = identity(network, layout, config) | {"own": own}
    plain = plain_config(network, config, own, multi=multi)

    def make() -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        topologies = training_topologies(network, multi=multi)
        num_rows = own.rows_per_topology * len(topologies) if multi else None
        rows = solved_rows(topologies, config, num_rows=num_rows)
        began = time.perf_counter()
        untrained = _untrained(named, rows, root, config)
        checkpoint = cache_path("mmnp", root, plain, suffix=".checkpoint")
        _train(untrained, rows, progress, checkpoint)
        record = rows.record() | {"train_s": time.perf_counter() - began}
        fresh = validation_rows(network.root, config)
        known = rows.topology == 0
        context = rows.x[known][: own.most], rows.y[known][: own.most]
        y = untrained.given(*context).predict(fresh.x)
        checkpoint.unlink(missing_ok=True)
        return _arrays(untrained), record | {"mae": float(np.abs(y - fresh.y).mean())}

    arrays, record = cached_arrays("mmnp", network, plain, make)
    stored: dict[str, Any] = {name: arrays[name] for name in STORED}
    weights = {k: torch.from_numpy(v) for k, v in arrays.items() if k not in stored}
    model = NeuralProcess(len(arrays["varied"]), layout.num_outputs, own)
    model.load_state_dict(weights)
    return Mmnp(**named, **stored, record=record, model=model.eval())


def adapt_mmnp(base: Mmnp, context: Context) -> Predictor:
    """The process with the new topology's solved cases as its context."""
    return base.given(context.x, context.y)


def _untrained(
    named: dict[str, Any], rows: TopologyRows, root: Network, config: SurrogateConfig
) -> Mmnp:
    varied = np.flatnonzero(rows.x.max(0) > rows.x.min(0))
    x_mean, x_scale = input_scaling(rows.x[:, varied])
    y_mean, y_scale = input_scaling(rows.y)
    seed = int(stream(root.name, "weights", seed=config.seed).integers(2**31))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = NeuralProcess(len(varied), rows.y.shape[1], named["own"])
    return Mmnp(
        **named, record={}, varied=varied, x_mean=x_mean, x_scale=x_scale, y_mean=y_mean,
        y_scale=y_scale, model=model,
    )  # fmt: skip


def _train(base: Mmnp, rows: TopologyRows, progress: Progress | None, checkpoint: Path) -> None:
    x, y = base.scaled_x(rows.x), base.scaled_y(rows.y)
    ends = np.flatnonzero(np.diff(rows.topology)) + 1
    parts = [len(part) for part in np.split(rows.topology, ends)]
    with Threads(1):
        train_episodes(
            base.model.train(),
            list(zip(x.split(parts), y.split(parts), strict=True)),
            base.own,
            base.config.training,
            seed=base.config.seed,
            progress=progress,
            checkpoint=checkpoint,
        )
    base.model.eval()


def _arrays(base: Mmnp) -> dict[str, NDArray[Any]]:
    weights = {k: v.numpy() for k, v in base.model.state_dict().items()}
    return {name: getattr(base, name) for name in STORED} | weights
