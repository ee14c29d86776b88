"""How far two samples are apart, and how far a covariance is from its limit. Diagnostics only.

Maximum mean discrepancy (Gretton et al. 2012) with the kernel k(x, y) = exp(-|x - y|^2 / (2 h^2)).
The numbers of the paper (0.923, 0.045, 0.029 for case30 without its two most loaded lines, loads
±20 %, 1,000 rows) are `mmd` as it is by default: the root of the biased statistic, all outputs
jointly, per unit and radians as they are, h the median distance of the pooled rows, found anew for
each space. Same loads on both topologies, spreads drawn, three seeds:

| matched | paper | moments of the rows themselves | of 4,000 other rows | of 1,000 other rows |
|---|---|---|---|---|
| nothing | 0.923 | 0.928 to 0.932 | the same | the same |
| mean | 0.045 | 0.048 to 0.050 | 0.050 to 0.053 | 0.050 to 0.058 |
| mean and covariance | 0.029 | 0.0224 | 0.025 to 0.028 | 0.032 to 0.035 |

Other readings are far off: the squared statistic gives 0.86 without matching, outputs scaled by
their standard deviation 1.01, the mean over coordinates 0.59, spreads of 20 % for all rows 0.87.
"""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.learn.moments import EPS, Moments, Spectrum


@dataclass(frozen=True, kw_only=True)
class Band:
    """Quantiles between which a share `level` of resampled values lies."""

    low: float
    high: float
    level: float


def median_bandwidth(a: Real, b: Real) -> float:
    """Median distance between two of the pooled rows of a (N, d) and b (M, d).

    If more than half of the pairs coincide, the median of the others; 1 if all do.
    """
    return _median_bandwidth(_squared_distances(np.vstack([a, b])))


def mmd(a: Real, b: Real, *, bandwidth: float | None = None, unbiased: bool = False) -> float:
    """Maximum mean discrepancy between rows a (N, d) and b (M, d), between 0 and sqrt(2).

    The root of mean k(a, a) + mean k(b, b) - 2 mean k(a, b). The biased means hold every row
    against itself: two samples of one distribution are about sqrt(2 (1 - mean k) / N) apart, not
    zero (`mmd_null_band`).

    Args:
        bandwidth: h of the kernel; by default `median_bandwidth`.
        unbiased: leave a row against itself out. The result has the sign of the squared statistic,
            which is as often negative as positive for samples of one distribution, and the root
            of its size.

    Raises:
        GridshiftError: samples of different widths, fewer than two rows, or a bandwidth that is
            not positive.
    """
    return _discrepancy(_kernel(a, b, bandwidth), len(a), unbiased)


def mmd_by_coordinate(a: Real, b: Real) -> Real:
    """(d,) `mmd` of each coordinate of a (N, d) and b (M, d), each with its own bandwidth.

    Coordinates are scaled by their bandwidth, so a constant that differs by round-off counts as
    much as a large one.
    """
    _check(a, b)
    columns = zip(np.split(a, a.shape[1], 1), np.split(b, b.shape[1], 1), strict=True)
    return np.array([mmd(*pair) for pair in columns])


def mmd_null_band(
    a: Real, b: Real, num_resamples: int, rng: np.random.Generator, level: float = 0.95
) -> Band:
    """Band of `mmd` if both samples had one distribution: rows dealt anew to the two samples.

    Rows are dealt one by one: if a and b are pairs (the same loads on two topologies), their
    discrepancy varies less than this band says.
    """
    kernel, num_a, num_b = _kernel(a, b, None), len(a), len(b)
    signed = np.concatenate([np.full(num_a, 1 / num_a), np.full(num_b, -1 / num_b)])
    dealt = rng.permuted(np.tile(signed, (num_resamples, 1)), axis=1)
    squared = ((dealt @ kernel) * dealt).sum(1)
    return _band(np.sqrt(np.maximum(squared, 0.0)), level)


def _band(values: Real, level: float) -> Band:
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return Band(low=float(low), high=float(high), level=level)


def _check(a: Real, b: Real) -> None:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or min(len(a), len(b)) < 2:
        raise GridshiftError(
            f"samples of shape {a.shape} and {b.shape}; give (N, d) and (M, d), two rows or more"
        )


