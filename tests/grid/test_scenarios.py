"""Load scenarios: named streams and the paper's spreads."""

import numpy as np
import pytest

from gridshift.errors import ScenarioError
from gridshift.grid.scenarios import named_rng, nominal_loads, sample_loads


def _factors(network, loads):
    drawn = np.concatenate([loads.load_p, loads.load_q], 1)
    base = np.concatenate([network.load_power.real, network.load_power.imag])
    return drawn[:, base != 0] / base[base != 0]


def test_a_stream_belongs_to_its_name():
    def first(*args, **kwargs):
        return named_rng(*args, **kwargs).random()

    name = {"outage": "line:9", "draw": 1, "seed": 2}
    assert first("case30", "context", **name) == first("case30", "context", **name)
    others = [
        first("case118", "context", **name),
        first("case30", "test", **name),
        first("case30", "context", **name | {"outage": "line:1"}),
        first("case30", "context", **name | {"draw": 2}),
        first("case30", "context", **name | {"seed": 3}),
    ]
    assert len({first("case30", "context", **name), *others}) == 6


def test_the_parts_of_a_stream_name_do_not_run_into_each_other():
    assert named_rng("a", "bc").random() != named_rng("ab", "c").random()


@pytest.mark.parametrize("regime", ["fixed", "drawn", "mixed"])
def test_factors_stay_within_the_spread_and_are_centred_on_one(case30, regime):
    factors = _factors(case30, sample_loads(case30, named_rng("t", "t"), 4000, regime=regime))
    assert np.abs(factors - 1).max() <= 0.2 + 1e-12
    # a mean of 4000 uniform draws of half width 0.2 has standard deviation 0.0018: five of those
    assert np.abs(factors.mean(0) - 1).max() < 0.01


@pytest.mark.parametrize(
    ("regime", "variance"),
    [
        ("fixed", 0.2**2 / 3),
        # E[s^2] for s uniform in [0.05, 0.2]
        ("drawn", (0.2**3 - 0.05**3) / (3 * 0.15) / 3),
        ("mixed", (0.2**2 + (0.2**3 - 0.05**3) / (3 * 0.15)) / 6),
    ],
)
def test_the_variance_is_that_of_the_spreads_distribution(case30, regime, variance):
    factors = _factors(case30, sample_loads(case30, named_rng("t", "t"), 4000, regime=regime))
    # 4000 rows of 37 factors: three standard deviations of the row widths' average are 3 %
    assert factors.var() == pytest.approx(variance, rel=0.03)


def test_half_of_mixed_rows_have_the_full_spread(case30):
    factors = _factors(case30, sample_loads(case30, named_rng("t", "t"), 1001, regime="mixed"))
    # with some 37 factors a row of full spread exceeds 0.16 almost surely (1 - 0.8^37)
    wide = (np.abs(factors - 1).max(1) > 0.16).mean()
    drawn_that_wide = 0.04 / 0.15
    assert wide == pytest.approx(0.5 + 0.5 * drawn_that_wide, abs=0.06)


def test_active_and_reactive_factors_are_independent(case30):
    loads = sample_loads(case30, named_rng("t", "t"), 4000, regime="fixed")
    both = np.flatnonzero((case30.load_power.real != 0) & (case30.load_power.imag != 0))[0]
    # 4000 pairs: the standard deviation of a correlation is 0.016
    assert abs(np.corrcoef(loads.load_p[:, both], loads.load_q[:, both])[0, 1]) < 0.06


def test_no_spread_gives_the_nominal_loads(case30):
    loads = sample_loads(case30, named_rng("t", "t"), 3, spread=0)
    np.testing.assert_array_equal(loads.load_power, nominal_loads(case30, 3).load_power)


@pytest.mark.parametrize(("spread", "rows"), [(-0.1, 3), (np.nan, 3), (np.inf, 3), (0.2, 0)])
def test_impossible_scenarios_are_refused(case30, spread, rows):
    with pytest.raises(ScenarioError):
        sample_loads(case30, named_rng("t", "t"), rows, spread=spread)


def test_chosen_rows_are_those_rows(case30):
    loads = sample_loads(case30, named_rng("t", "t"), 5)
    chosen = loads.rows(np.array([3, 1]))
    assert chosen.num_rows == 2
    np.testing.assert_array_equal(chosen.load_power, loads.load_power[[3, 1]])
