"""Transforms of the output space: fit on rows of y, map y to z for learning, and z back to y."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.arguments import require_one_of
from gridshift.arrays import Real
from gridshift.errors import RankDeficientWarning
from gridshift.learn.moments import EPS, Moments


class Transform(ABC):
    """A bijection between outputs y and the space z in which a backbone is trained."""

    name: str
    """Name by which one of its kind is fitted."""
    eps: float
    """Regularisation that it was fitted with."""

    @abstractmethod
    def forward(self, y: Real) -> Real:
        """(N, d) z of outputs y (N, d)."""

    @abstractmethod
    def inverse(self, z: Real) -> Real:
        """(N, d) y of transformed outputs z (N, d)."""

    @abstractmethod
    def arrays(self) -> dict[str, Real]:
        """Everything that decides what it does, by name."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """Everything else worth keeping of it, as plain JSON values."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Affine(Transform):
    """z = W (y - shift), with W the identity, a diagonal or a full matrix.

    An affine inverse after a linear layer is a linear layer (`fold_into_linear`).
    """

    name: str
    """Name in `TRANSFORMS`."""
    shift: Real
    """(d,)"""
    whitener: Real
    """W: (d,) its diagonal, or (d, d)."""
    unwhitener: Real
    """Inverse of W, in the same form."""
    eps: float = EPS
    num_rows: int = 0
    """Rows that it was fitted on."""
    rank: int = 0
    """Independent directions in those rows."""
    effective_rank: int = 0
    """Directions with a variance above `eps`."""

    def forward(self, y: Real) -> Real:
        """(N, d) z = W (y - shift) of outputs y (N, d)."""
        return _apply(self.whitener, y - self.shift)

    def inverse(self, z: Real) -> Real:
        """(N, d) y = W^-1 z + shift of z (N, d)."""
        return _apply(self.unwhitener, z) + self.shift

    def arrays(self) -> dict[str, Real]:
        """`shift` (d,), `whitener` and `unwhitener`, both (d,) or both (d, d)."""
        return {"shift": self.shift, "whitener": self.whitener, "unwhitener": self.unwhitener}

    def numbers(self) -> dict[str, Any]:
        """Name, eps, and what is known of the rows that it was fitted on."""
        names = ("name", "eps", "num_rows", "rank", "effective_rank")
        return {name: getattr(self, name) for name in names}

    def fold_into_linear(self, weight: Real, bias: Real) -> tuple[Real, Real]:
        """Weight and bias of one layer h -> y that equals z = weight h + bias, then `inverse`.

        y = W^-1 (A h + b) + c = (W^-1 A) h + (W^-1 b + c).

        Args:
            weight: (d, H)
            bias: (d,)
        """
        return _apply(self.unwhitener, weight.T).T, self.inverse(bias[None])[0]


def _apply(matrix: Real, rows: Real) -> Real:
    return rows * matrix if matrix.ndim == 1 else rows @ matrix.T


def fit_identity(y: Real, *, eps: float = EPS) -> Affine:
    """z = y; nothing is matched ('No Norm' in the paper)."""
    one = np.ones(y.shape[1])
    return Affine(
        name="identity", shift=np.zeros_like(one), whitener=one, unwhitener=one, eps=eps,
        num_rows=len(y),
    )  # fmt: skip


def fit_residual(y: Real, *, eps: float = EPS) -> Affine:
    """z = y - mean; the first moment is matched."""
    one = np.ones(y.shape[1])
    return Affine(
        name="residual", shift=y.mean(0), whitener=one, unwhitener=one, eps=eps, num_rows=len(y)
    )


def fit_zscore(y: Real, *, eps: float = EPS) -> Affine:
    """z_i = (y_i - mean_i) / sqrt(var_i + eps); mean and variance of each entry are matched."""
    deviation = np.sqrt(y.var(0, ddof=1) + eps)
    return Affine(
        name="zscore", shift=y.mean(0), whitener=1 / deviation, unwhitener=deviation, eps=eps,
        num_rows=len(y),
    )  # fmt: skip


def fit_zca(y: Real, *, eps: float = EPS) -> Affine:
    """z = (S + eps I)^(-1/2) (y - mean), equation 7 of the paper; mean and covariance are matched.

    Of all whiteners it moves y the least (proposition 1 of the paper).

    Warns:
        RankDeficientWarning: no more rows than outputs, so that `eps` decides in directions that
            more rows would have shown. Directions that no sample has, as the grid ties outputs
            together (case30 has 57 of 60), are no reason to warn; `rank` tells.
    """
    moments = Moments.of(y)
    spectrum, num_rows, width = moments.spectrum, len(y), y.shape[1]
    if num_rows <= width:
        warnings.warn(
            f"covariance of {num_rows} rows and {width} outputs has rank {spectrum.rank}; in the "
            f"other {width - spectrum.rank} directions the regularisation {eps:g} decides",
            RankDeficientWarning,
            stacklevel=2,
        )
    return Affine(
        name="zca", shift=moments.mean, whitener=spectrum.power(-0.5, eps),
        unwhitener=spectrum.power(0.5, eps), eps=eps, num_rows=num_rows, rank=spectrum.rank,
        effective_rank=spectrum.effective_rank(eps),
    )  # fmt: skip


TRANSFORMS: dict[str, Callable[..., Affine]] = {
    "identity": fit_identity,
    "residual": fit_residual,
    "zscore": fit_zscore,
    "zca": fit_zca,
}
"""Name to `fit(y, *, eps) -> Transform`."""


def fit_transform(name: str, y: Real, *, eps: float = EPS) -> Affine:
    """The transform of that name, fitted on rows y (N, d).

    Raises:
        GridshiftError: no transform has that name.
    """
    require_one_of(name, TRANSFORMS, "transform")
    return TRANSFORMS[name](y, eps=eps)
