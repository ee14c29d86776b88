"""What was trained is kept between runs, one folder for each grid and configuration."""

import hashlib
import json
import math
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gridshift.adapt.surrogate import Surrogate, SurrogateConfig, train
from gridshift.adapt.surrogate_config import describe_config
from gridshift.caches import cache_folder, writable
from gridshift.errors import GridshiftError, GridshiftWarning, StorageError
from gridshift.grid.network import Network
from gridshift.learn.training import Progress
from gridshift.storage import replacing
from gridshift.version import VERSION

Arrays = Mapping[str, NDArray[Any]]


def cached_surrogate(
    network: Network,
    config: SurrogateConfig | None = None,
    *,
    progress: Progress | None = None,
    **solver: Any,
) -> Surrogate:
    """The surrogate of the intact grid for this configuration, trained only if it isn't there yet.

    What is kept belongs to every number of the grid, to the configuration and to the version of
    gridshift; a damaged folder is replaced. A training that was cut off goes on where its last
    checkpoint left it.

    Args:
        solver: `device` of `train`, and keyword arguments of `solve`.

    Warns:
        GridshiftWarning: the cache can't be written, so the next run trains again.
    """
    config = config or SurrogateConfig()

    def make(checkpoint: Path | None) -> Surrogate:
        return train(network.intact, config, progress=progress, checkpoint=checkpoint, **solver)

    return kept_surrogate("surrogates", network, describe_config(config), make)


def is_kept(network: Network, config: SurrogateConfig) -> bool:
    """Whether `cached_surrogate` would find this one; a damaged one counts as found."""
    folder = cache_path("surrogates", network, describe_config(config))
    return (folder / "surrogate.json").exists()


def kept_surrogate(
    kind: str,
    network: Network,
    config: Mapping[str, Any],
    make: Callable[[Path | None], Surrogate],
) -> Surrogate:
    """A surrogate that was trained in whatever way, made only if it isn't there yet.

    Args:
        kind: name of the way; one folder of the cache holds all of a kind.
        config: everything else that the result depends on, as plain JSON values.
        make: trains it; given a file to keep checkpoints in, or None if there can be none.

    Warns:
        GridshiftWarning: the cache can't be written, so the next run trains again.
    """
    folder = cache_path(kind, network, config)
    try:
        return Surrogate.load(folder, network)
    except StorageError:
        pass
    checkpoint = folder / "training.checkpoint"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        surrogate = make(checkpoint)
    except (OSError, StorageError):
        # a cache that can't be written, or a checkpoint that can't be read, costs time, no more
        surrogate = make(None)
    try:
        surrogate.save(folder)
        checkpoint.unlink(missing_ok=True)
    except (OSError, StorageError) as problem:
        _warn(problem)
    return surrogate


def cached_arrays(
    kind: str,
    network: Network,
    config: Mapping[str, Any],
    make: Callable[[], tuple[Arrays, dict[str, Any]]],
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Arrays of a trained model and the record of its training, made only if they aren't there yet.

    Args:
        kind: name of the model; one folder of the cache holds all of a kind.
        make: trains the model: its arrays by name, and a record of plain JSON values.

    Raises:
        GridshiftError: the training diverged; nothing is kept.

    Warns:
        GridshiftWarning: the cache can't be written, so the next run trains again.
    """
    path = cache_path(kind, network, config, suffix=".npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        record, names = json.loads(str(arrays.pop("record"))), arrays.pop("names").tolist()
        if sorted(arrays) != names:
            raise KeyError(f"{path} lacks arrays")
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile):
        arrays, record = make()
        if not math.isfinite(record["mae"]):
            raise GridshiftError(f"training of {kind} for {network.name} diverged") from None
        _write_arrays(path, arrays, record)
    return dict(arrays), record


def _write_arrays(path: Path, arrays: Arrays, record: dict[str, Any]) -> None:
    about = {"record": np.array(json.dumps(record)), "names": np.array(sorted(arrays))}
    try:
        with replacing(path) as part, part.open("wb") as file:
            np.savez(file, **about, **arrays)  # type: ignore[arg-type]
    except StorageError as problem:
        _warn(problem)


def _warn(problem: Exception) -> None:
    warnings.warn(
        f"{problem}; the next run trains again unless GRIDSHIFT_CACHE names a folder that "
        "can be written",
        GridshiftWarning,
        stacklevel=3,
    )


def cache_path(kind: str, network: Network, config: Mapping[str, Any], *, suffix: str = "") -> Path:
    """Where the cache keeps what was trained with this configuration."""
    parts = (network.intact.digest, config, VERSION)
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
    return writable(cache_folder() / kind / f"{network.name}-{key}{suffix}")
