"""Folders that a command is asked to write to, checked before the work and not after it."""

import os
from pathlib import Path

from gridshift.errors import StorageError


def nearest_existing(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def require_writable(folder: Path) -> None:
    """Pass if files can be put into this folder, which need not exist yet and isn't made.

    Raises:
        StorageError: it or a parent is a file, or writing is not permitted.
    """
    there = nearest_existing(folder)
    if not there.is_dir():
        raise StorageError(f"cannot write to {folder}: {there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise StorageError(f"cannot write to {folder}: no permission for {there}")
