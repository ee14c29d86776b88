"""CSV files of numbers as spreadsheets and tools write them: any delimiter, either decimal mark."""

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from gridshift.arguments import how_many
from gridshift.errors import TableError

DELIMITERS = (";", "\t", ",")
SAMPLE_BYTES = 1 << 22
"""Beginning of a file that decides about the delimiter; a header of many columns is long."""
SAMPLE_LINES = 100
DECIMAL_COMMA = r"\s*[+-]?(\d+,\d*|,?\d+)([eE][+-]?\d+)?\s*"
"""A number without a point."""
MAYBE_THOUSANDS = r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*"
"""1,234 is 1.234 or 1234."""
GROUPED = re.compile(r"\s*[+-]?\d{1,3}([., '\u00a0\u202f’]\d{3})+([.,]\d*)?\s*")
"""A number with a separator of thousands."""


class Dialect(NamedTuple):
    """How the cells of a file are told apart."""

    delimiter: str = ","
    skipped: int = 0
    """Lines before the header."""
    decimal: str = "."


def read_csv(path: Path) -> pa.Table:
    """The table in a CSV file; a decimal comma is read where commas don't separate the cells.

    The table's metadata hold the dialect, for `dialect_of`.

    Raises:
        TableError: naming the row of what can't be read, or what is ambiguous.
    """
    dialect = find_dialect(path)
    table = _read(path, dialect)
    unnamed = [at for at, name in enumerate(table.column_names) if not name.strip()]
    # lines that end in a delimiter have one more, empty column
    for at in reversed([at for at in unnamed if table.column(at).null_count == table.num_rows]):
        table = table.remove_column(at)
    if dialect.delimiter != ",":
        changed = _with_decimal_commas(path, dialect, table)
        dialect = dialect._replace(decimal="." if changed is table else ",")
        table = changed
    return table.replace_schema_metadata(
        {"csv.delimiter": dialect.delimiter, "csv.decimal": dialect.decimal}
    )


def dialect_of(table: pa.Table) -> Dialect:
    """How the file was written that `read_csv` read the table from; else commas and points."""
    found = {k.decode(): v.decode() for k, v in (table.schema.metadata or {}).items()}
    delimiter, decimal = found.get("csv.delimiter", ","), found.get("csv.decimal", ".")
    return Dialect(delimiter=delimiter, decimal=decimal)


