"""Outages that a study file lists itself, and how often outages happen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan

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
            outage = parse_outage(network, str(given["outage"]), branches_alone=False)
            rates = {name: _rate(given.get(name), name) for name in RATES}
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
    """The outages with rates from a table where they have none of their own."""
    return [
        replace(one, **rates[one.outage])
        if one.outage in rates and one.failures_per_year != one.failures_per_year
        else one
        for one in listed
    ]
