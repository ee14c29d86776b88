"""Trained surrogates kept between runs, one folder for each grid and configuration."""

import hashlib
import importlib.metadata
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from gridshift.adapt.surrogate import Surrogate, SurrogateConfig, train
from gridshift.adapt.surrogate_config import describe_config
from gridshift.errors import GridshiftWarning, StorageError
from gridshift.grid.network import Network
from gridshift.learn.training import Progress


def cache_folder() -> Path:
    """`$GRIDSHIFT_CACHE`, or gridshift's folder in the user's cache directory; not created here."""
    if chosen := os.environ.get("GRIDSHIFT_CACHE"):
        return Path(chosen)
    if sys.platform == "win32":
        parent = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        parent = Path.home() / "Library" / "Caches"
    else:
        parent = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return parent / "gridshift"


def cached_surrogate(
    network: Network,
    config: SurrogateConfig | None = None,
    *,
    progress: Progress | None = None,
    **solver: Any,
) -> Surrogate:
    """The surrogate of the intact grid for this configuration, trained only if it isn't there yet.

    What is kept belongs to every number of the grid, to the configuration and to the version of
    gridshift; a damaged folder is replaced.

    Args:
        network: the grid or an outage of it.
        config: what to build; by default `SurrogateConfig()`.
        progress: called while training with (step, number of steps, loss).
        solver: keyword arguments of `solve`.

    Warns:
        GridshiftWarning: the cache can't be written, so the next run trains again.
    """
    config = config or SurrogateConfig()
    folder = cache_folder() / "surrogates" / f"{network.name}-{_key(network, config)}"
    try:
        return Surrogate.load(folder, network)
    except StorageError:
        surrogate = train(network.root, config, progress=progress, **solver)
    try:
        surrogate.save(folder)
    except StorageError as problem:
        warnings.warn(
            f"{problem}; the next run trains again unless GRIDSHIFT_CACHE names a folder that "
            "can be written",
            GridshiftWarning,
            stacklevel=2,
        )
    return surrogate


def _key(network: Network, config: SurrogateConfig) -> str:
    parts = (network.root.digest, describe_config(config), importlib.metadata.version("gridshift"))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
