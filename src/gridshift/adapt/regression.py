"""A grid's regression: fitted to solved rows of a topology, products of its state among them."""

import numpy as np

from gridshift.adapt.datasets import Dataset
from gridshift.arrays import Int
from gridshift.grid.layout import Layout
from gridshift.learn.regression import Regression, RegressionConfig, fit_regression
from gridshift.threads import Threads


def state_columns(layout: Layout) -> Int:
    """Numbers of the outputs that are the state: magnitudes and angles."""
    numbers, at = np.arange(layout.num_outputs), layout.y_slices
    return np.concatenate([numbers[at["v"]], numbers[at["theta"]]])


def regression_of(data: Dataset, config: RegressionConfig | None = None) -> Regression:
    """The regression of solved rows, by default `quadratic`; the same whatever other threads do."""
    with Threads(1):
        return fit_regression(data.x, data.y, config, groups=[state_columns(data.layout)])
