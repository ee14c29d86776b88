"""Study files: what a study looks at, in TOML; every problem with its key, line and way out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from os.path import isdir, isfile
from pathlib import Path
from typing import Any

from gridshift.arguments import shown
from gridshift.errors import GridshiftError, OutageError, ScenarioError
from gridshift.grid.contingency import Outage
from gridshift.grid.network import Network
from gridshift.grid.outage_list import Contingency
from gridshift.study.description import Key, UncertaintyError
from gridshift.study.distributions import DISTRIBUTIONS, Distribution, Empirical
from gridshift.study.generation import Balance, Limit, SetPoint
from gridshift.study.groups import Area, Correlation, Group
from gridshift.study.limits import Limits, check_ratings, read_ratings
from gridshift.study.listed_outages import CommonMode, Outages, read_failure_rates
from gridshift.study.scenario_table import ScenarioTable, num_table_rows
from gridshift.study.screening import ScreenConfig
from gridshift.study.spread import SpreadOfLoads
from gridshift.study.toml_reader import TomlReader, located, read_toml
from gridshift.study.uncertainty import Drawn, Uncertainty, draw

TABLES = ("loads", "generation", "areas", "correlation", "table", "limits", "outages")


@dataclass(frozen=True, kw_only=True)
class Head:
    """What stands above the tables."""

    grid: str
    """Name or file, as `read_grid` takes it; a file is looked for beside the study file."""
    scenarios: int | None = None
    """How many; may be left out for a table, which is then taken as a whole."""
    seed: int = 0
    sampling: str = "random"


@dataclass(frozen=True, kw_only=True)
class StudyFile:
    """A study as its file describes it."""

    path: Path
    head: Head
    uncertainty: Uncertainty
    limits: Limits
    outages: Outages
    lines: Mapping[Key, int] = field(repr=False)
    """Line of each key."""

    def options(self, *, spread: bool = False, season: str | None = None) -> dict[str, Any]:
        """What the file says of a study, by the names of `ScreenConfig`.

        Args:
            spread: whether another spread of the loads is to take the place of the file's.
            season: whose limits hold; None: the one that the file chooses, if it does.

        Raises:
            ScenarioError: the file draws loads from something else than a spread, or it has no such
                season.
        """
        loads = self.uncertainty.spread_of_loads
        if spread and loads is None:
            raise ScenarioError(
                f"{self.path}: it says what loads are drawn from, so leave out the spread"
            )
        rows = self.head.scenarios
        if rows is None:
            assert self.uncertainty.table is not None
            rows = num_table_rows(self.uncertainty.table)
        told: dict[str, Any] = {
            "grid": self.head.grid, "study": str(self.path), "num_scenarios": rows,
            "seed": self.head.seed, "contingencies": self.outages.kind,
            "area": self.outages.area,
        }  # fmt: skip
        if loads is not None:
            told |= {"spread": loads.spread, "regime": loads.regime}
        return told | self.limits_in(season)

    def limits_in(self, season: str | None) -> dict[str, Any]:
        """The limits by the names of `ScreenConfig`, as `Limits.options`.

        Raises:
            ScenarioError: there is no such season.
        """
        try:
            return self.limits.options(season)
        except UncertaintyError as error:
            raise ScenarioError(f"{self.path}: {error.problem}") from None

    def limited(self, config: ScreenConfig) -> ScreenConfig:
        """The configuration with the file's limits where it has none of its own.

        Raises:
            ScenarioError: the file has no such season.
        """
        told = self.limits_in(config.season)
        return replace(config, **{k: v for k, v in told.items() if getattr(config, k) is None})

    def with_limits(self, network: Network) -> Network:
        """The network with the file's limits, in the season that it chooses.

        Raises:
            GridshiftError: a table of ratings that can't be read, or of other elements.
        """
        config = self.limited(ScreenConfig(grid=self.head.grid))
        if config.ratings is not None:
            check_ratings(network, read_ratings(config.ratings), config.ratings)
        return config.limited(network)

    def changed(self, config: ScreenConfig) -> "StudyFile":
        """The study with the number of scenarios, the seed and the spread of a configuration."""
        head = replace(self.head, scenarios=config.num_scenarios, seed=config.seed)
        uncertainty = self.uncertainty
        if uncertainty.spread_of_loads is not None:
            loads = SpreadOfLoads(spread=config.spread, regime=config.regime)
            uncertainty = replace(uncertainty, loads=loads)
        return replace(self, head=head, uncertainty=uncertainty)

    def listed(self, network: Network) -> list[Contingency]:
        """The outages that the file lists itself; `network` is the grid that it names.

        Raises:
            OutageError: one that the grid doesn't have, with key and line.
        """
        try:
            return self.outages.of(network)
        except UncertaintyError as error:
            told = located(self.lines, ("outages", *error.key), error.problem)
            raise OutageError(f"{self.path}: {told}") from None

    def failure_rates(self, network: Network, table: str) -> dict[Outage, dict[str, float]]:
        """Those of the file's table.

        Raises:
            OutageError: it can't be read, with key and line.
        """
        try:
            return read_failure_rates(network, table)
        except GridshiftError as error:
            told = located(self.lines, ("outages", "failure_rates"), str(error))
            raise OutageError(f"{self.path}: {told}") from None

    def draw(self, network: Network) -> Drawn:
        """The scenarios of the study; `network` is the grid that it names.

        Raises:
            ScenarioError: what doesn't fit the grid, with key and line.
            MemoryNeededError: more scenarios than fit into memory.
        """
        try:
            return draw(network, self.uncertainty, self.head.scenarios, seed=self.head.seed)
        except UncertaintyError as error:
            told = located(self.lines, error.key, error.problem)
            raise ScenarioError(f"{self.path}: {told}") from None


def read_study_file(path: str | PathLike[str]) -> StudyFile:
    """The study that a TOML file describes.

    Raises:
        ScenarioError: the file can't be read, is no TOML, has keys that are unknown, missing, of
            another type or not supported yet, or values that mean nothing; all of them, each with
            its line.
    """
    path = Path(path)
    data, lines = read_toml(path)
    reader = _Reader(path.parent, lines)
    study = reader.study(path, data)
    if study is None:
        raise ScenarioError(f"{path}: " + "; ".join(reader.problems))
    return study


class _Reader(TomlReader):
    """Builds the parts of a study."""

    def __init__(self, folder: Path, lines: Mapping[Key, int]):
        super().__init__(lines)
        self.folder = folder

    def study(self, path: Path, data: dict[str, Any]) -> StudyFile | None:
        """The study, or None if there are problems."""
        head_keys = [f.name for f in fields(Head)]
        self.known(data, (*head_keys, *TABLES), ())
        head = self.built(Head, {k: v for k, v in data.items() if k in head_keys}, ())
        loads = self.table(data, ("loads",))
        generation = self.table(data, ("generation",))
        self.known(loads, ("spread", "regime", "group"), ("loads",))
        parts = ("varying", "set_point", "limit", "balance")
        self.known(generation, parts, ("generation",))
        given: dict[str, Any] = {
            "loads": self.loads(loads),
            "generation": self.groups(generation, ("generation", "varying")),
            "set_points": self.list_of(SetPoint, generation, ("generation", "set_point")),
            "limits": self.list_of(Limit, generation, ("generation", "limit")),
            "balance": self.optional(Balance, generation, ("generation", "balance")),
            "areas": {
                name: self.built(Area, area, ("areas", name))
                for name, area in self.table(data, ("areas",)).items()
            },
            "correlation": tuple(
                self.correlation(part, ("correlation", number))
                for number, part in enumerate(self.entries(data, ("correlation",)))
            ),
            "table": self.scenario_table(data),
        }
        limits = self.built(Limits, self.table(data, ("limits",)), ("limits",))
        outages = self.outages(self.table(data, ("outages",)))
        if self.problems:
            return None
        uncertainty = self.checked(Uncertainty, given | {"sampling": head.sampling}, ())
        self.check_number(head, given["table"])
        if self.problems:
            return None
        files = ("contingencies", "failure_rates")
        given = {name: getattr(outages, name) for name in files}
        outages = replace(outages, **{k: self.beside(v) for k, v in given.items() if v})
        tables = {k: self.beside(v) for k, v in limits.seasons.items() if isinstance(v, str)}
        ratings = None if limits.ratings is None else self.beside(limits.ratings)
        limits = replace(limits, ratings=ratings, seasons={**limits.seasons, **tables})
        return StudyFile(
            path=path, head=replace(head, grid=self.beside(head.grid)), uncertainty=uncertainty,
            limits=limits, outages=outages, lines=self.lines,
        )  # fmt: skip

    def check_number(self, head: Head, table: ScenarioTable | None) -> None:
        if head.scenarios is None and table is None:
            self.note(("scenarios",), "missing; say how many are drawn, for instance 1024")
        elif head.scenarios is not None and head.scenarios < 1:
            self.note(("scenarios",), f"{head.scenarios} must be at least 1")
        if head.seed < 0:
            self.note(("seed",), f"{head.seed} must be at least 0")

    def outages(self, given: dict[str, Any]) -> Any:
        together = self.list_of(CommonMode, given, ("outages", "common_mode"))
        if None in together:
            return None
        rest = {key: value for key, value in given.items() if key != "common_mode"}
        others = ("common_mode",)
        return self.built(Outages, rest, ("outages",), others=others, common_mode=together)

    def beside(self, name: str, *, folders: bool = False) -> str:
        """A file beside the study file, if there is one of this name; else the name."""
        found = self.folder / name
        return (
            str(found) if isfile(found) or (folders and isdir(found)) else name
        )  # pathlib's raises where a name is too long

    def loads(self, loads: dict[str, Any]) -> Any:
        spread = {key: value for key, value in loads.items() if key in ("spread", "regime")}
        if spread and "group" in loads:
            key = ("loads", next(iter(spread)))
            return self.note(key, "give either spread and regime, or groups with distributions")
        if "group" in loads:
            return self.groups(loads, ("loads", "group"))
        return self.built(SpreadOfLoads, spread, ("loads",)) if spread else None

    def groups(self, parent: dict[str, Any], key: Key) -> tuple[Any, ...]:
        return tuple(
            self.group(part, (*key, number))
            for number, part in enumerate(self.entries(parent, key))
        )

    def group(self, given: dict[str, Any], key: Key) -> Any:
        """A group, whose distribution has its parameters among the group's keys."""
        name = given.get("distribution")
        kind = DISTRIBUTIONS.get(name) if isinstance(name, str) else None
        if kind is None:
            told = "missing" if name is None else f"no distribution {shown(name)}"
            told += f"; choose one of {', '.join(DISTRIBUTIONS)}"
            return self.note((*key, "distribution"), told)
        rest = {k: v for k, v in given.items() if k != "distribution"}
        of_group = {f.name for f in fields(Group)} - {"distribution"}
        distribution = self.distribution(
            kind, {k: v for k, v in rest.items() if k not in of_group}, key, sorted(of_group)
        )
        mine = {k: v for k, v in rest.items() if k in of_group}
        return self.built(Group, mine, key, distribution=distribution)

    def distribution(
        self, kind: type[Distribution], given: dict[str, Any], key: Key, others: Sequence[str]
    ) -> Any:
        if kind is Empirical and {*given} & {"file", "column"}:
            self.known(given, ("file", "column"), key, others)
            values = self.column(given, key)
            return None if values is None else self.checked(kind, {"values": values}, key)
        return self.built(kind, given, key, others=others)

    def column(self, given: dict[str, Any], key: Key) -> Any:
        """The factors in a column of a table."""
        from gridshift.exchange.tables import numbers, read_table

        if not all(isinstance(given.get(name), str) for name in ("file", "column")):
            return self.note((*key, "file"), "give both file and column, as texts")
        file = self.beside(given["file"])
        try:
            return numbers(read_table(file), [given["column"]], source=file)[:, 0].tolist()
        except GridshiftError as error:
            return self.note((*key, "file"), str(error))

    def correlation(self, given: dict[str, Any], key: Key) -> Any:
        """A correlation, its matrix perhaps in a file whose columns are named as the elements."""
        if "file" not in given:
            return self.built(Correlation, given, key, others=("file",))
        from gridshift.exchange.tables import numbers, read_table

        if both := [name for name in ("elements", "matrix") if name in given]:
            return self.note((*key, both[0]), "is in the file already; leave it out")
        file = self.beside(str(given["file"]))
        try:
            table = read_table(file)
            labels = table.column_names
            matrix = numbers(table, labels, source=file).tolist()
        except GridshiftError as error:
            return self.note((*key, "file"), str(error))
        rest = {k: v for k, v in given.items() if k != "file"}
        return self.built(Correlation, rest | {"elements": labels, "matrix": matrix}, key)

    def scenario_table(self, data: dict[str, Any]) -> Any:
        table = self.optional(ScenarioTable, data, ("table",))
        return (
            None
            if table is None
            else replace(table, source=self.beside(str(table.source), folders=True))
        )
