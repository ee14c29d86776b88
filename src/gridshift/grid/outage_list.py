"""Which outages are looked at: those of a kind, or a file's, with names and failure rates."""

import os
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridshift.arguments import shown, some_of
from gridshift.errors import GridshiftWarning, OutageError, StorageError
from gridshift.grid.contingency import KINDS, OTHER_KINDS, Outage, enumerate_outages, parse_outage
from gridshift.grid.network import Network
from gridshift.text_file import read_text

PAIRS = "n-2"
CHOICES = (*KINDS, *OTHER_KINDS, PAIRS)
"""What stands for outages that a grid itself can list."""


@dataclass(frozen=True, kw_only=True)
class Contingency:
    """An outage, and what a list says of it."""

    outage: Outage
    name: str = ""
    failures_per_year: float = float("nan")
    repair_hours: float = float("nan")


def select_outages(network: Network, choice: str) -> list[Outage]:
    """Outages that a user asks for, see `select_contingencies`."""
    return [one.outage for one in select_contingencies(network, choice)]


def select_contingencies(network: Network, choice: str) -> list[Contingency]:
    """Outages that a user asks for: one of `CHOICES`, or a file of `read_contingencies`.

    `lines`, `trafos`, `all` (branches), `generators`, `static` (other supply of a bus), `buses`,
    `loads`, `shunts` are outages of one element, `n-2` of two lines; `lines,generators` is both.

    Raises:
        OutageError: neither one of those words nor a readable file of outages of this grid.
    """
    if not isinstance(choice, str):
        raise OutageError(f"no contingencies {shown(choice)}; choose from {', '.join(CHOICES)}")
    kinds = [kind.strip() for kind in choice.split(",")]
    if {*kinds} <= {*CHOICES} and (len(kinds) == 1 or PAIRS not in kinds):
        found: dict[Outage, None] = {}
        for one in kinds:
            kind, size = ("lines", 2) if one == PAIRS else (one, 1)
            found |= dict.fromkeys(enumerate_outages(network, kind, size))  # type: ignore[arg-type]
        return [Contingency(outage=outage) for outage in found]
    if not os.path.exists(choice):
        raise OutageError(
            f"no contingencies '{choice}'; choose from {', '.join(CHOICES)}, "
            "or give a file with one outage a line, of PSS/E (.con) or of MATPOWER (.m)"
        )
    return read_contingencies(network, choice)


def read_outages(network: Network, path: str | Path) -> list[Outage]:
    """Outages of a text file, see `read_contingencies`."""
    return [one.outage for one in read_contingencies(network, path)]


def read_contingencies(network: Network, path: str | Path) -> list[Contingency]:
    """Outages of a file: of a text file one a line as in `parse_outage`, with `#` for comments.

    A file that ends in `.con` is read as PSS/E's (`psse_contingencies`), one that ends in `.m` as a
    MATPOWER change table (`matpower_contingencies`).

    Behind the elements may stand, each after a semicolon, a name, failures per year and the hours
    until it is repaired: `line:9,line:28; double circuit; 0.02; 10`. Of an outage that is there
    twice the first line counts.

    Raises:
        OutageError: the file cannot be read or names none, or lines that are not outages of
            this grid, every one of them with its line number.
    """
    if not isinstance(path, str | os.PathLike):
        raise OutageError(f"{shown(path)} is no path of a file of outages")
    try:
        text = read_text(path)
    except StorageError as error:
        raise OutageError(f"list of outages {path}: {error}") from None
    try:
        kind = os.path.splitext(path)[1].lower()
        if kind in (".con", ".m"):
            return _of_another_program(network, text, kind)
        return _of_lines(network, text.splitlines())
    except OutageError as error:
        raise OutageError(f"{path}: {error}") from None


def _of_lines(network: Network, lines: list[str]) -> list[Contingency]:
    """Outages, one a line."""
    found: dict[Outage, Contingency] = {}
    problems = []
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            one = _contingency(network, text)
        except OutageError as error:
            problems.append(f"line {number}: {error}")
        else:
            found.setdefault(one.outage, one)
    if problems:
        raise OutageError("; ".join(problems))
    if not found:
        raise OutageError("names no outage; write one a line, for instance line:9,line:28")
    return list(found.values())


def _of_another_program(network: Network, text: str, kind: str) -> list[Contingency]:
    """Outages of a file of PSS/E or MATPOWER."""
    if kind == ".con":
        from gridshift.grid.psse_contingencies import psse_contingencies

        where, listed = "line", psse_contingencies(network, text)
    else:
        from gridshift.grid.matpower_contingencies import matpower_contingencies

        where, listed = "row", matpower_contingencies(text)
    found: dict[Outage, Contingency] = {}
    problems: list[str] = []
    left_out: dict[str, list[str]] = {}
    again: list[str] = []
    for number, name, labels in listed:
        why = [(label, why) for label in labels if (why := _no_outage(network, label))]
        for label, reason in why:
            left_out.setdefault(reason, []).append(label)
        if why:
            continue
        try:
            outage = parse_outage(network, labels, branches_alone=False)
        except OutageError as error:
            problems.append(f"{where} {number}: {error}")
            continue
        first = found.setdefault(outage, Contingency(outage=outage, name=name))
        if first.name != name:
            again.append(f"{name} (as {first.name})")
    if problems:
        raise OutageError("; ".join(problems))
    for reason, labels in left_out.items():
        told = f"contingencies with {some_of(labels)} are not studied: {reason}"
        warnings.warn(told, GridshiftWarning, stacklevel=4)
    if again:
        told = "contingencies that take out the same as an earlier one are left out: "
        told += some_of(again)
        warnings.warn(told, GridshiftWarning, stacklevel=4)
    if not found:
        raise OutageError("has no contingency that can be studied")
    return list(found.values())


def _no_outage(network: Network, label: str) -> str:
    """Why a file's contingency of this element can't be studied; empty if it can."""
    rows = np.flatnonzero(np.isin(network.gen_labels, [label]))
    if np.isin(network.gen_bus[rows], network.slack).any():
        return "generators at a slack bus, which the power flow needs"
    if label.startswith("gen:") and not len(rows):
        return "generators that are out of service, or hold no voltage"
    if (
        label in network.elements
        and not network.branch_in_service[[*network.elements[label]]].any()
    ):
        return "branches that are out of service"
    return ""


def _contingency(network: Network, text: str) -> Contingency:
    """One line of a list."""
    elements, *more = (part.strip() for part in text.split(";"))
    outage = parse_outage(network, elements, branches_alone=False)
    if len(more) > 3:
        raise OutageError(
            f"{len(more) + 1} columns; there are four: elements; name; failures a year; hours"
        )
    name, *numbers = *more, *[""] * (3 - len(more))
    rate, hours = (
        _column(text, what) for text, what in zip(numbers, ("failures", "hours"), strict=True)
    )
    return Contingency(outage=outage, name=name, failures_per_year=rate, repair_hours=hours)


def _column(text: str, what: str) -> float:
    """A number of at least 0; NaN if the column is empty."""
    try:
        value = float(text or "nan")
    except ValueError:
        value = -1.0
    if value < 0 or value == float("inf"):
        raise OutageError(f"{what} '{text}' is no number of at least 0")
    return value
