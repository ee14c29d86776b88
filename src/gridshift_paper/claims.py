"""What the paper says, as data: its numbers, how ours come from rows, and the rule that decides.

`decide` gives one of three verdicts, and writes it: all sentences about claims are made here. A
number of the paper is compared on both sides: ours must neither fall short of it nor exceed it.
"""

import operator
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

from gridshift.errors import GridshiftError
from gridshift.study.text import real


class Count(NamedTuple):
    """'3 of 4'; a rule compares the share."""

    num: int
    of: int

    def __float__(self) -> float:
        return self.num / self.of if self.of else NAN


def _plain(value: Any) -> Any:
    """Tables with keys as they are meant, lists as tuples."""
    if isinstance(value, dict):
        return {_key(name): _plain(one) for name, one in value.items()}
    return tuple(_plain(one) for one in value) if isinstance(value, list) else value


def _key(name: str) -> Any:
    """'400' is 400, and 'mlp / 400' is ('mlp', 400)."""
    first, *others = (int(part) if part.isdigit() else part for part in name.split(" / "))
    return (first, *others) if others else first


_PRINTED = tomllib.loads((files("gridshift_paper") / "printed.toml").read_text(encoding="utf-8"))
PAPER: Any = SimpleNamespace(**_plain(_PRINTED))
"""The paper's own numbers, as it prints them: names, and where they are from, are in the file."""
Frame = Any
"""A frame or series of pandas, which comes without types that could be checked."""
Rows = Mapping[str, Frame]
"""Name of a study to its rows; a frame without rows if nothing was measured."""
Numbers = Mapping[str, float | Count]
"""What a number is of, to the number; NaN if it wasn't measured."""
MOST_SHOWN = 8
"""Numbers of a claim up to which all are written."""


TOLERANCE = 0.2
"""Difference of a number from the paper's that its claim survives: other weights, data, machine."""
NAN = float("nan")


def written(value: float) -> str:
    """A whole number as it is, another one with three digits."""
    return f"{value:,}" if isinstance(value, int) else real(value)


Named = Mapping[str, float]
Bound = float | Named
"""One for all numbers, or one by name."""


@dataclass(frozen=True)
class Rule:
    """What numbers of ours have to be."""

    needed: str
    """In words: what each of them has to be."""
    failing: Callable[[Named, Named], Iterable[str]]
    """Names of our numbers that break the rule; second argument: the paper's by the same names."""


def _each(needed: str, test: Callable[[float, float], bool]) -> Rule:
    """Every number passes the test, which gets ours and the paper's."""
    return Rule(
        needed, lambda ours, paper: [k for k, v in ours.items() if not test(v, paper.get(k, NAN))]
    )


def _bounded(word: str, test: Callable[[float, float], bool]) -> Callable[[Bound], Rule]:
    """A rule from its bound."""

    def rule(bound: Bound) -> Rule:
        told = bound if isinstance(bound, Mapping) else {"": bound}
        needed = " and ".join(f"{word} {written(b)}{n and f' ({n})'}" for n, b in told.items())
        one = told.get("", NAN)
        return Rule(needed, lambda ours, _: [k for k, v in ours.items()
                                             if not test(v, told.get(k, one))])  # fmt: skip

    return rule


at_least, above = _bounded("at least", operator.ge), _bounded("more than", operator.gt)
at_most, below = _bounded("at most", operator.le), _bounded("less than", operator.lt)


def between(low: float, high: float) -> Rule:
    """Every number is in a band, its ends included."""
    return _each(f"from {written(low)} to {written(high)}", lambda ours, _: low <= ours <= high)


def within(share: float) -> Rule:
    """Every number differs from the paper's by this share of it at most."""
    return _each(
        f"within {100 * share:g} % of the paper's",
        lambda ours, paper: abs(ours - paper) <= share * abs(paper),
    )


def within_factor(factor: float) -> Rule:
    """No number is more than this many times the paper's, nor the paper's than it."""
    return _each(
        f"within a factor of {factor:g} of the paper's",
        lambda ours, paper: ours <= factor * paper <= factor**2 * ours,
    )


