"""Ridge regression whose regularisation is chosen by leave-one-out error, in closed form."""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Real

PENALTIES = np.concatenate([10.0 ** np.arange(-12, 2.5, 0.5), [np.inf]])
"""Candidates of the regularisation as a share of the largest squared singular value; the last one
leaves the mean alone."""


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
    features: Real, y: Real, *, pooled: bool = False, penalties: Real = PENALTIES
) -> Ridge:
    """Penalised least squares on standardised features, with the penalty that does best left out.

    The error of a row by the fit to the other rows needs no second fit: it is (y - y_hat) / (1 - h)
    with the row's leverage h, which one singular value decomposition gives for all penalties.

    Args:
        features: (N, F) rows, N at least 2.
        y: (N, d) outputs.
        pooled: one penalty for all outputs, by their mean absolute error, which few rows can
            tell better than one for each output, by its mean squared error.
        penalties: candidates, as in `PENALTIES`.
    """
    n = len(features)
    mean, scale = features.mean(0), features.std(0)
    constant = features.max(0) == features.min(0)
    scale = np.where(constant, 1.0, scale)
    centred = np.where(constant, 0.0, (features - mean) / scale)
    left, singular, right = np.linalg.svd(centred, full_matrices=False)
    kept = singular > singular[0] * max(centred.shape) * np.finfo(float).eps
    left, singular, right = left[:, kept], singular[kept], right[kept]
    offset = y.mean(0)
    along = left.T @ (y - offset)

    best = np.full(y.shape[1], np.inf)
    chosen = np.full(y.shape[1], np.inf)
    errors, coordinates = np.empty_like(y), np.empty_like(along)
    for penalty in penalties:
        part = kept_part(singular, penalty)
        leverage = 1 / n + np.square(left) @ part
        # a row that the fit passes through exactly tells nothing of how it would do without it
        free = np.maximum(1 - leverage, 1e-9)
        error = (y - offset - left @ (part[:, None] * along)) / free[:, None]
        loss = np.square(error).sum(0)
        if pooled:
            loss = np.full_like(loss, np.abs(error).mean())
        if not (free > 1e-6).all():
            continue
        better = loss < best
        best[better], chosen[better] = loss[better], penalty
        errors[:, better] = error[:, better]
        coordinates[:, better] = (part / singular)[:, None] * along[:, better]
    weights = np.where(constant[:, None], 0.0, right.T @ coordinates)
    return Ridge(
        mean=mean, scale=scale, weights=weights, offset=offset, penalties=chosen,
        left_out=errors,
    )  # fmt: skip


def kept_part(singular: Real, penalty: float) -> Real:
    """How much of each direction a penalty leaves: s^2 / (s^2 + penalty max(s)^2)."""
    if not len(singular) or np.isinf(penalty):
        return np.zeros_like(singular)
    return np.square(singular) / (np.square(singular) + penalty * np.square(singular[0]))
