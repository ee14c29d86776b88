"""Whiteners other than ZCA, straight from their definitions (Kessy, Lewin, Strimmer 2018)."""

import numpy as np


def pca_whitener(covariance):
    """L^(-1/2) U', eigenvectors signed so that the diagonal of U is positive."""
    values, vectors = np.linalg.eigh(covariance)
    vectors = vectors * np.where(np.diag(vectors) < 0, -1.0, 1.0)
    return np.diag(values**-0.5) @ vectors.T


def cholesky_whitener(covariance):
    """Triangular W with W'W = S^-1."""
    return np.linalg.cholesky(np.linalg.inv(covariance)).T


def random_rotation(rng, d):
    """Uniform random orthogonal matrix: QR of a Gaussian matrix, signs fixed."""
    q, r = np.linalg.qr(rng.normal(size=(d, d)))
    return q * np.sign(np.diag(r))


def distortion(whitener, y):
    """Mean squared distance between whitened and centred rows, equation 4 of the paper."""
    centred = y - y.mean(0)
    return float(((centred @ whitener.T - centred) ** 2).sum(1).mean())
