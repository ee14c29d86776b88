import itertools

import numpy as np
import pytest
import scipy.linalg
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gridshift.errors import GridshiftError
from gridshift.learn.diagnostics import (
    log_euclidean_distance,
    mardia_skewness,
    marginal_skewness,
    median_bandwidth,
    mmd,
    mmd_by_coordinate,
    mmd_null_band,
    spectrum_deviation,
)
from tests.learn.samples import correlated_rows, seeds, widths


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def distance(p, q):
    return float(np.sqrt(sum((u - v) ** 2 for u, v in zip(p, q, strict=True))))


def slow_median(a, b):
    return np.median([distance(p, q) for p, q in itertools.combinations([*a, *b], 2)])


def slow_mean_kernel(a, b, bandwidth, *, skip_self=False):
    values = [
        np.exp(-(distance(p, q) ** 2) / (2 * bandwidth**2))
        for (i, p), (j, q) in itertools.product(enumerate(a), enumerate(b))
        if not (skip_self and i == j)
    ]
    return np.mean(values)


@given(seeds, widths)
@settings(max_examples=10)
def test_bandwidth_and_discrepancy_are_their_double_loops(seed, width):
    a, b = correlated_rows(seed, width, 9) + 50, correlated_rows(seed, width, 6) + 51
    h = slow_median(a, b)
    assert median_bandwidth(a, b) == pytest.approx(h)
    across = slow_mean_kernel(a, b, h)
    biased = slow_mean_kernel(a, a, h) + slow_mean_kernel(b, b, h) - 2 * across
    assert mmd(a, b) == pytest.approx(np.sqrt(biased))
    own = [slow_mean_kernel(rows, rows, h, skip_self=True) for rows in (a, b)]
    unbiased = sum(own) - 2 * across
    signed = mmd(a, b, unbiased=True)
    assert signed * abs(signed) == pytest.approx(unbiased, abs=1e-12)


def gaussian_mmd(mean, covariance, other_mean, other_covariance, h):
    """E k(x, y) of independent Gaussians is h^d |h^2 I + A + B|^(-1/2) exp(-m'(...)^-1 m / 2)."""

    def mean_kernel(difference, sum_covariance):
        matrix = np.eye(len(difference)) + sum_covariance / h**2
        exponent = difference @ np.linalg.solve(matrix, difference) / h**2
        return np.exp(-exponent / 2) / np.sqrt(np.linalg.det(matrix))

    zero = np.zeros_like(mean)
    squared = (
        mean_kernel(zero, 2 * covariance)
        + mean_kernel(zero, 2 * other_covariance)
        - 2 * mean_kernel(mean - other_mean, covariance + other_covariance)
    )
    return np.sqrt(squared)


@pytest.mark.parametrize("h", [0.7, 2.0])
def test_gaussian_samples_come_close_to_the_closed_form(rng, h):
    means = np.array([0.0, 1.0]), np.array([0.5, -0.5])
    covariances = np.array([[1.0, 0.4], [0.4, 0.5]]), np.array([[0.3, 0.0], [0.0, 2.0]])
    exact = gaussian_mmd(means[0], covariances[0], means[1], covariances[1], h)
    a, b = (rng.multivariate_normal(m, c, 2000) for m, c in zip(means, covariances, strict=True))
    # the standard deviation of MMD^2 is below 2 sqrt(2 / N) MMD, so 0.03 of MMD is one of them
    assert mmd(a, b, bandwidth=h, unbiased=True) == pytest.approx(exact, abs=0.05)


def test_samples_of_one_distribution_are_a_floor_apart_and_unbiased_is_zero_on_average(rng):
    num, values = 200, []
    for _ in range(40):
        a, b = rng.normal(size=(2, num, 5))
        values.append([mmd(a, b, bandwidth=3.0), mmd(a, b, bandwidth=3.0, unbiased=True)])
    biased, unbiased = np.transpose(values)
    mean_kernel = (1 + 2 / 3.0**2) ** -2.5
    floor = np.sqrt(2 * (1 - mean_kernel) / num)
    np.testing.assert_allclose(biased.mean(), floor, rtol=0.1)
    squared = unbiased * np.abs(unbiased)
    assert abs(squared.mean()) < 3 * squared.std() / np.sqrt(len(squared))
    assert 5 < (unbiased < 0).sum() < 35


