"""Paired moments: what a shift did to the outputs, told from predictions for the same inputs.

Moments of a context are noisy, and so is the difference to those of the training rows, even where
nothing has shifted. Held against the moments of the frozen predictions F(x) for the context's own
inputs, most of that noise is on both sides and cancels:

    y_hat = mean(Y) + S(Y)^1/2 S(F)^-1/2 (F(x) - mean(F)).

With Y = F this is y_hat = F(x), whatever the context. The mean alone is the control variate of
survey statistics, mean(Y) - mean(F(context)) + mean(F(all inputs)), for which unsolved inputs do.
"""

from dataclasses import replace

import numpy as np

from gridshift.arrays import Real
from gridshift.learn.moments import EPS, Moments
from gridshift.learn.whitening import Affine


def paired(base: Affine, predicted: Affine, new: Affine) -> Affine:
    """The transform of z that equals: back by `base` to F, to z by `predicted`, back by `new` to y.

    Args:
        base: transform of the surrogate, F = base.inverse(z).
        predicted: fitted on F of the context's inputs.
        new: fitted on the context's outputs y, of the same kind as `predicted`.
    """
    return replace(
        new,
        shift=new.inverse(predicted.forward(base.shift[None]))[0],
        whitener=_product(_product(base.whitener, predicted.unwhitener), new.whitener),
        unwhitener=_product(_product(new.unwhitener, predicted.whitener), base.unwhitener),
    )


def _product(left: Real, right: Real) -> Real:
    """Product of two matrices, each whole or given by its diagonal."""
    if left.ndim == 1:
        return left * right if right.ndim == 1 else left[:, None] * right
    return left * right if right.ndim == 1 else left @ right


def correlation_shrinkage(rows: Real) -> float:
    """Weight of the identity in the best mixture with the rows' correlation matrix, in [0, 1].

    Source: Schäfer and Strimmer (2005), equation for target D: sum of the variances of the
    off-diagonal correlations over the sum of their squares. Entries that never vary don't count.
    """
    deviation = rows.std(0, ddof=1)
    varying = deviation > 0
    z = (rows[:, varying] - rows[:, varying].mean(0)) / deviation[varying]
    n = len(z)
    correlation = z.T @ z / (n - 1)
    # variance of w_ij = z_i z_j, from sums of products only
    second = np.square(z).T @ np.square(z)
    variance = n / (n - 1) ** 3 * (second - np.square(correlation) * (n - 1) ** 2 / n)
    np.fill_diagonal(variance, 0.0)
    off = np.square(correlation).sum() - np.square(correlation.diagonal()).sum()
    return float(np.clip(variance.sum() / off, 0.0, 1.0)) if off > 0 else 1.0


def fit_shrunk_zca(y: Real, *, eps: float = EPS, shrinkage: float | None = None) -> Affine:
    """ZCA with correlations shrunk towards zero and variances as they are.

    Shrinking the covariance itself would mix units: on power flow, small variances of voltages
    drown in large ones of powers.

    Args:
        shrinkage: weight of the identity, in [0, 1]; by default the best one for these rows.
    """
    moments = Moments.of(y)
    shrinkage = correlation_shrinkage(y) if shrinkage is None else shrinkage
    covariance = (1 - shrinkage) * moments.covariance
    np.fill_diagonal(covariance, moments.covariance.diagonal())
    spectrum = replace(moments, covariance=covariance).spectrum
    return Affine(
        name="zca", shift=moments.mean, whitener=spectrum.power(-0.5, eps),
        unwhitener=spectrum.power(0.5, eps), eps=eps, num_rows=len(y), rank=spectrum.rank,
        effective_rank=spectrum.effective_rank(eps),
    )  # fmt: skip
