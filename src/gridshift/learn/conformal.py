"""Conformal error bars: widths that hold at a chosen rate, whatever the predictor is.

With rows to spare they are calibrated on some (split-conformal, `calibrate`); where rows are few,
each is left out in turn (`jackknife_plus`).

From the absolute errors of n calibration rows that the predictor was not fitted on, take the
ceil((n + 1) level)-th smallest: an exchangeable new row is within it with a probability between
`level` and `level` + 1 / (n + 1) (Vovk, Gammerman and Shafer 2005; Lei et al. 2018, theorem 2.2).
The probability is over calibration and new row together. For one calibration of n rows the rate
scatters around it like a Beta(k, n + 1 - k) variable: 0.03 at n = 100, 0.015 at n = 400.

Two kinds, for the entries of an output vector:
- an *interval* is for one entry, and holds for that entry at the rate;
- a *band* is for a group of entries, and holds for all of them in a row at once at the rate.

A row's *difficulty* divides its score: the width of each row is then proportional to it. Rows that
are drawn differently from the calibration rows are not exchangeable with them, and no width of this
kind is then guaranteed; a difficulty that explains the size of errors keeps it close.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np

from gridshift.arguments import how_many
from gridshift.arrays import Real
from gridshift.errors import ContextError

SCALE_SHARE = 0.25
"""Share of the calibration rows that tell how the entries of a band compare with each other; they
can't count for its width as well without spoiling the rate."""
BLOCK = 64
"""New rows that all fits without one row predict at a time."""


def quantile_rank(num_rows: int, level: float) -> int:
    """Rank, from 1, of the score that bounds a new row at the level; num_rows + 1: none does."""
    return min(ceil((num_rows + 1) * level - 1e-9), num_rows + 1)


def conformal_quantile(scores: Real, level: float) -> Real:
    """(...) score of rank ceil((n + 1) level) of scores (n, ...) along the first axis.

    Infinite where n is too small for the level: 90 % takes 9 rows, 99 % takes 99.
    """
    rank = quantile_rank(len(scores), level)
    if rank > len(scores):
        return np.full(scores.shape[1:], np.inf)
    return np.partition(scores, rank - 1, axis=0)[rank - 1]


@dataclass(frozen=True, kw_only=True, eq=False)
class ErrorBars:
    """Half widths per entry, to be multiplied by a row's difficulty where one was used."""

    level: float
    num_rows: int
    """Calibration rows."""
    groups: Mapping[str, slice]
    interval: Real
    """(Y,) half width of each entry by itself."""
    band: Real
    """(Y,) half width of each entry as part of its group; infinite for entries of no group."""

    def coverage(self, error: Real, difficulty: Real | None = None) -> dict[str, dict[str, float]]:
        """Share of new rows (R, Y) within: per group the mean over entries, and the band."""
        size = _scores(error, difficulty)
        return {
            name: {
                "interval": float((size[:, at] <= self.interval[at]).mean()),
                "band": float((size[:, at] <= self.band[at]).all(1).mean()),
            }
            for name, at in self.groups.items()
        }

    def widths(self) -> dict[str, dict[str, float]]:
        """Mean half width over the entries of each group, at difficulty 1."""
        return {
            name: {"interval": float(self.interval[at].mean()), "band": float(self.band[at].mean())}
            for name, at in self.groups.items()
            if len(self.interval[at])
        }


def calibrate(
    error: Real,
    *,
    level: float = 0.9,
    groups: Mapping[str, slice],
    normalised: bool = True,
    difficulty: Real | None = None,
) -> ErrorBars:
    """Error bars from the errors of rows that the predictor has not seen.

    Args:
        error: (n, Y) prediction minus exact output.
        level: rate at which the bars shall hold, for instance 0.9.
        groups: entries that share a band, by name.
        normalised: let the entries of a band differ in width, in proportion to their mean absolute
            error on a quarter of the rows.
        difficulty: (n,) positive; what the error of each row is proportional to.

    Raises:
        ContextError: a level outside (0, 1), fewer than two rows, or a difficulty that isn't
            positive.
    """
    check_level(level)
    if len(error) < 2:
        raise ContextError(
            f"{how_many(len(error), 'row')} to calibrate error bars on; at least 2 are needed"
        )
    if difficulty is not None and not (np.isfinite(difficulty) & (difficulty > 0)).all():
        raise ContextError("difficulties of error bars must be positive numbers")
    scores = _scores(error, difficulty)
    num_scale = max(1, int(SCALE_SHARE * len(error))) if normalised else 0
    to_scale, to_rank = scores[:num_scale], scores[num_scale:]
    scale = np.ones(error.shape[1])
    if normalised:
        scale = to_scale.mean(0)
        scale = np.maximum(scale, 1e-9 * scale.max(initial=0) or 1.0)
    band = np.full(error.shape[1], np.inf)
    for at in groups.values():
        if len(scale[at]):
            band[at] = scale[at] * conformal_quantile((to_rank[:, at] / scale[at]).max(1), level)
    return ErrorBars(
        level=level,
        num_rows=len(error),
        groups=dict(groups),
        interval=conformal_quantile(scores, level),
        band=band,
    )


