"""Rows in files that only grow: one record a row, written at once and checked when it is read.

Each run appends to a file of its own. A record is `BEGIN`, the length of its content, the key, a
digest of key and content, and the content: a line of JSON, then the arrays that it names as they
lie in memory. A run that is killed leaves at most its last record torn; what is torn or damaged is
not taken, and what is behind it is found again by its `BEGIN`. A file for every row would
take longer than many outages do.

Arrays of a row that is found again are not read into memory: they are views of the mapped file,
so that rows of a large grid may be many times as large as memory.
"""

import hashlib
import json
import os
import re
import secrets
import struct
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gridshift.errors import StorageError

BEGIN = b"\nrow\x00\xffgs1"
HEAD = struct.Struct(f"<{len(BEGIN)}sQ32s16s")
SUFFIX = ".rows"
LINE_END = re.compile(b"\n")


class Place(NamedTuple):
    """Where a record lies."""

    file: str
    start: int
    length: int
    """Bytes of its content."""


class Journal:
    """Rows of a folder by key; may be used by several threads at once.

    Other processes append to files of their own meanwhile; theirs are found by those who open the
    folder later, or who are told the place.
    """

    def __init__(self, folder: Path, *, others: Iterable[Path] = ()):
        self._folder, self._others = folder, tuple(others)
        self._lock = threading.Lock()
        self._file = -1
        self._mapped: dict[str, memoryview] = {}
        # names in the order of time, so that the newest row of a key is found
        self._path = folder / f"{time.time_ns():020}-{secrets.token_hex(4)}{SUFFIX}"

    @cached_property
    def _places(self) -> dict[str, list[Place]]:
        """Read when it is first asked for: who only writes does not look at what others wrote."""
        places: dict[str, list[Place]] = {}
        files = [p for one in (self._folder, *self._others) for p in one.glob(f"*{SUFFIX}")]
        for path in sorted(files, key=lambda path: path.name):
            for key, start, length in _records(path):
                places.setdefault(key, []).append(Place(str(path), start, length))
        return places

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def keys(self) -> list[str]:
        """Keys of all records, damaged ones included."""
        return list(self._places)

    def load(self, key: str) -> dict[str, Any] | None:
        """The newest undamaged row of a key; None if there is none."""
        with self._lock:
            places = [*reversed(self._places.get(key, []))]
            records = [self._record(place) for place in places]
        for place, record in zip(places, records, strict=True):
            row = read_at(key, place) if record is None else _row(record, key)
            if row is not None:
                return row
        return None

    def read(self, key: str, place: Place) -> dict[str, Any] | None:
        """The row that another process has written here, in memory; None as for `load`."""
        with self._lock:
            self._places.setdefault(key, []).append(place)
        return read_at(key, place)

    def _record(self, place: Place) -> memoryview | None:
        """A record in its mapped file; None where that can't be mapped."""
        end = place.start + HEAD.size + place.length
        mapped = self._mapped.get(place.file)
        if mapped is None or len(mapped) < end:
            try:
                with pa.memory_map(place.file) as file:
                    mapped = memoryview(file.read_buffer(file.size()))  # outlives the open file
            except OSError:
                return None
            self._mapped[place.file] = mapped
        return mapped[place.start : end] if len(mapped) >= end else None

    def save(self, key: str, row: Mapping[str, Any], *, sync: bool = False) -> Place:
        """Append a row and return where it is.

        Args:
            sync: whether other machines must find it at once.

        Raises:
            StorageError: it cannot be written; the file is as it was.
        """
        record = _record(key, row)
        with self._lock:
            try:
                if self._file < 0:
                    self._file = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
                start = os.lseek(self._file, 0, os.SEEK_END)
                try:
                    written = 0
                    while written < len(record):
                        written += os.write(self._file, record[written:])
                    if sync:
                        os.fsync(self._file)
                except OSError:
                    os.ftruncate(self._file, start)
                    if start == 0:
                        os.close(self._file)
                        self._path.unlink()
                        self._file = -1
                    raise
            except OSError as error:
                raise StorageError(
                    f"cannot write {self._path}: {error.strerror or error}"
                ) from error
            place = Place(str(self._path), start, len(record) - HEAD.size)
            if "_places" in self.__dict__:
                self._places.setdefault(key, []).append(place)
            return place


def read_at(key: str, place: Place) -> dict[str, Any] | None:
    """The row at a place; None if it is not there, damaged or another's."""
    try:
        with open(place.file, "rb") as file:
            file.seek(place.start)
            record = file.read(HEAD.size + place.length)
    except OSError:
        return None
    return _row(record, key) if len(record) >= HEAD.size else None


def _record(key: str, row: Mapping[str, Any]) -> bytes:
    arrays = {name: value for name, value in row.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in row.items() if name not in arrays}
    shapes = {name: [value.dtype.str, *value.shape] for name, value in arrays.items()}
    line = json.dumps([list(row), rest, shapes]).encode()
    # filled up, so that arrays in the mapped file lie at multiples of 8 bytes
    line += b" " * (-(HEAD.size + len(line) + 1) % 8)
    raw = b"".join(value.tobytes() for value in arrays.values())
    content = line + b"\n" + raw + b" " * (-len(raw) % 8)
    name = key.encode()
    return HEAD.pack(BEGIN, len(content), name, _digest(name, content)) + content


def _row(record: bytes | memoryview, key: str) -> dict[str, Any] | None:
    """The row of a record; None if it is damaged or another's."""
    _, length, name, digest = HEAD.unpack_from(record)
    content = record[HEAD.size :]
    if len(content) != length or name != key.encode() or digest != _digest(name, content):
        return None
    end = LINE_END.search(content)
    assert end is not None  # by the digest
    order, values, shapes = json.loads(bytes(content[: end.start()]))
    start = end.end()
    for array, (kind, *shape) in shapes.items():
        values[array] = np.frombuffer(content, kind, int(np.prod(shape)), start).reshape(shape)
        start += values[array].nbytes
    return {name: values[name] for name in order}


def _digest(key: bytes, content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, key=key, digest_size=16).digest()


def _records(path: Path) -> Iterator[tuple[str, int, int]]:
    """Key, start and length of the content of each record of a file, whole ones only."""
    try:
        with path.open("rb") as file:
            size, start = os.fstat(file.fileno()).st_size, 0
            while start + HEAD.size <= size:
                file.seek(start)
                begin, length, name, _ = HEAD.unpack(file.read(HEAD.size))
                end = start + HEAD.size + length
                if begin == BEGIN and end <= size and name.isalnum():
                    yield name.decode("ascii", "replace"), start, length
                    start = end
                else:
                    start = _next_begin(file, start + 1)
    except OSError:
        return


def _next_begin(file: Any, start: int) -> int:
    """Where the next record begins, or the end of the file."""
    file.seek(start)
    rest = file.read()
    found = rest.find(BEGIN)
    return start + (found if found >= 0 else len(rest))
