import numpy as np
import pytest

from gridshift.learn.moments import EPS
from gridshift.learn.paired import correlation_shrinkage, fit_shrunk_zca, paired
from gridshift.learn.whitening import fit_residual, fit_zca, fit_zscore


def square_root(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return vectors * np.sqrt(values) @ vectors.T


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def plain_zca(y, *, eps=EPS):
    return fit_shrunk_zca(y, eps=eps, shrinkage=0.0)


def test_paired_moments_are_their_formula(rng):
    """Baselines, section 9.1: mean(Y) + S(Y)^1/2 S(F)^-1/2 (F(x) - mean F)."""
    base_rows, f, z = (rng.normal(size=(n, 4)) for n in (200, 30, 5))
    y = f @ rng.normal(size=(4, 4)) + 3.0
    base = fit_zca(base_rows)
    transform = paired(base, plain_zca(f), plain_zca(y))
    eye = EPS * np.eye(4)
    map_ = square_root(np.cov(y.T) + eye) @ np.linalg.inv(square_root(np.cov(f.T) + eye))
    expected = y.mean(0) + (base.inverse(z) - f.mean(0)) @ map_.T
    np.testing.assert_allclose(transform.inverse(z), expected, atol=1e-8)
    np.testing.assert_allclose(transform.forward(transform.inverse(z)), z, atol=1e-6)


@pytest.mark.parametrize("fit", [plain_zca, fit_zscore, fit_residual])
@pytest.mark.parametrize("fit_base", [fit_zca, fit_zscore])
def test_nothing_changes_where_nothing_has_shifted(rng, fit, fit_base):
    """Y = F, whatever the rows of the context: sampling noise cancels."""
    base = fit_base(rng.normal(size=(200, 6)))
    f, z = rng.normal(size=(5, 6)), rng.normal(size=(9, 6))
    unmoved = paired(base, fit(f), fit(f))
    # with fewer rows than outputs, products of square roots of 1e-6 and of 1e6
    np.testing.assert_allclose(unmoved.inverse(z), base.inverse(z), atol=1e-7)


def test_without_shrinkage_it_is_zca(rng):
    y = rng.normal(size=(50, 5)) @ rng.normal(size=(5, 5))
    np.testing.assert_allclose(plain_zca(y).whitener, fit_zca(y).whitener, rtol=1e-9)


def test_shrinkage_keeps_variances_and_is_the_same_in_any_units(rng):
    y = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    units = np.array([1, 1e-3, 10, 1, 100.0])
    assert correlation_shrinkage(y * units) == pytest.approx(correlation_shrinkage(y))
    shrunk = fit_shrunk_zca(y, eps=0.0, shrinkage=0.3)
    covariance = shrunk.unwhitener @ shrunk.unwhitener.T
    expected = 0.7 * np.cov(y.T) + 0.3 * np.diag(y.var(0, ddof=1))
    np.testing.assert_allclose(covariance, expected, rtol=1e-9)


def test_the_share_is_that_of_schafer_and_strimmer_by_loops(rng):
    y = rng.normal(size=(12, 4)) @ rng.normal(size=(4, 4))
    z = (y - y.mean(0)) / y.std(0, ddof=1)
    n, above, below = len(z), 0.0, 0.0
    for i in range(4):
        for j in range(4):
            if i != j:
                w = z[:, i] * z[:, j]
                above += n / (n - 1) ** 3 * np.square(w - w.mean()).sum()
                below += (n / (n - 1) * w.mean()) ** 2
    assert correlation_shrinkage(y) == pytest.approx(min(1.0, above / below))


def test_independent_columns_are_shrunk_and_tied_ones_are_not(rng):
    assert correlation_shrinkage(rng.normal(size=(30, 20))) > 0.8
    assert (
        correlation_shrinkage(rng.normal(size=(3000, 1)) + 0.1 * rng.normal(size=(3000, 5))) < 0.01
    )
