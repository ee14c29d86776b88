"""Error bars hold at the rate they promise, checked against closed forms and plain counting."""

from math import ceil

import numpy as np
import pytest

from gridshift.errors import ContextError
from gridshift.learn.conformal import (
    calibrate,
    conformal_quantile,
    distance,
    fewest_rows,
    jackknife_plus,
    quantile_rank,
)

ALL = {"all": slice(0, None)}


@pytest.mark.parametrize(("n", "level"), [(9, 0.9), (20, 0.8), (50, 0.95), (399, 0.5)])
def test_the_quantile_is_the_score_of_the_finite_sample_rank(n, level):
    scores = np.random.default_rng(0).permutation(n).astype(float)[:, None] + 1
    assert conformal_quantile(scores, level) == [ceil(round((n + 1) * level, 9))]


def test_a_level_that_n_rows_cannot_promise_gives_an_infinite_width():
    assert quantile_rank(8, 0.9) == 9
    assert np.isinf(conformal_quantile(np.ones((8, 3)), 0.9)).all()
    assert np.isfinite(conformal_quantile(np.ones((9, 3)), 0.9)).all()


@pytest.mark.parametrize(("n", "level"), [(19, 0.9), (40, 0.8)])
def test_coverage_of_exchangeable_rows_is_rank_over_n_plus_1(n, level):
    """For continuous errors the rate is k / (n + 1) exactly, whatever their distribution."""
    rng = np.random.default_rng(1)
    repeats = 4000
    draws = rng.standard_cauchy((repeats, n + 1, 1))
    hits = [abs(d[n, 0]) <= calibrate(d[:n], level=level, groups=ALL).interval[0] for d in draws]
    rate = quantile_rank(n, level) / (n + 1)
    assert np.mean(hits) == pytest.approx(rate, abs=4 * np.sqrt(rate * (1 - rate) / repeats))


@pytest.mark.parametrize("normalised", [True, False])
def test_a_band_holds_for_all_entries_of_a_row_at_once(normalised):
    rng = np.random.default_rng(2)
    mixing = rng.standard_normal((12, 12)) * np.logspace(-3, 0, 12)
    hits = []
    for _ in range(800):
        error = rng.standard_normal((81, 12)) @ mixing
        bars = calibrate(error[:80], level=0.9, groups=ALL, normalised=normalised)
        hits.append((np.abs(error[80]) <= bars.band).all())
    n = 60 if normalised else 80
    rate = quantile_rank(n, 0.9) / (n + 1)
    assert np.mean(hits) == pytest.approx(rate, abs=4 * np.sqrt(0.09 / 800))


def test_a_normalised_band_is_narrower_where_errors_are_small():
    rng = np.random.default_rng(3)
    error = rng.standard_normal((400, 2)) * [1e-4, 1.0]
    plain = calibrate(error, groups=ALL, normalised=False)
    scaled = calibrate(error, groups=ALL)
    assert plain.band[0] == plain.band[1]
    assert scaled.band[0] < 1e-3 * scaled.band[1]


def test_a_difficulty_restores_the_rate_on_rows_that_are_drawn_harder():
    rng = np.random.default_rng(4)
    easy, hard = rng.uniform(1, 2, 2000), rng.uniform(3, 4, 2000)
    error, new = (d[:, None] * rng.standard_normal((2000, 1)) for d in (easy, hard))
    blind = calibrate(error, groups=ALL).coverage(new)["all"]["interval"]
    seeing = calibrate(error, groups=ALL, difficulty=easy)
    assert blind < 0.7
    # two binomial errors of 2000 rows, four standard deviations
    assert seeing.coverage(new, hard)["all"]["interval"] == pytest.approx(0.9, abs=0.04)


def test_coverage_counts_rows_within():
    bars = calibrate(np.linspace(0.01, 1, 99)[:, None] * [1, 2], groups={"a": slice(0, 1)})
    new = np.array([[0.5, 0], [2.0, 0], [0.1, 9], [0.2, 9]])
    assert bars.coverage(new) == {"a": {"interval": 0.75, "band": 0.75}}
    assert np.isinf(bars.band[1])


