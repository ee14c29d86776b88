"""Scenarios that are given: a table with a column for each element, or profiles over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from os.path import isdir
from typing import Any, Literal

import numpy as np

from gridshift.arguments import how_many, shown
from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.study.description import UncertaintyError, nearest, require_one_of

Unit = Literal["mw", "relative"]
REACTIVE = ":q"
"""Ends the name of an element's reactive power, `load:3:q`."""


@dataclass(frozen=True, kw_only=True)
class ScenarioTable:
    """Powers of elements, a row for each scenario or step of time; other elements stay nominal.

    An element is `load:3`, `gen:2` or `static:7`, and `load:3:q` its reactive power, which
    otherwise keeps the ratio to the active one.
    """

    source: str | PathLike[str] | Mapping[str, Any]
    """A parquet or CSV file; a folder of solved cases in gridfm's or PFΔ's form, of which the loads
    and generators are taken; or columns in memory: a mapping or a pandas frame, such as the `df`
    of pandapower's `DFData`."""
    unit: Unit = "mw"
    """`mw`, with Mvar for reactive power, or `relative` to the element's nominal power."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Column, or profile, of each element; empty: columns are named as their elements."""
    ignore: tuple[str, ...] = ()
    """Columns that are no elements', where columns are named as elements."""

    def __post_init__(self) -> None:
        require_one_of(self.unit, Unit, "unit", "unit")
        if self.columns and self.ignore:
            told = "give it only where columns are named as elements; others aren't looked at"
            raise UncertaintyError(("ignore",), told)


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenPowers:
    """What a table says of a grid, R rows, p.u. and as the grid's columns count it."""

    power: dict[str, Real]
    """(R,) active power of each element, positive when a load consumes or a generator produces."""
    reactive: dict[str, Real]
    num_rows: int
    unit: Unit

    @property
    def labels(self) -> set[str]:
        """Elements with any power given."""
        return {*self.power, *self.reactive}

    def rows(self, num_rows: int | None, rng: np.random.Generator) -> Int:
        """Rows to study, ascending: all, or so many of them at random, each once.

        Raises:
            UncertaintyError: more than there are.
        """
        if num_rows is None or num_rows == self.num_rows:
            return np.arange(self.num_rows)
        if num_rows > self.num_rows:
            there = how_many(self.num_rows, "row")
            told = f"{num_rows:,} asked for and the table has {there}; ask for fewer"
            raise UncertaintyError(("scenarios",), told)
        return np.sort(rng.choice(self.num_rows, num_rows, replace=False))

    def fill(self, p: Real, q: Real, label: str, rows: Int, *, nominal: complex, sign: int) -> None:
        """Write an element's column, which holds its nominal power, where the table gives it.

        Args:
            p: (n,) p.u., of generators negative.
            rows: (n,) of the table.
            nominal: power, as the column counts it.
            sign: 1 for demands, -1 for generators.
        """
        unit = nominal if self.unit == "relative" else complex(sign, sign)
        if label in self.power:
            p[:] = unit.real * self.power[label][rows]
            if nominal.real:
                q *= p / nominal.real
        if label in self.reactive:
            q[:] = unit.imag * self.reactive[label][rows]


def read_scenario_table(
    table: ScenarioTable, network: Network, generators: Sequence[str]
) -> GivenPowers:
    """The powers that a table gives to elements of this grid.

    Args:
        generators: those whose power can be told.

    Raises:
        UncertaintyError: elements that the grid doesn't have, columns that aren't there, cells that
            are no finite numbers, columns of different lengths; all of a kind by name.
    """
    known = [*network.load_labels, *generators]
    columns, name = _columns(table.source, network)
    wanted = dict(table.columns)
    if not wanted:
        if missing := [label for label in table.ignore if label not in columns]:
            raise UncertaintyError(("ignore",), f"no column {', '.join(missing)} in {name}")
        wanted = {label: label for label in columns if label not in table.ignore}
    _require_elements(table, network, wanted, known, name)
    if missing := sorted({column for column in wanted.values() if column not in columns}):
        told = f"no column {', '.join(missing)} in {name}{nearest(missing[0], [*columns])}"
        raise UncertaintyError(("columns",), told)
    if not wanted:
        raise UncertaintyError(("source",), f"{name} has no column of an element")
    used = {column: columns[column] for column in dict.fromkeys(wanted.values())}
    values = _numbers(used, name)
    scale = 1 if table.unit == "relative" else 1 / network.base_mva
    power = {label: values[c] * scale for label, c in wanted.items() if not _is_reactive(label)}
    reactive = {
        label.removesuffix(REACTIVE): values[column] * scale
        for label, column in wanted.items() if _is_reactive(label)
    }  # fmt: skip
    num_rows = len(next(iter(values.values())))
    return GivenPowers(power=power, reactive=reactive, num_rows=num_rows, unit=table.unit)


