"""`Surrogate`: input scaling, backbone and output transform, trained on one topology of a grid."""

import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gridshift.adapt.base import Base
from gridshift.adapt.datasets import Dataset, generate, require_rows
from gridshift.adapt.graph import graph_of
from gridshift.adapt.surrogate_config import ZCA_SAS, SurrogateConfig, default_num_rows
from gridshift.adapt.tangent import TANGENT_ORDERS, Plane, plane_of
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Spread, sample_loads, stream
from gridshift.learn import training
from gridshift.learn.folding import FoldedNetwork, input_scaling, run
from gridshift.learn.third_moment import fit_zca_sas
from gridshift.learn.whitening import Affine, Transform, fit_transform


@dataclass(frozen=True, kw_only=True, eq=False)
class Surrogate(Base):
    """Maps x to y for the topology it was trained on; float32 inside, float64 outside.

    Nothing here changes after training: adaptation builds on a surrogate and leaves it alone.
    """

    input_mean: Real
    """(X,)"""
    input_scale: Real
    """(X,) standard deviation, 1 where the input is constant."""
    backbone: nn.Module = field(repr=False)
    transform: Transform = field(repr=False)
    plane: Plane | None = field(default=None, repr=False)
    """What the topology's tangent gives already, if the transform is one of the tangent's."""

    @property
    def digest(self) -> str:
        """Hexadecimal digest of all weights, of the input scaling and of the output transform."""
        state = hashlib.sha256(self.grid_digest.encode())
        for name, tensor in sorted(self.backbone.state_dict().items()):
            state.update(name.encode() + tensor.cpu().numpy().tobytes())
        for array in (self.input_mean, self.input_scale, *self.transform.arrays().values()):
            state.update(array.tobytes())
        return state.hexdigest()

    def on(self, network: Network) -> "Surrogate":
        """The same weights with this topology's graph; itself, if the backbone takes no graph."""
        if not self.config.backbone.needs_graph:
            return self
        graph = graph_of(network, self.layout, self.input_mean, self.input_scale)
        return replace(self, backbone=self.backbone.on(graph))  # type: ignore[operator]

    def features(self, x: Real) -> NDArray[np.float32]:
        """(R, H) last hidden layer of the backbone, input of its linear head."""
        hidden = getattr(self.backbone, "features", None)
        if hidden is None:
            raise GridshiftError(
                f"backbone {self.config.backbone.name} has no last hidden layer that a linear head "
                "follows; take one that has, for instance mlp"
            )
        return np.concatenate([h for _, h in self.run(hidden, x)])  # type: ignore[arg-type]

    def predict_whitened(self, x: Real) -> Real:
        """(R, Y) z of inputs (R, X): the backbone's own output."""
        return np.concatenate([z for _, z in self.run(self.backbone, x)]).astype(np.float64)

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X) on the topology that it was trained on."""
        return self._predictor.predict(x)

    def with_transform(
        self, transform: Transform, plane: Plane | None = None
    ) -> "FoldedPredictor | TransformedPredictor":
        """The same backbone with another way back to y; the plane, if any, is added.

        An affine way back after a linear head folds into one last layer.
        """
        head = getattr(self.backbone, "head", None)
        if not (isinstance(transform, Affine) and isinstance(head, nn.Linear)):
            return TransformedPredictor(surrogate=self, transform=transform, plane=plane)
        folded = FoldedNetwork.of(self.backbone, transform, self.input_mean, self.input_scale)
        return FoldedPredictor(surrogate=self, weight=folded.weight, bias=folded.bias, plane=plane)

    @cached_property
    def _predictor(self) -> "FoldedPredictor | TransformedPredictor":
        return self.with_transform(self.transform, self.plane)

    def run(self, module: nn.Module, x: Real) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        """What the backbone, or a part of it that takes its input, gives for blocks of rows of x.

        Always one block at least, so that results have a width; it may be empty.
        """
        if x.ndim != 2 or x.shape[1] != self.layout.num_inputs:
            raise GridshiftError(
                f"inputs of shape {x.shape}; {self.grid} needs (N, {self.layout.num_inputs})"
            )
        yield from run(module, x, self.input_mean, self.input_scale)

    def save(self, folder: str | Path) -> None:
        """Write `surrogate.safetensors` and `surrogate.json` (see `adapt/surrogate_file.py`)."""
        from gridshift.adapt.surrogate_file import save

        save(self, folder)

    @staticmethod
    def load(folder: str | Path, network: Network) -> "Surrogate":
        """Read a surrogate of this network's grid; see `adapt/surrogate_file.py` for `Raises`."""
        from gridshift.adapt.surrogate_file import load

        return load(folder, network)


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldedPredictor:
    """A surrogate's hidden layers and one last layer that ends in y, for one topology."""

    surrogate: Surrogate
    weight: NDArray[np.float32]
    """(Y, H)"""
    bias: Real
    """(Y,) float64: the large part of y, added last, keeps its digits."""
    plane: Plane | None = None

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        y = np.zeros((len(x), len(self.bias))) if self.plane is None else self.plane.predict(x)
        hidden: nn.Module = self.surrogate.backbone.features  # type: ignore[assignment]
        for rows, h in self.surrogate.run(hidden, x):
            y[rows] += h @ self.weight.T + self.bias
        return y