def test_distance_ignores_inputs_that_never_vary():
    x = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert distance(x, np.array([2.0, 5.0]), np.array([0.5, 0.0])).tolist() == [2.0, 2.0]
    assert distance(x, np.zeros(2), np.zeros(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("options", [{"level": 1.0}, {"level": 0.0}, {"difficulty": np.zeros(3)}])
def test_what_makes_no_error_bars_is_refused(options):
    with pytest.raises(ContextError):
        calibrate(np.ones((3, 1)), groups=ALL, **options)
    with pytest.raises(ContextError):
        calibrate(np.ones((1, 1)), groups=ALL)


def left_out_fits(x, y):
    """Errors and predictors of the least-squares lines without each row."""

    def line(keep):
        one = np.hstack([x[keep], np.ones((len(x[keep]), 1))])
        weight = np.linalg.lstsq(one, y[keep], rcond=None)[0]
        return lambda new: np.hstack([new, np.ones((len(new), 1))]) @ weight

    fits = [line(np.arange(len(x)) != i) for i in range(len(x))]
    error = np.concatenate([fit(x[[i]]) - y[[i]] for i, fit in enumerate(fits)])
    return error, fits


@pytest.mark.parametrize(("num_rows", "level"), [(10, 0.9), (19, 0.9), (12, 0.8)])
def test_ten_rows_left_out_in_turn_hold_at_the_level_over_many_draws(num_rows, level):
    """Barber et al. 2021 prove 2 level - 1; of a line through noise it is about the level."""
    rng, covered, whole = np.random.default_rng(0), [], []
    for _ in range(400):
        x = rng.normal(size=(num_rows + 20, 2))
        y = x @ rng.normal(size=(2, 3)) + rng.normal(size=(len(x), 3)) * [1, 10, 0.1]
        error, fits = left_out_fits(x[:num_rows], y[:num_rows])
        bounds = jackknife_plus(error, fits, x[num_rows:], level=level, groups={"all": slice(None)})
        found = bounds.coverage(y[num_rows:])["all"]
        covered.append(found["interval"])
        whole.append(found["band"])
    # standard error of the mean of 400 draws, each scattering by about 0.1: 0.005
    assert level - 0.02 < np.mean(covered) < level + 0.1
    assert level - 0.05 < np.mean(whole)


def test_a_band_of_many_entries_holds_if_its_proportions_come_from_fits_that_never_saw_the_row():
    """A row far out bends the fits to itself, and then looks small beside errors of the others."""
    rng, unseen, seen, level = np.random.default_rng(0), [], [], 0.9
    groups = {"all": slice(None)}
    for _ in range(100):
        x = rng.standard_t(2, size=(40, 2))
        y = (x**2) @ rng.normal(size=(2, 60)) + rng.normal(size=(40, 60))
        rows, new = slice(0, 10), slice(10, None)
        error, fits = left_out_fits(x[rows], y[rows])
        others = [np.arange(10) != i for i in range(10)]
        scale = [np.abs(left_out_fits(x[rows][o], y[rows][o])[0]).mean(0) for o in others]
        for found, own in ((unseen, np.stack(scale)), (seen, None)):
            bounds = jackknife_plus(error, fits, x[new], level=level, groups=groups, scale=own)
            found.append(bounds.coverage(y[new])["all"]["band"])
    # 100 draws that scatter by 0.15 each: a standard error of 0.015
    assert np.mean(seen) < level - 0.03
    assert np.mean(unseen) > level - 0.03


def test_bounds_are_order_statistics_of_predictions_plus_and_minus_left_out_errors():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(9, 1)), rng.normal(size=(9, 2))
    error, fits = left_out_fits(x, y)
    new = rng.normal(size=(70, 1))
    bounds = jackknife_plus(error, fits, new, level=0.8, groups={"all": slice(None)})
    y_hat = np.stack([fit(new) for fit in fits])
    high = np.sort(y_hat + np.abs(error)[:, None], 0)[7]  # rank ceil(10 * 0.8) of 9
    low = np.sort(y_hat - np.abs(error)[:, None], 0)[1]  # the second smallest
    np.testing.assert_allclose(bounds.interval, (low, high))


@pytest.mark.parametrize(("level", "fewest"), [(0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99)])
def test_the_fewest_rows_of_a_level_are_those_with_a_finite_width(level, fewest):
    assert fewest_rows(level) == fewest
    scores = np.arange(1.0, fewest + 1)
    assert np.isfinite(conformal_quantile(scores, level))
    assert np.isinf(conformal_quantile(scores[1:], level))
    few = np.ones((fewest - 1, 1))
    with pytest.raises(ContextError, match=f"at least {fewest} solved cases"):
        jackknife_plus(few, [np.zeros] * len(few), few, level=level, groups={})
