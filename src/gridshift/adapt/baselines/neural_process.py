"""Conditional neural process: its layers, and their training by episodes.

Shape letters: N context rows, M target rows, X inputs, Y outputs, H width of the representation.
"""

import io
import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from gridshift.errors import StorageError
from gridshift.learn.training import Progress, TrainingConfig
from gridshift.storage import write_bytes

if TYPE_CHECKING:
    from gridshift.adapt.baselines.mmnp import MmnpConfig

REPORT_EVERY = 200
"""Episodes between two calls of `progress`."""
SMALLEST_SCALE = 1e-3
"""Least standard deviation predicted, in deviations of the context."""


class NeuralProcess(nn.Module):
    """Mean and scale of each output, given a set of context rows whose order doesn't matter.

    Source: Garnelo et al., Conditional Neural Processes, 2018.
    """

    def __init__(self, num_inputs: int, num_outputs: int, config: "MmnpConfig"):
        super().__init__()
        hidden, width = config.hidden, config.representation
        self.encoder = _layers(num_inputs + num_outputs, hidden, width)
        self.decoder = _layers(num_inputs + width, hidden, 2 * num_outputs)

    def encode(self, x_NX: Tensor, y_NY: Tensor) -> Tensor:
        """(H,) representation of context rows, the same in whatever order they come."""
        return self.encoder(torch.cat([x_NX, y_NY], -1)).mean(0)

    def decode(self, x_MX: Tensor, r_H: Tensor) -> tuple[Tensor, Tensor]:
        """(M, Y) mean and (M, Y) standard deviation of the outputs of target rows."""
        both = torch.cat([x_MX, r_H.expand(len(x_MX), -1)], -1)
        mean_MY, raw_MY = self.decoder(both).chunk(2, -1)
        return mean_MY, SMALLEST_SCALE + nn.functional.softplus(raw_MY)


def scaling(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each column of rows (N, C); 1 for one that never varies."""
    deviation = rows.std(0)
    return rows.mean(0), torch.where(rows.amax(0) > rows.amin(0), deviation, 1.0)


def train_episodes(
    model: NeuralProcess,
    tasks: Sequence[tuple[Tensor, Tensor]],
    config: "MmnpConfig",
    training: TrainingConfig,
    *,
    seed: int,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 1_000,
) -> None:
    """Minimise the Gaussian negative log-likelihood of targets given contexts, in place.

    Every episode draws a task, and from it context and target rows; what it draws depends on seed
    and number of the step alone, so that an interrupted training goes on as if it had not been.

    Args:
        tasks: rows (R, X) and (R, Y) of each topology.
        checkpoint: file to go on from if it exists, and to write to while training.
    """
    num_steps = config.num_steps(training)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, weight_decay=training.weight_decay, fused=True
    )
    recent: list[float] = []
    for step in range(_restore(checkpoint, model, optimizer), num_steps):
        loss = _episode_loss(model, tasks, config, np.random.default_rng([seed, step]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), training.clip_norm, foreach=True)
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * (1 + math.cos(math.pi * step / num_steps)) / 2
        optimizer.step()
        recent.append(float(loss.detach()))
        done = step + 1
        if progress is not None and (done % REPORT_EVERY == 0 or done == num_steps):
            progress(done, num_steps, float(np.mean(recent)))
            recent.clear()
        if done % checkpoint_every == 0:
            _save(checkpoint, done, model, optimizer)


def _episode_loss(
    model: NeuralProcess,
    tasks: Sequence[tuple[Tensor, Tensor]],
    config: "MmnpConfig",
    rng: np.random.Generator,
) -> Tensor:
    x, y = tasks[int(rng.integers(len(tasks)))]
    num_targets = min(config.num_targets, len(x) // 2)
    most = min(config.most, len(x) - num_targets)
    num = int(rng.integers(min(config.fewest, most), most + 1))
    rows = torch.from_numpy(rng.permutation(len(x))[: num + num_targets])
    x, y = x[rows], y[rows]
    if config.statistics == "context":
        (x_mean, x_scale), (y_mean, y_scale) = scaling(x[:num]), scaling(y[:num])
        x, y = (x - x_mean) / x_scale, (y - y_mean) / y_scale
    mean, scale = model.decode(x[num:], model.encode(x[:num], y[:num]))
    return (0.5 * ((y[num:] - mean) / scale) ** 2 + scale.log()).mean()


def _layers(num_inputs: int, hidden: int, num_outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(num_inputs, hidden), nn.ReLU(),
        nn.Linear(hidden, hidden), nn.ReLU(),
        nn.Linear(hidden, num_outputs),
    )  # fmt: skip


def _restore(path: Path | None, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    if path is None or not path.exists():
        return 0
    try:
        state = torch.load(path, weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError):
        return 0  # damaged: it costs time, no more
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def _save(path: Path | None, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    if path is None:
        return
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    content = io.BytesIO()
    torch.save(state, content)
    try:
        write_bytes(path, content.getvalue())
    except StorageError:
        return  # a cache that can't be written costs time, no more
