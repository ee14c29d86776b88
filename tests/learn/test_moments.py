import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from sklearn.covariance import empirical_covariance

from gridshift.learn.moments import EPS, Moments, Spectrum, inverse_square_root
from tests.learn.samples import correlated_rows, seeds, widths


@given(seeds, widths)
def test_the_covariance_is_scikit_learns_with_n_minus_one(seed, width):
    y = correlated_rows(seed, width)
    moments = Moments.of(y)
    biased = empirical_covariance(y)
    np.testing.assert_allclose(moments.covariance, biased * len(y) / (len(y) - 1), rtol=1e-9)


@given(seeds, widths)
@settings(max_examples=20)
def test_the_inverse_square_root_is_scipys_general_matrix_power(seed, width):
    covariance = Moments.of(correlated_rows(seed, width)).covariance
    slow = scipy.linalg.fractional_matrix_power(covariance + EPS * np.eye(width), -0.5)
    scale = np.abs(slow).max()
    # relative to the largest entry: both go through factorisations with condition up to ~1e5
    np.testing.assert_allclose(inverse_square_root(covariance), slow, atol=1e-8 * scale)


def test_rank_counts_independent_columns():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 8))
    spectrum = Moments.of(y).spectrum
    assert spectrum.rank == 3
    assert spectrum.effective_rank() == 3


def test_effective_rank_ignores_directions_that_the_regularisation_drowns():
    spectrum = Spectrum.of(np.diag([1.0, 1e-3, 1e-9]))
    assert spectrum.rank == 3
    assert spectrum.effective_rank(1e-6) == 2


def test_no_sample_has_moments_with_one_row():
    with pytest.raises(ValueError, match="at least 2 rows"):
        Moments.of(np.zeros((1, 3)))
