"""What a study of many outages is asked for, and what it gives."""

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from gridshift.errors import GridshiftError, OutageError
from gridshift.grid.generation import ShareBy
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Spread
from gridshift.study.limits import Rating, read_ratings, with_limits
from gridshift.study.row import OutageRow
from gridshift.threads import usable_cores
from gridshift.trial.exact import EXACT

Redistribution = Literal["generators", "slack"]

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class ScreenConfig:
    """What to study. Everything but `workers` decides the results."""

    grid: str
    """Name or file, as `read_grid` takes it."""
    study: str | None = None
    """A study file (`read_study_file`) that says what scenarios are drawn from. Its limits hold
    where this gives none; `of_study` takes all else that it says."""
    contingencies: str = "lines"
    """One of `grid.outage_list.CHOICES`, or a file with one outage a line."""
    area: str | None = None
    """Only outages all of whose elements stand in this area with one end at least: one of the study
    file's, or else of the grid's (pandapower's zone, MATPOWER's BUS_AREA)."""
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
    ratings: str | None = None
    """Table of ratings by element, see `limits.read_ratings`, in the place of the grid's."""
    emergency_rating: float | None = None
    """Second limit of each branch, as a multiple of its rating, where the table gives none;
    loadings beyond it are counted apart. None: the grid's own."""
    seasonal_factor: float | None = None
    """What all ratings are multiplied by; None: 1, or what the season says."""
    season: str | None = None
    """One of the study file's, which says ratings or a factor; those given here come first. None:
    the one that the file chooses, if it does."""
    q_limits: bool = False
    """Whether generators keep their reactive limits, scenario by scenario: in exact rows, and in
    predicted ones with `certify`, as those that would exceed one are then solved."""
    distributed_slack: ShareBy | None = None
    """By what generators share losses and changes of demand, scenario by scenario, as in `solve`;
    exact rows only. None: the slack bus alone."""
    controls: bool = False
    """Whether tap changers, shunts and phase shifters move, scenario by scenario, as in `solve`;
    exact rows only."""
    refuse_splits: bool = False
    """Whether outages that cut demand off are listed apart and not studied."""
    redistribute: Redistribution | None = None
    """Who takes over what a generator gave that is out; None: the generators, or with a distributed
    slack this, whose generators then share it as they share everything else."""
    most_pairs: int = 1000
    """Of more than `chosen_outages.MANY_PAIRS` pairs of lines, so many are studied: those that are
    worst by an estimate."""
    certify: float | None = None
    """Largest power-balance mismatch of a predicted scenario, p.u.; those above are corrected."""
    correct_share: float = 0.0
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
        if self.ratings is not None:
            object.__setattr__(self, "ratings", os.fspath(self.ratings))
        least_of = {"num_scenarios": 1, "num_holdout": 1, "num_context": 0, "most_pairs": 1}
        for name, least in least_of.items():
            if getattr(self, name) < least:
                raise GridshiftError(f"{name} must be at least {least}, not {getattr(self, name)}")
        object.__setattr__(self, "beside", tuple(self.beside))
        if self.beside and self.method != EXACT:
            raise GridshiftError(
                f"methods are measured beside exact rows; leave method {self.method} or beside out"
            )
        self._check_generators()
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
        if self.emergency_rating is not None and not 1 <= self.emergency_rating < float("inf"):
            raise GridshiftError(
                "emergency_rating is a multiple of the rating and must be at least 1, not "
                f"{self.emergency_rating}"
            )
        if self.seasonal_factor is not None and not 0 < self.seasonal_factor < float("inf"):
            told = f"seasonal_factor must be a positive number, not {self.seasonal_factor}"
            raise GridshiftError(told)
        if self.season is not None and self.study is None:
            told = f"season {self.season} is one of a study file; give the file (study, --study)"
            raise GridshiftError(told)
        if self.certify is not None and not 0 < self.certify < float("inf"):
            raise GridshiftError(f"certify must be a positive number, not {self.certify}")
        if not 0 <= self.correct_share <= 1:
            raise GridshiftError(
                f"correct_share must be a share from 0 to 1, not {self.correct_share}"
            )
        if self.workers is not None and self.workers < 1:
            raise GridshiftError(f"workers must be at least 1, not {self.workers}")

    def _check_generators(self) -> None:
        """What generators do, and who may be asked about it."""
        named = self.method if self.method != EXACT else ", ".join(self.beside)
        if self.q_limits and named and (self.beside or self.certify is None):
            more = "" if self.beside else ", or give certify: rows at limits are then solved"
            raise GridshiftError(
                f"{named} takes every generator to hold its voltage, so q_limits is for exact rows "
                f"alone; leave one of them out{more}"
            )
        shared = self.distributed_slack is not None
        if shared and named:
            raise GridshiftError(
                f"{named} takes the slack bus to balance the grid alone, so distributed_slack is "
                "for exact rows alone; leave one of them out"
            )
        if self.controls and named:
            told = f"{named} takes every tap changer and shunt to stay where it is, so controls "
            raise GridshiftError(told + "is for exact rows alone; leave one of them out")
        if shared and self.distributed_slack not in get_args(ShareBy):
            known = ", ".join(get_args(ShareBy))
            told = f"no distributed slack by {self.distributed_slack!r}; choose {known}"
            raise GridshiftError(told)
        if self.redistribute is None:
            object.__setattr__(self, "redistribute", "slack" if shared else "generators")
        if self.redistribute not in get_args(Redistribution):
            known = " or ".join(get_args(Redistribution))
            raise GridshiftError(f"redistribute must be {known}, not {self.redistribute!r}")
        if shared and self.redistribute != "slack":
            raise GridshiftError(
                "with a distributed slack its generators share what an outage takes away; leave "
                "redistribute out, or say slack"
            )

    @classmethod
    def of_study(cls, path: str | os.PathLike[str], **given: Any) -> "ScreenConfig":
        """What a study file asks for, with what is given in the place of that.

        Raises:
            ScenarioError: as `read_study_file`, a spread for scenarios that have none, or a season
                that is not there.
        """
        from gridshift.study.study_file import read_study_file

        told = read_study_file(path)
        spread = "spread" in given or "regime" in given
        return cls(**told.options(spread=spread, season=given.get("season")) | given)

    @property
    def harmless_below(self) -> float | None:
        """Violation probability below which an outage is of no interest."""
        return self.precision if self.ignore_below is None else self.ignore_below

    @property
    def corrects(self) -> bool:
        """Whether predicted scenarios are corrected before they are counted."""
        return self.certify is not None or self.correct_share > 0

    def limited(self, network: Network) -> Network:
        """The network with the limits and ratings that the study counts against."""
        return with_limits(
            network, v_min=self.v_min, v_max=self.v_max, rating_mva=self.rating_mva,
            ratings=self.table_of_ratings(), emergency_rating=self.emergency_rating,
            seasonal_factor=1.0 if self.seasonal_factor is None else self.seasonal_factor,
        )  # fmt: skip

    def table_of_ratings(self) -> Mapping[str, Rating] | None:
        """What the table of ratings says, if there is one."""
        return None if self.ratings is None else read_ratings(self.ratings)

    @property
    def num_workers(self) -> int:
        """Outages studied at once."""
        if self.workers is not None:
            return self.workers
        return usable_cores()


