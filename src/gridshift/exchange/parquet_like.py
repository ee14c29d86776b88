"""Parquet files that are alike but for some numbers: written whole once, then by those alone.

Most columns of a table of solved cases are the same in every file of a data set. Encoding them
anew for each file takes pyarrow some ten times as long as the power flows. Here pyarrow writes the
first file, with the columns that change as plain numbers in one page each; the next ones are that
file with other numbers in these places. Where pyarrow lays a file out in another way than expected,
it writes every file.
"""

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gridshift.errors import StorageError

ONE_PAGE = 1 << 30
MOST_BUFFERS = 512
"""Pieces that the system takes at a time are at least 1024 on Linux and macOS."""
Columns = Mapping[str, np.ndarray]


def encode(columns: Columns, *, plain: Sequence[str], repeated: Sequence[str]) -> bytes:
    """A parquet file of columns without empty cells.

    Args:
        columns: of one length, by name.
        plain: columns whose numbers hardly repeat: uncompressed.
        repeated: columns of few different numbers, each of them many times; the numbers themselves
            stay uncompressed. All other columns are compressed.
    """
    arrays = [pa.array(column) for column in columns.values()]
    fields = [
        pa.field(name, array.type, nullable=False)
        for name, array in zip(columns, arrays, strict=True)
    ]
    left = {*plain, *repeated}
    sink = io.BytesIO()
    options: dict[str, Any] = {
        "use_dictionary": [name for name in columns if name not in plain],
        "compression": {name: "NONE" if name in left else "ZSTD" for name in columns},
        "write_statistics": False, "store_schema": False, "data_page_size": ONE_PAGE,
        "dictionary_pagesize_limit": ONE_PAGE, "max_rows_per_page": ONE_PAGE,
    }  # fmt: skip
    pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), sink, **options)
    return sink.getvalue()


class FilesAlike:
    """Writes files of the same columns and number of rows, in which only some numbers differ."""

    def __init__(self, columns: Columns, *, plain: Sequence[str], repeated: Sequence[str] = ()):
        """Lay out the file.

        Args:
            columns: of the first file.
            plain: columns that are others in every file.
            repeated: columns that are others in every file and are made of runs: the first number
                some times, then the second one as often, and so on.
        """
        self._columns, self._plain, self._repeated = columns, plain, repeated
        self._content = encode(columns, plain=plain, repeated=repeated)
        self._places = self._found()

    def write(self, path: Path, changed: Columns) -> int:
        """Write a file with these numbers, and tell its size.

        Args:
            changed: all columns that change; of a repeated one each number once.

        Raises:
            StorageError: it can't be written.
        """
        if self._places is None:
            columns = dict(self._columns)
            for name, values in changed.items():
                each = len(columns[name]) // len(values) if name in self._repeated else 1
                columns[name] = np.repeat(values, each)
            return write_pieces(path, [encode(columns, plain=self._plain, repeated=self._repeated)])
        pieces, at, content = [], 0, memoryview(self._content)
        for name, (start, end) in self._places.items():
            pieces += [
                content[at:start],
                np.ascontiguousarray(changed[name]).view(np.uint8).ravel().data,
            ]
            assert len(pieces[-1]) == end - start
            at = end
        return write_pieces(path, [*pieces, content[at:]])

    def _found(self) -> dict[str, tuple[int, int]] | None:
        """Where the changing numbers are, in the order of the file; None if that isn't certain."""
        row_group = pq.ParquetFile(io.BytesIO(self._content)).metadata.row_group(0)
        places: dict[str, tuple[int, int]] = {}
        for index, name in enumerate(self._columns):
            chunk = row_group.column(index)
            if name in self._plain:
                end = chunk.data_page_offset + chunk.total_compressed_size
                values = np.ascontiguousarray(self._columns[name])
            elif name in self._repeated and chunk.has_dictionary_page:
                end = chunk.data_page_offset
                values = _once(self._columns[name])
            else:
                continue
            start = end - values.nbytes
            if self._content[start:end] != values.tobytes():
                return None
            places[name] = (start, end)
        return places if len(places) == len(self._plain) + len(self._repeated) else None


def _once(values: np.ndarray) -> np.ndarray:
    """Each number of the runs once."""
    return values[np.flatnonzero(np.append(True, values[1:] != values[:-1]))]


def write_pieces(path: Path, pieces: Sequence[Any]) -> int:
    """Write a file of these bytes one behind the other, and tell its size.

    Raises:
        StorageError: it can't be written.
    """
    size = sum(map(len, pieces))
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
        try:
            written = _write_all(descriptor, pieces)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}") from error
    if written != size:
        raise StorageError(f"cannot write {path}: {size - written} of {size} bytes are left over")
    return size


def _write_all(descriptor: int, pieces: Sequence[Any]) -> int:
    if not hasattr(os, "writev"):  # Windows
        return sum(os.write(descriptor, piece) for piece in pieces)
    written = 0
    for first in range(0, len(pieces), MOST_BUFFERS):
        written += os.writev(descriptor, pieces[first : first + MOST_BUFFERS])
    return written
