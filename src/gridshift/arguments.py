"""Arguments of public functions: what they must be, said in one line where they are not."""

import math
from numbers import Integral, Real

from gridshift.errors import GridshiftError


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


def shown(value: object) -> str:
    """A value as a message shows it, on one line and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
