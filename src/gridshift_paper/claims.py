"""What the paper says, as data: its numbers, how ours come from rows, and the rule that decides.

`decide` gives one of three verdicts, and writes it: all sentences about claims are made here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gridshift.errors import GridshiftError
from gridshift_paper.rules import Bound, Count, Rule, written

Frame = Any
"""A frame or series of pandas, which comes without types that could be checked."""
Rows = Mapping[str, Frame]
"""Name of a study to its rows; a frame without rows if nothing was measured."""
Numbers = Mapping[str, float | Count]
"""What a number is of, to the number; NaN if it wasn't measured."""
MOST_SHOWN = 8
"""Numbers of a claim up to which all are written."""


class Undecided(GridshiftError):
    """Our rows can't decide; the message says why."""


@dataclass(frozen=True)
class Note:
    """What our rows show besides the paper's claims."""

    says: str
    """A clause without a full stop."""
    ours: Callable[[Rows], Numbers]
    paper: Bound | None = None


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, and how our rows decide it."""

    says: str
    """The paper's statement: a clause without a full stop."""
    measure: str
    """What our numbers are."""
    ours: Callable[[Rows], Numbers]
    """The numbers that decide; raises `Undecided` where they can't."""
    rule: Rule
    paper: Bound | None = None
    """The paper's number: one for all of ours, or by their names."""
    where: str = ""
    """Where the paper says so; empty: at the artefact itself."""
    beside: Note | None = None
    """Numbers that decide nothing and help to understand."""
    why: str = ""
    """A sentence on why it doesn't hold."""


class Verdict(StrEnum):
    """What our rows say of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    OPEN = "not decided here"


@dataclass(frozen=True)
class Judged:
    """A claim, and what our rows say of it."""

    claim: Claim
    verdict: Verdict
    ours: str
    """Our numbers, and why if they don't agree or don't decide: sentences."""

    def __str__(self) -> str:
        here = "Not decided here" if self.verdict == Verdict.OPEN else f"This {self.verdict} here"
        return f"The paper: {self.claim.says}. {here}. {self.ours}"


def decide(claim: Claim, rows: Rows) -> Judged:
    """The verdict: a number that breaks the rule decides against it, a missing one leaves it open.

    Numbers that weren't measured are named.
    """
    known, missing, reason = _asked(claim.ours, rows)
    floats = {name: float(value) for name, value in known.items()}
    failing = list(claim.rule.failing(floats, _of_paper(claim.paper, known))) if known else []
    if missing and not reason:
        reason = f"not measured: {', '.join(missing)}" if known else "nothing measured yet"
    open_ = not failing and (reason or not known)
    verdict = Verdict.FAILS if failing else Verdict.OPEN if open_ else Verdict.HOLDS
    text = [f"Reason: {reason or 'nothing measured yet'}."] if open_ else []
    if known:
        shown, head = _shown(known, failing)
        measure = claim.measure[:1].upper() + claim.measure[1:]
        text.append(f"{measure}: {head}{listing(shown, claim.paper)}.")
        text.append(f"Needed: {claim.rule.needed}.")
    text.append(note(claim.beside, rows) if claim.beside else "")
    text.append(claim.why if failing else "")
    return Judged(claim, verdict, " ".join(filter(None, text)))


def note(said: Note, rows: Rows) -> str:
    """The note as a sentence; empty if none of its numbers was measured."""
    known, *_ = _asked(said.ours, rows)
    return f"{said.says}: {listing(known, said.paper)}." if known else ""


def listing(numbers: Numbers, paper: Bound | None = None) -> str:
    """'ICW 0.00208 (paper 0.00210); frozen 0.0451'."""
    theirs = _of_paper(paper, numbers)
    told = (
        f"{name} {_number(value)}".strip()
        + (f" (paper {_number(theirs[name])})" if name in theirs else "")
        for name, value in numbers.items()
    )
    return "; ".join(told)


def _shown(numbers: Numbers, failing: Sequence[str]) -> tuple[Numbers, str]:
    """Of many numbers those that fail, or the extremes, and what to say of the others."""
    if len(numbers) <= MOST_SHOWN:
        return numbers, ""
    shown = failing[: MOST_SHOWN // 2]
    head = f"{len(failing)} of {len(numbers)} break the rule: " + "among them " * (shown != failing)
    if not failing:
        shown = [choose(numbers, key=lambda name: float(numbers[name])) for choose in (min, max)]
        head = f"smallest and largest of {len(numbers)}: "
    return {name: numbers[name] for name in shown}, head


def _asked(ours: Callable[[Rows], Numbers], rows: Rows) -> tuple[Numbers, list[str], str]:
    """Numbers that were measured, names of those that were not, and why there are none."""
    try:
        numbers = ours(rows)
    except Undecided as problem:
        return {}, [], str(problem)
    known = {name: value for name, value in numbers.items() if float(value) == float(value)}
    return known, [name for name in numbers if name not in known], ""


def _of_paper(paper: Bound | None, names: Iterable[str]) -> dict[str, float]:
    if isinstance(paper, Mapping):
        return {name: paper[name] for name in names if name in paper}
    return {} if paper is None else dict.fromkeys(names, paper)


def _number(value: float | Count) -> str:
    if isinstance(value, Count):
        return f"{value.num} of {value.of}"
    return written(value if isinstance(value, int) else float(value))
