"""Tables of solved cases from any tool: parquet or CSV files whose column names are the labels."""

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gridshift.arguments import some_of
from gridshift.arrays import Real
from gridshift.errors import StorageError, TableError
from gridshift.exchange.csv_file import (
    DECIMAL_COMMA,
    Dialect,
    dialect_of,
    hint,
    read_csv,
    write_csv,
)
from gridshift.learn.moments import LARGEST
from gridshift.storage import replacing

NUMBER = r"\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|inf|nan)\s*"
PARQUET, CSV = (".parquet", ".pq"), (".csv", ".csv.gz")


def read_table(path: str | Path) -> pa.Table:
    """The table in a parquet or CSV file, whatever its columns hold.

    A CSV file has the names in its first line; see `exchange/csv_file.py` for how it is read. A
    folder is a data set of solved cases in gridfm's or PFΔ's form, see `SolvedCases.columns`.

    Raises:
        TableError: another kind of file, damaged, ambiguous, or a column name that appears twice.
        StorageError: it can't be read.
    """
    path = Path(path)
    if path.is_dir():
        from gridshift.exchange.solved_cases import read_cases

        return pa.table(read_cases(path).columns())
    kind = check_kind(path)
    try:
        table = pq.ParquetFile(path).read() if kind == "parquet" else read_csv(path)
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise TableError(f"{path} is not a {kind} file that can be read: {reason}") from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    names = table.column_names
    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise TableError(f"{path} has more than one column {some_of(twice, 6)}; rename them")
    return table


def write_table(
    columns: Mapping[str, object], path: str | Path, *, dialect: Dialect | None = None
) -> None:
    """Write columns to a parquet or CSV file, all of it or nothing.

    Args:
        dialect: how a CSV file's cells are told apart; by default commas, and points in numbers.

    Raises:
        TableError: the name of the file is of another kind.
        StorageError: it can't be written.
    """
    path = Path(path)
    kind, table = check_kind(path), pa.table(dict(columns))
    with replacing(path) as part:
        if kind == "parquet":
            pq.write_table(table, part)
        else:
            compression = "gzip" if path.name.endswith(".gz") else None
            with pa.output_stream(str(part), compression=compression) as stream:
                write_csv(table, stream, dialect or Dialect())


def write_predictions(
    path: str | Path,
    names: Sequence[str],
    predicted: Real,
    *,
    table: pa.Table,
    keep: str,
    source: str,
) -> None:
    """Write columns copied from the table of the inputs, then the predictions (N, len(names)).

    A CSV file is written as the one was that the table was read from: `;`, decimal commas.

    Raises:
        TableError: `keep` fits no column, or a predicted one.
        StorageError: the file can't be written.
    """
    kept = choose_columns(table.column_names, keep, what="keep", source=source) if keep else []
    if both := [name for name in kept if name in names]:
        raise TableError(f"{some_of(both, 6)} would be both copied from {source} and predicted")
    columns = {name: table[name] for name in kept}
    columns |= {name: pa.array(predicted[:, at]) for at, name in enumerate(names)}
    write_table(columns, path, dialect=dialect_of(table))


def choose_columns(names: Sequence[str], patterns: str, *, what: str, source: str) -> list[str]:
    """Names that fit any of the comma-separated patterns ('p_*,q_*'), in the order of the table.

    Raises:
        TableError: a pattern fits no column.
    """
    chosen: set[str] = set()
    for pattern in filter(None, (part.strip() for part in patterns.split(","))):
        fits = {name for name in names if name == pattern or fnmatchcase(name, pattern)}
        if not fits:
            raise TableError(
                f"no column of {source} fits {what} {pattern!r}; it has {some_of(names, 6)}"
            )
        chosen |= fits
    if not chosen:
        raise TableError(f"no columns chosen as {what} of {source}; it has {some_of(names, 6)}")
    return [name for name in names if name in chosen]


def numbers(table: pa.Table, names: Sequence[str], *, source: str) -> Real:
    """(N, len(names)) the columns of these names, in this order.

    Raises:
        TableError: a column is missing, isn't of numbers, or holds an empty cell, NaN, infinity
            or a number too large to be squared.
    """
    if missing := [name for name in names if name not in table.column_names]:
        raise TableError(
            f"{source} lacks {len(missing)} of {len(names)} columns: {some_of(missing, 6)}"
        )
    out = np.empty((table.num_rows, len(names)))
    for at, name in enumerate(names):
        column = table[name]
        if not _numeric(column.type):
            raise TableError(_no_number(column, name, source))
        out[:, at] = pc.cast(column, pa.float64()).to_numpy()
    bad = ~np.isfinite(out)
    if bad.any():
        row, at = np.argwhere(bad)[0]
        raise TableError(
            f"{source} has {bad.any(1).sum()} of {len(out)} rows with an empty cell, NaN or "
            f"infinity, the first in column {names[at]}, row {row + 1}; keep solved rows only"
        )
    large = np.abs(out) > LARGEST
    if large.any():
        row, at = np.argwhere(large)[0]
        raise TableError(
            f"{source} has {out[row, at]:g} in column {names[at]}, row {row + 1}; numbers up to "
            f"{LARGEST:g} can be worked with: choose another unit, or leave the row out"
        )
    return out


def check_kind(path: Path) -> str:
    """'parquet' or 'CSV', as the name of the file ends; raises TableError if neither."""
    name = path.name.lower()
    if name.endswith(PARQUET):
        return "parquet"
    if name.endswith(CSV):
        return "CSV"
    raise TableError(
        f"{path} is not a table that gridshift knows; files end in {', '.join((*PARQUET, *CSV))}"
    )


def _no_number(column: pa.ChunkedArray, name: str, source: str) -> str:
    """What is wrong with a column that isn't of numbers, and where first.

    Decimal commas are told only where nothing else is wrong: next to a text, they are not.
    """
    found = [
        (row, cell) for row, cell in enumerate(column.to_pylist(), 1)
        if cell is not None and not (isinstance(cell, str) and re.fullmatch(NUMBER, cell))
    ]  # fmt: skip
    if found:
        texts = (
            (row, cell) for row, cell in found
            if not (isinstance(cell, str) and re.fullmatch(DECIMAL_COMMA, cell))
        )  # fmt: skip
        row, cell = next(texts, found[0])
        return (
            f"column {name} of {source} holds {cell!r} in row {row}, where a number is needed"
            + hint(cell)
        )
    if column.null_count == len(column):
        return f"column {name} of {source} is empty; numbers are needed"
    return f"column {name} of {source} holds numbers as text ({column.type}); store them as numbers"


def _numeric(kind: pa.DataType) -> bool:
    types = pa.types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
