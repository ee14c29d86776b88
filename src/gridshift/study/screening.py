"""What a study of many outages is asked for, and what it gives."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Spread
from gridshift.study.risk import Risk
from gridshift.study.row import OutageRow
from gridshift.threads import usable_cores


@dataclass(frozen=True, kw_only=True)
class ScreenConfig:
    """What to study. Everything but `workers` decides the results."""

    grid: str
    """Name or file, as `read_grid` takes it."""
    contingencies: str = "lines"
    """`lines`, `trafos`, `all`, `n-2` (pairs of lines), or a file with one outage a line."""
    method: str = "icw"
    """Name in `METHODS`, or 'newton': every scenario solved exactly."""
    num_scenarios: int = 1000
    num_context: int = 400
    num_holdout: int = 100
    """Scenarios solved exactly for each outage to check its predictions."""
    spread: float = 0.2
    regime: Spread = "drawn"
    """Spread of the scenarios and of the hold-out; the context is always 'mixed'."""
    seed: int = 0
    v_min: float | None = None
    """Lower voltage limit of every bus, p.u.; None: the grid's own."""
    v_max: float | None = None
    """Upper voltage limit of every bus, p.u.; None: the grid's own."""
    rating_mva: float | None = None
    """Rating of branches that the grid gives none; None leaves them without."""
    certify: float | None = None
    """Largest power-balance mismatch of a predicted scenario, p.u.; those above are corrected."""
    quantile: float = 0.0
    """Share of the predicted scenarios, the worst of each block, that are corrected in any case."""
    workers: int | None = None
    """Outages studied at once; None: the cores at hand."""

    def __post_init__(self) -> None:
        if not isinstance(self.grid, str | os.PathLike):
            raise GridshiftError(
                f"grid must be a name or a file, not a {type(self.grid).__name__}; give a grid in "
                "memory to the study itself: screen(ScreenConfig(grid='mine'), network=net)"
            )
        object.__setattr__(self, "grid", os.fspath(self.grid))
        for name, least in (("num_scenarios", 1), ("num_holdout", 1), ("num_context", 0)):
            if getattr(self, name) < least:
                raise GridshiftError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if self.certify is not None and not 0 < self.certify < float("inf"):
            raise GridshiftError(f"certify must be a positive number, not {self.certify}")
        if not 0 <= self.quantile <= 1:
            raise GridshiftError(f"quantile must be a share from 0 to 1, not {self.quantile}")
        if self.workers is not None and self.workers < 1:
            raise GridshiftError(f"workers must be at least 1, not {self.workers}")

    @property
    def corrects(self) -> bool:
        """Whether predicted scenarios are corrected before they are counted."""
        return self.certify is not None or self.quantile > 0

    @property
    def num_workers(self) -> int:
        """Outages studied at once."""
        if self.workers is not None:
            return self.workers
        return usable_cores()


@dataclass(frozen=True, kw_only=True, eq=False)
class Screening:
    """A finished study."""

    config: ScreenConfig
    network: Network
    rows: tuple[OutageRow, ...]
    """The worst outage first."""
    splitting: tuple[dict[str, Any], ...]
    """Outages of an enumerated kind that cut demand off, by MW; not among the rows."""
    intact: dict[str, float]
    """Severity and violation probabilities of the intact grid, solved exactly."""
    intact_risk: Risk = field(repr=False)
    notes: tuple[str, ...]
    """What the study cannot say and what it met on the way, in sentences."""
    cost: dict[str, float]
    about: dict[str, Any]
    """Versions, machine, threads, digests."""
    report: Path | None = None
    """The page written for people."""

    def to_json(self) -> dict[str, Any]:
        """The study as plain values; NaN stays, `text.json_value` makes it None."""
        return {
            "grid": self.network.name,
            "num_outages": len(self.rows),
            "method": self.config.method,
            "outages": [{"rank": rank, **row.short()} for rank, row in enumerate(self.rows, 1)],
            "splitting": list(self.splitting),
            "intact": self.intact,
            "notes": list(self.notes),
            "cost": self.cost,
            "config": asdict(self.config) | {"workers": self.config.num_workers},
            "about": self.about,
            "report": None if self.report is None else str(self.report),
        }