def num_table_rows(table: ScenarioTable) -> int:
    """Rows of a table, whatever elements they are of.

    Raises:
        ScenarioError: it can't be read.
    """
    try:
        columns, name = _columns(table.source)
        return len(next(iter(_numbers({"": next(iter(columns.values()), ())}, name).values())))
    except UncertaintyError as error:
        raise error.within("table") from None


def _is_reactive(label: str) -> bool:
    return label.endswith(REACTIVE)


def _require_elements(
    table: ScenarioTable, network: Network, wanted: Mapping[str, str], known: Sequence[str],
    name: str,
) -> None:  # fmt: skip
    key, there = ("columns",) if table.columns else ("source",), {*known}
    unknown = [label for label in wanted if label.removesuffix(REACTIVE) not in there]
    at_slack = [label for label in unknown if label.removesuffix(REACTIVE) in network.gen_labels]
    if at_slack:
        told = f"{', '.join(at_slack)} in {name}: at a slack bus, which takes what the grid leaves"
        raise UncertaintyError(key, told)
    if unknown:
        advice = "" if table.columns else "; name columns of other things in 'ignore'"
        told = f"{', '.join(unknown)} in {name} {'is' if len(unknown) == 1 else 'are'} no element"
        told += f" of {network.name}{nearest(unknown[0], known)}{advice}"
        raise UncertaintyError(key, told)
    holding = {f"{label}{REACTIVE}" for label in network.gen_labels}
    if solved := [label for label in wanted if label in holding]:
        told = f"{', '.join(solved)} in {name}: the generator holds a voltage, so its reactive "
        raise UncertaintyError(key, told + "power is solved for, not given")


def _columns(source: Any, network: Network | None = None) -> tuple[dict[str, Any], str]:
    """Columns by name, and what to call the table; those of solved cases depend on the grid."""
    if isinstance(source, str | PathLike):
        if network is not None and isdir(source):
            return _scenarios_of_cases(source, network), str(source)
        from gridshift.exchange.tables import read_table

        try:
            table = read_table(source)  # type: ignore[arg-type]
        except GridshiftError as error:
            raise UncertaintyError(("source",), str(error)) from None
        return {label: table[label] for label in table.column_names}, str(source)
    if not hasattr(source, "items"):
        told = f"{shown(source)}; give a file, a mapping of columns or a pandas frame"
        raise UncertaintyError(("source",), told)
    return {str(label): column for label, column in source.items()}, "the table"


def _scenarios_of_cases(folder: str | PathLike[str], network: Network) -> dict[str, Any]:
    from gridshift.exchange.solved_cases import read_cases

    try:
        return dict(read_cases(str(folder)).scenario_columns(network))
    except GridshiftError as error:
        raise UncertaintyError(("source",), str(error)) from None


def _numbers(columns: Mapping[str, Any], name: str) -> dict[str, Real]:
    """(R,) numbers of each column."""
    found: dict[str, Real] = {}
    problems = []
    for label, column in columns.items():
        try:
            values = np.asarray(column, dtype=float)
        except (TypeError, ValueError):
            problems.append(f"column {label} of {name} holds something else than numbers")
            continue
        if values.ndim != 1 or not len(values):
            problems.append(
                f"column {label} of {name} has shape {values.shape}, not one row or more"
            )
        elif not np.isfinite(values).all():
            row = int(np.isfinite(values).argmin()) + 1
            problems.append(
                f"column {label} of {name} has an empty cell, NaN or infinity in row {row}"
            )
        found[label] = values
    if problems:
        raise UncertaintyError(("source",), "; ".join(problems))
    first = next(iter(found))
    if odd := [label for label, values in found.items() if len(values) != len(found[first])]:
        told = ", ".join(f"column {label} of {name} has {len(found[label])}" for label in odd)
        rows = how_many(len(found[first]), "row")
        raise UncertaintyError(("source",), f"{told} and {first} has {rows}")
    return found
