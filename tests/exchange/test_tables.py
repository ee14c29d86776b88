"""Tables as spreadsheets and other programs write them, against pandas' reader told the dialect."""

import gzip

import numpy as np
import pandas as pd
import pytest

from gridshift.errors import GridshiftError, TableError
from gridshift.exchange.tables import numbers, read_table, write_predictions

FRAME = pd.DataFrame({
    "case": [1, 2, 3], "p_0": [0.5, -1.25e-7, 1234.5], "q ü": [1.0, 2.0, 3.5], "v": [7, -8, 9],
})  # fmt: skip
NAMES = list(FRAME.columns)


def read(path, names=NAMES):
    return numbers(read_table(path), names, source=path.name)


def refused(path, content: bytes, names=("p", "v")) -> str:
    path.write_bytes(content)
    with pytest.raises(TableError) as refusal:
        numbers(read_table(path), names, source=path.name)
    message = str(refusal.value).replace(str(path), path.name)
    assert path.name in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("sep", "decimal"), [(";", ","), (";", "."), ("\t", ","), ("\t", "."), (",", ".")]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_what_pandas_writes_for_a_country_is_read_back(decimal, sep, encoding, ending, tmp_path):
    path = tmp_path / "cases.csv"
    FRAME.to_csv(
        path, sep=sep, decimal=decimal, index=False, encoding=encoding, lineterminator=ending
    )
    expected = pd.read_csv(path, sep=sep, decimal=decimal, encoding=encoding).to_numpy()
    np.testing.assert_array_equal(read(path), expected)


@pytest.mark.parametrize(
    ("sep", "decimal"), [(";", ","), (";", "."), ("\t", ","), ("\t", "."), (",", ".")]
)
@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz"])
def test_predictions_are_written_in_the_dialect_of_the_table_that_was_read(
    sep, decimal, name, tmp_path
):
    frame = FRAME.assign(name=["line:1", f"a{sep}b", 'say "x"'])
    frame.to_csv(tmp_path / "cases.csv", sep=sep, decimal=decimal, index=False)
    table = read_table(tmp_path / "cases.csv")
    write_predictions(
        tmp_path / name, ["y"], np.array([[0.1], [1e-9], [-2.0]]), table=table,
        keep="case,p_0,name", source="cases.csv",
    )  # fmt: skip
    back = pd.read_csv(tmp_path / name, sep=sep, decimal=decimal)
    expected = frame[["case", "p_0", "name"]].assign(y=[0.1, 1e-9, -2.0])
    pd.testing.assert_frame_equal(back, expected, check_exact=True)


def test_a_compressed_file_with_a_line_that_names_the_delimiter(tmp_path):
    path = tmp_path / "cases.csv.gz"
    path.write_bytes(gzip.compress(b"sep=;\r\np;v\r\n0,5;2\r\n"))
    assert read(path, ["p", "v"]).tolist() == [[0.5, 2.0]]


def test_delimiters_at_the_ends_of_lines_and_columns_of_text_do_no_harm(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text("name;p;v;\nline:1, line:2;0,5;1;\nb;;2;\nc;1e-3;3;\n")
    table = read_table(path)
    assert table.column_names == ["name", "p", "v"]
    assert table["p"].to_pylist() == [0.5, None, 0.001]
    assert table["name"].to_pylist() == ["line:1, line:2", "b", "c"]


def test_a_comma_in_a_quoted_or_a_semicolon_in_a_plain_name(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_text('"p, MW",v\n1.5,2\n')
    assert read(path, ["p, MW", "v"]).tolist() == [[1.5, 2.0]]
    path.write_text("p; MW,v\n1.5,2\n")
    assert read(path, ["p; MW", "v"]).tolist() == [[1.5, 2.0]]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty CSV file"),
        (b"\n\n", "empty CSV file"),
        ("p;v\n1;2\n".encode("utf-16"), "save it as CSV in UTF-8"),
        ("p,vü\n1,2\n".encode("latin-1"), "byte 3 is 0xfc); save it as CSV in UTF-8"),
        (b"p,v\n1,2\n1,2,3\n", "row 2 of a.csv, '1,2,3', has 3 cells for 2 columns"),
        (b"p;v\n1;2\n\n1;2\n5\n", "row 3 of a.csv, '5', has 1 cell for 2 columns"),
        (b"p,v,p\n1,2,3\n", "more than one column p"),
        (b"p;v;p\n1,5;2;3\n", "more than one column p"),
        (b"p,w\n1,2\n", "lacks 1 of 2 columns: v"),
        (b"p,v\n1,2\n3,abc\n", "column v of a.csv holds 'abc' in row 2, where a number is needed"),
        (b"p;v\n1,5;2\nx;3\n", "column p of a.csv holds 'x' in row 2, where a number"),
        (b"p,v\n1,true\n", "column v of a.csv holds True in row 1"),
        (b"p,v\n1,2024-01-01\n", "column v of a.csv holds datetime.date(2024, 1, 1) in row 1"),
        (b"p,v\n1,\n2,\n", "column v of a.csv is empty"),
        (b"p,v\n1,2\n1,\n", "column v, row 2"),
        (b"p,v\n1,2\n1,nan\n", "column v, row 2"),
        (b"p,v\n1e400,2\n1,2\n", "column p, row 1"),
        (b"p,v\n1,2\n1,-1e300\n", "-1e+300 in column v, row 2; numbers up to 1e+30"),
        (b"p;v\n0,5;1.5\n", "decimal commas in column p and a decimal point in row 1 of column v"),
        (b"p;v\n1,234;2\n-12,345;3\n", "'1,234' in column p of a.csv may be a decimal comma or"),
        (
            b"p;v\n1.234,5;2\n",
            "'1.234,5' in row 1, where a number is needed; write numbers without",
        ),
        (b"p;v\n1 234,5;2\n", "write numbers without a separator of thousands"),
        (b'p,v\n"1,234,567.5",2\n', "write numbers without a separator of thousands"),
        (b'p,v\n"0,5",2\n', "write a decimal point, or separate the cells by semicolons"),
        (b"p,x;v\n1,0;2\n", "could be separated by ';' and ','"),
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_told_with_its_row(content, told, tmp_path):
    assert told in refused(tmp_path / "a.csv", content)


def test_a_header_alone_has_no_rows(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("p,v\n")
    assert read_table(path).num_rows == 0


@pytest.mark.parametrize("cell", ["0,981", "10,5", "1234,567", "1,2345", "1,05e2", ",5", "5,"])
def test_one_number_that_cannot_have_thousands_decides_for_the_decimal_comma(cell, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"p;v\n1,234;2\n{cell};3\n")
    assert read(path, ["p"])[:, 0].tolist() == [1.234, float(cell.replace(",", "."))]


def test_any_bytes_give_a_table_or_a_refusal(tmp_path):
    """Random files of the characters that matter."""
    rng, path = np.random.default_rng(0), tmp_path / "a.csv"
    plain, hostile = b"0123;;,.\n\n", b"pv01;,.\t\n\n\r\"' e-+\xc3\xbc\xff\0"
    read_any = 0
    for number in range(1200):
        header, alphabet = (b"", hostile) if number % 2 else (b"p;v\n", plain)
        cells = rng.choice(np.frombuffer(alphabet, np.uint8), rng.integers(1, 20))
        path.write_bytes(header + cells.tobytes())
        try:
            table = read_table(path)
            numbers(table, table.column_names, source="a.csv")
            read_any += 1
        except GridshiftError:
            continue
    assert read_any >= 5
