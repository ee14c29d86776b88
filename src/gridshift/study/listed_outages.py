"""Outages that a study file lists itself, and how often outages happen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan

import numpy as np

from gridshift.errors import OutageError
from gridshift.grid.contingency import Outage, parse_outage
from gridshift.grid.network import Network
from gridshift.grid.outage_list import Contingency
from gridshift.study.description import Key, UncertaintyError

LISTED = "listed"
"""Stands for the outages that a study file lists, and no others."""
RATES = ("failures_per_year", "repair_hours")


@dataclass(frozen=True, kw_only=True)
class CommonMode:
    """Elements that one cause takes out together: circuits of one tower, a busbar's feeders."""

    elements: tuple[str, ...]
    name: str = ""
    failures_per_year: float = nan
    repair_hours: float = nan
    """Hours until it is repaired."""

    def __post_init__(self) -> None:
        for name in RATES:
            value = getattr(self, name)
            if value < 0 or value == inf:
                raise UncertaintyError((name,), f"{value:g} must be a number of at least 0")


@dataclass(frozen=True, kw_only=True)
class Outages:
    """Which outages a study looks at."""

    contingencies: str | None = None
    """One of `grid.outage_list.CHOICES`, a file with one outage a line, or `LISTED`; None: that
    where the study lists some, otherwise lines."""
    area: str | None = None
    """Only those in this area."""
    elements: tuple[str, ...] = ()
    """Outages besides, each as in a list of outages: `line:9` or `line:9,line:28`."""
    common_mode: tuple[CommonMode, ...] = ()
    """More of them, with names."""
    failure_rates: str | None = None
    """Table with columns outage, failures_per_year and perhaps repair_hours."""

    @property
    def kind(self) -> str:
        """What `contingencies` stands for."""
        return self.contingencies or (LISTED if self.elements or self.common_mode else "lines")

    def of(self, network: Network) -> list[Contingency]:
        """The outages that the study lists itself.

        Raises:
            UncertaintyError: one that is no outage of this grid.
        """
        found = [
            Contingency(outage=_parsed(network, text, ("elements", number)))
            for number, text in enumerate(self.elements)
        ]
        for number, group in enumerate(self.common_mode):
            outage = _parsed(network, ",".join(group.elements), ("common_mode", number, "elements"))
            rates = {name: float(getattr(group, name)) for name in RATES}
            found.append(Contingency(outage=outage, name=group.name, **rates))
        return found


def _parsed(network: Network, text: str, key: Key) -> Outage:
    try:
        return parse_outage(network, text, branches_alone=False)
    except OutageError as error:
        raise UncertaintyError(key, str(error)) from None


def read_failure_rates(network: Network, path: str) -> dict[Outage, dict[str, float]]:
    """Rates by outage, from a CSV or parquet table; empty cells say nothing.

    Raises:
        OutageError: no such table, other columns, or a row that is no outage of this grid, is there
            twice or has no rates.
    """
    from gridshift.exchange.tables import read_table

    table = read_table(path)
    if not {"outage", RATES[0]} <= {*table.column_names} <= {"outage", *RATES}:
        raise OutageError(
            f"{path} has the columns {', '.join(table.column_names)}; rates are in columns "
            f"outage, {RATES[0]} and perhaps {RATES[1]}"
        )
    found: dict[Outage, dict[str, float]] = {}
    for number, given in enumerate(table.to_pylist(), 1):
        try:
            outage = parse_outage(network, str(given["outage"] or ""), branches_alone=False)
            rates = {name: _rate(given.get(name), name) for name in RATES}
            if all(value != value for value in rates.values()):
                raise OutageError(f"{given['outage']} has no rate; leave the row out")
        except OutageError as error:
            raise OutageError(f"{path}, row {number}: {error}") from None
        if outage in found:
            raise OutageError(f"{path}, row {number}: {given['outage']} is there twice")
        found[outage] = rates
    return found


def _rate(value: object, name: str) -> float:
    if value is None:
        return nan
    try:
        number = float(str(value))  # a column with a text somewhere holds texts
    except ValueError:
        number = -1.0
    if 0 <= number < inf:
        return number
    raise OutageError(f"{name} {value!r} must be a number of at least 0")


def with_rates(
    listed: Sequence[Contingency], rates: Mapping[Outage, Mapping[str, float]]
) -> list[Contingency]:
    """The outages with numbers from a table where they have none of their own."""
    found = []
    for one in listed:
        table = rates.get(one.outage, {})
        own = {name: getattr(one, name) for name in RATES}
        lacking = {name: table[name] for name in table if own[name] != own[name]}
        found.append(replace(one, **lacking))
    return found


def each_once(listed: Iterable[Contingency]) -> list[Contingency]:
    """Outages that are named more than once put together, by name and rates of all causes."""
    found: dict[Outage, Contingency] = {}
    for one in listed:
        known = found.get(one.outage)
        found[one.outage] = one if known is None else _both(known, one)
    return [*found.values()]


def _both(one: Contingency, other: Contingency) -> Contingency:
    """Two causes of one outage: rates add up, hours are the mean over failures."""
    rates = np.array([one.failures_per_year, other.failures_per_year])
    hours = np.array([one.repair_hours, other.repair_hours])
    known, weights = np.isfinite(hours), np.nan_to_num(rates)
    if not weights[known].any():
        weights = np.ones(2)
    return Contingency(
        outage=one.outage,
        name="; ".join(dict.fromkeys(name for name in (one.name, other.name) if name)),
        failures_per_year=float(np.nansum(rates)) if np.isfinite(rates).any() else nan,
        repair_hours=float(np.average(hours[known], weights=weights[known]))
        if known.any()
        else nan,
    )