@dataclass(frozen=True, kw_only=True, eq=False)
class Screening:
    """A finished study: as rows, as tables, as pictures."""

    config: ScreenConfig
    network: Network = field(repr=False)
    rows: tuple[OutageRow, ...] = field(repr=False)
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

    def row(self, outage: str) -> OutageRow:
        """The row of an outage, `line:34` or `line:34,line:128`.

        Raises:
            OutageError: it is not in the study.
        """
        for row in self.rows:
            if row.outage == outage:
                return row
        apart = any(split["outage"] == outage for split in self.splitting)
        why = "cuts demand off and is not ranked" if apart else "is not in this study"
        raise OutageError(f"{outage} {why}; see `outages` and `splitting`")

    @cached_property
    def limited(self) -> Network:
        """The grid with the limits and ratings that were counted."""
        return self.config.limited(self.network)

    @cached_property
    def outages(self) -> "pd.DataFrame":
        """A row for each outage, the worst first; columns as in `frames.outages_frame`."""
        from gridshift.study.frames import outages_frame

        return outages_frame(self)

    @cached_property
    def buses(self) -> "pd.DataFrame":
        """A row for each outage and bus; columns as in `frames.buses_frame`."""
        from gridshift.study.frames import buses_frame

        return buses_frame(self)

    @cached_property
    def branches(self) -> "pd.DataFrame":
        """A row for each outage and rated branch; columns as in `frames.branches_frame`."""
        from gridshift.study.frames import branches_frame

        return branches_frame(self)

    @cached_property
    def controls(self) -> "pd.DataFrame":
        """A row for each outage and control; columns as in `frames.controls_frame`."""
        from gridshift.study.frames import controls_frame

        return controls_frame(self)

    def plot_ranking(self, **options: Any) -> "Axes":
        """The worst outages and what makes up their severity: `figures.plot_ranking`."""
        from gridshift.study.figures import plot_ranking

        return plot_ranking(self, **options)

    def plot_map(self, **options: Any) -> "Axes":
        """The grid, coloured by the severity of losing each branch: `figures.plot_map`."""
        from gridshift.study.figures import plot_map

        return plot_map(self, **options)

    def plot_outage(self, outage: str, **options: Any) -> "tuple[Axes, Axes]":
        """Voltages and loadings that an outage affects most: `figures.plot_outage`."""
        from gridshift.study.figures import plot_outage

        return plot_outage(self, outage, **options)

    def export(self, folder: str | Path) -> list[Path]:
        """Write tables as CSV and parquet, pictures as PNG and SVG: `export.export`."""
        from gridshift.study.export import export

        return export(self, folder)

    def _repr_html_(self) -> str:
        """The worst outages as a table, for notebooks."""
        from gridshift.study.report import summary_html

        return summary_html(self)

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
