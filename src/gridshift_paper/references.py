"""Two levels beside every accuracy table: what a context gives without any model, and what
adaptation leaves of the error of a model without any error of its own."""

import numpy as np

from gridshift.adapt.datasets import Dataset
from gridshift.adapt.surrogate import draw_rows, fit_output_transform
from gridshift.adapt.surrogate_config import default_num_rows
from gridshift.arrays import Real
from gridshift.grid.powerflow import solve
from gridshift.learn.whitening import Transform
from gridshift.study.metrics import mean_absolute_errors
from gridshift_paper.protocol import SPREAD, Scale, base_config, network_of


def training_rows(scale: Scale, grid: str, *, seed: int = 0, spread: float = SPREAD) -> Dataset:
    """The rows that a base surrogate of this scale, grid and seed was trained on."""
    network, config = network_of(grid), base_config(scale, seed=seed, spread=spread)
    num_rows = config.num_rows or default_num_rows(network)
    return draw_rows(network, config, num_rows, role="training")


def errors_where_given(test: Dataset, y_hat: Real) -> tuple[dict[str, float], int]:
    """Mean absolute errors over rows without NaN, and how many these are.

    `perfect_icw` gives none where only the outage has a solution.
    """
    given = np.isfinite(y_hat).all(1)
    errors = mean_absolute_errors(test.layout, test.y[given], y_hat[given])
    return errors, int(given.sum())


def context_mean(context: Dataset, test: Dataset) -> Real:
    """(R, Y) the mean of the context's outputs for every row: x is ignored."""
    return np.tile(context.y.mean(0), (len(test), 1))


def perfect_icw(grid: str, context: Dataset, test: Dataset, base_transform: Transform) -> Real:
    """(R, Y) y_hat = T_ctx^-1(T_base(y)) around the exact y of the same loads on the intact grid.

    What is left of the error is that of the adaptation: sampling of the context's and the base's
    moments, and what no map of this kind can follow. A row whose loads have no solution on the
    intact grid is NaN.

    Args:
        grid: name of the grid.
        context: solved cases of the new topology.
        test: rows of the new topology.
        base_transform: statistics of the training rows, `Surrogate.transform` for instance; the
            context's are of the same kind, ICW's if it is ZCA.
    """
    network, layout = network_of(grid), test.layout
    loads = layout.unpack_injections(test.x)
    solution = solve(network, loads)
    y_base = layout.pack_outputs(network, loads, solution.voltage)
    y_base[~solution.solved] = np.nan
    context_transform = fit_output_transform(base_transform.name, context.y, base_transform.eps)
    return context_transform.inverse(base_transform.forward(y_base))
