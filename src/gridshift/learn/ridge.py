"""Ridge regression whose regularisation is chosen by leave-one-out error, in closed form."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridshift.arrays import Real
from gridshift.learn.splits import clearly_better

PENALTIES = np.concatenate([10.0 ** np.arange(-12, 2.5, 0.5), [np.inf]])
"""Candidates of the regularisation as a share of the largest squared singular value; the last one
leaves the mean alone."""
ROUND_OFF = 1e-12
"""Spread below which a feature counts as constant, relative to its size."""
Choice = Literal["each", "pooled", "simplest"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Ridge:
    """y = offset + (features - mean) / scale · weights; features that never vary have no weight."""

    mean: Real
    """(F,)"""
    scale: Real
    """(F,)"""
    weights: Real
    """(F, d)"""
    offset: Real
    """(d,)"""
    penalties: Real
    """(d,) the regularisation that each output got, of `PENALTIES`."""
    left_out: Real
    """(N, d) error of each row by the fit to all others, with that regularisation."""

    def predict(self, features: Real) -> Real:
        """(R, d) of features (R, F)."""
        return ((features - self.mean) / self.scale) @ self.weights + self.offset

    def linear(self) -> tuple[Real, Real]:
        """(F, d) and (d,): the same as features @ weight + bias."""
        weight = self.weights / self.scale[:, None]
        return weight, self.offset - self.mean @ weight


def fit_ridge(
    features: Real, y: Real, *, choose: Choice = "each", prior: Real | None = None,
    penalties: Real = PENALTIES,
) -> Ridge:  # fmt: skip
    """Penalised least squares on standardised features, with the penalty that does best left out.

    The error of a row by the fit to the other rows needs no second fit: it is (y - y_hat) / (1 - h)
    with the row's leverage h, which one singular value decomposition gives for all penalties. A
    penalty whose fit passes through a row tells nothing of how it would do without it; such ones
    are passed over.

    Args:
        features: (N, F) rows, N at least 2.
        y: (N, d) outputs.
        choose: 'each' output gets the penalty of its own least mean squared error; 'pooled' is one
            for all, of the least mean absolute error, which few rows can tell better; 'simplest'
            is the largest than which that one isn't clearly better.
        prior: (F,) expected sizes of the weights of standardised features, in any unit; equal by
            default. The penalty of a weight is in proportion to 1 / prior^2.
        penalties: candidates, as in `PENALTIES`.
    """
    n, mean, spread = len(features), features.mean(0), features.std(0)
    varies = spread > ROUND_OFF * np.maximum(np.abs(mean), np.finfo(float).tiny)
    size = np.ones_like(spread) if prior is None else prior
    scale = np.divide(spread, size, out=np.ones_like(spread), where=varies)
    standard = np.where(varies, (features - mean) / scale, 0.0)
    left, singular, right = np.linalg.svd(standard, full_matrices=False)
    kept = singular > singular.max(initial=0) * max(standard.shape) * np.finfo(float).eps
    left, singular, right = left[:, kept], singular[kept], right[kept]
    offset = y.mean(0)
    centred = y - offset
    along = left.T @ centred

    def left_out(penalty: float) -> Real | None:
        part = kept_part(singular, penalty)
        free = 1 - 1 / n - np.square(left) @ part
        if free.min() < 1e-6:
            return None
        return (centred - left @ (part[:, None] * along)) / free[:, None]

    chosen, best = np.full(y.shape[1], np.inf), np.full(y.shape[1], np.inf)
    errors, rows = centred * n / (n - 1), {}  # of the mean alone
    for penalty in penalties:
        error = left_out(penalty)
        if error is None:
            continue
        if choose == "simplest":
            rows[penalty] = np.abs(error).mean(1)
            continue
        loss = np.square(error).mean(0)
        if choose == "pooled":
            loss = np.full_like(loss, np.abs(error).mean())
        better = loss < best
        best[better], chosen[better] = loss[better], penalty
        errors[:, better] = error[:, better]
    if rows:
        least = min(rows.values(), key=np.mean)
        largest = max(p for p, of in rows.items() if not clearly_better(least, of))
        chosen[:], errors = largest, left_out(largest)
    assert errors is not None
    coordinates = np.empty_like(along)
    for penalty in np.unique(chosen):
        at = chosen == penalty
        coordinates[:, at] = (kept_part(singular, penalty) / singular)[:, None] * along[:, at]
    weights = np.where(varies[:, None], right.T @ coordinates, 0.0)
    return Ridge(
        mean=mean, scale=scale, weights=weights, offset=offset, penalties=chosen, left_out=errors
    )


def kept_part(singular: Real, penalty: float) -> Real:
    """How much of each direction a penalty leaves: s^2 / (s^2 + penalty max(s)^2)."""
    if not len(singular) or np.isinf(penalty):
        return np.zeros_like(singular)
    return np.square(singular) / (np.square(singular) + penalty * np.square(singular[0]))
