"""Points of the unit cube, and the Gaussian copula that correlates them."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridshift.arrays import Real
from gridshift.errors import GridshiftWarning
from gridshift.study.description import UncertaintyError, require_one_of

Sampling = Literal["random", "sobol", "latin_hypercube"]
MOST_SOBOL_COLUMNS = 21201
"""Dimensions that scipy has direction numbers for."""
ROUNDING = 1e-8
"""What a correlation matrix may miss symmetry, ones or definiteness by: the last digits of text."""


def unit_points(
    num_rows: int, num_columns: int, *, sampling: Sampling, rng: np.random.Generator
) -> Real:
    """(R, D) points of the open unit cube, every coordinate uniform.

    Random and Sobol points begin with the same rows whatever their number. Sobol points are
    scrambled, so that they are without bias.

    Raises:
        UncertaintyError: no such sampling, or more coordinates than Sobol points have.

    Warns:
        GridshiftWarning: a number of Sobol points that is no power of two.
    """
    require_one_of(sampling, Sampling, "sampling", "sampling")
    if sampling == "random" or not num_columns:
        return _inside(rng.random((num_rows, num_columns)))
    from scipy.stats import qmc

    if sampling == "latin_hypercube":
        return _inside(qmc.LatinHypercube(num_columns, rng=rng).random(num_rows))
    if num_columns > MOST_SOBOL_COLUMNS:
        raise UncertaintyError(
            ("sampling",),
            f"{num_columns:,} numbers vary and Sobol points have {MOST_SOBOL_COLUMNS:,} "
            "coordinates at most; choose latin_hypercube or random, or let fewer vary",
        )
    if num_rows & (num_rows - 1):
        less = 1 << (num_rows.bit_length() - 1)
        warnings.warn(
            f"{num_rows:,} Sobol points fill the range less evenly than a power of two does; "
            f"ask for {less:,} or {2 * less:,}",
            GridshiftWarning,
            stacklevel=2,
        )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The balance properties", UserWarning)
        return _inside(qmc.Sobol(num_columns, rng=rng).random(num_rows))


def _inside(u: Real) -> Real:
    """Without the ends, at which quantiles may be infinite."""
    return np.clip(u, 2.0**-54, 1 - 2.0**-53)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixing:
    """N normal scores from independent ones: own * e + common @ weights, each of variance one."""

    own: Real
    """(N,) weight of a score's own number; 0 needs none."""
    weights: Real
    """(K, N) weights of K common numbers."""

    @classmethod
    def none(cls, count: int) -> "Mixing":
        """Every score is its own."""
        return cls(own=np.ones(count), weights=np.zeros((0, count)))

    @property
    def num_columns(self) -> int:
        """Independent numbers that a row takes: the common ones, then the own ones."""
        return len(self.weights) + int(np.count_nonzero(self.own))

    def mixed(self, u: Real) -> Real:
        """(R, N) uniform numbers with this dependence, from (R, `num_columns`) independent ones."""
        if not len(self.weights):
            return u
        from scipy.special import ndtr, ndtri  # a tenth of a second, which most studies save

        common, own = ndtri(u[:, : len(self.weights)]), ndtri(u[:, len(self.weights) :])
        scores = common @ self.weights
        scores[:, self.own != 0] += own * self.own[self.own != 0]
        return _inside(ndtr(scores))


def area_mixing(areas: Sequence[str | None], *, rho: float, between: float = 0.0) -> Mixing:
    """Scores correlated by `rho` in one area and by `between` otherwise; None is independent.

    Raises:
        UncertaintyError: not 0 <= between <= rho <= 1.
    """
    for name, value in (("rho", rho), ("between", between)):
        if not 0 <= value <= 1:
            raise UncertaintyError((name,), f"{value:g} must be a correlation from 0 to 1")
    if between > rho:
        raise UncertaintyError(
            ("between",), f"{between:g} must not be greater than rho, which is {rho:g}"
        )
    names = [*dict.fromkeys(area for area in areas if area is not None)]
    belongs = np.array([area is not None for area in areas], bool)
    weights = np.zeros((1 + len(names), len(areas)))
    weights[0, belongs] = math.sqrt(between)
    for column, area in enumerate(areas):
        if area is not None:
            weights[1 + names.index(area), column] = math.sqrt(rho - between)
    weights = weights[weights.any(1)]
    return Mixing(own=np.where(belongs, math.sqrt(1 - rho), 1.0), weights=weights)


def matrix_mixing(labels: Sequence[str], matrix: Real, columns: Mapping[str, int]) -> Mixing:
    """Scores of `labels` with this correlation matrix, every other score of `columns` its own.

    Raises:
        UncertaintyError: no correlation matrix; names the pair of elements that is wrong.
    """
    root = _root(labels, np.asarray(matrix, float))
    at = [columns[label] for label in labels]
    own = np.ones(len(columns))
    own[at] = 0
    weights = np.zeros((len(labels), len(columns)))
    weights[:, at] = root.T
    return Mixing(own=own, weights=weights)


def _root(labels: Sequence[str], matrix: Real) -> Real:
    """(n, n) A with A A' = the matrix."""
    n = len(labels)
    if matrix.shape != (n, n):
        size = " x ".join(map(str, matrix.shape))
        raise UncertaintyError(
            ("matrix",),
            f"it is {size} and there are {n} elements; give a row and a column for each",
        )

    def refuse(wrong: Real, told: str) -> None:
        row, column = sorted(divmod(int(wrong.argmax()), n))
        pair = f"{labels[row]} with {labels[column]}" if row != column else labels[row]
        here, there = matrix[row, column], matrix[column, row]
        raise UncertaintyError(("matrix",), told.format(pair=pair, here=here, there=there))

    if not np.isfinite(matrix).all():
        refuse(~np.isfinite(matrix), "{pair} has {here:g}, no finite number")
    off = np.abs(matrix - matrix.T)
    if off.max() > ROUNDING:
        refuse(off, "not symmetric: {pair} has {here:g} and, the other way round, {there:g}")
    ones = np.abs(np.diag(np.diag(matrix) - 1))
    if ones.max() > ROUNDING:
        refuse(ones, "the correlation of {pair} with itself is {here:g}; it must be 1")
    if np.abs(matrix).max() > 1 + ROUNDING:
        refuse(np.abs(matrix), "{pair} has {here:g}; a correlation lies between -1 and 1")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0))
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    if values[0] < -ROUNDING * n:
        possible = root @ root.T
        row, column = divmod(int(np.abs(possible - matrix).argmax()), n)
        told = f"together impossible (smallest eigenvalue {values[0]:.3g}): "
        told += (
            f"{{pair}} has {{here:g}}, and {possible[row, column]:.3g} in a possible matrix near by"
        )
        refuse(np.abs(possible - matrix), told)
    return root
