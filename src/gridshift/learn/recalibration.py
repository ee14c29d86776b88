"""Corrections of a prediction from a few true outputs, and the choice among them by leave-one-out.

All are affine in the prediction r, so that they fold into a network's last layer, and 'none' is one
of them. Another is taken only where its left-out error is smaller by more than twice that gain's
standard error, and smaller over the half of the rows with small r as well as over the other: errors
of power flow have heavy tails, and what a few extreme rows of a context gain, calm ones would lose.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Real
from gridshift.learn.moments import EPS
from gridshift.learn.paired import fit_shrunk_zca, paired
from gridshift.learn.ridge import fit_ridge
from gridshift.learn.splits import folds
from gridshift.learn.whitening import Affine

FOLDS = 5
"""Parts of which one is left out where a closed form for single rows doesn't exist."""
STANDARD_ERRORS = 2.0
"""Improvement over no correction that counts, in standard errors of its mean over rows."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Correction:
    """y_hat = r @ by_prediction + offset."""

    name: str
    by_prediction: Real | None
    """(d, d), (d,) its diagonal, or None for the identity."""
    offset: Real
    """(d,)"""
    left_out: Real
    """(N, d) error of each row by a correction fitted without it."""

    def apply(self, prediction: Real) -> Real:
        """(R, d) corrected predictions (R, d)."""
        by = self.by_prediction
        if by is None:
            return prediction + self.offset
        return (prediction * by if by.ndim == 1 else prediction @ by) + self.offset


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The correction that was taken, and the left-out mean absolute error of every candidate."""

    correction: Correction
    left_out_mae: dict[str, float]


def no_correction(y: Real, prediction: Real) -> Correction:
    """y_hat = r."""
    return Correction(
        name="none", by_prediction=None, offset=np.zeros(y.shape[1]),
        left_out=y - prediction,
    )  # fmt: skip


def mean_correction(y: Real, prediction: Real) -> Correction:
    """y_hat = r + mean error."""
    n, error = len(y), y - prediction
    offset = error.mean(0)
    return Correction(
        name="mean", by_prediction=None, offset=offset,
        left_out=(error - offset) * n / (n - 1),
    )  # fmt: skip


def scale_correction(y: Real, prediction: Real) -> Correction:
    """y_hat_i = a_i + b_i r_i: mean and scale of each output by least squares."""
    n, mean = len(y), prediction.mean(0)
    centred, offset = prediction - mean, y.mean(0)
    length = np.maximum(np.square(centred).sum(0), np.finfo(float).tiny)
    slope = (centred * y).sum(0) / length
    leverage = 1 / n + np.square(centred) / length
    error = (y - offset - centred * slope) / np.maximum(1 - leverage, 1e-9)
    return Correction(
        name="scale", by_prediction=slope, offset=offset - mean * slope,
        left_out=error,
    )  # fmt: skip


def covariance_correction(y: Real, prediction: Real) -> Correction:
    """Mean and full covariance of y matched: whitening in context, with paired moments."""
    whole = _matched(y, prediction)
    left_out = np.empty_like(y)
    for others, part in folds(len(y), min(FOLDS, len(y) // 2)):
        fitted = _matched(y[others], prediction[others])
        left_out[part] = y[part] - fitted.inverse(prediction[part])
    return Correction(
        name="covariance", by_prediction=whole.unwhitener.T, offset=whole.shift,
        left_out=left_out,
    )  # fmt: skip


def ridge_correction(y: Real, prediction: Real) -> Correction:
    """y_hat = r + ridge of the error on all entries of r."""
    ridge = fit_ridge(prediction, y - prediction, choose="pooled")
    weight, bias = ridge.linear()
    return Correction(
        name="ridge", by_prediction=np.eye(len(weight)) + weight, offset=bias,
        left_out=ridge.left_out,
    )  # fmt: skip


CORRECTIONS = {
    "none": no_correction,
    "mean": mean_correction,
    "scale": scale_correction,
    "covariance": covariance_correction,
    "ridge": ridge_correction,
}
"""Name to `fit(y, prediction) -> Correction`, from the least to the most flexible."""


def choose_correction(
    y: Real, prediction: Real, names: tuple[str, ...] = tuple(CORRECTIONS)
) -> Choice:
    """The correction with the smallest left-out mean absolute error, if it clearly beats none.

    Args:
        y: (N, d) true outputs, N at least 4.
        prediction: (N, d) what is to be corrected.
        names: candidates of `CORRECTIONS`; 'none' is always one.
    """
    none = no_correction(y, prediction)
    if len(y) < 4:
        return Choice(correction=none, left_out_mae={"none": float(np.abs(none.left_out).mean())})
    found = [none] + [CORRECTIONS[name](y, prediction) for name in names if name != "none"]
    per_row = {c.name: np.abs(c.left_out).mean(1) for c in found}
    size = np.abs(prediction).mean(1)
    calm = size <= np.median(size)
    allowed = [c for c in found if _clear(per_row["none"] - per_row[c.name], calm)]
    best = min(allowed, key=lambda c: per_row[c.name].mean(), default=none)
    return Choice(
        correction=best,
        left_out_mae={name: float(errors.mean()) for name, errors in per_row.items()},
    )


def _clear(gain: Real, calm: NDArray[np.bool_]) -> bool:
    """Whether gains of rows are more than luck, and there for rows that move little as well."""
    beyond_luck = gain.mean() > STANDARD_ERRORS * gain.std(ddof=1) / np.sqrt(len(gain))
    return bool(beyond_luck and gain[calm].sum() > 0 and gain[~calm].sum() > 0)


def _matched(y: Real, prediction: Real) -> Affine:
    """Predictions to outputs with the same mean and covariance; eps relative to the variances."""
    eps = EPS * max(float(y.var(0, ddof=1).mean()), np.finfo(float).tiny)
    unit = np.ones(y.shape[1])
    identity = Affine(name="identity", shift=0 * unit, whitener=unit, unwhitener=unit)
    fitted = (fit_shrunk_zca(rows, eps=eps, shrinkage=0.0) for rows in (prediction, y))
    return paired(identity, *fitted)
