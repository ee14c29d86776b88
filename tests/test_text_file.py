"""Text as programs save it comes out as the letters that were saved."""

import pytest

from gridshift.errors import StorageError
from gridshift.grid.powerflow import nominal
from gridshift.grid.readers import read_grid
from gridshift.text_file import read_text
from tests.reference.matpower_equations import case_file, equations_of
from tests.reference.pandapower_equations import built

LETTERS = "mpc.a = 'Tromsø'; % naïve\r\n"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "latin-1", "cp1252"]
)
def test_every_usual_encoding_gives_the_letters_that_were_saved(tmp_path, encoding):
    path = tmp_path / "text"
    path.write_bytes(LETTERS.encode(encoding))
    assert read_text(path) == LETTERS


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16_of_both_byte_orders_is_read(tmp_path, mark):
    path = tmp_path / "text"
    order = "utf-16-le" if mark == b"\xff\xfe" else "utf-16-be"
    path.write_bytes(mark + LETTERS.encode(order))
    assert read_text(path) == LETTERS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (LETTERS.encode("utf-16-le"), "it holds zero bytes; save it as UTF-8"),
        (bytes(range(256)), "it holds zero bytes"),
        (b"\xff\xfe\x00", "it begins like UTF-16 and is not"),
        (None, "No such file or directory"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, content, said):
    path = tmp_path / "text"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StorageError, match=said):
        read_text(path)


def test_a_file_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("gridshift.text_file.LARGEST", 1000)
    with pytest.raises(StorageError, match="more than 1,000 bytes"):
        read_text("/dev/zero")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_grid_files_with_a_byte_order_mark_are_the_grids_they_are_without(tmp_path, encoding):
    import pandapower

    text = case_file("case9").read_text(encoding="utf-8")
    (tmp_path / "case9.m").write_bytes(text.encode(encoding))
    network = read_grid(tmp_path / "case9.m")
    voltage = nominal(network, tol=1e-9).require_converged().voltage[0]
    by_number = dict(zip(range(1, 10), voltage, strict=True))
    assert equations_of(case_file("case9")).residual(by_number) < 1e-8

    text = pandapower.to_json(built("case14"))
    (tmp_path / "case14.json").write_bytes(text.encode(encoding))
    assert read_grid(tmp_path / "case14.json").num_buses == len(built("case14").bus)
