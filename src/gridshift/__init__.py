"""What happens to a power grid under uncertain loads when lines go out.

The public names live in their rooms and are imported when first used, so that the command line
starts without loading pandapower, numba or torch.
"""

from importlib import import_module
from importlib.metadata import version as _version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gridshift.errors import GridshiftError, GridshiftWarning
    from gridshift.grid.network import Network
    from gridshift.grid.powerflow import BatchSolution, RowStatus, solve
    from gridshift.grid.readers import read_grid
    from gridshift.grid.scenarios import Injections, nominal_loads, sample_loads, stream

_HOMES = {
    "GridshiftError": "gridshift.errors",
    "GridshiftWarning": "gridshift.errors",
    "Network": "gridshift.grid.network",
    "BatchSolution": "gridshift.grid.powerflow",
    "RowStatus": "gridshift.grid.powerflow",
    "solve": "gridshift.grid.powerflow",
    "read_grid": "gridshift.grid.readers",
    "Injections": "gridshift.grid.scenarios",
    "nominal_loads": "gridshift.grid.scenarios",
    "sample_loads": "gridshift.grid.scenarios",
    "stream": "gridshift.grid.scenarios",
}

__all__ = [
    "BatchSolution",
    "GridshiftError",
    "GridshiftWarning",
    "Injections",
    "Network",
    "RowStatus",
    "nominal_loads",
    "read_grid",
    "sample_loads",
    "solve",
    "stream",
]


def __getattr__(name: str):
    if name == "__version__":
        return _version("gridshift")
    if name not in _HOMES:
        raise AttributeError(f"module 'gridshift' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
