"""Files that are written whole or not at all: one home for every write that must not be half done.

What is being written lies in the folder of the file that it becomes, as `.gridshift-*.part`, a
name of its own for each writer, so that two of them never share one. The writer holds a lock on it
that ends with its process. What nobody holds is left over from a process that was killed, and is
removed by the next one that writes to the folder.
"""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gridshift.errors import StorageError
from gridshift.memory import size_text

try:
    import fcntl
except ImportError:  # without such locks (Windows) an open file cannot be removed in any case
    fcntl = None

PREFIX, SUFFIX = ".gridshift-", ".part"

_cleared: set[Path] = set()
"""Folders in which this process has looked for left-over files."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A file to write in the place of `path`: it becomes `path` at the end, or nothing is left.

    Folders that are missing are made. Its name doesn't end as that of `path`, so a writer that
    goes by the ending must be told the type.

    Raises:
        StorageError: it cannot be written, for instance on a full disk. The old file is as it was.
    """
    path = Path(path)
    part: Path | None = None
    lock = -1
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _clear_once(path.parent)
        part, lock = _new_part(path.parent)
        yield part
        if fcntl is None:
            os.close(lock)
            lock = -1
        os.replace(part, path)
        part = None
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink()
        if lock >= 0:
            os.close(lock)


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write a file, all of it or nothing, and return its path.

    Raises:
        StorageError: it cannot be written.
    """
    with replacing(path) as part:
        part.write_bytes(content)
    return Path(path)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file in UTF-8, all of it or nothing, and return its path.

    Raises:
        StorageError: it cannot be written.
    """
    return write_bytes(path, text.encode())


def require_disk(folder: Path, done: int, total: int, what: str) -> None:
    """Pass if the disk has room for what is left, by what the first pieces in the folder took.

    Args:
        done: how many of them.
        total: how many there will be.
        what: what they are called.

    Raises:
        StorageError: it hasn't; what is written stays.
    """
    written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    needed, free = written / done * (total - done), shutil.disk_usage(folder).free
    if needed > free:
        raise StorageError(
            f"the {total - done:,} {what} that are left need about {size_text(needed)} in "
            f"{folder}, which has {size_text(free)}; ask for fewer, or choose another folder"
        )


def clear_left_over(folder: str | Path) -> None:
    """Remove what processes that were killed while writing have left in this folder.

    Files that a running process is writing stay, and so does whatever cannot be removed.
    """
    with suppress(OSError):
        for part in Path(folder).glob(f"{PREFIX}*{SUFFIX}"):
            with suppress(OSError), part.open("r+b") as file:
                _lock(file.fileno(), wait=False)
                part.unlink()


def _clear_once(folder: Path) -> None:
    folder = folder.resolve()
    if folder not in _cleared:
        _cleared.add(folder)
        clear_left_over(folder)


def _new_part(folder: Path) -> tuple[Path, int]:
    """A new empty file under a name of its own, and its descriptor, locked where that works."""
    while True:
        part = folder / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        with suppress(OSError):  # a file system without locks: nobody can clear there either
            _lock(descriptor, wait=True)
        if part.exists():  # else somebody clearing the folder was faster than the lock
            return part, descriptor
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> None:
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
