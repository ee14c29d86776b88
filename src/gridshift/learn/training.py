"""How a network is trained: the schedule of its steps; the steps are in `training_loop`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from gridshift.errors import GridshiftError

Progress = Callable[[int, int, float], None]
"""Called with the step done, the number of steps, and the mean loss since the last call."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """AdamW with a cosine from `learning_rate` to `final_learning_rate`.

    The defaults are those of every command and function; what they give beside the paper's is in
    `adapt/surrogate_config.py`.
    """

    num_steps: int = 20_000
    batch_size: int = 32
    learning_rate: float = 2e-3
    final_learning_rate: float = 1e-6
    weight_decay: float = 1e-5
    clip_norm: float = 1.0
    """Largest norm of the gradient; longer ones are shortened to it."""

    def __post_init__(self) -> None:
        if self.num_steps < 1 or self.batch_size < 1:
            raise GridshiftError(
                f"training needs at least one step and one row a batch, not {self.num_steps} "
                f"steps of {self.batch_size} rows"
            )
        if not 0 < self.learning_rate < math.inf or not 0 <= self.final_learning_rate < math.inf:
            raise GridshiftError(
                f"learning rates must be positive, not {self.learning_rate} to "
                f"{self.final_learning_rate}"
            )

    def learning_rate_at(self, step: int) -> float:
        """Cosine annealing, closed form; `step` counts from 0."""
        fall = self.learning_rate - self.final_learning_rate
        cosine = math.cos(math.pi * step / self.num_steps)
        return self.final_learning_rate + fall * (1 + cosine) / 2


PAPER_TRAINING = TrainingConfig(num_steps=40_000, learning_rate=6.29e-4)
"""Appendix C of the paper."""
