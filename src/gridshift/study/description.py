"""Checks of what describes a study: errors that know their key, and labels chosen by patterns."""

import difflib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import get_args

import numpy as np

from gridshift.arguments import number, shown
from gridshift.errors import GridshiftError, ScenarioError

Key = tuple[str | int, ...]


class UncertaintyError(ScenarioError):
    """What is wrong with a description, and at which key of it."""

    def __init__(self, key: Key, problem: str):
        self.key, self.problem = key, problem
        super().__init__(f"{key_text(key)}: {problem}" if key else problem)

    def within(self, *outer: str | int) -> "UncertaintyError":
        """The same, with the key as it is called from further outside."""
        return UncertaintyError((*outer, *self.key), self.problem)


def key_text(key: Key) -> str:
    """A key as people write it, entries of lists counted from 1: `loads.group[2].sd`."""
    parts = (f"[{part + 1}]" if isinstance(part, int) else f".{part}" for part in key)
    return "".join(parts).removeprefix(".")


def finite(value: object, name: str) -> float:
    """`value` as a float.

    Raises:
        UncertaintyError: it is no finite number; the key is `name`.
    """
    if isinstance(value, np.generic):
        value = value.item()
    try:
        return number(value, "it", example=0.1)
    except GridshiftError:
        raise UncertaintyError((name,), f"{shown(value)} is no finite number") from None


def require_one_of(value: object, known: object, key: str, what: str) -> None:
    """Pass if `value` is one of the texts of a `Literal`.

    Raises:
        UncertaintyError: it isn't; the message begins with "no" and `what` it is.
    """
    if value not in get_args(known):
        told = f"no {what} {shown(value)}; choose {', '.join(get_args(known))}"
        raise UncertaintyError((key,), told)


def chosen(patterns: object, labels: Iterable[str], *, key: Key, what: str) -> list[str]:
    """Labels that are named or fit a pattern such as `load:1*`, in their own order.

    Args:
        key: where the patterns stand.
        what: what the labels are, in the plural.

    Raises:
        UncertaintyError: no list of texts, or texts that fit no label, all of them.
    """
    labels = list(labels)
    known, found, unknown = set(labels), set[str](), []
    for pattern in texts(patterns, key):
        fits = {pattern} & known or {name for name in labels if fnmatchcase(name, pattern)}
        if not fits:
            unknown.append(pattern)
        found |= fits
    if unknown:
        told = ", ".join(map(shown, unknown))
        raise UncertaintyError(key, f"no {told} among the {what}{nearest(unknown[0], labels)}")
    return [name for name in labels if name in found]


def texts(value: object, key: Key) -> Sequence[str]:
    """`value`, if it is a list of texts.

    Raises:
        UncertaintyError: it isn't.
    """
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise UncertaintyError(key, f"{shown(value)}; give a list of texts in quotation marks")
    return value


def nearest(name: str, known: Sequence[str]) -> str:
    """What could have been meant, as the end of a sentence."""
    if not known:
        return "; there are none"
    close = difflib.get_close_matches(name, known, 3, 0.7)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    more = len(known) - 6
    return f"; there are {', '.join(known[:6])}" + (f" and {more:,} more" if more > 0 else "")