NEAR = within(TOLERANCE)
FACTOR = within_factor(1 / (1 - TOLERANCE))
"""For factors: as far as `NEAR` below the paper's, and as many times above it."""
SECONDS = within_factor(2)
"""For times, which are of machines."""
ORDERS = 10**0.5, 10**2.5
"""Factors that are one to two orders of magnitude when rounded."""
MOSTLY = _each("more than half", lambda ours, _: ours > 0.5)
HALF = _each("at least half", lambda ours, _: ours >= 0.5)
ALWAYS = _each("all", lambda ours, _: ours == 1)
FALLING = Rule(
    "each smaller than the one before, and more than 0",
    lambda ours, _: [b for a, b in pairwise(ours) if not 0 < ours[b] < ours[a]],
)


def first_smallest(factor: float = 1) -> Rule:
    """The first number is smaller than `factor` times every other one."""

    def failing(ours: Named, _: Named) -> list[str]:
        first, *others = ours
        return [name for name in others if not ours[first] < factor * ours[name]]

    times = f"{written(factor)} times " if factor != 1 else ""
    return Rule(f"the first one less than {times}each other one", failing)


def in_one(rule: Rule) -> Rule:
    """One number that passes is enough."""

    def failing(ours: Named, paper: Named) -> Iterable[str]:
        found = list(rule.failing(ours, paper))
        return found if len(found) == len(ours) else ()

    return Rule(f"one of them {rule.needed}", failing)


def decided(_: Rows) -> str:
    """No reason."""
    return ""


NETWORK_DECIDES = (
    "the network's own error decides: two bases of ours, one of less error than Table VIII "
    "suggests for the paper's and one of more, don't agree"
)


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
    unless: Callable[[Rows], str] = decided
    """A reason why our numbers, though they are shown, can't decide; empty if they can."""


def own_error(
    ours: Callable[[Rows], Numbers], rule: Rule, paper: Named | None = None
) -> Callable[[Rows], str]:
    """Where a network's own error decides, a claim stays open (`Claim.unless`).

    Numbers are named 'what, base'; by Table VIII the paper's network had more error than one base
    and less than the other. A claim is decided if it passes around both, or fails around both on
    one side.
    """

    def reason(rows: Rows) -> str:
        known = {k: float(v) for k, v in ours(rows).items() if float(v) == float(v)}
        failing, told = set(rule.failing(known, paper or {})), paper or {}
        for what in {name.rpartition(", ")[0] for name in failing}:
            names = [name for name in known if name.rpartition(", ")[0] == what]
            sides = {known[name] > told[name] for name in names if name in told}
            if failing.issuperset(names) and len(sides) < 2:
                return ""
        return NETWORK_DECIDES if failing else ""

    return reason


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
    numbers: Named
    """The numbers that decide, as far as they were measured; a count as its share."""
    paper: Named
    """The paper's by the same names, as far as it gives any."""

    def __str__(self) -> str:
        here = "Not decided here" if self.verdict == Verdict.OPEN else f"This {self.verdict} here"
        return f"The paper: {self.claim.says}. {here}. {self.ours}"


def decide(claim: Claim, rows: Rows) -> Judged:
    """The verdict: a number that breaks the rule decides against it, a missing one leaves it open.

    Numbers that weren't measured are named.
    """
    known, missing, reason = _asked(claim.ours, rows)
    floats, paper = {k: float(v) for k, v in known.items()}, _of_paper(claim.paper, known)
    failing = list(claim.rule.failing(floats, paper)) if known else []
    if missing and not reason:
        reason = f"not measured: {', '.join(missing)}" if known else "nothing measured yet"
    beyond = claim.unless(rows) if known else ""
    reason, open_ = beyond or reason, bool(beyond) or (not failing and bool(reason or not known))
    verdict = Verdict.OPEN if open_ else Verdict.FAILS if failing else Verdict.HOLDS
    text = [f"Reason: {reason or 'nothing measured yet'}."] if open_ else []
    if known:
        shown, head = _shown(known, failing)
        measure = claim.measure[:1].upper() + claim.measure[1:]
        text.append(f"{measure}: {head}{listing(shown, claim.paper)}.")
        text.append(f"Needed: {claim.rule.needed}.")
    text.append(note(claim.beside, rows) if claim.beside else "")
    text.append(claim.why if failing and not open_ else "")
    return Judged(claim, verdict, " ".join(filter(None, text)), floats, paper)


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
