"""Rows, means and comparisons by seed out of a study's frame; nothing measured gives nothing."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

TOLERANCE = 0.2
"""Difference of a number from the paper's that its claim survives: other weights, data, machine."""


def picked(frame: pd.DataFrame, **wanted: object) -> pd.DataFrame:
    """Rows whose columns have these values."""
    for column, value in wanted.items():
        if column not in frame:
            return frame.iloc[:0]
        frame = frame.loc[frame[column] == value]
    return frame


def by_seed(frame: pd.DataFrame, column: str, **wanted: object) -> pd.Series:
    """The column of those rows, indexed by seed; empty if there are none."""
    rows = picked(frame, **wanted)
    if not len(rows):
        return pd.Series(dtype=float)
    return pd.Series(rows[column].to_numpy(), index=rows["seed"].to_numpy())


def mean(values: pd.Series) -> float:
    """Mean of values; NaN if there are none."""
    return float(np.mean(values.to_numpy())) if len(values) else float("nan")


def spread(values: pd.Series) -> float:
    """Sample deviation; 0 of a single value, for error bars."""
    return float(np.std(values.to_numpy(), ddof=1)) if len(values) > 1 else 0.0


def num_seeds(frame: pd.DataFrame) -> int:
    """How many seeds there are rows of."""
    return len(set(frame["seed"])) if len(frame) else 0


def ratio_by_seed(left: pd.Series, right: pd.Series) -> pd.Series:
    """Left over right, for the seeds that both have."""
    left, right = left.align(right, join="inner")
    return left / right


def seeds_where_smaller(left: pd.Series, right: pd.Series) -> tuple[int, int]:
    """In how many of the seeds that both have the left one is smaller, and how many they share.

    Seeds pair context and test rows, so this tells more than means and deviations do.
    """
    ratio = ratio_by_seed(left, right)
    return int((ratio < 1).sum()), len(ratio)


def near(ours: float, paper: float) -> bool:
    """Whether a number passes for the paper's; NaN doesn't."""
    return abs(ours - paper) <= TOLERANCE * abs(paper)


def reaches(ours: float, paper: float) -> bool:
    """Whether a factor is as large as the paper's, or larger; NaN isn't."""
    return ours >= (1 - TOLERANCE) * paper


def all_near(ours: Sequence[float], paper: Sequence[float]) -> bool:
    """Whether each passes for the paper's."""
    return all(near(one, told) for one, told in zip(ours, paper, strict=True))


def listed(words: Sequence[str]) -> str:
    """'a, b and c'."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
