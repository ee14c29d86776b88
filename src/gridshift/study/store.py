"""A study on disk: the rows of finished tasks, then tables, summary and report.

A folder holds the row of each finished task in `rows` (`journal`), and for the last finished study
`screening.parquet` (all rows, ranked), `summary.json` and `report.html`. A row is found again only
by the hash of everything that it depends on, so a study resumes where it stopped and rows of
another configuration in the same folder are never taken for its own.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from gridshift.errors import StorageError
from gridshift.storage import clear_left_over, replacing, write_text
from gridshift.study.journal import Journal, Place
from gridshift.study.text import json_value


def task_key(task: Mapping[str, Any]) -> str:
    """Hexadecimal hash of a task: equal for equal tasks whatever the order of their entries."""
    text = json.dumps(task, sort_keys=True, allow_nan=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Store:
    """A folder of finished rows. Made on first use; every problem with it is a `StorageError`.

    What an earlier run that was killed left half-written in it is removed. Rows are read from the
    folders of `others` as well.
    """

    def __init__(self, folder: str | Path, *, others: Iterable[str | Path] = ()):
        self.folder = Path(folder)
        rows = self.folder / "rows"
        try:
            rows.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=rows):
                pass
        except OSError as error:
            raise StorageError(
                f"cannot write to {self.folder}: {error.strerror}; choose another folder"
            ) from error
        clear_left_over(self.folder)
        self._journal = Journal(rows, others=[Path(other) / "rows" for other in others])

    def load(self, key: str) -> dict[str, Any] | None:
        """The finished row of a task; None if there is none, or one that is damaged."""
        return self._journal.load(key)

    def save(self, key: str, row: Mapping[str, Any], *, sync: bool = False) -> Place:
        """Keep the finished row of a task, and return where it is.

        Raises:
            StorageError: it cannot be written; nothing half-written is left.
        """
        return self._journal.save(key, row, sync=sync)

    def keys(self) -> list[str]:
        """Tasks of which there is a row, damaged or not."""
        return self._journal.keys()

    def finish(
        self,
        rows: Iterable[Mapping[str, Any]],
        summary: Mapping[str, Any],
        *,
        labels: Mapping[str, Sequence[str]] | None = None,
    ) -> Path:
        """Write all rows of the study as one table and its summary; return the summary's path.

        Args:
            rows: as plain values and arrays.
            summary: of the study.
            labels: what the entries of the rows' arrays belong to; kept as JSON in the metadata of
                the table, `pyarrow.parquet.read_schema(file).metadata[b"bus_labels"]`.

        Raises:
            StorageError: one of them cannot be written.
        """
        table = pa.Table.from_pylist([dict(row) for row in rows])
        named = {name: json.dumps(list(texts)) for name, texts in (labels or {}).items()}
        table = table.replace_schema_metadata(named)
        _write(table, self.folder / "screening.parquet")
        return self.write_text(
            "summary.json", json.dumps(json_value(summary), indent=1, allow_nan=False) + "\n"
        )

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file of the folder, all of it or nothing, and return its path."""
        return write_text(self.folder / name, text)


def _write(table: pa.Table, path: Path) -> None:
    with replacing(path) as part:
        pq.write_table(table, part, write_page_checksum=True)