def test_far_apart_samples_reach_what_two_points_would(rng):
    a = 1e-9 * rng.normal(size=(30, 3))
    assert mmd(a, a + 1, bandwidth=0.1) == pytest.approx(np.sqrt(2))
    # the median falls between the samples, as more than half of the pairs do: k is exp(-1/2)
    assert mmd(a, a + 1) == pytest.approx(np.sqrt(2 - 2 * np.exp(-0.5)), rel=1e-6)


def test_equal_samples_have_no_discrepancy(rng):
    a = rng.normal(size=(20, 3))
    assert mmd(a, a.copy()) == pytest.approx(0, abs=1e-7)  # the root of a round-off


def test_a_shift_of_everything_and_large_means_change_nothing(rng):
    a, b = rng.normal(size=(40, 3)), rng.normal(size=(50, 3)) + 0.3
    # 1e6 costs ten of sixteen digits of the rows themselves
    assert mmd(a + 1e6, b + 1e6) == pytest.approx(mmd(a, b), rel=1e-6)


def test_coincident_rows_take_the_median_of_what_is_apart():
    a, b = np.zeros((5, 2)), np.array([[0.0, 0.0], [3.0, 4.0]])
    assert median_bandwidth(a, b) == 5
    assert median_bandwidth(a, a) == 1
    assert mmd(a, a) == 0


def test_each_coordinate_is_measured_alone(rng):
    a, b = rng.normal(size=(30, 4)), rng.normal(size=(20, 4)) * [1, 2, 1, 1] + [0, 0, 1, 0]
    a[:, 3] = b[:, 3] = 0.5
    expected = [mmd(a[:, [i]], b[:, [i]]) for i in range(3)]
    np.testing.assert_allclose(mmd_by_coordinate(a, b), [*expected, 0.0])


def test_the_null_band_holds_equal_distributions_and_not_shifted_ones(rng):
    a, b = rng.normal(size=(200, 3)), rng.normal(size=(150, 3))
    band = mmd_null_band(a, b, 300, rng, 0.99)
    assert band.low < mmd(a, b) < band.high
    assert mmd(a, b + 0.5) > mmd_null_band(a, b + 0.5, 300, rng, 0.99).high


def test_the_null_band_is_that_of_shuffled_rows(rng):
    a, b = rng.normal(size=(20, 2)), rng.normal(size=(15, 2)) + 0.5
    pooled, slow = np.vstack([a, b]), []
    for _ in range(500):
        shuffled = rng.permutation(pooled)
        slow.append(mmd(shuffled[:20], shuffled[20:]))
    band = mmd_null_band(a, b, 2000, rng, 0.5)
    # quartiles of 500 draws are known to about 5 % of their distance
    np.testing.assert_allclose([band.low, band.high], np.quantile(slow, [0.25, 0.75]), rtol=0.05)


@pytest.mark.parametrize("shape", [(5, 2), (1, 3), (3,)])
def test_samples_that_do_not_fit_together_are_refused(shape):
    with pytest.raises(GridshiftError, match="two rows or more"):
        mmd(np.zeros((5, 3)), np.zeros(shape))


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, np.nan])
def test_a_bandwidth_that_is_not_positive_is_refused(bandwidth):
    with pytest.raises(GridshiftError, match="positive"):
        mmd(np.zeros((5, 3)), np.ones((5, 3)), bandwidth=bandwidth)


