"""Transforms that match a third moment after whitening: one that inverts, one that folds.

Matching more than two moments takes a map that is not affine, so that its inverse can't be folded
into a backbone's last layer.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Real
from gridshift.learn.diagnostics import marginal_skewness
from gridshift.learn.moments import EPS
from gridshift.learn.whitening import Affine, Transform, fit_zca

ZCA_SAS = "zca-sas"
"""ZCA, and then each whitened output bent until it has no skewness."""

STEEPEST = 2.0
"""Largest |e| of a fitted sinh-arcsinh map. The shape of z_s is that of z - tanh(e) sqrt(1 + z^2),
so that tanh(2) = 0.96 of all the correction there is comes with a stretch of cosh(2) = 3.8 only."""

NARROWEST = 1e-8
"""Standard deviation below which a coordinate, which whitening has scaled to 1, is round-off."""

NUM_HALVINGS = 60
"""Bisection steps: 2 STEEPEST / 2^60 is below the spacing of float64 around 1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SinhArcsinh:
    """z_s = sinh(arcsinh(z) - e) of each coordinate, with inverse z = sinh(arcsinh(z_s) + e).

    Strictly increasing for every e, so that nothing is lost (equation in appendix B of the paper;
    Jones and Pewsey 2009).
    """

    skew: Real
    """(d,) e: positive lowers skewness, zero is the identity."""

    def forward(self, z: Real) -> Real:
        """(N, d) z_s of z (N, d)."""
        return np.sinh(np.arcsinh(z) - self.skew)

    def inverse(self, skewed: Real) -> Real:
        """(N, d) z of z_s (N, d)."""
        return np.sinh(np.arcsinh(skewed) + self.skew)


def fit_sinh_arcsinh(z: Real) -> SinhArcsinh:
    """The map after which the sample skewness of each coordinate of z (N, d) is zero.

    With r = sqrt(1 + z^2) and t = tanh(e), z_s = cosh(e) (z - t r), so the third central moment of
    z_s has the sign of a cubic in t whose coefficients are central moments of z and r: the rows are
    read once. It falls with e, because one map after another of larger e is concave, and a concave
    map lowers skewness (van Zwet 1964); bisection finds the one zero.

    A coordinate without spread (`NARROWEST`) keeps e = 0. One whose skewness no e up to `STEEPEST`
    removes, as it is too skew or so narrow that the map is straight over it, keeps the end of the
    bracket.
    """
    root = np.sqrt(1 + z**2)
    z, root = z - z.mean(0), root - root.mean(0)
    cubic = [
        (z**3).mean(0),
        -3 * (z**2 * root).mean(0),
        3 * (z * root**2).mean(0),
        -(root**3).mean(0),
    ]
    low, high = np.full(z.shape[1], -STEEPEST), np.full(z.shape[1], STEEPEST)
    for _ in range(NUM_HALVINGS):
        middle = (low + high) / 2
        t = np.tanh(middle)
        too_skew = cubic[0] + t * (cubic[1] + t * (cubic[2] + t * cubic[3])) > 0
        low, high = np.where(too_skew, middle, low), np.where(too_skew, high, middle)
    return SinhArcsinh(skew=np.where(z.std(0) > NARROWEST, (low + high) / 2, 0.0))


@dataclass(frozen=True, kw_only=True, eq=False)
class CornishFisher:
    """f(z) = z - g/6 (z^2 - 1) of each coordinate: removes a small skewness g, and folds.

    f is a parabola: z and 2 fold - z, on either side of `fold`, have the same image. It is here as
    the counter-example to `SinhArcsinh` (appendix B of the paper).
    """

    skewness: Real
    """(d,) g"""

    @property
    def fold(self) -> Real:
        """(d,) z* = 3 / g, where f turns back; infinite without skewness."""
        with np.errstate(divide="ignore"):
            return np.where(self.skewness == 0, np.inf, 3 / self.skewness)

    def folded(self, z: Real) -> NDArray[np.bool_]:
        """(N, d) whether z lies beyond the fold, so that `inverse` gives 2 fold - z instead."""
        return self.skewness * z > 3

    def forward(self, z: Real) -> Real:
        """(N, d) f(z) of z (N, d)."""
        return z - self.skewness / 6 * (z**2 - 1)

    def inverse(self, image: Real) -> Real:
        """(N, d) the preimage of f (N, d) on the side of the fold that holds zero.

        Images that the parabola doesn't reach, as a prediction may be, give the fold itself.
        """
        shifted = image - self.skewness / 6
        under_root = np.maximum(1 - 2 / 3 * self.skewness * shifted, 0.0)
        reached = np.where(
            under_root > 0, shifted, 1.5 / np.where(under_root > 0, 1, self.skewness)
        )
        return 2 * reached / (1 + np.sqrt(under_root))


def fit_cornish_fisher(z: Real) -> CornishFisher:
    """The parabola with the sample skewness of each coordinate of z (N, d) as its g."""
    return CornishFisher(skewness=marginal_skewness(z))


@dataclass(frozen=True, kw_only=True, eq=False)
class SkewCorrected(Transform):
    """ZCA, then sinh-arcsinh of each whitened coordinate: two moments and marginal skewness."""

    name: str = ZCA_SAS
    whitening: Affine
    skew: Real
    """(d,) e of `SinhArcsinh`."""

    @property
    def eps(self) -> float:
        """Regularisation of the covariance."""
        return self.whitening.eps

    def arrays(self) -> dict[str, Real]:
        """Those of the whitening, and e (d,)."""
        return self.whitening.arrays() | {"skew": self.skew}

    def numbers(self) -> dict[str, Any]:
        """Those of the whitening, under the name of this transform."""
        return self.whitening.numbers() | {"name": self.name}

    def forward(self, y: Real) -> Real:
        """(N, d) z of outputs y (N, d): whitened, then bent."""
        return SinhArcsinh(skew=self.skew).forward(self.whitening.forward(y))

    def inverse(self, z: Real) -> Real:
        """(N, d) y of z (N, d): bent back, then the whitening's inverse."""
        return self.whitening.inverse(SinhArcsinh(skew=self.skew).inverse(z))


def fit_zca_sas(y: Real, *, eps: float = EPS) -> SkewCorrected:
    """ZCA of rows y (N, d), then the sinh-arcsinh map that takes out each coordinate's skewness.

    Warns:
        RankDeficientWarning: no more rows than outputs (`fit_zca`).
    """
    whitening = fit_zca(y, eps=eps)
    return SkewCorrected(whitening=whitening, skew=fit_sinh_arcsinh(whitening.forward(y)).skew)
