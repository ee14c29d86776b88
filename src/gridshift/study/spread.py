"""The spread of loads of a study that describes nothing else."""

from dataclasses import dataclass

from gridshift.grid.scenarios import Spread
from gridshift.study.description import UncertaintyError, finite, require_one_of


@dataclass(frozen=True, kw_only=True)
class SpreadOfLoads:
    """Independent uniform factors on every p and q, as `grid.scenarios.sample_loads` draws them.

    The width is common to a row, which no distribution of single loads says; so it stands apart.
    """

    spread: float = 0.2
    regime: Spread = "drawn"

    def __post_init__(self) -> None:
        if finite(self.spread, "spread") < 0:
            raise UncertaintyError(("spread",), f"{self.spread:g} must be at least 0")
        require_one_of(self.regime, Spread, "regime", "regime")
