"""A grid read before comes from the cache, number for number, and a damaged cache is no harm."""

import subprocess
import sys

import numpy as np
import pytest

import gridshift as gs
from gridshift import caches
from gridshift.errors import GridFileError, GridshiftWarning, StorageError
from gridshift.grid.network_file import network_content, network_of
from gridshift.grid.readers import read_before
from tests.reference.kept_grids import assert_same, from_cache, from_source, no_readers
from tests.reference.matpower_equations import case_file

TWO_BUSES = """function mpc = two
mpc.version = '2'; mpc.baseMVA = 100;
mpc.bus = [1 3 0 0 0 0 1 1 0 110 1 1.1 0.9; 2 1 20 5 0 0 1 1 0 110 1 1.1 0.9;
           7 4 3 0 0 0 1 1 0 1 1 2 0];
mpc.gen = [1 20 0 9 -9 1 100 1 99 0];
mpc.branch = [1 2 0.01 0.1 0 0 0 0 0 0 1 -360 360];
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache."""
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "grids"


@pytest.fixture
def two(tmp_path):
    path = tmp_path / "two.m"
    path.write_text(TWO_BUSES)
    return path


@pytest.mark.parametrize("name", ["case9", "case118", "example_multivoltage", "mv_oberrhein"])
def test_a_built_in_grid_comes_from_the_cache_bit_for_bit(name):
    assert_same(from_source(name), from_cache(name))


@pytest.mark.parametrize("name", ["case4_dist", "case9", "case24_ieee_rts", "case33bw", "case300"])
def test_a_matpower_file_comes_from_the_cache_bit_for_bit(name):
    path = case_file(name)
    assert_same(from_source(path), from_cache(path))


def test_a_pandapower_file_comes_from_the_cache_bit_for_bit(tmp_path):
    import pandapower

    path = tmp_path / "net.json"
    pandapower.to_json(pandapower.networks.case30(), str(path))
    assert_same(from_source(path), from_cache(path))


def test_what_reading_warned_of_is_told_at_every_reading(two):
    told = []
    for _ in range(2):
        with pytest.warns(GridshiftWarning, match="left out are 1 load drawing 3.0 MW") as met:
            gs.read_grid(two)
        told.append([str(w.message) for w in met])
        assert all(w.filename == __file__ for w in met)
    assert told[0] == told[1]


def test_a_changed_file_is_read_again(two):
    with pytest.warns(GridshiftWarning):
        before = gs.read_grid(two)
    two.write_text(TWO_BUSES.replace("20 5", "21 5"))
    with pytest.warns(GridshiftWarning):
        assert gs.read_grid(two).load_power[0].real == pytest.approx(0.21)
    assert before.load_power[0].real == pytest.approx(0.2)


def test_equal_files_of_two_names_keep_their_names(two, tmp_path):
    other = tmp_path / "other.m"
    other.write_text(TWO_BUSES)
    for path in (two, other, two):
        with pytest.warns(GridshiftWarning, match=f"^{path.stem}: "):
            network = gs.read_grid(path)
        assert (network.name, network.origin) == (path.stem, f"MATPOWER {path.name}")


def test_a_change_of_the_readers_or_of_pandapower_empties_the_cache(monkeypatch):
    keys = {read_before._key("case9", b"")}
    monkeypatch.setattr(read_before, "_own_code", lambda: b"another reader")
    keys.add(read_before._key("case9", b""))
    monkeypatch.setattr(read_before, "version", lambda package: "99")
    keys.add(read_before._key("case9", b""))
    assert len(keys) == 3


@pytest.mark.parametrize("harm", ["a bit", "cut off", "empty", "text", "of another grid"])
def test_a_damaged_entry_is_ignored_and_written_anew(harm, cache):
    network = gs.read_grid("case9")
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    if harm == "of another grid":
        gs.read_grid("case14")
        (other,) = set(cache.iterdir()) - {path}
        path.write_bytes(other.read_bytes())
    else:
        middle = len(whole) // 2
        flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        path.write_bytes(
            {"a bit": flipped, "cut off": whole[:-9], "empty": b"", "text": b"hello\n"}[harm]
        )
    assert_same(network, gs.read_grid("case9"))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("body", [b"", b"no zip", b"PK\x03\x04 nothing"])
def test_a_checksum_alone_makes_no_network(body):
    from gridshift.grid.network_file import _first_line

    with pytest.raises(StorageError):
        network_of(_first_line("key", body) + body, key="key")


def test_objects_are_never_unpickled(monkeypatch):
    import io

    from gridshift.grid.network_file import _first_line

    body = io.BytesIO()
    np.savez(body, json=np.array([{}], object))
    content = _first_line("key", body.getvalue()) + body.getvalue()
    with pytest.raises(StorageError, match="pickle"):
        network_of(content, key="key")


def test_the_content_belongs_to_its_key():
    content = network_content(gs.read_grid("case9"), ["a note"], key="one")
    assert network_of(content, key="one")[1] == ["a note"]
    with pytest.raises(StorageError):
        network_of(content, key="other")


def test_grids_unused_for_longest_make_room(two, cache, monkeypatch):
    monkeypatch.setattr(read_before, "MOST_FILES", 2)
    for name in ("case9", "case14", "case9", "case30"):
        gs.read_grid(name)
    assert len(list(cache.iterdir())) == 2
    with no_readers():
        gs.read_grid("case9")
    monkeypatch.setattr(read_before, "MOST_BYTES", 10)
    with pytest.warns(GridshiftWarning):
        gs.read_grid(two)
    assert len(list(cache.iterdir())) == 2  # too large itself: not kept, and nothing lost for it


def test_refusals_are_not_kept(tmp_path, cache):
    path = tmp_path / "bad.m"
    path.write_text("function mpc = bad\nmpc.version = '1';\n")
    for _ in range(2):
        with pytest.raises(GridFileError, match="version"):
            gs.read_grid(path)
    assert not cache.exists()


@pytest.mark.filterwarnings("error")
def test_where_nothing_can_be_kept_grids_are_read_without_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr(caches, "can_write", lambda folder: False)

    def none():
        raise StorageError("no folder")

    monkeypatch.setattr(caches, "temporary_folder", none)
    monkeypatch.setattr(
        read_before, "write_bytes", lambda *_: (_ for _ in ()).throw(StorageError("read-only"))
    )
    assert gs.read_grid("case9").num_buses == 9
    monkeypatch.setattr(read_before, "cache_folder", none)
    assert gs.read_grid("case9").num_buses == 9


def test_a_second_run_loads_no_pandapower(cache):
    code = (
        "import sys, gridshift\nn = gridshift.read_grid('case9')\n"
        "print(n.digest, 'pandapower' in sys.modules)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs[0][0] == runs[1][0]
    assert [run[1] for run in runs] == ["True", "False"]
