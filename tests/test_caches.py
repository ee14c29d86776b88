"""Where nothing usual can be written, the commands work, keep what they can, and say so once."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import gridshift as gs
from gridshift import caches
from gridshift.adapt.cache import cache_path
from gridshift.errors import GridshiftWarning, StorageError

SOURCES = Path(__file__).parent.parent / "src"


@pytest.fixture(scope="module")
def sealed():
    """A copy of the package that its user can't write, and that user's command; no home."""
    folder = Path(tempfile.mkdtemp(prefix="sealed-"))  # pytest's own are closed to other users
    leave_out = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(SOURCES, folder / "src", ignore=leave_out)
    (folder / "tmp").mkdir()
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.name == "tmp" else 0o555 if path.is_dir() else 0o444)
    prefix = []
    if os.geteuid() == 0:
        prefix = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if shutil.which("setpriv") is None:
            pytest.skip("the superuser may write everywhere, and can't become another")

    def gridshift(*args: str, **more: str) -> subprocess.CompletedProcess:
        env = {
            "PATH": os.environ["PATH"], "PYTHONPATH": str(folder / "src"), "COLUMNS": "200",
            "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(folder / "tmp"), "HOME": "/nonexistent",
        } | more  # fmt: skip
        command = [*prefix, sys.executable, "-m", "gridshift", *args]
        return subprocess.run(
            command, env=env, cwd="/", capture_output=True, text=True, timeout=300
        )

    if gridshift("--version").returncode:
        pytest.skip("another user can't run this Python")
    yield gridshift, folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_sealed_package_without_a_home_works_and_says_so_once(sealed):
    gridshift, folder = sealed
    user = os.getuid() or 65534
    run = gridshift("methods", "--json")
    assert run.returncode == 0, run.stderr
    (line,) = run.stderr.splitlines()
    assert line.startswith(f"Warning: compiled kernels are kept in {folder}/tmp/gridshift-{user}")
    assert "NUMBA_CACHE_DIR" in line
    run = gridshift("doctor")
    assert run.returncode == 0, run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert f"{folder}/tmp/gridshift-{user}/kernels" in run.stdout
    assert not list((folder / "tmp").glob("matplotlib-*"))  # would be made anew at every run


def test_a_folder_that_the_user_names_is_taken_without_a_word(sealed):
    gridshift, folder = sealed
    chosen = str(folder / "tmp" / "chosen")
    run = gridshift("methods", "--json", NUMBA_CACHE_DIR=chosen)
    assert (run.returncode, run.stderr) == (0, "")


def test_without_any_folder_the_reason_is_one_line(sealed):
    gridshift, folder = sealed
    run = gridshift("methods", TMPDIR=str(folder / "src"))
    if "can be written;" not in run.stderr:  # /tmp can be
        assert run.returncode == 0
    assert "Traceback" not in run.stderr


@pytest.fixture
def places(tmp_path, monkeypatch):
    """The temporary folder in one place and a cache that can't be written in another."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path / "file" / "cache"))
    caches.temporary_folder.cache_clear()
    caches._SAID.clear()
    yield tmp_path
    caches.temporary_folder.cache_clear()
    caches._SAID.clear()


@pytest.mark.filterwarnings("error")
def test_surrogates_move_to_the_temporary_folder_and_it_is_said_once(places):
    network = gs.read_grid("case14")
    with pytest.warns(GridshiftWarning, match="GRIDSHIFT_CACHE"):
        path = cache_path("surrogates", network, {"a": 1})
    assert places / "tmp" in path.parents
    assert cache_path("surrogates", network, {"a": 1}) == path
    assert cache_path("surrogates", network, {"a": 2}) != path


@pytest.mark.filterwarnings("error")
def test_what_a_shared_cache_holds_is_used_though_it_cannot_be_written(places, monkeypatch):
    network, shared = gs.read_grid("case14"), places / "shared"
    monkeypatch.setenv("GRIDSHIFT_CACHE", str(shared))
    path = cache_path("models", network, {"a": 1}, suffix=".npz")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    monkeypatch.setattr(caches, "can_write", lambda folder: shared not in (folder, *folder.parents))
    assert cache_path("models", network, {"a": 1}, suffix=".npz") == path
    with pytest.warns(GridshiftWarning):
        assert cache_path("models", network, {"a": 2}, suffix=".npz").parent != path.parent