def _squared_distances(rows: Real) -> Real:
    """(N, N) |x - y|^2 of rows (N, d) as |x|^2 + |y|^2 - 2 x.y: one matrix product.

    Ten times faster than `scipy.spatial.distance.cdist` at width 236. The difference loses
    digits of |x|^2; around the mean of the rows that is as large as the distances of interest.
    """
    centred = rows - rows.mean(0)
    squares = (centred**2).sum(1)
    distances = centred @ centred.T
    distances *= -2
    distances += squares[:, None]
    distances += squares
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, 0.0)
    return distances


def _median_bandwidth(squared: Real) -> float:
    pairs = np.concatenate([row[number + 1 :] for number, row in enumerate(squared)])
    if not (apart := pairs > 0).any():
        return 1.0
    middle = [(len(pairs) - 1) // 2, len(pairs) // 2]
    median = np.sqrt(np.partition(pairs, middle)[middle]).mean()
    return float(median if median > 0 else np.sqrt(np.median(pairs[apart])))


def _kernel(a: Real, b: Real, bandwidth: float | None) -> Real:
    """(N + M, N + M) kernel between all pooled rows."""
    _check(a, b)
    if bandwidth is not None and not bandwidth > 0:
        raise GridshiftError(f"bandwidth {bandwidth}; give a positive number or leave it out")
    kernel = _squared_distances(np.vstack([a, b]))
    width = _median_bandwidth(kernel) if bandwidth is None else bandwidth
    kernel *= -0.5 / width**2
    return np.exp(kernel, out=kernel)


def _discrepancy(kernel: Real, num_a: int, unbiased: bool) -> float:
    own_a, own_b = kernel[:num_a, :num_a], kernel[num_a:, num_a:]
    across = kernel[:num_a, num_a:].mean()
    if not unbiased:
        return float(np.sqrt(max(own_a.mean() + own_b.mean() - 2 * across, 0.0)))
    num_b = len(own_b)
    squared = (
        (own_a.sum() - num_a) / (num_a * (num_a - 1))
        + (own_b.sum() - num_b) / (num_b * (num_b - 1))
        - 2 * across
    )
    return float(np.sign(squared) * np.sqrt(abs(squared)))


def log_euclidean_distance(covariance: Real, other: Real, eps: float = EPS) -> float:
    """|log(A + eps I) - log(B + eps I)|_F of two covariances (d, d) (Arsigny et al. 2006).

    The regularisation of the whitening keeps it finite: a direction that one covariance lacks and
    the other has with variance s counts log((s + eps) / eps).
    """
    logarithms = []
    for matrix in (covariance, other):
        spectrum = Spectrum.of(matrix)
        logarithms.append((spectrum.vectors * np.log(spectrum.values + eps)) @ spectrum.vectors.T)
    return float(np.linalg.norm(logarithms[0] - logarithms[1]))


def spectrum_deviation(values: Real, reference: Real) -> Real:
    """(d,) relative deviation of eigenvalues from reference ones, both largest first.

    NaN where the reference is round-off: d * machine epsilon * the largest, or below.
    """
    values, reference = np.sort(values)[::-1], np.sort(reference)[::-1]
    real = reference > len(reference) * np.finfo(float).eps * reference[0]
    return np.where(real, values / np.where(real, reference, 1.0) - 1, np.nan)


def marginal_skewness(rows: Real) -> Real:
    """(d,) third central moment over the variance to 3/2 (biased), 0 for a constant coordinate."""
    centred = rows - rows.mean(0)
    deviation = np.sqrt((centred**2).mean(0))
    constant = deviation <= 10 * np.finfo(float).eps * np.abs(rows).max(0)
    return np.where(constant, 0.0, ((centred / np.where(constant, 1.0, deviation)) ** 3).mean(0))


def mardia_skewness(rows: Real) -> float:
    """Mean of (z_i . z_j)^3 over all pairs of whitened rows: Mardia's (1970) b_{1,d}.

    Rows (N, d) are whitened in the directions that the sample has (its rank r), with denominator
    N. No nonsingular affine map changes it, so nothing affine after a whitening can reduce it. A
    normal distribution has r (r + 1) (r + 2) / N on average, for N far above r.
    """
    moments = Moments.of(rows)
    rank, spectrum = moments.spectrum.rank, moments.spectrum
    values = spectrum.values[-rank:] * (len(rows) - 1) / len(rows) if rank else spectrum.values[:0]
    whitened = (rows - moments.mean) @ spectrum.vectors[:, len(spectrum.values) - rank :]
    whitened /= np.sqrt(values)
    gram = whitened @ whitened.T
    return float((gram**2 * gram).mean())
