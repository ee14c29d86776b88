import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from gridshift.learn.third_moment import (
    STEEPEST,
    CornishFisher,
    SinhArcsinh,
    fit_cornish_fisher,
    fit_sinh_arcsinh,
    fit_zca_sas,
)
from gridshift.learn.whitening import fit_zca
from tests.learn.samples import correlated_rows, seeds, widths


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def skewed_rows(rng, num_rows=2000):
    """Unit variance, skewness from -0.9 to 1.4: gamma distributions and mirrored ones."""
    shape = np.array([2.0, 5.0, 20.0, 200.0])
    rows = (rng.gamma(shape, size=(num_rows, 4)) - shape) / np.sqrt(shape)
    return rows * [1, -1, 1, -1]


@given(seeds, st.floats(-STEEPEST, STEEPEST))
def test_the_inverse_undoes_the_map_however_steep(seed, skew):
    z = np.random.default_rng(seed).normal(size=(50, 3)) * [0.01, 1, 30]
    sas = SinhArcsinh(skew=np.array([skew, -skew, skew]))
    # round-off of arcsinh, at most 10 here, times the slope of sinh, which is about |z|
    np.testing.assert_allclose(sas.inverse(sas.forward(z)), z, rtol=1e-13, atol=1e-14)


@given(st.floats(-STEEPEST, STEEPEST))
def test_the_map_rises_everywhere_with_the_derivative_of_the_paper(skew):
    z = np.linspace(-20, 20, 401)[:, None]
    sas = SinhArcsinh(skew=np.array([skew]))
    assert (np.diff(sas.forward(z), axis=0) > 0).all()
    paper = np.cosh(skew) - np.sinh(skew) * z / np.sqrt(z**2 + 1)
    step = 1e-5  # central differences err by step^2 times the third derivative, below 20 here
    numeric = (sas.forward(z + step) - sas.forward(z - step)) / (2 * step)
    np.testing.assert_allclose(paper, numeric, atol=1e-8)


def test_the_fitted_map_takes_the_skewness_out(rng):
    z = skewed_rows(rng)
    before, after = (scipy.stats.skew(v) for v in (z, fit_sinh_arcsinh(z).forward(z)))
    assert (np.abs(before) > 0.1).all()
    np.testing.assert_allclose(after, 0, atol=1e-12)


def test_the_fitted_map_is_the_one_root_that_a_root_finder_meets(rng):
    z = skewed_rows(rng, 300)
    fitted = fit_sinh_arcsinh(z).skew
    for column, skew in zip(z.T, fitted, strict=True):
        root = scipy.optimize.brentq(
            lambda e, column=column: scipy.stats.skew(np.sinh(np.arcsinh(column) - e)), -2, 2
        )
        assert skew == pytest.approx(root, abs=1e-10)  # brentq stops at 2e-12


@given(seeds)
@settings(max_examples=20)
def test_skewness_falls_with_e_so_that_bisection_is_sure(seed):
    column = np.random.default_rng(seed).standard_t(3, size=(40, 1))
    steps = np.linspace(-STEEPEST, STEEPEST, 30)
    skewness = [scipy.stats.skew(np.sinh(np.arcsinh(column[:, 0]) - e)) for e in steps]
    assert (np.diff(skewness) < 1e-12).all()


def test_a_constant_coordinate_is_left_alone(rng):
    z = np.column_stack([rng.normal(size=50), np.full(50, 0.3), 1e-12 * rng.normal(size=50)])
    sas = fit_sinh_arcsinh(z)
    assert sas.skew[0] != 0
    np.testing.assert_array_equal(sas.skew[1:], 0)
    np.testing.assert_allclose(sas.forward(z)[:, 1:], z[:, 1:], rtol=1e-15)


def test_skewness_beyond_reach_ends_at_the_bracket_and_still_inverts(rng):
    narrow = 1e-3 * (rng.exponential(size=(400, 1)) - 1)
    z = np.hstack([narrow, -narrow])
    sas = fit_sinh_arcsinh(z)
    np.testing.assert_allclose(sas.skew, [STEEPEST, -STEEPEST])
    np.testing.assert_allclose(sas.inverse(sas.forward(z)), z, atol=1e-14)


def test_cornish_fisher_sends_two_and_four_to_the_same_image():
    """The paper's example: skewness 1, fold at 3, image 1.5."""
    parabola = CornishFisher(skewness=np.array([1.0]))
    np.testing.assert_allclose(parabola.fold, 3)
    np.testing.assert_allclose(parabola.forward(np.array([[2.0], [4.0]])), 1.5)
    np.testing.assert_allclose(parabola.inverse(np.array([[1.5]])), 2.0)
    np.testing.assert_array_equal(parabola.folded(np.array([[2.0], [4.0]])), [[False], [True]])


@given(seeds, st.floats(-2, 2))
def test_cornish_fisher_inverts_up_to_its_fold_and_mirrors_beyond(seed, skewness):
    z = np.random.default_rng(seed).normal(scale=2, size=(100, 1))
    parabola = CornishFisher(skewness=np.array([skewness]))
    back, beyond = parabola.inverse(parabola.forward(z)), parabola.folded(z)
    # next to the fold the root of a round-off of 1e-16 is left, times the fold's place
    np.testing.assert_allclose(back[~beyond], z[~beyond], atol=1e-6)
    if beyond.any():
        mirrored = 2 * parabola.fold[0] - z[beyond]
        np.testing.assert_allclose(back[beyond], mirrored, atol=1e-6)


def test_cornish_fisher_gives_its_fold_for_images_out_of_reach():
    parabola = CornishFisher(skewness=np.array([1.0, -1.0, 0.0]))
    np.testing.assert_allclose(parabola.inverse(np.array([[9.0, -9.0, 9.0]])), [[3.0, -3.0, 9.0]])


def test_cornish_fisher_removes_most_of_a_small_skewness(rng):
    z = rng.gamma(50, size=(20_000, 1))
    z = (z - z.mean()) / z.std()
    assert scipy.stats.skew(z)[0] > 0.2
    after = scipy.stats.skew(fit_cornish_fisher(z).forward(z))[0]
    assert abs(after) < 0.05  # terms of second order in the skewness of 0.28 stay


@given(seeds, widths)
@settings(max_examples=20)
def test_the_corrected_zca_is_zca_without_marginal_skewness_and_inverts(seed, width):
    y = np.exp(0.3 * correlated_rows(seed, width) / width)
    transform = fit_zca_sas(y)
    z = transform.forward(y)
    reached = np.abs(transform.skew) < STEEPEST - 1e-9
    np.testing.assert_allclose(scipy.stats.skew(z)[reached], 0, atol=1e-9)
    np.testing.assert_allclose(transform.inverse(z), y, rtol=1e-10)
    zca = fit_zca(y)
    np.testing.assert_array_equal(transform.whitening.whitener, zca.whitener)
    assert transform.numbers() == zca.numbers() | {"name": "zca-sas"}
    assert transform.arrays().keys() == zca.arrays().keys() | {"skew"}
    assert transform.eps == zca.eps
