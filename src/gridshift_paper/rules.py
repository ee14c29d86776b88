"""When numbers of ours make a statement of the paper true."""

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from gridshift.study.text import real

TOLERANCE = 0.2
"""Difference of a number from the paper's that its claim survives: other weights, data, machine."""
NAN = float("nan")


def written(value: float) -> str:
    """A whole number as it is, another one with three digits."""
    return f"{value:,}" if isinstance(value, int) else real(value)


class Count(NamedTuple):
    """'3 of 4'; a rule compares the share."""

    num: int
    of: int

    def __float__(self) -> float:
        return self.num / self.of if self.of else NAN


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


NEAR = within(TOLERANCE)
REACHES = _each("no more than 20 % below the paper's",
                lambda ours, paper: ours >= (1 - TOLERANCE) * paper)  # fmt: skip
STAYS_BELOW = _each("no more than 20 % above the paper's",
                    lambda ours, paper: ours <= (1 + TOLERANCE) * paper)  # fmt: skip
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
