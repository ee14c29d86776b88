"""What happens to a power grid under uncertain loads when lines go out.

The public names live in their rooms and are imported when first used, so that the command line
starts without loading pandapower, numba or torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridshift.adapt.cache import cached_surrogate
    from gridshift.adapt.datasets import Dataset, generate
    from gridshift.adapt.methods import METHODS, Context, Method, Predictor
    from gridshift.adapt.surrogate import Surrogate, SurrogateConfig, train
    from gridshift.errors import GridshiftError, GridshiftWarning
    from gridshift.exchange.solved_cases import read_cases
    from gridshift.exchange.state import to_pandapower, write_state
    from gridshift.grid.contingency import (
        Outage,
        assess,
        enumerate_outages,
        outage_text,
        parse_outage,
        rank_by_loading,
    )
    from gridshift.grid.layout import Layout
    from gridshift.grid.network import Network
    from gridshift.grid.outage_list import read_outages
    from gridshift.grid.powerflow import BatchSolution, RowStatus, solve
    from gridshift.grid.readers import from_pandapower, read_grid
    from gridshift.grid.scenarios import LoadScenarios, named_rng, nominal_loads, sample_loads
    from gridshift.learn.estimator import ICWRegressor
    from gridshift.study.data_set import DataSetConfig, write_data_set
    from gridshift.study.screening import ScreenConfig, Screening
    from gridshift.study.sweep import screen
    from gridshift.trial.cases import Cases
    from gridshift.trial.metrics import mean_absolute_errors
    from gridshift.trial.trial import Measurement, Trial, measure_adaptation

_HOMES = {
    name: f"gridshift.{module}"
    for module, names in {
        "adapt.cache": "cached_surrogate",
        "adapt.datasets": "Dataset generate",
        "adapt.methods": "METHODS Context Method Predictor",
        "adapt.surrogate": "Surrogate SurrogateConfig train",
        "errors": "GridshiftError GridshiftWarning",
        "exchange.solved_cases": "read_cases",
        "exchange.state": "to_pandapower write_state",
        "grid.contingency": "Outage assess enumerate_outages outage_text parse_outage"
        " rank_by_loading",
        "grid.layout": "Layout",
        "grid.network": "Network",
        "grid.outage_list": "read_outages",
        "grid.powerflow": "BatchSolution RowStatus solve",
        "grid.readers": "from_pandapower read_grid",
        "grid.scenarios": "LoadScenarios nominal_loads sample_loads named_rng",
        "learn.estimator": "ICWRegressor",
        "study.data_set": "DataSetConfig write_data_set",
        "study.screening": "ScreenConfig Screening",
        "study.sweep": "screen",
        "trial.cases": "Cases",
        "trial.metrics": "mean_absolute_errors",
        "trial.trial": "Measurement Trial measure_adaptation",
    }.items()
    for name in names.split()
}

__all__ = [
    "METHODS",
    "BatchSolution",
    "Cases",
    "Context",
    "DataSetConfig",
    "Dataset",
    "GridshiftError",
    "GridshiftWarning",
    "ICWRegressor",
    "Layout",
    "LoadScenarios",
    "Measurement",
    "Method",
    "Network",
    "Outage",
    "Predictor",
    "RowStatus",
    "ScreenConfig",
    "Screening",
    "Surrogate",
    "SurrogateConfig",
    "Trial",
    "assess",
    "cached_surrogate",
    "enumerate_outages",
    "from_pandapower",
    "generate",
    "mean_absolute_errors",
    "measure_adaptation",
    "named_rng",
    "nominal_loads",
    "outage_text",
    "parse_outage",
    "rank_by_loading",
    "read_cases",
    "read_grid",
    "read_outages",
    "sample_loads",
    "screen",
    "solve",
    "to_pandapower",
    "train",
    "write_data_set",
    "write_state",
]


def __getattr__(name: str):
    if name == "__version__":
        return import_module("gridshift.version").VERSION
    if name not in _HOMES:
        raise AttributeError(f"module 'gridshift' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
