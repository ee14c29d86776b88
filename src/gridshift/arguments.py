"""Arguments of public functions: what they must be, said in one line where they are not."""

import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from gridshift.errors import GridshiftError, OutageError


def whole_number(
    value: object, what: str, error: type[GridshiftError] = GridshiftError, *, least: int = 1
) -> int:
    """`value` as an int; numpy's integers are as good as Python's.

    Raises:
        error: anything else, 5.0 and True included, or less than `least`.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise error(f"{what} is {shown(value)}; give a whole number of at least {least}")
    return int(value)


def number(
    value: object, what: str, error: type[GridshiftError] = GridshiftError, *, example: float
) -> float:
    """`value` as a float.

    Raises:
        error: no number, or one that is not finite.
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not math.isfinite(value):
        raise error(f"{what} is {shown(value)}; give a finite number, for instance {example:g}")
    return float(value)


def expect(
    value: object, kind: type, what: str, error: type[GridshiftError] = GridshiftError
) -> None:
    """Checks that `value` is of a class.

    Raises:
        error: it is of another one.
    """
    if not isinstance(value, kind):
        raise error(f"{what} must be of class {kind.__name__}, not {type(value).__name__}")


def require_one_of(value: str, known: Iterable[str], what: str) -> None:
    """Pass if `value` is one of these names.

    Raises:
        GridshiftError: it isn't; the message begins with "no" and `what` it is.
    """
    if value not in known:
        raise GridshiftError(f"no {what} {value}; choose one of {', '.join(known)}")


def shown(value: object) -> str:
    """A value as a message shows it, on one line and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def some_of(names: Sequence[str], most: int = 5) -> str:
    """The names, or the first ones and how many more there are: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def how_many(number: int, one: str, many: str = "") -> str:
    """A number of things in words: `1 row`, `2,000 rows`, `2 buses`; `many` is `one` with an s."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def outage_labels(outage: object) -> list[str]:
    """The labels of an outage that a caller gives.

    Raises:
        OutageError: a text, or something else than a collection of texts.
    """
    if isinstance(outage, str):
        raise OutageError(f"give the elements of an outage as a list, not as text: [{outage!r}]")
    labels: list[Any] = list(outage) if isinstance(outage, Iterable) else [outage]
    odd = [label for label in labels if not isinstance(label, str)]
    if odd:
        raise OutageError(
            f"{shown(odd[0])} names no element; an outage is a list of labels such as 'line:9'"
        )
    return labels
