"""`MmnpConfig`: sizes of a neural process and of the episodes that it is trained on."""

from dataclasses import dataclass
from typing import Literal

from gridshift.errors import GridshiftError
from gridshift.learn.training import TrainingConfig


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
