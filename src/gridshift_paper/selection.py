"""Rows, means and comparisons by seed out of a study's frame; nothing measured gives nothing."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gridshift_paper.claims import NAN, Count, Frame, Rows, Undecided


def picked(frame: Frame, **wanted: object) -> Frame:
    """Rows whose columns have these values."""
    if not wanted.keys() <= set(frame.columns):
        return frame.iloc[:0]
    chosen = np.ones(len(frame), bool)
    for column, value in wanted.items():
        chosen &= (frame[column] == value).to_numpy()
    return frame[chosen]


def by_seed(frame: Frame, column: str, **wanted: object) -> Frame:
    """The column of those rows, indexed by seed; empty if there are none."""
    rows = picked(frame, **wanted)
    if not len(rows):
        return pd.Series(dtype=float)
    return pd.Series(rows[column].to_numpy(), index=rows["seed"].to_numpy())


def mean(values: Frame) -> float:
    """Mean of values; NaN if there are none."""
    return float(np.mean(values.to_numpy())) if len(values) else NAN


def spread(values: Frame) -> float:
    """Sample deviation; 0 of a single value, for error bars."""
    return float(np.std(values.to_numpy(), ddof=1)) if len(values) > 1 else 0.0


def num_seeds(frame: Frame) -> int:
    """How many seeds there are rows of."""
    return len(set(frame["seed"])) if len(frame) else 0


def ratio_by_seed(left: Frame, right: Frame) -> Frame:
    """Left over right, for the seeds that both have."""
    left, right = left.align(right, join="inner")
    return left / right


def mean_ratio(left: Frame, right: Frame) -> float:
    """Left over right, mean over the seeds that both have."""
    return mean(ratio_by_seed(left, right))


def seeds_where_smaller(left: Frame, right: Frame) -> Count:
    """In how many of the seeds that both have the left one is smaller.

    Seeds pair context and test rows, so this tells more than means and deviations do.
    """
    return count(ratio_by_seed(left, right) < 1)


def count(true: Frame) -> Count:
    """How many are true, and of how many."""
    return Count(int(true.sum()), len(true))


def measured(rows: Rows, *studies: str, grid: str | None = None) -> Frame:
    """Rows of the last study, of one grid if it is given; there are some of each.

    Raises:
        Undecided: there are none of one of them.
    """
    frame = pd.DataFrame()
    for name in studies:
        frame = rows.get(name, pd.DataFrame())
        frame = picked(frame, grid=grid) if grid else frame
        if not len(frame):
            where = f" on {grid}" if grid else ""
            raise Undecided(f"nothing measured yet of the study {name}{where}")
    return frame


def listed(words: Sequence[str]) -> str:
    """'a, b and c'."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
