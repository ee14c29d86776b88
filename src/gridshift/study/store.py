"""Rows of a study on disk: one parquet file a task, named by the task's hash, written whole or not.

A folder holds `rows/<key>.parquet` for each finished task, and for the last finished study
`screening.parquet` (all rows, ranked), `summary.json` and `report.html`. A row is found again only
by the hash of everything that it depends on, so a study resumes where it stopped and rows of
another configuration in the same folder are never taken for its own.
"""

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gridshift.errors import StorageError


def task_key(task: Mapping[str, Any]) -> str:
    """Hexadecimal hash of a task: equal for equal tasks whatever the order of their entries."""
    text = json.dumps(task, sort_keys=True, allow_nan=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def finite_json(value: Any) -> Any:
    """The value with every number that JSON has no word for replaced by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): finite_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite_json(item) for item in value]
    return value


class Store:
    """A folder of finished rows. Made on first use; every problem with it is a `StorageError`."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._rows = self.folder / "rows"
        try:
            self._rows.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._rows):
                pass
        except OSError as error:
            raise StorageError(
                f"cannot write to {self.folder}: {error.strerror}; choose another folder"
            ) from error

    def load(self, key: str) -> dict[str, Any] | None:
        """The finished row of a task; None if there is none, or one that was cut short."""
        path = self._row_path(key)
        try:
            table = pq.ParquetFile(path).read()
        except FileNotFoundError:
            return None
        except (pa.ArrowException, OSError):  # a damaged file is recomputed, and then replaced
            return None
        if table.num_rows != 1 or (table.schema.metadata or {}).get(b"key") != key.encode():
            return None
        return table.to_pylist()[0]

    def save(self, key: str, row: Mapping[str, Any]) -> None:
        """Keep the finished row of a task.

        Raises:
            StorageError: it cannot be written; nothing half-written is left.
        """
        table = pa.Table.from_pylist([dict(row)]).replace_schema_metadata({"key": key})
        self._write(self._row_path(key), lambda path: pq.write_table(table, path))

    def finish(self, rows: Iterable[Mapping[str, Any]], summary: Mapping[str, Any]) -> Path:
        """Write all rows of the study as one table and its summary; return the summary's path.

        Raises:
            StorageError: one of them cannot be written.
        """
        table = pa.Table.from_pylist([dict(row) for row in rows])
        self._write(self.folder / "screening.parquet", lambda path: pq.write_table(table, path))
        return self.write_text(
            "summary.json", json.dumps(finite_json(summary), indent=1, allow_nan=False) + "\n"
        )

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file of the folder, all of it or nothing, and return its path."""
        path = self.folder / name
        self._write(path, lambda part: Path(part).write_text(text, encoding="utf-8"))
        return path

    def _row_path(self, key: str) -> Path:
        return self._rows / f"{key}.parquet"

    def _write(self, path: Path, write: Callable[[str], Any]) -> None:
        part = ""
        try:
            handle, part = tempfile.mkstemp(
                dir=path.parent, prefix=f".{path.name}.", suffix=".part"
            )
            os.close(handle)
            write(part)
            os.chmod(part, 0o644)
            os.replace(part, path)
        except OSError as error:  # pyarrow's own I/O errors are OSError as well
            if part:
                Path(part).unlink(missing_ok=True)
            raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
