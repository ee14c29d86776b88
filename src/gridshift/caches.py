"""Where things are kept between runs: surrogates, grids, compiled kernels, matplotlib's fonts.

Containers often have a package that can't be written and a home that isn't there. A temporary
folder then takes the place of the usual ones, and one warning says so.
"""

import hashlib
import os
import re
import stat
import sys
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

from gridshift.errors import GridshiftWarning, StorageError

NUMBA = "NUMBA_CACHE_DIR"
_KERNELS = Path(__file__).parent / "grid" / "kernels"
_NAMED_TUPLE = re.compile(r"^class \w+\(NamedTuple\):\n(?:[ \t].*\n|\n)*", re.MULTILINE)


def cache_folder() -> Path:
    """`$GRIDSHIFT_CACHE`, or gridshift's folder in the user's cache directory; not created here.

    A temporary folder where neither can be known, for a user without a home.
    """
    if chosen := os.environ.get("GRIDSHIFT_CACHE"):
        return Path(chosen)
    parent = _user_caches()
    return temporary_folder() if parent is None else parent / "gridshift"


def writable(path: Path) -> Path:
    """The path in the cache folder; if that can't be written, its like in the temporary folder.

    What is there already is used as it is: a cache may well be shared and read-only.

    Warns:
        GridshiftWarning: once, that the temporary folder takes its place.
    """
    place = where_it_can_be_written(path)
    if place != path:
        _say_once(
            f"surrogates are kept in {temporary_folder()}, since {cache_folder()} can't be written",
            "GRIDSHIFT_CACHE",
        )
    return place


def where_it_can_be_written(path: Path) -> Path:
    """The same place as `writable` finds, without a word."""
    usual = cache_folder()
    if path.exists() or can_write(usual):
        return path
    try:
        return temporary_folder() / path.relative_to(usual)
    except StorageError:
        return path


def prepare_kernel_cache() -> Path | None:
    """Where numba can keep what it compiles, its own choice if it has one; None if nowhere.

    It looks at `$NUMBA_CACHE_DIR`, beside the kernels, and in the user's cache directory, and
    raises if none can be written. To be called before a kernel is defined.

    Warns:
        GridshiftWarning: that a temporary folder takes their place, or nothing.
    """
    chosen = os.environ.get(NUMBA)
    places = [Path(chosen)] if chosen else []
    places.append(_KERNELS / "__pycache__")
    if (user := _user_caches()) is not None:
        places.append(user / "numba")
    for place in places:
        if can_write(place):
            return place
    try:
        folder = temporary_folder() / "kernels"
    except StorageError:
        _say_once("kernels compile at every run, since no folder can be written", NUMBA)
        return None
    folder.mkdir(exist_ok=True)
    os.environ[NUMBA] = str(folder)
    if (numba := sys.modules.get("numba")) is not None:  # it has read the environment already
        numba.config.CACHE_DIR = str(folder)
    _say_once(f"compiled kernels are kept in {folder}, since no usual place can be written", NUMBA)
    return folder


def kernel_folder(compiler: str) -> Path | None:
    """The folder for kernels of exactly these sources, compiled by this version; None if nowhere.

    numba alone would compare a kernel's own file with what it keeps, not the kernels that it
    calls; and it unpickles what an older gridshift left before it compares, which fails where that
    names a module which is gone.
    """
    place = prepare_kernel_cache()
    return None if place is None else place / f"gridshift-{_digest_of_kernels(compiler)}"


def _digest_of_kernels(compiler: str) -> str:
    """Of the kernels' sources and of the named tuples that they are given."""
    digest = hashlib.sha256(compiler.encode())
    for path in sorted(_KERNELS.parent.glob("*.py")):
        found = _NAMED_TUPLE.findall(path.read_text(encoding="utf-8"))
        digest.update("".join([path.name, *found]).encode())
    for path in sorted(_KERNELS.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def prepare_font_cache() -> None:
    """The same for matplotlib, which makes a new temporary folder at every run otherwise."""
    if os.environ.get("MPLCONFIGDIR") or sys.platform in ("win32", "darwin"):
        return
    for variable, usual in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache")):
        if (parent := _of_home(variable, usual)) is None or not can_write(parent / "matplotlib"):
            with suppress(StorageError):  # matplotlib then says itself what it misses
                os.environ["MPLCONFIGDIR"] = str(temporary_folder() / "matplotlib")
            return


def can_write(folder: Path) -> bool:
    """Whether a file can be made in this folder, which is made if need be; tried, not guessed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


@cache
def temporary_folder() -> Path:
    """A folder of this user alone among the temporary files, the same at every run if it can be.

    Compiled kernels are code: one that another user could have put there is not taken.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    try:
        folder = Path(tempfile.gettempdir()) / f"gridshift-{user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        private = os.name != "posix" or not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISDIR(found.st_mode) and ours and private and os.access(folder, os.W_OK):
            return folder
        return Path(tempfile.mkdtemp(prefix="gridshift-"))
    except OSError as problem:
        raise StorageError(
            f"no folder for temporary files can be written ({problem.strerror or problem}); set "
            "TMPDIR to one that can"
        ) from problem


def _user_caches() -> Path | None:
    """The user's cache directory; None for a user without a home."""
    if sys.platform == "win32":
        return _of_home("LOCALAPPDATA", "AppData/Local")
    if sys.platform == "darwin":
        return _of_home("", "Library/Caches")
    return _of_home("XDG_CACHE_HOME", ".cache")


def _of_home(variable: str, usual: str) -> Path | None:
    if chosen := os.environ.get(variable):
        return Path(chosen)
    try:
        return Path.home() / usual
    except RuntimeError:
        return None


_SAID: set[str] = set()


def _say_once(what: str, variable: str) -> None:
    if what not in _SAID:
        _SAID.add(what)
        warnings.warn(
            f"{what}; set {variable} to a folder that can", GridshiftWarning, stacklevel=4
        )
