"""`RegressionBase`: a closed-form model of the intact grid, from solved rows alone."""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.cache import cached_arrays
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.surrogate import draw_rows, validation_rows
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.arrays import Int, Real
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.regression import Regression, RegressionConfig, fit_regression
from gridshift.learn.training import Progress

NUM_ROWS = 6_000
"""Solved rows unless the configuration says otherwise; more gain little (docs/decisions/0008)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RegressionBase(Base):
    """y of the topology that it was fitted to, in closed form."""

    regression: Regression

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        return self.regression.predict(x)


def state_columns(layout: Layout) -> Int:
    """Numbers of the outputs that are the state: magnitudes and angles."""
    numbers, at = np.arange(layout.num_outputs), layout.y_slices
    return np.concatenate([numbers[at["v"]], numbers[at["theta"]]])


def regression_plane(data: Dataset, own: RegressionConfig | None = None) -> tuple[Regression, Real]:
    """The regression of a data set and what it leaves of y (R, Y).

    It takes the place of a tangent's `Plane` (`adapt/tangent.py`): a backbone learns what is left,
    and the regression is added to what the backbone predicts; no network model is needed.
    """
    plane = fit_regression(data.x, data.y, own, groups=[state_columns(data.layout)])
    return plane, data.y - plane.predict(data.x)


def fit_base(
    network: Network, config: SurrogateConfig, *, own: RegressionConfig | None = None,
    data: Dataset | None = None, **solver: Any,
) -> RegressionBase:  # fmt: skip
    """Draw and solve scenarios of this topology, and fit the regression to them.

    Args:
        network: the topology, as a rule the intact grid.
        config: spread, seed and number of rows.
        own: which regression; by default `quadratic`.
        data: rows, if they are at hand already.
        solver: keyword arguments of `solve`.

    Raises:
        ScenarioError: half of the scenarios or more have no solution.
    """
    began = time.perf_counter()
    if data is None:
        data = draw_rows(network, config, config.num_rows or NUM_ROWS, role="training", **solver)
    data_s, began = time.perf_counter() - began, time.perf_counter()
    regression, _ = regression_plane(data, own)
    train_s = time.perf_counter() - began
    fresh = validation_rows(network, config, **solver)
    record = {
        "num_rows": len(data),
        "num_solves": data.num_solves,
        "data_s": data_s,
        "train_s": train_s,
        "mae": float(np.abs(regression.predict(fresh.x) - fresh.y).mean()),
        "regression": regression.config.name,
        "outaged": list(network.outaged),
    }
    return RegressionBase(
        grid=network.name, grid_digest=network.root.digest, layout=data.layout, config=config,
        record=record, regression=regression,
    )  # fmt: skip


def start_regression(
    network: Network, config: SurrogateConfig, progress: Progress | None = None, *,
    name: str = "quadratic",
) -> RegressionBase:  # fmt: skip
    """The regression of the intact grid, from the cache or fitted now; it takes seconds.

    Args:
        network: the grid or an outage of it.
        config: spread, seed and number of rows.
        progress: not called, for there are no steps.
        name: one of `REGRESSIONS`.
    """
    own, root = RegressionConfig(name=name), network.root
    num_rows = config.num_rows or NUM_ROWS
    key = {
        "rows": num_rows, "spread": config.spread, "seed": config.seed,
        "validation": config.num_validation, "regression": vars(own),
    }  # fmt: skip

    def make():
        base = fit_base(root, config, own=own)
        return base.regression.arrays(), base.record | {"model": base.regression.about()}

    arrays, record = cached_arrays("regressions", root, key, make)
    layout = Layout.of(root)
    shape = layout.num_inputs, layout.num_outputs
    return RegressionBase(
        grid=root.name, grid_digest=root.digest, layout=layout, config=config,
        record=record, regression=Regression.restored(record["model"], arrays, shape),
    )  # fmt: skip
