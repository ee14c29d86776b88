"""A study that other processes work on: what they find in its folder, and what they do.

`shared/DIGEST` in the study's folder holds all that its rows depend on: configuration, grid,
scenarios if they are not drawn from a seed, surrogate, and the intact grid's row. A worker reads it
once, checks that it has the same version, and writes the rows of its pieces into the folder itself.
"""

import json
import multiprocessing
import os
import shutil
import signal
import socket
import threading
from dataclasses import asdict, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.errors import GridshiftError, StorageError
from gridshift.grid.intact_rows import IntactRows
from gridshift.grid.network_file import network_content, network_of
from gridshift.grid.scenarios import LoadScenarios
from gridshift.storage import replacing, write_text
from gridshift.study.journal import Place
from gridshift.study.pieces import FORMAT, Piece, keys, study_digest, work
from gridshift.study.row import OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.study.set_up import base_of, intact_voltage, method_of, spread_loads
from gridshift.study.setting import Setting
from gridshift.study.spread import SpreadOfLoads
from gridshift.study.store import Store
from gridshift.study.text import json_value
from gridshift.threads import Threads
from gridshift.version import VERSION

if TYPE_CHECKING:
    from gridshift.adapt.base import Base

SHARED, TOLD, GRID, RATINGS, SURROGATE = "shared", "study.json", "grid", "ratings", "surrogate"
POWERS = ("load_p", "load_q")


def begin_worker() -> None:
    """Begin a process of a pool: Ctrl-C is its parent's, and it ends when that is gone.

    Else the workers of a parent that was killed would wait for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:

        def end_with_it() -> None:
            parent.join()
            os._exit(1)

        threading.Thread(target=end_with_it, daemon=True).start()


def share(setting: Setting, folder: Path, **more: Any) -> str:
    """Write what workers need into a study's folder, and return the digest that names it.

    Args:
        setting: of the study, with what the intact grid's scenarios say.
        more: told in `study.json` as well.

    Raises:
        StorageError: the folder cannot be written.
        GridshiftError: a model that can't be written to a folder.
    """
    study = study_digest(setting)
    home = folder / SHARED / study
    network = setting.network
    with replacing(home / GRID) as part:
        part.write_bytes(network_content(replace(network, outage_of=None), (), key=study))
    ratings = setting.config.ratings
    if ratings is not None:
        with replacing(_copy_of(ratings, home)) as part:
            shutil.copyfile(ratings, part)
    if setting.spread is None:
        assert isinstance(setting.loads, LoadScenarios)
        for name in POWERS:
            with replacing(home / f"{name}.npy") as part, part.open("wb") as file:
                np.save(file, getattr(setting.loads, name))
    if setting.surrogate is not None and setting.surrogate.record:
        _save_surrogate(setting.surrogate, home / SURROGATE)
    if setting.reference is not None:
        Store(home).save(study, setting.reference.stored(), sync=True)
    told = {
        "format": FORMAT,
        "version": VERSION,
        "grid": network.name,
        "grid_digest": network.digest,
        "config": asdict(setting.config),
        "spread": None if setting.spread is None else asdict(setting.spread),
        **more,
    }
    write_text(home / TOLD, json.dumps(json_value(told), indent=1, allow_nan=False) + "\n")
    return study


def _save_surrogate(surrogate: "Base", folder: Path) -> None:
    from gridshift.adapt.surrogate import Surrogate

    if not isinstance(surrogate, Surrogate):
        raise GridshiftError(
            f"{type(surrogate).__name__} can't be handed to other processes; use a method that "
            "adapts a surrogate, or threads of one process (--workers)"
        )
    surrogate.save(folder)


def told_of(folder: Path, study: str) -> dict[str, Any]:
    """What is written of a study in its folder.

    Raises:
        StorageError: nothing that can be read, or by another version of gridshift.
    """
    path = folder / SHARED / study / TOLD
    try:
        told = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot read {path} on {socket.gethostname()}: {error}") from error
    theirs, ours = (told.get("version"), told.get("format")), (VERSION, FORMAT)
    if theirs != ours:
        raise StorageError(
            f"the study in {folder} was begun by gridshift {theirs[0]} (rows of format "
            f"{theirs[1]}); {socket.gethostname()} has {ours[0]} (format {ours[1]}): use the same"
        )
    return told


def shared_setting(folder: Path, study: str) -> Setting:
    """The setting of a study, from its folder.

    Raises:
        StorageError: something of it is missing or damaged, or of another version.
    """
    told, home = told_of(folder, study), folder / SHARED / study
    try:
        network, _ = network_of((home / GRID).read_bytes(), key=study)
    except OSError as error:
        raise StorageError(f"cannot read {home / GRID}: {error.strerror}") from error
    except StorageError as error:
        told_so = f"{home / GRID} is {error}; remove {home} and run the study's command again"
        raise StorageError(told_so) from error
    ratings = told["config"].get("ratings")
    if ratings is not None:
        told["config"]["ratings"] = _copy_of(ratings, home)
    known = {f.name for f in fields(ScreenConfig)}
    config = ScreenConfig(**{name: v for name, v in told["config"].items() if name in known})
    spread = None if told["spread"] is None else SpreadOfLoads(**told["spread"])
    if spread is None:
        loads = LoadScenarios(**{name: _power(home / f"{name}.npy") for name in POWERS})
    else:
        loads = spread_loads(network, spread, config)
    setting = Setting(
        config=config, network=network, voltage=intact_voltage(network), loads=loads,
        spread=spread, intact_rows=IntactRows(network), method=method_of(config),
    )  # fmt: skip
    if setting.method is not None:
        given = None
        if (home / SURROGATE).is_dir():
            from gridshift.adapt.surrogate import Surrogate

            given = Surrogate.load(home / SURROGATE, network)
        setting = replace(setting, surrogate=base_of(setting, setting.method, given))
    if study_digest(setting) != study:
        raise StorageError(
            f"what {home} holds of {told['grid']} is not what its study is of; remove that folder "
            "and run the study's command again"
        )
    row = Store(home).load(study)
    reference = None if row is None else OutageRow.of_stored(row, outage="", network=network)
    return replace(setting, reference=reference)


def _copy_of(ratings: str, home: Path) -> Path:
    """Where a study keeps its table of ratings, whose name tells its kind."""
    return home / f"{RATINGS}{''.join(Path(ratings).suffixes)}"


def _power(path: Path) -> np.ndarray:
    """(R, L) left on disk until rows of it are asked for."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise StorageError(f"cannot read {path}: {error}") from error


def run_piece(folder: str, study: str, piece: Piece) -> list[tuple[str, Place]]:
    """Work on a piece of a shared study: what a worker of any executor runs.

    Args:
        folder: of the study, as the worker sees it.
        study: digest, of `share`.
        piece: some outages, or a run of the scenarios of one.

    Returns:
        Of each outage the key and the place of what was written.

    Raises:
        StorageError: the folder can't be read or written, or is of another version.
    """
    setting, store = _opened(folder, study)
    with Threads(1):
        found = work(setting, piece)
    return [
        (key, store.save(key, one.stored() if isinstance(one, OutageRow) else one, sync=True))
        for key, one in zip(keys(setting, piece), found, strict=True)
    ]


@lru_cache(maxsize=2)
def _opened(folder: str, study: str) -> tuple[Setting, Store]:
    """Read once by each process."""
    return shared_setting(Path(folder), study), Store(folder)
