"""Grids that were read before: kept as compiled networks, so that pandapower need not be loaded.

What is kept belongs to every byte of a grid's source and of the readers, and to the versions of
what they use. Where nothing can be kept, or what is kept is damaged, the grid is read as ever.
"""

import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy

from gridshift.caches import cache_folder, where_it_can_be_written
from gridshift.errors import GridshiftWarning, StorageError
from gridshift.grid.network import Network
from gridshift.grid.network_file import network_content, network_of
from gridshift.storage import write_bytes

FOLDER = "grids"
MOST_FILES = 200
MOST_BYTES = 2**28
"""Of all grids together; those unused for longest are removed first."""


def read_once(name: str, content: bytes, read: Callable[[], Network]) -> Network:
    """The network that `read` gives, which is called only if it isn't kept yet.

    Args:
        name: of the built-in grid or the file; decides with `content` what `read` gives.
        content: of the file, empty for a built-in grid.

    Raises:
        GridFileError: as `read` does; refusals are not kept.

    Warns:
        GridshiftWarning: whatever reading warned of, also when the grid is taken from the cache.
    """
    key = _key(name, content)
    path = _path(key)
    try:
        network, notes = network_of(b"" if path is None else path.read_bytes(), key=key)
    except (OSError, StorageError):
        network, notes = _listened_to(read)
        made = network_content(network, notes, key=key)
        # As the next run has it, down to the order in memory: sums must not differ by rounding.
        network, _ = network_of(made, key=key)
        if path is not None and len(made) <= MOST_BYTES:
            with suppress(OSError, StorageError):
                write_bytes(path, made)
                _make_room(path.parent)
    else:
        with suppress(OSError):
            os.utime(path)  # pyright: ignore[reportArgumentType]
    for note in notes:
        warnings.warn(note, GridshiftWarning, stacklevel=3)
    return network


def _key(name: str, content: bytes) -> str:
    """Of everything that decides the network and its notes."""
    versions = version("pandapower"), _powerio(), np.__version__, scipy.__version__
    state = sha256()
    for part in (repr(versions).encode(), _own_code(), name.encode("utf-8", "replace"), content):
        state.update(sha256(part).digest())
    return state.hexdigest()


def _powerio() -> str:
    """The version of powerio, which is not always there."""
    try:
        return version("powerio")
    except PackageNotFoundError:
        return ""


def _own_code() -> bytes:
    """The readers and what they make, as source text: no change to them can be forgotten."""
    here = Path(__file__).parent
    names = ("network.py", "network_file.py", "controls.py", "pi_model.py", "supplied.py")
    of_networks = (here.parent / name for name in names)
    return b"".join(file.read_bytes() for file in (*sorted(here.glob("*.py")), *of_networks))


def _path(key: str) -> Path | None:
    try:
        return where_it_can_be_written(cache_folder() / FOLDER / f"{key}.network")
    except StorageError:
        return None


def _listened_to(read: Callable[[], Network]) -> tuple[Network, list[str]]:
    """The network, and gridshift's warnings, which are not shown yet; others are."""
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always", GridshiftWarning)
        network = read()
    for other in (w for w in met if not issubclass(w.category, GridshiftWarning)):
        warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
    return network, [str(w.message) for w in met if issubclass(w.category, GridshiftWarning)]


def _make_room(folder: Path) -> None:
    """Remove the grids unused for longest, until the others are few and small enough."""
    found = []
    for path in folder.glob("*.network"):
        with suppress(OSError):  # another process may be faster
            state = path.stat()
            found.append((state.st_mtime_ns, state.st_size, path))
    size = 0
    for number, (_, own, path) in enumerate(sorted(found, reverse=True), 1):
        size += own
        if number > MOST_FILES or size > MOST_BYTES:
            with suppress(OSError):
                path.unlink()
