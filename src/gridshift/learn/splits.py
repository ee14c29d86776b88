"""Which rows are left out of a fit, to measure it on them, and what their errors can tell."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Real

Rows = NDArray[np.intp]


def num_held_out(num_rows: int, share: float) -> int:
    """So many rows are a share of all, and never fewer than two."""
    return max(2, round(share * num_rows))


def evenly_spaced(num_rows: int, share: float) -> NDArray[np.bool_]:
    """(N,) True for the rows to leave out, evenly spaced: rows may be in an order that tells."""
    held = np.zeros(num_rows, bool)
    held[np.linspace(0, num_rows - 1, num_held_out(num_rows, share)).astype(int)] = True
    return held


def at_random(num_rows: int, share: float, seed: int) -> tuple[Rows, Rows]:
    """Numbers of the rows to fit on and of those to leave out, in random order."""
    order = np.random.default_rng(seed).permutation(num_rows)
    held, kept = np.split(order, [num_held_out(num_rows, share)])
    return kept, held


def folds(num_rows: int, num: int) -> Iterator[tuple[Rows, Rows]]:
    """Numbers of the rows to fit on, in order, and of those to leave out, once for each fold.

    Each row is left out exactly once.
    """
    order = np.random.default_rng(0).permutation(num_rows)
    for part in np.array_split(order, num):
        yield np.setdiff1d(order, part), part


def clearly_better(rows: Real, than: Real) -> bool:
    """Whether left-out errors of rows (N,) are smaller in the mean, by more than chance would have.

    That is by more than one standard error of the difference between rows, or of the difference of
    logarithms, which sees what most rows have where a few have far larger errors.
    """
    smaller = rows.mean() < than.mean()
    return bool(smaller and (_lead(than - rows) > 1 or _lead(log_gain(rows, than)) > 1))


def surely_better(rows: Real, than: Real) -> bool:
    """Whether they are smaller in the mean, and by two standard errors of the logarithms."""
    return bool(rows.mean() < than.mean() and _lead(log_gain(rows, than)) > 2)


def log_gain(rows: Real, than: Real) -> Real:
    """(N,) logarithm of how many times smaller errors (N,) are than others."""
    least = np.finfo(float).tiny
    return np.log(np.maximum(than, least)) - np.log(np.maximum(rows, least))


def _lead(gain: Real) -> float:
    """Mean of gains (N,) in its standard errors."""
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    return float(gain.mean() / max(error, np.finfo(float).tiny))
