"""Solved rows of one topology to train a base on, and to measure it on."""

from typing import Any

import numpy as np

from gridshift.adapt.datasets import Dataset, generate, require_rows
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.arrays import Int
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Spread, named_rng, sample_loads
from gridshift.learn.regression import Regression, RegressionConfig, fit_regression
from gridshift.threads import Threads


def training_stream(network: Network, role: str, config: SurrogateConfig) -> np.random.Generator:
    """The stream of random numbers of a topology that belongs to this role and seed."""
    return named_rng(network.name, role, outage=",".join(network.outaged), seed=config.seed)


def training_seed(network: Network, config: SurrogateConfig) -> int:
    """Seed of the initial weights, of the order of rows and of dropout."""
    return int(training_stream(network, "weights", config).integers(2**31))


def draw_rows(
    network: Network,
    config: SurrogateConfig,
    num_rows: int,
    *,
    role: str,
    regime: Spread = "mixed",
    **solver: Any,
) -> Dataset:
    """Solved rows of one topology, of the stream that belongs to this role.

    Raises:
        ScenarioError: half of the scenarios or more have no solution.
        MemoryNeededError: they don't fit into memory.
    """
    require_rows(network, num_rows, f"{role} scenarios")
    rng = training_stream(network, role, config)
    loads = sample_loads(network, rng, num_rows, spread=config.spread, regime=regime)
    return generate(network, loads, min_rows=max(2, num_rows // 2), **solver)


def validation_rows(network: Network, config: SurrogateConfig, **solver: Any) -> Dataset:
    """Fresh rows of a topology, on which the error of a new model is measured."""
    return draw_rows(
        network, config, config.num_validation, role="validation", regime="drawn", **solver
    )


def state_columns(layout: Layout) -> Int:
    """Numbers of the outputs that are the state: magnitudes and angles."""
    numbers, at = np.arange(layout.num_outputs), layout.y_slices
    return np.concatenate([numbers[at["v"]], numbers[at["theta"]]])


def regression_of(data: Dataset, config: RegressionConfig | None = None) -> Regression:
    """The regression of solved rows, by default `quadratic`; the same whatever other threads do."""
    with Threads(1):
        return fit_regression(data.x, data.y, config, groups=[state_columns(data.layout)])
