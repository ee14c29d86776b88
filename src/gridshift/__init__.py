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
    "cached_surrogate": "gridshift.adapt.cache",
    "Dataset": "gridshift.adapt.datasets",
    "generate": "gridshift.adapt.datasets",
    "Layout": "gridshift.grid.layout",
    "METHODS": "gridshift.adapt.methods",
    "Context": "gridshift.adapt.methods",
    "Method": "gridshift.adapt.methods",
    "Predictor": "gridshift.adapt.methods",
    "Surrogate": "gridshift.adapt.surrogate",
    "SurrogateConfig": "gridshift.adapt.surrogate",
    "train": "gridshift.adapt.surrogate",
    "GridshiftError": "gridshift.errors",
    "GridshiftWarning": "gridshift.errors",
    "Outage": "gridshift.grid.contingency",
    "assess": "gridshift.grid.contingency",
    "enumerate_outages": "gridshift.grid.contingency",
    "outage_text": "gridshift.grid.contingency",
    "parse_outage": "gridshift.grid.contingency",
    "rank_by_loading": "gridshift.grid.contingency",
    "read_outages": "gridshift.grid.outage_list",
    "Network": "gridshift.grid.network",
    "BatchSolution": "gridshift.grid.powerflow",
    "RowStatus": "gridshift.grid.powerflow",
    "solve": "gridshift.grid.powerflow",
    "from_pandapower": "gridshift.grid.readers",
    "read_grid": "gridshift.grid.readers",
    "to_pandapower": "gridshift.exchange.state",
    "write_state": "gridshift.exchange.state",
    "LoadScenarios": "gridshift.grid.scenarios",
    "nominal_loads": "gridshift.grid.scenarios",
    "sample_loads": "gridshift.grid.scenarios",
    "named_rng": "gridshift.grid.scenarios",
    "ICWRegressor": "gridshift.learn.estimator",
    "Cases": "gridshift.trial.cases",
    "Measurement": "gridshift.trial.trial",
    "Trial": "gridshift.trial.trial",
    "measure_adaptation": "gridshift.trial.trial",
    "mean_absolute_errors": "gridshift.trial.metrics",
    "DataSetConfig": "gridshift.study.data_set",
    "write_data_set": "gridshift.study.data_set",
    "read_cases": "gridshift.exchange.solved_cases",
    "ScreenConfig": "gridshift.study.screening",
    "Screening": "gridshift.study.screening",
    "screen": "gridshift.study.sweep",
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
