"""Bayesian linear regression of several targets with one factorisation."""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Real

LEAST_NOISE = 1e-12
"""Noise variance below which none is told from none, as a fraction of the target's variance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """Posterior mean for each of T targets, and what the rows say for the model."""

    weight: Real
    """(H, T)"""
    offset: Real
    """(T,)"""
    noise: Real
    """(T,) variance of the noise, in the target's own units."""
    log_evidence: Real
    """(T,) of the targets scaled to unit variance."""


def fit_bayesian_linear(
    phi: Real, targets: Real, *, num_iterations: int = 300, rtol: float = 1e-4
) -> Evidence:
    """Weights with a normal prior of one precision, it and the noise by maximal evidence.

    Args:
        phi: (N, H) regressors; the offset has no prior.
        targets: (N, T), each varying.

    Source: MacKay, Bayesian Interpolation, 1992. In the eigenvectors of phi'phi all but the one
    factorisation is a matter of vectors, so that targets share it.
    """
    # alpha, beta: precision of weights and of noise; gamma: weights that the rows determine
    phi_mean, mean, deviation = phi.mean(0), targets.mean(0), targets.std(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    centred = phi - phi_mean
    t = (targets - mean) / deviation
    values, vectors = np.linalg.eigh(centred.T @ centred)
    known = values > values[-1] * len(values) * np.finfo(float).eps
    values = np.where(known, values, 0)[:, None]
    projected = np.where(known[:, None], vectors.T @ (centred.T @ t), 0)
    num, square = len(t), (t**2).sum(0)
    alpha, beta = np.ones(t.shape[1]), 1 / np.maximum(t.var(0), LEAST_NOISE)
    w = np.zeros_like(projected)
    misfit = square
    for _ in range(num_iterations):
        w = beta * projected / (alpha + beta * values)
        gamma = (beta * values / (alpha + beta * values)).sum(0)
        misfit = np.maximum(square - 2 * (w * projected).sum(0) + (values * w**2).sum(0), 0)
        before = np.array([alpha, beta])
        alpha = gamma / np.maximum((w**2).sum(0), 1e-300)
        beta = np.maximum(num - gamma, LEAST_NOISE) / np.maximum(misfit, num * LEAST_NOISE)
        beta = np.minimum(beta, 1 / LEAST_NOISE)
        if np.allclose(before, [alpha, beta], rtol=rtol):
            break
    log_evidence = (
        len(values) * np.log(alpha)
        + num * np.log(beta)
        - beta * misfit
        - alpha * (w**2).sum(0)
        - np.log(alpha + beta * values).sum(0)
        - num * np.log(2 * np.pi)
    ) / 2
    weight = vectors @ w * deviation
    return Evidence(
        weight=weight,
        offset=mean - phi_mean @ weight,
        noise=deviation**2 / beta,
        log_evidence=log_evidence,
    )
