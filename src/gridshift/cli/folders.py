"""What a command is asked to write, checked before the work and not after it."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gridshift.errors import StorageError


def require_writable(folder: Path) -> None:
    """Pass if files can be put into this folder, which need not exist yet and isn't made.

    Raises:
        StorageError: it or a parent is a file, or a file can't be made there.
    """
    there = folder.absolute()
    try:
        while not there.exists() and there != there.parent:
            there = there.parent
        if not there.is_dir():
            raise StorageError(f"cannot write to {folder}: {there} is not a folder")
        tempfile.TemporaryFile(dir=there).close()
    except OSError as problem:
        why = problem.strerror or problem
        raise StorageError(f"cannot write to {folder}: {there}: {why}") from problem


def require_writable_file(path: Path) -> None:
    """Pass if this file can be written; its folder need not exist yet and isn't made.

    Raises:
        StorageError: it is a folder or protected, or its folder can't be written.
    """
    require_writable(path.absolute().parent)
    if path.is_dir():
        raise StorageError(f"cannot write {path}: it is a folder")
    if path.exists() and not os.access(path, os.W_OK):
        raise StorageError(f"cannot write {path}: no permission to change it")


def require_separate(values: Mapping[str, Any], writes: Mapping[str, Sequence[str]]) -> None:
    """Pass if no file that a command is to write is one it reads, or writes for another option.

    Args:
        values: of all parameters by name. Each text or path that names something that exists counts
            as read, of a folder all files in it.
        writes: names of the parameters that say what is written, each with the names of the files
            that are put into that folder; none if the parameter is the file itself.

    Raises:
        StorageError: naming the option and what would be overwritten.
    """
    written = {
        name: [Path(values[name], file) for file in files or ("",)]
        for name, files in writes.items()
        if values.get(name) is not None
    }
    given = {name: Path(v) for name, v in values.items() if v and isinstance(v, str | Path)}
    for name, files in written.items():
        for other, path in given.items():
            if other == name:
                continue
            others = written[other] if other in written else _files(path)
            if clash := next((file for file in files if _among(file, others)), None):
                verb = "write" if other in written else "read"
                raise StorageError(
                    f"--{name} would overwrite {clash}, which the same command is to {verb} "
                    f"({other} {path}); choose another --{name}"
                )


def _files(path: Path) -> list[Path]:
    try:
        return [path, *path.iterdir()] if path.is_dir() else [path]
    except OSError:  # no folder that can be read, or no name that a file could have
        return []


def _among(file: Path, others: Iterable[Path]) -> bool:
    """Whether it is one of the others, links and relative paths followed."""
    for other in others:
        try:
            if file.resolve() == other.resolve() or os.path.samefile(file, other):
                return True
        except (OSError, ValueError):  # one of them isn't there, or is no name of a file
            continue
    return False
