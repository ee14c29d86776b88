"""First two moments of a sample, and the spectrum that whitening is made of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridshift.arrays import Real

EPS = 1e-6
"""Absolute regularisation of a covariance, the same for base and context. The paper doesn't give
its value; results are flat from 1e-12 to 1e-6 and suffer from 1e-3 on (docs/conventions.md)."""

LARGEST = 1e30
"""Size of a value up to which sums of squares, and a layer in float32, stay finite."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues s, ascending and not negative, and orthonormal eigenvectors U: S = U diag(s) U'.

    Matrix functions are of the regularised S + eps I.
    """

    values: Real
    """(d,)"""
    vectors: Real
    """(d, d), one eigenvector a column."""

    @classmethod
    def of(cls, covariance: Real) -> "Spectrum":
        """Spectrum of a symmetric positive semi-definite matrix; round-off below zero becomes 0."""
        values, vectors = np.linalg.eigh(covariance)
        return cls(np.maximum(values, 0.0), vectors)

    @property
    def rank(self) -> int:
        """Eigenvalues that differ from round-off: above d * machine epsilon * the largest."""
        largest = self.values[-1]
        return int((self.values > len(self.values) * np.finfo(float).eps * largest).sum())

    def effective_rank(self, eps: float = EPS) -> int:
        """Eigenvalues above `eps`: directions that the data decides, not the regularisation."""
        return int((self.values > eps).sum())

    def power(self, exponent: float, eps: float = EPS) -> Real:
        """(d, d) symmetric (S + eps I)^exponent; -0.5 gives the ZCA whitener, 0.5 its inverse."""
        return (self.vectors * (self.values + eps) ** exponent) @ self.vectors.T


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and unbiased covariance (denominator N - 1) of N rows."""

    mean: Real
    """(d,)"""
    covariance: Real
    """(d, d)"""
    num_rows: int

    @classmethod
    def of(cls, rows: Real) -> "Moments":
        """Moments of rows (N, d), N at least 2."""
        if len(rows) < 2:
            raise ValueError(f"moments need at least 2 rows, not {len(rows)}")
        mean = rows.mean(0)
        centred = rows - mean
        return cls(mean, centred.T @ centred / (len(rows) - 1), len(rows))

    @cached_property
    def spectrum(self) -> Spectrum:
        """Eigenvalues and eigenvectors of the covariance."""
        return Spectrum.of(self.covariance)


def inverse_square_root(covariance: Real, eps: float = EPS) -> Real:
    """(d, d) symmetric (S + eps I)^(-1/2), equation 7 of the paper."""
    return Spectrum.of(covariance).power(-0.5, eps)
