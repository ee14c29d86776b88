"""MMNP: a neural process that takes the new topology's solved cases as its context.

Source: Ly, Chauhan, Singh and Nguyen, Meta-Model Neural Process for Probabilistic Power Flow under
Varying N-1 System Topologies, arXiv 2509.12281, of which the abstract was at hand; what had to be
inferred is in docs/baselines.md.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.own_model import (
    Arrays,
    cache_key,
    grid_fields,
    kept_model,
    weights_of,
    with_weights,
)
from gridshift.adapt.baselines.topologies import TopologyRows, solved_rows, training_topologies
from gridshift.adapt.cache import cache_path
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.adapt.training_rows import training_seed
from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.fitted_network import input_scaling
from gridshift.learn.training import Progress, TrainingConfig
from gridshift.threads import Threads

if TYPE_CHECKING:
    from torch import Tensor

    from gridshift.adapt.baselines.neural_process import NeuralProcess


@dataclass(frozen=True, kw_only=True)
class MmnpConfig:
    """Encoder and decoder with two hidden layers, and the episodes they are trained on."""

    hidden: int = 256
    representation: int = 128
    learning_rate: float = 1e-3
    step_factor: float = 0.3
    """Episodes for each of the steps of a surrogate's training: one costs more than one step."""
    fewest: int = 50
    """Context rows of the smallest episode."""
    most: int = 400
    """Context rows of the largest episode."""
    num_targets: int = 128
    rows_per_topology: int = 300
    """Solved rows of each topology if there are several; contexts are no larger than they allow."""
    statistics: Literal["context", "training"] = "context"
    """Whose mean and deviation scale the rows of an episode."""

    def __post_init__(self) -> None:
        if min(self.hidden, self.representation, self.num_targets) < 1 or self.step_factor <= 0:
            raise GridshiftError(
                f"a neural process needs units, targets and a positive factor, not {self}"
            )
        if not 2 <= self.fewest <= self.most or self.rows_per_topology < 4:
            raise GridshiftError(
                f"contexts need at least 2 rows and topologies at least 4, not {self}"
            )

    def num_steps(self, training: TrainingConfig) -> int:
        """Episodes of a training."""
        return max(1, round(training.num_steps * self.step_factor))


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
    model: "NeuralProcess"

    def scaled_x(self, x: Real) -> "Tensor":
        """(R, V) inputs that varied in training, in its deviations, float32."""
        import torch

        scaled = (x[:, self.varied] - self.x_mean) / self.x_scale
        return torch.from_numpy(scaled.astype(np.float32))

    def scaled_y(self, y: Real) -> "Tensor":
        """(R, Y) outputs in deviations of the training, float32."""
        import torch

        return torch.from_numpy(((y - self.y_mean) / self.y_scale).astype(np.float32))

    def given(self, x: Real, y: Real) -> "MmnpPredictor":
        """The process with these solved cases as its context; nothing is trained."""
        import torch

        from gridshift.adapt.baselines.neural_process import scaling

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
    x_scaling: "tuple[Tensor, Tensor]"
    y_scaling: "tuple[Tensor, Tensor]"
    representation: "Tensor"
    """(H,)"""

    def predict(self, x: Real) -> Real:
        """(R, Y) mean of y for inputs (R, X)."""
        import torch

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
    from gridshift.adapt.baselines.neural_process import NeuralProcess

    own = own or MmnpConfig()
    intact, layout = network.intact, Layout.of(network)
    known = grid_fields(network, layout, config) | {"own": own}
    checkpoint = cache_path(
        "mmnp", intact, cache_key(network, config, own, multi=multi), suffix=".checkpoint"
    )

    def draw() -> TopologyRows:
        topologies = training_topologies(network, multi=multi)
        num_rows = own.rows_per_topology * len(topologies) if multi else None
        return solved_rows(topologies, config, num_rows=num_rows)

    def train(rows: TopologyRows) -> Arrays:
        base = _untrained(known, rows, intact, config)
        _train(base, rows, progress, checkpoint)
        stored = ("varied", "x_mean", "x_scale", "y_mean", "y_scale")
        return {name: getattr(base, name) for name in stored} | weights_of(base.model)

    def build(known: dict[str, Any], arrays: Arrays) -> Mmnp:
        untrained = NeuralProcess(len(arrays["varied"]), layout.num_outputs, own)
        model, scaling = with_weights(untrained, arrays)
        return Mmnp(**known, **scaling, model=model)

    def on_intact(base: Mmnp, rows: TopologyRows) -> MmnpPredictor:
        intact = rows.topology == 0
        checkpoint.unlink(missing_ok=True)
        return base.given(rows.x[intact][: own.most], rows.y[intact][: own.most])

    return kept_model(
        "mmnp", network, config, own, multi=multi,
        draw=draw, train=train, build=build, on_intact=on_intact,
    )  # fmt: skip


def adapt_mmnp(base: Mmnp, context: Context) -> Predictor:
    """The process with the new topology's solved cases as its context."""
    return base.given(context.x, context.y)


def _untrained(
    known: dict[str, Any], rows: TopologyRows, intact: Network, config: SurrogateConfig
) -> Mmnp:
    from gridshift.adapt.baselines.neural_process import NeuralProcess
    from gridshift.learn.training_loop import seeded

    varied = np.flatnonzero(rows.x.max(0) > rows.x.min(0))
    x_mean, x_scale = input_scaling(rows.x[:, varied])
    y_mean, y_scale = input_scaling(rows.y)
    model = seeded(
        lambda: NeuralProcess(len(varied), rows.y.shape[1], known["own"]),
        training_seed(intact, config),
    )
    return Mmnp(
        **known, record={}, varied=varied, x_mean=x_mean, x_scale=x_scale, y_mean=y_mean,
        y_scale=y_scale, model=model,
    )  # fmt: skip


def _train(base: Mmnp, rows: TopologyRows, progress: Progress | None, checkpoint: Path) -> None:
    from gridshift.adapt.baselines.neural_process import train_episodes

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
