"""Points and their dependence, against closed forms of the Gaussian copula."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from gridshift.errors import GridshiftWarning
from gridshift.grid.scenarios import named_rng
from gridshift.study.description import UncertaintyError
from gridshift.study.sampling import Mixing, area_mixing, matrix_mixing, unit_points

NUM = 1 << 15
SAMPLINGS = ("random", "sobol", "latin_hypercube")


def _points(num_rows, num_columns, sampling="random", seed=0):
    return unit_points(
        num_rows, num_columns, sampling=sampling, rng=named_rng("t", "points", seed=seed)
    )


def rank_correlation(rho):
    """Spearman's, of a Gaussian copula of correlation rho (Kruskal 1958)."""
    return 6 / np.pi * np.arcsin(np.asarray(rho) / 2)


def spearman(u):
    return np.corrcoef(stats.rankdata(u, axis=0).T)


SIX_ERRORS = 6 / np.sqrt(NUM)
"""A rank correlation of NUM rows has a standard error below 1 / sqrt(NUM)."""


@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_points_are_uniform_in_every_coordinate_and_reproducible(sampling):
    u = _points(1024, 5, sampling)
    assert ((u > 0) & (u < 1)).all()
    # 1e-6 quantile of Kolmogorov's distance: 2.69 / sqrt(1024)
    assert max(stats.kstest(column, "uniform").statistic for column in u.T) < 2.69 / 32
    np.testing.assert_array_equal(u, _points(1024, 5, sampling))
    assert (u != _points(1024, 5, sampling, seed=1)).all()


@pytest.mark.parametrize("sampling", ["random", "sobol"])
def test_more_rows_begin_with_the_same_rows(sampling):
    np.testing.assert_array_equal(_points(64, 3, sampling), _points(256, 3, sampling)[:64])


def test_sobol_points_fill_the_cube_most_evenly():
    found = {name: qmc.discrepancy(_points(512, 6, name)) for name in SAMPLINGS}
    assert found["sobol"] < found["latin_hypercube"] < found["random"]
    assert found["sobol"] < found["random"] / 5


def test_a_latin_hypercube_has_one_point_in_each_slice():
    u = _points(100, 4, "latin_hypercube")
    assert (np.sort((u * 100).astype(int), axis=0) == np.arange(100)[:, None]).all()


def test_a_number_of_sobol_points_that_is_no_power_of_two_is_warned_of():
    with pytest.warns(GridshiftWarning, match="ask for 512 or 1,024"):
        _points(1000, 2, "sobol")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _points(1024, 2, "sobol")


def test_more_coordinates_than_sobol_has_are_refused():
    with pytest.raises(UncertaintyError, match="30,000 numbers vary"):
        _points(2, 30_000, "sobol")
    with pytest.raises(UncertaintyError, match="sampling: no sampling 'halton'; choose random"):
        _points(2, 2, "halton")


def test_scores_of_an_area_are_correlated_within_it_and_less_beyond():
    mixing = area_mixing(["n", "n", "s", "s", None], rho=0.7, between=0.3)
    u = mixing.mixed(_points(NUM, mixing.num_columns))
    rho = np.full((5, 5), 0.3)
    rho[:2, :2] = rho[2:4, 2:4] = 0.7
    rho[4] = rho[:, 4] = 0
    np.fill_diagonal(rho, 1)
    assert np.abs(spearman(u) - rank_correlation(rho)).max() < SIX_ERRORS
    assert max(stats.kstest(column, "uniform").statistic for column in u.T) < 2.69 / NUM**0.5


def test_one_common_factor_is_one_area():
    mixing = area_mixing(["all"] * 3, rho=0.5, between=0.5)
    assert len(mixing.weights) == 1
    np.testing.assert_allclose(mixing.weights, np.sqrt(0.5))


def test_full_correlation_moves_all_alike():
    mixing = area_mixing(["all"] * 3, rho=1)
    assert mixing.num_columns == 1
    u = mixing.mixed(_points(50, 1))
    np.testing.assert_allclose(u, u[:, :1].repeat(3, 1), atol=1e-12)  # rounding of ndtr(ndtri)


def test_a_matrix_gives_its_correlations():
    labels, rho = ("a", "c", "b"), np.array([[1, 0.8, -0.5], [0.8, 1, -0.2], [-0.5, -0.2, 1]])
    mixing = matrix_mixing(labels, rho, {"a": 0, "b": 1, "c": 2, "d": 3})
    u = mixing.mixed(_points(NUM, mixing.num_columns))
    expected = np.eye(4)
    expected[np.ix_([0, 2, 1], [0, 2, 1])] = rho
    assert np.abs(spearman(u) - rank_correlation(expected)).max() < SIX_ERRORS


def test_a_singular_matrix_is_a_correlation_too():
    mixing = matrix_mixing(("a", "b"), np.array([[1, -1.0], [-1, 1]]), {"a": 0, "b": 1})
    u = mixing.mixed(_points(100, mixing.num_columns))
    np.testing.assert_allclose(u[:, 0], 1 - u[:, 1], atol=1e-7)  # root of eigh's rounding


def test_without_correlation_points_stay_as_they_are():
    u = _points(10, 3)
    assert Mixing.none(3).mixed(u) is u


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ({(0, 2): 0.3}, "not symmetric: a with c has 0.3 and, the other way round, 0"),
        ({(1, 1): 0.9}, "the correlation of b with itself is 0.9; it must be 1"),
        ({(1, 2): 1.2, (2, 1): 1.2}, "b with c has 1.2; a correlation lies between -1 and 1"),
        ({(0, 1): np.nan}, "a with b has nan, no finite number"),
    ],
)
def test_the_wrong_pair_of_a_matrix_is_named(entries, told):
    matrix = np.eye(3)
    for at, value in entries.items():
        matrix[at] = value
    with pytest.raises(UncertaintyError, match=told):
        matrix_mixing(("a", "b", "c"), matrix, {"a": 0, "b": 1, "c": 2})


def test_of_correlations_that_exclude_each_other_the_odd_pair_is_named():
    matrix = np.full((5, 5), 0.9)
    np.fill_diagonal(matrix, 1)
    matrix[1, 3] = matrix[3, 1] = -0.5  # 2 * 0.9^2 - 1 = 0.62 is the least beside 0.9 and 0.9
    with pytest.raises(UncertaintyError, match=r"impossible .*: b with d has -0.5, and "):
        matrix_mixing("abcde", matrix, {label: row for row, label in enumerate("abcde")})


def test_a_matrix_of_another_size_is_refused():
    with pytest.raises(UncertaintyError, match="it is 2 x 2 and there are 3 elements"):
        matrix_mixing(("a", "b", "c"), np.eye(2), {"a": 0, "b": 1, "c": 2})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rho": 1.5}, "rho: 1.5 must be a correlation from 0 to 1"),
        ({"rho": 0.2, "between": 0.5}, "between: 0.5 must not be greater than rho"),
        ({"rho": float("nan")}, "rho: nan"),
    ],
)
def test_impossible_correlations_of_areas_are_refused(given, told):
    with pytest.raises(UncertaintyError, match=told):
        area_mixing(["n"], **given)