def test_a_dot_in_the_name_of_a_grid_keeps_configurations_apart(tmp_path, monkeypatch):
    from dataclasses import replace

    monkeypatch.setenv("GRIDSHIFT_CACHE", str(tmp_path))
    network = replace(gs.read_grid("case14"), name="grid.v2")
    one, other = (cache_path("models", network, {"a": a}, suffix=".npz") for a in (1, 2))
    assert one != other
    assert one.name.startswith("grid.v2-")
    assert one.suffix == ".npz"


@pytest.mark.skipif(os.name != "posix", reason="permission bits are POSIX's")
def test_a_temporary_folder_that_others_may_write_is_not_taken(places):
    usual = places / "tmp" / f"gridshift-{os.getuid()}"
    assert caches.temporary_folder() == usual
    assert usual.stat().st_mode & 0o077 == 0
    usual.chmod(0o777)
    caches.temporary_folder.cache_clear()
    other = caches.temporary_folder()
    assert other != usual
    assert other.stat().st_mode & 0o077 == 0


def test_a_user_without_a_home_has_a_cache(places, monkeypatch):
    for name in ("GRIDSHIFT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert caches.cache_folder() == caches.temporary_folder()


def test_without_temporary_files_the_advice_is_to_name_a_folder(places, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(places / "none"))
    with pytest.raises(StorageError, match="TMPDIR"):
        caches.temporary_folder()


class Copy:
    """A copy of the package with a small kernel of its own, as an upgrade in place finds it."""

    def __init__(self, folder: Path):
        leave_out = shutil.ignore_patterns("__pycache__", "*.egg-info", "gridshift_paper")
        shutil.copytree(SOURCES, folder, ignore=leave_out)
        self.folder, self.grid = folder, folder / "gridshift" / "grid"

    def write(self, module: str, factor: int) -> None:
        """A named tuple in this module, a kernel that reads it, and one that this kernel calls."""
        (self.grid / f"{module}.py").write_text(
            "from typing import NamedTuple\n\n\nclass Pair(NamedTuple):\n    a: int\n    b: int\n"
        )
        start = "from gridshift.grid.kernels import compiled\n"
        (self.grid / "kernels" / "called.py").write_text(
            f"{start}\n\n@compiled\ndef scaled(value):\n    return {factor} * value\n"
        )
        (self.grid / "kernels" / "calling.py").write_text(
            f"{start}from gridshift.grid.kernels.called import scaled\n\n\n"
            "@compiled\ndef total(pair):\n    return scaled(pair.a) + scaled(pair.b)\n"
        )

    def total(self, module: str) -> tuple[int, int]:
        """What the kernel says of (1, 2) in a new process, and how often it came from the cache."""
        code = (
            f"from gridshift.grid.{module} import Pair\n"
            "from gridshift.grid.kernels.calling import total\n"
            "print(total(Pair(1, 2)), sum(total.stats.cache_hits.values()))"
        )
        env = {k: v for k, v in os.environ.items() if k != caches.NUMBA}
        done = subprocess.run(
            [sys.executable, "-c", code], env=env | {"PYTHONPATH": str(self.folder)},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        value, hits = map(int, done.stdout.split())
        return value, hits


def test_an_upgrade_in_place_runs_over_what_an_older_version_compiled(tmp_path):
    copy = Copy(tmp_path / "src")
    copy.write("old", factor=2)
    assert copy.total("old") == (6, 0)
    assert copy.total("old") == (6, 1)
    (copy.grid / "old.py").rename(copy.grid / "new.py")  # the kept index names a module that's gone
    assert copy.total("new") == (6, 0)
    copy.write("new", factor=3)  # of the kernel that is called: the caller's file is the same
    assert copy.total("new") == (9, 0)
    assert copy.total("new") == (9, 1)
