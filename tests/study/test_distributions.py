"""Distributions against closed forms and against numbers drawn by numpy's own generators."""

import math

import numpy as np
import pytest
from scipy import stats

from gridshift.study.description import UncertaintyError, key_text
from gridshift.study.distributions import (
    DISTRIBUTIONS,
    Beta,
    Empirical,
    Fixed,
    Lognormal,
    Normal,
    TruncatedNormal,
    Uniform,
)

NUM = 200_000
U = (np.arange(NUM) + 0.5) / NUM
"""Midpoints: means over them are integrals over the quantile function."""


def _drawn(name: str) -> np.ndarray:
    """The same distribution as numpy draws it."""
    rng = np.random.default_rng(5)
    normal = 1 + 0.3 * rng.standard_normal(4 * NUM)
    return {
        "uniform": rng.uniform(0.7, 1.4, NUM),
        "normal": rng.normal(1.0, 0.1, NUM),
        "truncated_normal": normal[(normal > 0.5) & (normal < 1.2)][:NUM],
        "lognormal": rng.lognormal(math.log(2) - math.log(1.25) / 2, math.log(1.25) ** 0.5, NUM),
        "beta": 0.1 + 0.8 * rng.beta(2, 5, NUM),
        "empirical": rng.choice([0.9, 1.0, 1.0, 1.3], NUM),
    }[name]


MADE = {
    "uniform": Uniform(low=0.7, high=1.4),
    "normal": Normal(sd=0.1),
    "truncated_normal": TruncatedNormal(sd=0.3, low=0.5, high=1.2),
    "lognormal": Lognormal(mean=2, sd=1),
    "beta": Beta(a=2, b=5, low=0.1, high=0.9),
    "empirical": Empirical(values=(1.3, 1.0, 0.9, 1.0)),
}


@pytest.mark.parametrize("name", MADE)
def test_a_distribution_is_the_one_that_numpy_draws(name):
    found, drawn = MADE[name].quantiles(U), _drawn(name)
    # both samples have 200 000 values: the two-sample Kolmogorov distance has its 1e-6 quantile
    # at 2.69 * sqrt(2 / 200 000) = 0.0085
    assert stats.ks_2samp(found, drawn).statistic < 0.0085
    # standard errors of a mean and a deviation are 0.0022 of the deviation: five of those
    assert found.mean() == pytest.approx(drawn.mean(), abs=0.011 * drawn.std())
    assert found.std() == pytest.approx(drawn.std(), rel=0.02)


def test_a_lognormal_factor_has_the_mean_and_deviation_asked_for():
    found = Lognormal(mean=1, sd=0.3).quantiles(U)
    # the midpoint rule loses the tail beyond 1 - 2.5e-6
    assert found.mean() == pytest.approx(1, abs=1e-4)
    assert found.std() == pytest.approx(0.3, rel=1e-3)


def test_a_fixed_factor_is_itself():
    np.testing.assert_array_equal(Fixed(value=0.8).quantiles(U[:4]), [0.8] * 4)


def test_every_kind_but_fixed_is_checked_here():
    assert {"fixed", *MADE} == {*DISTRIBUTIONS}


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("uniform", {"low": 1.2, "high": 0.8}, "high: 0.8 must be greater than low, which is 1.2"),
        ("normal", {"sd": 0}, "sd: 0 must be greater than 0"),
        ("normal", {"sd": "wide"}, "sd: 'wide' is no finite number"),
        ("normal", {"sd": True}, "sd: True is no finite number"),
        ("lognormal", {"sd": 0.1, "mean": -1}, "mean: -1 must"),
        ("truncated_normal", {"sd": 0.1, "low": 1, "high": 1}, "high: 1 must"),
        ("beta", {"a": float("nan"), "b": 1}, "a: nan is no finite number"),
        ("empirical", {"values": []}, r"values: \[\]; give a list"),
        ("empirical", {"values": [1.0, float("inf")]}, "values: inf is no finite number"),
    ],
)
def test_parameters_that_mean_nothing_are_named(kind, given, told):
    with pytest.raises(UncertaintyError, match=told):
        DISTRIBUTIONS[kind](**given)


def test_a_key_counts_from_one():
    assert key_text(("loads", "group", 1, "sd")) == "loads.group[2].sd"
