"""Lists of outages in PSS/E's contingency description files (`.con`).

Understood are `CONTINGENCY name`, `END`, and what takes elements out:

    DISCONNECT | OPEN | TRIP   BRANCH | LINE  FROM BUS i TO BUS j [TO BUS k] [CIRCUIT | CKT id]
    DISCONNECT | OPEN | TRIP   THREEWINDING  AT BUS i TO BUS j TO BUS k [CIRCUIT | CKT id]
    DISCONNECT | OPEN | TRIP   BUS i
    REMOVE | TRIP              MACHINE | UNIT | LOAD  id  FROM BUS i
    REMOVE | TRIP              SHUNT [id] | SWSHUNT  FROM BUS i

`/` and a line that begins with `COM` are comments. Any other statement is an error, and so are two
contingencies of one name that take out different elements.
"""

import re
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from gridshift.arguments import shown
from gridshift.errors import OutageError
from gridshift.grid.after_outage import SHUNT, STATIC
from gridshift.grid.names import bus_parts, end_buses
from gridshift.grid.network import Network

_ID = r"(?P<id>'[^']*'|\"[^\"]*\"|\S+)"
_OUT = r"(?:DISCONNECT|OPEN|TRIP)"
_REMOVED = r"(?:REMOVE|TRIP)"
_CIRCUIT = rf"(?: (?:CIRCUIT|CKT) {_ID})?"
_BRANCH = re.compile(
    rf"{_OUT} (?:(?:BRANCH|LINE) FROM|THREEWINDING AT) BUS (?P<a>\d+) TO BUS (?P<b>\d+)"
    rf"(?: TO BUS (?P<c>\d+))?{_CIRCUIT}"
)
_BUS = re.compile(rf"{_OUT} BUS (?P<a>\d+)")
_AT_BUS = re.compile(rf"{_REMOVED} (?P<what>MACHINE|UNIT|LOAD) {_ID} FROM BUS (?P<a>\d+)")
_SHUNT = re.compile(rf"{_REMOVED} (?:SHUNT(?: {_ID})?|SWSHUNT) FROM BUS (?P<a>\d+)")
_CONTINGENCY = re.compile(r"CONTINGENCY\s+(.+)", re.IGNORECASE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def psse_contingencies(network: Network, text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Line, name and labels of the elements of each contingency of the file.

    A bus is the one of this number: by the names of the grid's buses, if each of them has a whole
    number as its name, else by their labels. Of several circuits between two buses, or machines or
    loads at one, identifiers 1, 2, ... are the first, the second, ... in the order of the grid.

    Raises:
        OutageError: statements that are not understood or that fit no element of this grid, all of
            them with their line numbers.
    """
    places = _Places(network)
    problems: list[str] = []
    found: list[tuple[int, str, list[str]]] = []
    open_: tuple[int, str, list[str]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        statement = _without_comment(line)
        if not statement:
            continue
        start = _CONTINGENCY.fullmatch(statement)
        try:
            if start and open_ is None:
                open_ = number, start[1].strip("'\" "), []
            elif statement.upper() == "END" and open_ is not None:
                if not open_[2]:
                    raise OutageError(f"contingency {shown(open_[1])} takes nothing out")
                found.append(open_)
                open_ = None
            elif statement.upper() == "END":
                break
            elif open_ is None or start:
                raise OutageError(
                    f"{shown(statement)} begins before {shown(open_[1])} of line {open_[0]} has "
                    "its END" if start and open_ else
                    f"{shown(statement)} is outside of any contingency; write CONTINGENCY and a "
                    "name before it"
                )  # fmt: skip
            else:
                open_[2].append(places.element(statement))
        except OutageError as error:
            problems.append(f"line {number}: {error}")
            if statement.upper() == "END":
                open_ = None
            elif open_ is not None:
                open_[2].append("")  # so that it isn't told for empty as well
    problems += _same_names(found)
    if open_ is not None:
        problems.append(f"line {open_[0]}: contingency {shown(open_[1])} has no END")
    if problems:
        raise OutageError("; ".join(problems))
    return iter(found)


def _same_names(found: list[tuple[int, str, list[str]]]) -> Iterator[str]:
    """Contingencies that share a name, but not what they take out: rows could not be told apart."""
    first: dict[str, tuple[int, set[str]]] = {}
    for line, name, labels in found:
        at, others = first.setdefault(name, (line, {*labels}))
        if others != {*labels}:
            yield (
                f"line {line}: contingency {shown(name)} is another one than in line {at}; give "
                "each a name of its own"
            )


def _without_comment(line: str) -> str:
    """A statement with single spaces between its words, without a comment."""
    text, at = line, 0
    while (slash := text.find("/", at)) >= 0:
        quoted = next((m for m in _QUOTED.finditer(text) if m.start() < slash < m.end()), None)
        if quoted is None:
            text = text[:slash]
            break
        at = quoted.end()
    text = text.strip()
    if re.match(r"COM(\s|$)", text, re.IGNORECASE):
        return ""
    if start := _CONTINGENCY.fullmatch(text):
        return f"CONTINGENCY {start[1]}"
    parts = re.split(f"({_QUOTED.pattern})", text)
    return "".join(
        part if k % 2 else re.sub(r"\s+", " ", part).upper() for k, part in enumerate(parts)
    )


class _Places:
    """Elements of a grid by the buses where they are."""

    def __init__(self, network: Network):
        self.network = network

    @cached_property
    def buses(self) -> dict[int, int]:
        """Row of each bus by its number."""
        parts = bus_parts(self.network)
        names = {label: self.network.names.get(label, "") for label in parts}
        numbers = {name for name in names.values() if name.isdecimal()}
        if len(numbers) == len(parts):
            return {int(names[label]): row for label, row in parts.items()}
        found = ((label.removeprefix("bus:"), row) for label, row in parts.items())
        return {int(number): row for number, row in found if number.isdecimal()}

    @cached_property
    def branches(self) -> dict[frozenset[int], list[str]]:
        """Elements that join two or three buses."""
        found: dict[frozenset[int], list[str]] = {}
        for label in self.network.elements:
            found.setdefault(frozenset(end_buses(self.network, label)), []).append(label)
        return found

    def element(self, statement: str) -> str:
        """The label of what a statement takes out.

        Raises:
            OutageError: it is not understood, or there is no such element.
        """
        if found := _BRANCH.fullmatch(statement):
            ends = [self._row(found[end]) for end in "abc" if found[end]]
            numbers = ", ".join(found[end] for end in "abc" if found[end])
            return _chosen(self.branches.get(frozenset(ends), []), found["id"],
                           "circuit", f"between buses {numbers}")  # fmt: skip
        if found := _BUS.fullmatch(statement):
            return self.network.bus_labels[self._row(found["a"])]
        if found := _AT_BUS.fullmatch(statement):
            row, of_loads = self._row(found["a"]), found["what"] == "LOAD"
            network, kind = self.network, "load" if of_loads else "machine"
            at = network.load_bus if of_loads else network.gen_bus
            labels = network.load_labels if of_loads else network.gen_labels
            there = [labels[k] for k in np.flatnonzero(at == row)]
            if not of_loads and not there:
                there = [STATIC + network.bus_labels[row].removeprefix("bus:")]
            return _chosen(there, found["id"], kind, f"at bus {found['a']}")
        if found := _SHUNT.fullmatch(statement):
            return SHUNT + self.network.bus_labels[self._row(found["a"])].removeprefix("bus:")
        raise OutageError(
            f"{shown(statement)} is not understood; outages of branches, buses, machines, loads "
            "and shunts are read"
        )

    def _row(self, number: str) -> int:
        row = self.buses.get(int(number))
        if row is None:
            raise OutageError(f"no bus {number} in {self.network.name}")
        return row


def _chosen(labels: list[str], identifier: str | None, what: str, where: str) -> str:
    """The element of an identifier."""
    if not labels:
        raise OutageError(f"there is no {what} {where}")
    name = "1" if identifier is None else identifier.strip("'\" ")
    if name.isdecimal() and 1 <= int(name) <= len(labels):
        return labels[int(name) - 1]
    if len(labels) == 1 and not name.isdecimal():
        return labels[0]
    raise OutageError(
        f"no {what} {shown(name)} {where}: there {'is' if len(labels) == 1 else 'are'} "
        f"{', '.join(labels)}, told apart by 1 to {len(labels)}"
    )
