"""Folders and files that a command is asked to write to, checked before the work, not after it."""

import os
import tempfile
from pathlib import Path

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
