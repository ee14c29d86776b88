"""A study on disk: the rows of finished tasks, then tables, summary and report.

A folder holds the row of each finished task in `rows` (`journal`), and for the last finished study
`screening.parquet` (all rows, ranked), `summary.json` and `report.html`. A row is found again only
by the hash of everything that it depends on, so a study resumes where it stopped and rows of
another configuration in the same folder are never taken for its own.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gridshift.errors import StorageError
from gridshift.storage import clear_left_over, replacing, write_text
from gridshift.study.journal import Journal, Place
from gridshift.study.text import json_lines

TABLE_BYTES = 1 << 27
"""Arrays of the rows that are written to the table together."""
LIST = pa.list_(pa.float64())


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
        """The finished row of a task; None if there is none, or one that is damaged.

        Its arrays stay on disk until they are looked at.
        """
        return self._journal.load(key)

    def read(self, key: str, place: Place) -> dict[str, Any] | None:
        """The row that another process has written at a place; None as for `load`."""
        return self._journal.read(key, place)

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
            labels: what the entries of the rows' arrays belong to; kept as JSON in the metadata of
                the table, `pyarrow.parquet.read_schema(file).metadata[b"bus_labels"]`.

        Raises:
            StorageError: one of them cannot be written.
        """
        named = {name: json.dumps(list(texts)) for name, texts in (labels or {}).items()}
        with replacing(self.folder / "screening.parquet") as part:
            _write(list(rows), part, named)
        return self.write_text("summary.json", json_lines(summary))

    def write_text(self, name: str, text: str) -> Path:
        """Write a text file of the folder, all of it or nothing, and return its path."""
        return write_text(self.folder / name, text)


def table_of(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """The table that `pa.Table.from_pylist` makes of rows with the same keys and types.

    That one imports pandas, which takes longer than a study of a small grid.
    """
    rows = list(rows)
    columns = {name: _column([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    return pa.Table.from_arrays([*columns.values()], names=[*columns])


def _column(values: Sequence[Any]) -> pa.Array:
    """Values of one type, by their buffers."""
    first = values[0]
    if isinstance(first, np.ndarray | list | tuple):
        ends = np.cumsum([0, *(len(value) for value in values)])
        if isinstance(first, np.ndarray):
            items = _numbers(pa.float64(), np.concatenate(values))
        else:
            flat = [item for value in values for item in value]
            items = _column(flat) if flat else _texts([])
        return pa.ListArray.from_arrays(_numbers(pa.int32(), ends.astype(np.int32)), items)
    if isinstance(first, Mapping):
        parts = {name: _column([value[name] for value in values]) for name in first}
        return pa.StructArray.from_arrays([*parts.values()], names=[*parts])
    if isinstance(first, str):
        return _texts(values)
    if isinstance(first, bool):
        bits = np.packbits(np.array(values, bool), bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    whole = all(isinstance(value, int) for value in values)
    kind, dtype = (pa.int64(), np.int64) if whole else (pa.float64(), np.float64)
    return _numbers(kind, np.array(values, dtype))


def _numbers(kind: pa.DataType, values: np.ndarray) -> pa.Array:
    buffer = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None, buffer])


def _texts(values: Sequence[str]) -> pa.Array:
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _write(rows: Sequence[Mapping[str, Any]], path: Path, metadata: Mapping[str, str]) -> None:
    """A parquet file of rows, a group of them at a time, as their arrays may be on disk."""
    names = [*rows[0]] if rows else []
    arrays = {name for name in names if isinstance(rows[0][name], np.ndarray)}
    # types of the other columns are those of all rows
    short = table_of([{name: row[name] for name in names if name not in arrays} for row in rows])
    kinds = [LIST if name in arrays else short.schema.field(name).type for name in names]
    schema = pa.schema([*zip(names, kinds, strict=True)], metadata=dict(metadata))
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as file:
        for first, last in _groups(rows, arrays):
            columns = {
                name: _column([row[name] for row in rows[first:last]]) if name in arrays
                else short[name].slice(first, last - first)
                for name in names
            }  # fmt: skip
            file.write_table(pa.table(columns, schema=schema))


def _groups(
    rows: Sequence[Mapping[str, Any]], arrays: Iterable[str]
) -> Iterator[tuple[int, int]]:  # fmt: skip
    """First row, and the one behind the last, of groups whose arrays take about `TABLE_BYTES`."""
    first, held = 0, 0
    for last, row in enumerate(rows, 1):
        held += sum(row[name].nbytes for name in arrays)
        if held >= TABLE_BYTES or last == len(rows):
            yield first, last
            first, held = last, 0