def fewest_rows(level: float) -> int:
    """Rows from which on a finite width holds at this level: 9 at 90 %, 99 at 99 %."""
    return ceil(level / (1 - level) - 1e-9)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """Bounds of rows (R, Y): of each entry by itself, and of all entries of a group at once."""

    groups: Mapping[str, slice]
    interval: tuple[Real, Real]
    band: tuple[Real, Real]

    def coverage(self, y: Real) -> dict[str, dict[str, float]]:
        """Share of rows y (R, Y) within: per group the mean over entries, and the band."""
        single, whole = ((low <= y) & (y <= high) for low, high in (self.interval, self.band))
        return {
            name: {
                "interval": float(single[:, at].mean()), "band": float(whole[:, at].all(1).mean()),
            }
            for name, at in self.groups.items()
        }  # fmt: skip

    def widths(self) -> dict[str, dict[str, float]]:
        """Mean half width over the rows and the entries of each group."""
        single, whole = ((high - low) / 2 for low, high in (self.interval, self.band))
        return {
            name: {"interval": float(single[:, at].mean()), "band": float(whole[:, at].mean())}
            for name, at in self.groups.items()
            if single[:, at].size
        }


def jackknife_plus(
    error: Real, fits: Sequence[Callable[[Real], Real]], x: Real, *, level: float = 0.9,
    groups: Mapping[str, slice], scale: Real | None = None,
) -> Bounds:  # fmt: skip
    """Bounds from fits that leave out one row each, for rows too few to set some aside.

    A new row is within with a probability of at least 2 level - 1, and of about `level` where a fit
    changes little with one row (Barber, Candès, Ramdas and Tibshirani 2021, theorem 1): the bounds
    are the ones of rank ceil((n + 1) level) of what fit i predicts plus, and minus, the error that
    it makes on row i. A band holds for all entries of a group, each in proportion to its `scale`; a
    scale of row i from fits that have seen row i is too small beside a new row's, and then bands
    of many entries hold far less often than the level.

    Args:
        error: (n, Y) of row i by the fit without it.
        fits: give (R, Y) for inputs (R, X), one without each row.
        x: (R, X) inputs of new rows.
        level: that is aimed at.
        groups: entries that share a band, by name.
        scale: (n, Y) what the errors of row i are in proportion to, from other rows and by fits
            that have seen neither these nor row i; by default the mean error of the other rows,
            for fits that have seen none.

    Raises:
        ContextError: a level outside (0, 1), or too few rows for it.
    """
    check_level(level)
    num, size = len(error), np.abs(error)
    if num < max(2, fewest_rows(level)):
        raise ContextError(
            f"error bars that hold at {level:.6g} need at least {max(2, fewest_rows(level))} "
            f"solved cases, not {num}; ask for more, or for a lower level"
        )
    if scale is None:
        scale = (size.sum(0) - size) / (num - 1)
    assert scale is not None
    scale = np.maximum(scale, 1e-9 * scale.max(initial=0) or 1.0)
    band = np.full(size.shape, np.inf)
    for at in groups.values():
        if size[:, at].size:
            band[:, at] = scale[:, at] * (size[:, at] / scale[:, at]).max(1)[:, None]
    rank = quantile_rank(num, level) - 1

    def upper(y_hat: Real, half: Real) -> Real:
        return np.partition(y_hat + half[:, None], rank, axis=0)[rank]

    found: list[list[Real]] = [[], [], [], []]
    for start in range(0, max(len(x), 1), BLOCK):
        y_hat = np.stack([fit(x[start : start + BLOCK]) for fit in fits])
        ends = (sign * upper(sign * y_hat, half) for half in (size, band) for sign in (-1, 1))
        for part, end in zip(found, ends, strict=True):
            part.append(end)
    low, high, band_low, band_high = map(np.concatenate, found)
    return Bounds(groups=dict(groups), interval=(low, high), band=(band_low, band_high))


def check_level(level: float) -> None:
    """Pass if it is a rate.

    Raises:
        ContextError: it isn't between 0 and 1.
    """
    if not 0 < level < 1:
        raise ContextError(f"level {level} of error bars; give a number between 0 and 1, like 0.9")


def distance(x: Real, center: Real, scale: Real) -> Real:
    """(R,) root mean square of the varying entries of x in their standard deviations; a difficulty.

    Args:
        x: (R, X) inputs.
        center: (X,) mean of the rows fitted on.
        scale: (X,) their standard deviation, 0 where an entry is constant.
    """
    varying = scale > 0
    steps = (x[:, varying] - center[varying]) / scale[varying]
    return np.sqrt(np.square(steps).mean(1)) if varying.any() else np.ones(len(x))


def _scores(error: Real, difficulty: Real | None) -> Real:
    return np.abs(error) if difficulty is None else np.abs(error) / difficulty[:, None]