def write_csv(table: pa.Table, stream: pa.NativeFile, dialect: Dialect) -> None:
    """Write a table to a binary stream, its cells told apart as the dialect has it; -0 as 0."""
    table = pa.Table.from_arrays(
        [
            pc.call_function("add", [column, pa.scalar(0.0, column.type)])
            if pa.types.is_floating(column.type)
            else column
            for column in table.columns
        ],
        names=table.column_names,
    )
    if dialect.decimal == ".":
        pa_csv.write_csv(table, stream, pa_csv.WriteOptions(delimiter=dialect.delimiter))
        return
    columns = [
        [cell and cell.replace(".", ",") for cell in pc.cast(column, pa.string()).to_pylist()]
        if pa.types.is_floating(column.type)
        else column.to_pylist()
        for column in table.columns
    ]
    lines = io.StringIO()
    writer = csv.writer(lines, delimiter=dialect.delimiter, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows(zip(*columns, strict=True))
    stream.write(lines.getvalue().encode())


def find_dialect(path: Path) -> Dialect:
    """The delimiter that gives all lines as many cells as the header; the file may name it itself.

    Raises:
        TableError: an empty file, another encoding than UTF-8, or more than one delimiter would do.
    """
    with pa.input_stream(str(path)) as stream:  # decompresses by the name's ending
        sample = stream.read(SAMPLE_BYTES)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in sample[:1000]:
        raise TableError(f"{path} is UTF-16 or no text; save it as CSV in UTF-8")
    if not sample.strip():
        raise TableError(f"{path} is an empty CSV file; its first line must name the columns")
    if len(sample) == SAMPLE_BYTES:
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    try:
        lines = sample.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path} is not in UTF-8 (byte {error.start} is {sample[error.start]:#x}); save it as "
            "CSV in UTF-8"
        ) from error
    if named := re.fullmatch(r"sep=(.)", lines[0].strip("\r\n"), re.IGNORECASE):
        return Dialect(named[1], 1)
    lines = [line for line in lines if line.strip()][:SAMPLE_LINES]
    in_header = {mark: _cells(lines[:1], mark)[0] for mark in DELIMITERS}
    found = [mark for mark in DELIMITERS if in_header[mark] > 1]
    if len(found) > 1:
        found = [mark for mark in found if len({*_cells(lines, mark)}) == 1] or found
    if len(found) > 1:
        told = " and ".join(repr(mark) for mark in found)
        raise TableError(
            f"cells of {path} could be separated by {told}; keep one of them out of the names of "
            "the columns"
        )
    return Dialect(found[0] if found else ",")


def _cells(lines: list[str], mark: str) -> list[int]:
    return [len(row) for row in csv.reader(lines, delimiter=mark)]


def _read(path: Path, dialect: Dialect, *, text: tuple[str, ...] = ()) -> pa.Table:
    """The file; columns in `text` as they are written."""
    wrong: list[pa_csv.InvalidRow] = []

    def note(row: pa_csv.InvalidRow) -> str:
        wrong.append(row)
        return "skip"

    try:
        table = pa_csv.read_csv(
            path,
            # one thread, so that rows have numbers
            read_options=pa_csv.ReadOptions(use_threads=False, skip_rows=dialect.skipped),
            parse_options=pa_csv.ParseOptions(
                delimiter=dialect.delimiter, invalid_row_handler=note
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(text, pa.string()), strings_can_be_null=True
            ),
        )
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not in UTF-8; save it as CSV in UTF-8") from error
    if wrong:
        row = wrong[0]
        raise TableError(
            f"row {row.number - 1 - dialect.skipped} of {path}, {row.text[:40]!r}, has "
            f"{how_many(row.actual_columns, 'cell')} for "
            f"{how_many(row.expected_columns, 'column')} in a CSV file "
            f"separated by {dialect.delimiter!r}"
        )
    return table


def _with_decimal_commas(path: Path, dialect: Dialect, table: pa.Table) -> pa.Table:
    """The table with columns of numbers that have a decimal comma as numbers.

    Raises:
        TableError: other columns have decimal points, or all commas could separate thousands.
    """
    names = table.column_names
    if len({*names}) < len(names):
        return table  # refused later
    commas = {
        name: cells for name in names
        if pa.types.is_string(table[name].type) and _all(cells := _text(table, name), DECIMAL_COMMA)
    }  # fmt: skip
    if not commas:
        return table
    first = next(iter(commas))
    floats = [name for name in names if pa.types.is_floating(table[name].type)]
    written = _read(path, dialect, text=tuple(floats))
    for name in floats:
        if point := next((i for i, cell in enumerate(_text(written, name), 1) if "." in cell), 0):
            raise TableError(
                f"{path} has decimal commas in column {first} and a decimal point in row {point} "
                f"of column {name}; write all numbers alike"
            )
    with_any = [cell for cells in commas.values() for cell in cells if "," in cell]
    if _all(with_any, MAYBE_THOUSANDS):
        raise TableError(
            f"{with_any[0]!r} in column {first} of {path} may be a decimal comma or a separator of "
            "thousands, as may all others; write a decimal point"
        )
    for name, cells in commas.items():
        values = [float(cell.replace(",", ".")) if cell else None for cell in cells]
        table = table.set_column(names.index(name), name, pa.array(values, pa.float64()))
    return table


def _text(table: pa.Table, name: str) -> list[str]:
    """The cells of a column of text; empty ones are ''."""
    return [cell or "" for cell in table[name].to_pylist()]


def _all(cells: list[str], pattern: str) -> bool:
    """Whether all cells that aren't empty fit, and there are some."""
    fits = re.compile(pattern).fullmatch
    return any(cells) and all(fits(cell) for cell in cells if cell)


def hint(cell: object) -> str:
    """What to do about a cell that should be a number, as the end of a sentence."""
    text = str(cell)
    if GROUPED.fullmatch(text):
        return "; write numbers without a separator of thousands"
    if re.fullmatch(DECIMAL_COMMA, text):
        return "; write a decimal point, or separate the cells by semicolons"
    return ""
