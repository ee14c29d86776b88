import numpy as np
import pytest

from gridshift.learn.recalibration import CORRECTIONS, choose_correction


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def shifted(rng, num, truth):
    prediction = rng.normal(size=(num, 3)) * [1, 0.1, 0.01]
    return truth(prediction) + 1e-3 * rng.normal(size=(num, 3)) * [1, 0.1, 0.01], prediction


TRUTHS = {
    "none": lambda r: r,
    "mean": lambda r: r + 0.5,
    "scale": lambda r: r * [1.5, 0.5, 2.0] + 0.1,
    "ridge": lambda r: r @ np.array([[1, 0.1, 0], [0.4, 1, 0.1], [5, 0.0, 1]]),
}


@pytest.mark.parametrize("kind", TRUTHS)
def test_the_choice_is_the_correction_that_the_truth_needs(rng, kind):
    y, prediction = shifted(rng, 200, TRUTHS[kind])
    choice = choose_correction(y, prediction)
    assert choice.correction.name == kind
    new_y, new = shifted(rng, 100, TRUTHS[kind])
    # the noise that no correction can remove has deviations of 1e-3, 1e-4, 1e-5
    assert (np.abs(choice.correction.apply(new) - new_y).mean(0) < [1.5e-3, 1.5e-4, 1.5e-5]).all()


@pytest.mark.parametrize("name", ["mean", "scale"])
def test_left_out_errors_are_those_of_fits_without_the_row(rng, name):
    y, prediction = shifted(rng, 12, TRUTHS["ridge"])
    whole = CORRECTIONS[name](y, prediction)
    for i in range(12):
        others = np.arange(12) != i
        refit = CORRECTIONS[name](y[others], prediction[others])
        expected = y[i] - refit.apply(prediction[i : i + 1])[0]
        np.testing.assert_allclose(whole.left_out[i], expected, atol=1e-12)


def test_a_few_extreme_rows_are_no_reason_to_correct(rng):
    """A mean that two rows of a heavy tail carry is not a shift."""
    y, prediction = shifted(rng, 100, TRUTHS["none"])
    y[:2] += 30.0
    assert choose_correction(y, prediction).correction.name == "none"


def test_what_only_rows_far_out_gain_is_no_reason_to_correct(rng):
    """The far half is shifted by 0.5, the near half is predicted exactly: moving all would hurt."""
    y, prediction = shifted(rng, 400, TRUTHS["none"])
    far = np.abs(prediction).mean(1) > np.median(np.abs(prediction).mean(1))
    y[far] += 0.5
    assert choose_correction(y, prediction, ("mean",)).correction.name == "none"


@pytest.mark.parametrize("num", [2, 3, 4, 6])
def test_few_rows_give_a_finite_correction(rng, num):
    y, prediction = shifted(rng, num, TRUTHS["mean"])
    assert np.isfinite(choose_correction(y, prediction).correction.apply(prediction)).all()


def test_without_a_shift_the_prediction_stays_bit_for_bit(rng):
    y, prediction = shifted(rng, 50, TRUTHS["none"])
    choice = choose_correction(y, prediction)
    assert np.array_equal(choice.correction.apply(prediction), prediction)
    assert set(choice.left_out_mae) == set(CORRECTIONS)