@dataclass(frozen=True, kw_only=True, eq=False)
class TransformedPredictor:
    """A surrogate's backbone and a way back to y that is no part of its last layer."""

    surrogate: Surrogate
    transform: Transform
    plane: Plane | None = None

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        y = self.transform.inverse(self.surrogate.predict_whitened(x), x)
        return y if self.plane is None else y + self.plane.predict(x)


def train(
    network: Network,
    config: SurrogateConfig | None = None,
    *,
    data: Dataset | None = None,
    progress: training.Progress | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 2_000,
    device: str = "cpu",
    **solver: Any,
) -> Surrogate:
    """Draw and solve scenarios of this topology, and train a surrogate on them.

    Args:
        network: the topology, as a rule the intact grid.
        config: what to build; by default the product's `SurrogateConfig()`.
        data: training rows, if they are at hand already.
        progress: called with (step, number of steps, loss).
        checkpoint: file from which an interrupted training goes on.
        checkpoint_every: steps between two writes of that file.
        device: where gradient steps are taken, 'cpu' or 'cuda'.
        solver: keyword arguments of `solve`.

    Raises:
        ScenarioError: half of the scenarios or more have no solution.
        GridshiftError: the training diverged.
    """
    config = config or SurrogateConfig()
    began = time.perf_counter()
    if data is None:
        num_rows = default_num_rows(network) if config.num_rows is None else config.num_rows
        data = draw_rows(network, config, num_rows, role="training", **solver)
    data_s = time.perf_counter() - began

    mean, scale = input_scaling(data.x)
    plane = plane_of(config.transform, network)
    remainder = data.y if plane is None else data.y - plane.predict(data.x)
    transform = fit_output_transform(config.transform, remainder, config.eps)
    backbone, seed = random_backbone(config, network, data.layout, mean, scale)
    losses: list[float] = []

    def watch(step: int, num_steps: int, loss: float) -> None:
        losses.append(loss)
        if progress is not None:
            progress(step, num_steps, loss)

    began = time.perf_counter()
    backbone = training.fit(
        backbone,
        torch.from_numpy(((data.x - mean) / scale).astype(np.float32)),
        torch.from_numpy(transform.forward(remainder).astype(np.float32)),
        config.training,
        seed=seed,
        progress=watch,
        checkpoint=checkpoint,
        checkpoint_every=checkpoint_every,
        device=device,
    )
    record = {
        "device": device,
        "num_rows": len(data),
        "num_solves": data.num_solves,
        "data_s": data_s,
        "train_s": time.perf_counter() - began,
        "loss": losses[-1] if losses else None,
        "outaged": list(network.outaged),
    }
    surrogate = Surrogate(
        grid=network.name,
        grid_digest=network.root.digest,
        layout=data.layout,
        config=config,
        input_mean=mean,
        input_scale=scale,
        backbone=backbone,
        transform=transform,
        record=record,
        plane=plane,
    )
    return validated(surrogate, network, **solver)


