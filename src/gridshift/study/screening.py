"""What a study of many outages is asked for, and what it gives."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Spread
from gridshift.study.row import OutageRow
from gridshift.threads import usable_cores
from gridshift.trial.exact import EXACT

Redistribution = Literal["generators", "slack"]


@dataclass(frozen=True, kw_only=True)
class ScreenConfig:
    """What to study. Everything but `workers` decides the results."""

    grid: str
    """Name or file, as `read_grid` takes it."""
    study: str | None = None
    """A study file (`read_study_file`) that says what scenarios are drawn from; see `of_study`."""
    contingencies: str = "lines"
    """One of `grid.outage_list.CHOICES`, or a file with one outage a line."""
    method: str = "newton"
    """'newton', every scenario solved exactly, or a name in `METHODS`."""
    beside: tuple[str, ...] = ()
    """Names in `METHODS` that are measured beside the exact rows, each perhaps with the size of its
    context: `icw:400`."""
    num_scenarios: int = 1000
    """Of each outage; with `precision` at most."""
    precision: float | None = None
    """Half width of each violation probability's 95 % interval, and standard error of each severity
    as a share of it, at which no more scenarios are solved."""
    ignore_below: float | None = None
    """An outage whose interval lies below this probability is done as well; None: `precision`."""
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
    emergency_rating: float | None = None
    """Second limit of each branch, as a multiple of its rating; loadings beyond it are counted
    apart."""
    refuse_splits: bool = False
    """Whether outages that cut demand off are listed apart and not studied."""
    redistribute: Redistribution = "generators"
    """Who takes over what a generator gave that is out."""
    most_pairs: int = 1000
    """Of more than `chosen_outages.MANY_PAIRS` pairs of lines, so many are studied: those that are
    worst by an estimate."""
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
        least_of = {"num_scenarios": 1, "num_holdout": 1, "num_context": 0, "most_pairs": 1}
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise GridshiftError(f"{name} must be at least {least}, not {getattr(self, name)}")
        object.__setattr__(self, "beside", tuple(self.beside))
        if self.beside and self.method != EXACT:
            raise GridshiftError(
                f"methods are measured beside exact rows; leave method {self.method} or beside out"
            )
        for name in ("precision", "ignore_below"):
            share = getattr(self, name)
            if share is not None and not 0 < share < 0.5:
                raise GridshiftError(f"{name} must be a share between 0 and 0.5, not {share}")
        if self.precision is not None and self.method != EXACT:
            raise GridshiftError(
                f"precision is for exact rows, as more predictions by {self.method} don't make "
                "these truer; leave one of them out"
            )
        if self.ignore_below is not None and self.precision is None:
            raise GridshiftError("ignore_below is for a study with precision; give both")
        if self.emergency_rating is not None and not 0 < self.emergency_rating < float("inf"):
            told = f"emergency_rating must be a positive number, not {self.emergency_rating}"
            raise GridshiftError(told)
        if self.redistribute not in get_args(Redistribution):
            known = " or ".join(get_args(Redistribution))
            raise GridshiftError(f"redistribute must be {known}, not {self.redistribute!r}")
        if self.certify is not None and not 0 < self.certify < float("inf"):
            raise GridshiftError(f"certify must be a positive number, not {self.certify}")
        if not 0 <= self.quantile <= 1:
            raise GridshiftError(f"quantile must be a share from 0 to 1, not {self.quantile}")
        if self.workers is not None and self.workers < 1:
            raise GridshiftError(f"workers must be at least 1, not {self.workers}")

    @classmethod
    def of_study(cls, path: str | os.PathLike[str], **given: Any) -> "ScreenConfig":
        """What a study file asks for, with what is given in the place of that.

        Args:
            path: of the file.
            given: fields of this class.

        Raises:
            ScenarioError: as `read_study_file`, or a spread for scenarios that have none.
        """
        from gridshift.study.study_file import read_study_file

        told = read_study_file(path)
        return cls(**told.options(spread="spread" in given or "regime" in given) | given)

    @property
    def harmless_below(self) -> float | None:
        """Violation probability below which an outage is of no interest."""
        return self.precision if self.ignore_below is None else self.ignore_below

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
    """With `refuse_splits`: outages that cut demand off, by MW; not among the rows."""
    intact: dict[str, Any]
    """Severity, violation probabilities and worst places of the intact grid, solved exactly in the
    same scenarios."""
    intact_row: OutageRow = field(repr=False)
    """All of it, as of an outage of nothing."""
    beside: tuple[dict[str, Any], ...] = ()
    """Of each method measured beside: `method`, `num_context`, `mae`, `rank_correlation`,
    `missed_violations`, `cost` and more."""
    system: dict[str, float]
    """Expected per year, summed over outages with failure rates."""
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
            "beside": list(self.beside),
            "system": self.system,
            "notes": list(self.notes),
            "cost": self.cost,
            "config": asdict(self.config) | {"workers": self.config.num_workers},
            "about": self.about,
            "report": None if self.report is None else str(self.report),
        }
