"""Which rows are left out of a fit, to measure it on them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

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