@given(seeds, widths)
@settings(max_examples=20)
def test_the_log_euclidean_distance_is_that_of_scipys_logarithms(seed, width):
    a, b = (np.cov(correlated_rows(s, width).T) for s in (seed, seed + 1))
    eye = 1e-6 * np.eye(width)
    slow = scipy.linalg.norm(scipy.linalg.logm(a + eye) - scipy.linalg.logm(b + eye))
    # conditions up to 1e5 cost digits in scipy's general algorithm
    assert log_euclidean_distance(a, b) == pytest.approx(slow, rel=1e-6)


def test_the_log_euclidean_distance_of_a_missing_direction_is_finite():
    a, b = np.diag([1.0, 0.0]), np.diag([1.0, 1.0])
    assert log_euclidean_distance(a, b, 1e-4) == pytest.approx(np.log(10_001))


def test_eigenvalues_are_compared_in_order_of_size():
    deviation = spectrum_deviation(np.array([0.5, 4.0, 1.1]), np.array([1.0, 5.0, 1e-20]))
    np.testing.assert_allclose(deviation, [-0.2, 0.1, np.nan])


@given(seeds)
def test_marginal_skewness_is_scipys(seed):
    rows = np.random.default_rng(seed).gamma(2, size=(30, 3)) + 100
    np.testing.assert_allclose(marginal_skewness(rows), scipy.stats.skew(rows), atol=1e-9)


def test_a_constant_coordinate_has_no_skewness(rng):
    rows = np.column_stack([np.full(10, 1.02), rng.gamma(2, size=10)])
    assert marginal_skewness(rows)[0] == 0
    assert marginal_skewness(rows)[1] != 0


def slow_mardia(rows):
    """Mardia 1970, equation 2.19: mean over pairs of ((x - m)' S^-1 (y - m))^3, S over N."""
    centred = rows - rows.mean(0)
    inverse = np.linalg.inv(centred.T @ centred / len(rows))
    return np.mean([(p @ inverse @ q) ** 3 for p in centred for q in centred])


@given(seeds, st.integers(1, 4))
@settings(max_examples=10)
def test_mardias_skewness_is_its_definition(seed, width):
    rows = np.random.default_rng(seed).gamma(2, size=(25, width))
    assert mardia_skewness(rows) == pytest.approx(slow_mardia(rows))


def test_in_one_dimension_it_is_the_square_of_the_skewness(rng):
    rows = rng.gamma(2, size=(50, 1))
    assert mardia_skewness(rows) == pytest.approx(scipy.stats.skew(rows)[0] ** 2)


@given(seeds, st.integers(2, 6))
@settings(max_examples=30)
def test_no_affine_map_changes_mardias_skewness(seed, width):
    """Why a third moment can't be matched by anything affine after the whitening."""
    rng = np.random.default_rng(seed)
    rows = rng.gamma(2, size=(60, width))
    q = np.linalg.qr(rng.normal(size=(width, width)))[0]
    matrix = q * 10 ** rng.uniform(-2, 2, width)
    # conditions of 1e4 on the map, 1e8 on the covariance, leave half of the digits
    moved = rows @ matrix.T + rng.normal(size=width)
    assert mardia_skewness(moved) == pytest.approx(mardia_skewness(rows), rel=1e-6)


def test_mardias_skewness_lives_in_the_rank_of_the_sample(rng):
    rows = rng.gamma(2, size=(60, 3))
    tied = np.hstack([rows, rows @ rng.normal(size=(3, 2)), np.full((60, 1), 1.02)])
    assert mardia_skewness(tied) == pytest.approx(mardia_skewness(rows), rel=1e-8)
    assert mardia_skewness(np.ones((5, 2))) == 0


def test_a_normal_sample_has_the_expected_mardia_skewness(rng):
    num, width = 400, 5
    values = [mardia_skewness(rng.normal(size=(num, width))) for _ in range(30)]
    # N b / 6 is chi-squared with 35 degrees: standard deviation 0.24 of the mean, /sqrt(30) 0.044
    assert np.mean(values) == pytest.approx(width * (width + 1) * (width + 2) / num, rel=0.12)
