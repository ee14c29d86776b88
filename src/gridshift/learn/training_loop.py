"""The one training loop: mean squared error in the transformed space, resumable, reproducible."""

import copy
import hashlib
import io
import json
import pickle
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from gridshift.arrays import Real
from gridshift.errors import GridshiftError, StorageError
from gridshift.learn.training import Progress, TrainingConfig
from gridshift.storage import write_bytes
from gridshift.threads import Threads

Module = TypeVar("Module", bound=nn.Module)


def seeded(build: Callable[[], Module], seed: int) -> Module:
    """What `build` makes with torch's random numbers at this seed; their state is left as found."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def fit(
    backbone: nn.Module,
    inputs: Real,
    targets: Real,
    config: TrainingConfig,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    report_every: int = 200,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 2_000,
    device: str = "cpu",
) -> nn.Module:
    """A trained copy of the backbone, in evaluation mode; the one given stays as it is.

    The result depends on the arguments alone: not on torch's global random state, which is left
    as found, nor on interruptions, if the same call is made again with the same checkpoint file.
    The loop runs on one thread, where small layers are fastest and sums always in the same order;
    on a GPU sums have another order, so that results differ from the CPU's by round-off.

    Args:
        backbone: maps (N, X) to (N, Y), with its initial weights.
        inputs: (N, X) scaled inputs; they and the targets are rounded to the backbone's precision.
        targets: (N, Y) transformed outputs.
        seed: decides the order of rows and the dropout.
        checkpoint: file to continue from if it exists, and to write to while training.
        device: where the steps are taken, as torch names it; the result is on the CPU.

    Raises:
        StorageError: the checkpoint is of another training, or cannot be read or written.
        GridshiftError: a weight has become NaN or infinite.
    """
    precision = next(backbone.parameters()).dtype
    x, z = (torch.tensor(rows, dtype=precision) for rows in (inputs, targets))
    identity = _identity(backbone, x, z, config, seed)
    backbone = copy.deepcopy(backbone).train().to(device)
    x, z = x.to(device), z.to(device)
    parameters = list(backbone.parameters())
    optimizer = torch.optim.AdamW(
        parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
    )
    file = _Checkpoint(checkpoint, backbone, optimizer, identity=identity)
    gpus = [] if x.device.type == "cpu" else [x.device]
    with Threads(1), torch.random.fork_rng(devices=gpus, device_type=x.device.type):
        torch.manual_seed(seed)
        done = file.restore()
        batches = _batches(len(x), config.batch_size, seed, start=done)
        recent: list[Tensor] = []
        for step in range(done, config.num_steps):
            rows = next(batches)
            loss = nn.functional.mse_loss(backbone(x[rows]), z[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, config.clip_norm, foreach=True)
            for group in optimizer.param_groups:
                group["lr"] = config.learning_rate_at(step)
            optimizer.step()

            done, last = step + 1, step + 1 == config.num_steps
            if done % checkpoint_every == 0 or last:
                file.write(done)
            if progress is None:
                continue
            recent.append(loss.detach())
            if done % report_every == 0 or last:
                progress(done, config.num_steps, float(torch.stack(recent).mean()))
                recent.clear()
    if not all(parameter.isfinite().all() for parameter in parameters):
        raise GridshiftError(
            f"training diverged at learning rate {config.learning_rate:g}; take a smaller one"
        )
    return backbone.to("cpu").eval()


def _batches(num_rows: int, batch_size: int, seed: int, start: int) -> Iterator[Tensor]:
    """Row numbers of batch `start`, `start + 1`, ...: each pass is a permutation of its own.

    Rows that don't fill a batch at the end of a pass wait for the next one.
    """
    batch_size = min(batch_size, num_rows)
    per_pass = num_rows // batch_size
    number, skip = divmod(start, per_pass)
    while True:
        order = np.random.default_rng([seed, number]).permutation(num_rows)
        rows = torch.from_numpy(order[: per_pass * batch_size]).view(per_pass, batch_size)
        yield from rows[skip:].unbind()
        number, skip = number + 1, 0


def _identity(backbone: nn.Module, x: Tensor, z: Tensor, config: TrainingConfig, seed: int) -> str:
    """Digest of everything that decides the result of a training."""
    state = hashlib.sha256(json.dumps([asdict(config), seed, repr(backbone)]).encode())
    for tensor in (x, z, *backbone.state_dict().values()):
        state.update(str(tensor.shape).encode() + tensor.contiguous().numpy().tobytes())
    return state.hexdigest()


_DAMAGE = (OSError, EOFError, KeyError, RuntimeError, ValueError, pickle.UnpicklingError)
"""What `torch.load` raises for files that aren't whole."""


class _Checkpoint:
    """State of a training on disk; without a path it does nothing."""

    def __init__(self, path: str | Path | None, backbone, optimizer, *, identity: str):
        self.path = None if path is None else Path(path)
        self.backbone, self.optimizer, self.identity = backbone, optimizer, identity

    def restore(self) -> int:
        """Take over the stored state, if there is one; the number of steps done."""
        if self.path is None or not self.path.exists():
            return 0
        try:
            state = torch.load(self.path, weights_only=True, map_location="cpu")
        except _DAMAGE as error:
            raise StorageError(f"{self.path} is not a checkpoint, or is damaged") from error
        if not isinstance(state, dict) or state.get("identity") != self.identity:
            raise StorageError(
                f"checkpoint {self.path} is of another training (data, schedule or seed differ); "
                "delete it or give another file"
            )
        self.backbone.load_state_dict(state["backbone"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        if "random_cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state(state["random_cuda"])
        return state["step"]

    def write(self, step: int) -> None:
        if self.path is None:
            return
        state = {
            "identity": self.identity,
            "step": step,
            "backbone": self.backbone.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "random": torch.get_rng_state(),
        }
        if next(self.backbone.parameters()).is_cuda:
            state["random_cuda"] = torch.cuda.get_rng_state()
        content = io.BytesIO()  # torch's own files end a full disk with more than an OSError
        torch.save(state, content)
        write_bytes(self.path, content.getvalue())