def validated(surrogate: Surrogate, network: Network, **solver: Any) -> Surrogate:
    """The surrogate with its error on fresh rows of the topology in its record.

    Raises:
        GridshiftError: the training diverged.
    """
    fresh = validation_rows(network, surrogate.config, **solver)
    mae = float(np.abs(surrogate.predict(fresh.x) - fresh.y).mean())
    if not np.isfinite(mae):
        raise GridshiftError(
            f"training for {network.name} diverged at learning rate "
            f"{surrogate.config.training.learning_rate:g}; take a smaller one"
        )
    return replace(surrogate, record=surrogate.record | {"mae": mae})


def random_backbone(
    config: SurrogateConfig, network: Network, layout: Layout, input_mean: Real, input_scale: Real
) -> tuple[nn.Module, int]:
    """The backbone with the weights of the configuration's seed, and the seed of its training."""
    seed = int(_stream(network, "weights", config).integers(2**31))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build_backbone(config, network, layout, input_mean, input_scale), seed


def seconds_per_step(network: Network, config: SurrogateConfig, *, num_steps: int = 30) -> float:
    """Time of a gradient step of this configuration's training here and now, s.

    The fastest of three tries on rows of zeros, on which a step takes as long as on others.
    """
    layout = Layout.of(network)
    mean, scale = np.zeros(layout.num_inputs), np.ones(layout.num_inputs)
    backbone, seed = random_backbone(config, network.root, layout, mean, scale)
    rows = config.training.batch_size
    x, z = torch.zeros(rows, layout.num_inputs), torch.zeros(rows, layout.num_outputs)
    few, times = replace(config.training, num_steps=num_steps), []
    for _ in range(3):
        began = time.perf_counter()
        training.fit(backbone, x, z, few, seed=seed)
        times.append(time.perf_counter() - began)
    return min(times) / num_steps


def build_backbone(
    config: SurrogateConfig, network: Network, layout: Layout, input_mean: Real, input_scale: Real
) -> nn.Module:
    """The backbone with random weights, for this topology if it takes a graph."""
    backbone = config.backbone
    sizes = layout.num_inputs, layout.num_outputs
    if not backbone.needs_graph:
        return backbone.build(*sizes)  # type: ignore[call-arg]
    return backbone.build(*sizes, graph_of(network, layout, input_mean, input_scale))  # type: ignore[call-arg]


def fit_output_transform(name: str, remainder: Real, eps: float) -> Transform:
    """The transform of that name for rows (N, Y) of y, or of what the plane leaves of it.

    What a tangent leaves is smaller than y by orders that differ from grid to grid, so `eps` is
    relative to its mean variance there, and each entry is scaled by itself: the remainder is a
    quadratic form in the loads, far from a normal distribution that a covariance would describe.
    """
    if name == ZCA_SAS:
        return fit_zca_sas(remainder, eps=eps)
    if name not in TANGENT_ORDERS:
        return fit_transform(name, remainder, eps=eps)
    mean_variance = float(remainder.var(0, ddof=1).mean())
    scaled = fit_transform("zscore", remainder, eps=eps * mean_variance)
    return replace(scaled, name=name)


def _stream(network: Network, role: str, config: SurrogateConfig) -> np.random.Generator:
    return stream(network.name, role, outage=",".join(network.outaged), seed=config.seed)


def draw_rows(
    network: Network,
    config: SurrogateConfig,
    num_rows: int,
    *,
    role: str,
    regime: Spread = "mixed",
    **solver: Any,
) -> Dataset:
    """Solved rows of one topology, of the stream that belongs to this role.

    Raises:
        ScenarioError: half of the scenarios or more have no solution.
        MemoryNeededError: they don't fit into memory.
    """
    require_rows(network, num_rows, f"{role} scenarios")
    rng = _stream(network, role, config)
    injections = sample_loads(network, rng, num_rows, spread=config.spread, regime=regime)
    return generate(network, injections, min_rows=max(2, num_rows // 2), **solver)


def validation_rows(network: Network, config: SurrogateConfig, **solver: Any) -> Dataset:
    """Fresh rows of a topology, on which the error of a new model is measured."""
    return draw_rows(
        network, config, config.num_validation, role="validation", regime="drawn", **solver
    )
