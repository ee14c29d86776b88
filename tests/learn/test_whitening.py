import warnings

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gridshift.errors import GridshiftError, RankDeficientWarning
from gridshift.learn.moments import EPS, Moments
from gridshift.learn.whitening import TRANSFORMS, fit_transform, fit_zca
from tests.learn.samples import correlated_rows, seeds, widths
from tests.reference.whiteners import (
    cholesky_whitener,
    distortion,
    pca_whitener,
    random_rotation,
)

names = st.sampled_from(sorted(TRANSFORMS))


@given(seeds, widths)
@settings(max_examples=40)
def test_zca_is_the_closest_whitener_to_the_identity(seed, width):
    """Proposition 1 of the paper: of all whiteners M S^(-1/2), M = I moves the outputs least."""
    y = correlated_rows(seed, width)
    zca = fit_zca(y)
    least = distortion(zca.whitener, y)
    rng = np.random.default_rng(seed)
    for _ in range(20):
        rotated = random_rotation(rng, width) @ zca.whitener
        assert distortion(rotated, y) > least * (1 - 1e-12)


@given(seeds, widths)
@settings(max_examples=40)
def test_small_rotations_away_from_zca_already_move_outputs_more(seed, width):
    """Random rotations are far from the identity; these probe the optimum itself."""
    y = correlated_rows(seed, width)
    zca = fit_zca(y)
    rng = np.random.default_rng(seed)
    skew = rng.normal(size=(width, width))
    skew -= skew.T
    eye = np.eye(width)
    small = 0.05 * skew / np.linalg.norm(skew)
    rotation = np.linalg.solve(eye + small, eye - small)  # Cayley: orthogonal for any skew matrix
    assert distortion(rotation @ zca.whitener, y) > distortion(zca.whitener, y) * (1 - 1e-12)


@given(seeds, widths)
@settings(max_examples=40)
def test_pca_and_cholesky_whitening_move_outputs_more_than_zca(seed, width):
    y = correlated_rows(seed, width)
    covariance = Moments.of(y).covariance + EPS * np.eye(width)
    least = distortion(fit_zca(y).whitener, y)
    for other in (pca_whitener(covariance), cholesky_whitener(covariance)):
        np.testing.assert_allclose(other @ covariance @ other.T, np.eye(width), atol=1e-6)
        assert distortion(other, y) > least * (1 - 1e-12)


@given(names, seeds, widths)
def test_inverse_undoes_forward(name, seed, width):
    y = correlated_rows(seed, width)
    other = correlated_rows(seed + 1, width)
    transform = fit_transform(name, y)
    # round-off times the condition of the whitener, which is at most ~1e4 for these samples
    np.testing.assert_allclose(transform.inverse(transform.forward(other)), other, atol=1e-9)


@given(seeds, widths)
def test_transforms_match_the_moments_they_promise(seed, width):
    """Exactly, on the rows they were fitted on, up to the regularisation."""
    y = correlated_rows(seed, width)
    z = {name: fit_transform(name, y, eps=0.0).forward(y) for name in TRANSFORMS}
    np.testing.assert_array_equal(z["identity"], y)
    for name in ("residual", "zscore", "zca"):
        np.testing.assert_allclose(z[name].mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(z["residual"], y - y.mean(0))
    np.testing.assert_allclose(z["zscore"].std(0, ddof=1), 1)
    # without regularisation the small eigenvalues carry round-off relative to the largest one
    round_off = 100 * np.finfo(float).eps * np.linalg.cond(np.cov(y.T))
    np.testing.assert_allclose(np.cov(z["zca"].T), np.eye(width), atol=round_off)


@given(seeds, widths)
def test_the_regularisation_shrinks_the_whitened_variance_as_derived(seed, width):
    """Variance along eigenvector i is s_i / (s_i + eps)."""
    y, eps = correlated_rows(seed, width), 0.1
    zca = fit_transform("zca", y, eps=eps)
    values, vectors = np.linalg.eigh(np.cov(y.T))
    whitened = np.var(zca.forward(y) @ vectors, axis=0, ddof=1)
    np.testing.assert_allclose(whitened, values / (values + eps), rtol=1e-6)


@given(names, seeds, widths)
def test_the_inverse_folds_into_a_last_linear_layer(name, seed, width):
    rng = np.random.default_rng(seed)
    transform = fit_transform(name, correlated_rows(seed, width))
    weight, bias = rng.normal(size=(width, 5)), rng.normal(size=width)
    hidden = rng.normal(size=(7, 5))
    folded_weight, folded_bias = transform.fold_into_linear(weight, bias)
    explicit = transform.inverse(hidden @ weight.T + bias)
    np.testing.assert_allclose(hidden @ folded_weight.T + folded_bias, explicit, atol=1e-11)


@given(seeds, st.integers(2, 10))
def test_fewer_rows_than_outputs_warn_and_still_invert(seed, num_rows):
    width = 12
    y = correlated_rows(seed, width, num_rows)
    with pytest.warns(RankDeficientWarning, match=f"{num_rows} rows and {width} outputs has rank"):
        zca = fit_zca(y)
    assert zca.rank == num_rows - 1
    np.testing.assert_allclose(zca.inverse(zca.forward(y)), y, atol=1e-9)


def test_enough_rows_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_zca(correlated_rows(0, 12)).rank == 12


@given(names, seeds, widths)
def test_a_constant_output_stays_finite(name, seed, width):
    assume(width > 2)
    y = correlated_rows(seed, width)
    y[:, 1] = 1.02
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficientWarning)
        transform = fit_transform(name, y)
    z = transform.forward(y)
    assert np.isfinite(z).all()
    np.testing.assert_allclose(transform.inverse(z), y, atol=1e-9)


def test_an_unknown_transform_is_refused_with_the_roster():
    with pytest.raises(GridshiftError, match="identity, residual, zscore, zca"):
        fit_transform("pca", np.zeros((3, 2)))
