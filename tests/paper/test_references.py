"""Reference levels: the context's mean, and adaptation around exact solutions."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.learn.whitening import fit_transform
from gridshift_paper.protocol import GRIDS, SCALES, Experiment, context_mean

TINY = replace(SCALES["small"], num_steps=2, num_rows=150)
INTACT = Experiment(TINY)


def errors_on(outage: str, transform: str) -> tuple[float, float]:
    """Mean absolute errors of the perfect surrogate and of the context's mean."""
    there = Experiment(TINY, outage=outage)
    context, test = there.context(150), there.test(50)
    base = fit_transform(transform, there.training().y)
    predictions = there.perfect_icw(context, test, base), context_mean(context, test)
    perfect, mean = (float(np.abs(y_hat - test.y).mean()) for y_hat in predictions)
    return perfect, mean


def test_training_rows_are_those_that_a_surrogate_of_the_same_scale_saw():
    experiment = Experiment(TINY, seed=3)
    surrogate, rows = experiment.base(transform="zscore"), experiment.training()
    assert len(rows) == surrogate.record["num_rows"]
    np.testing.assert_allclose(surrogate.transform.forward(rows.y).mean(0), 0, atol=1e-9)
    assert experiment.config().num_rows == len(rows)


@pytest.mark.parametrize("transform", ["residual", "zscore", "zca"])
def test_perfect_surrogate_beats_the_mean_of_the_context(transform: str):
    perfect, mean = errors_on(GRIDS["case30"].single, transform)
    assert perfect < mean / 2  # one to four times 1e-4 .. 1e-3 against 3e-3


def test_perfect_surrogate_with_the_moments_of_its_own_rows_is_exact_on_the_intact_grid():
    rows, test = INTACT.training(), INTACT.test(20)
    base = fit_transform("zca", rows.y)
    y_hat = INTACT.perfect_icw(rows, test, base)
    # W^-1 W is the identity up to the condition of the covariance, 1e6 with eps 1e-6
    np.testing.assert_allclose(y_hat, test.y, atol=1e-8)


def test_row_without_a_solution_on_the_intact_grid_is_nan():
    rows, test = INTACT.training(), INTACT.test(3)
    x = test.x.copy()
    x[1, test.layout.x_slices["p_load"]] *= 100
    y_hat = INTACT.perfect_icw(rows, replace(test, x=x), fit_transform("residual", rows.y))
    assert np.isnan(y_hat).all(1).tolist() == [False, True, False]


def test_mean_of_the_context_ignores_the_inputs():
    there = Experiment(TINY, outage="line:9")
    context, test = there.context(10), there.test(4)
    y_hat = context_mean(context, test)
    assert y_hat.shape == test.y.shape
    np.testing.assert_array_equal(y_hat, context_mean(context, replace(test, x=test.x * 2)))
