"""Files are written whole or not at all, and nothing half-written stays."""

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
from click.testing import CliRunner

import gridshift as gs
from gridshift import storage
from gridshift.cli import main
from gridshift.errors import StorageError
from gridshift.storage import clear_left_over, replacing, write_bytes, write_text

OLD = b"the old content"


def parts(folder):
    return list(folder.glob(".gridshift-*"))


def test_the_file_appears_at_the_end_with_the_permissions_of_any_other(tmp_path):
    path = tmp_path / "deep" / "er" / "file.txt"
    with replacing(path) as part:
        part.write_text("new")
        assert not path.exists()
        assert part.parent == path.parent
    assert path.read_text() == "new"
    (tmp_path / "plain").write_text("")
    assert path.stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert os.listdir(path.parent) == ["file.txt"]


@pytest.mark.parametrize(
    ("error", "told"),
    [(OSError(28, "No space left on device"), StorageError), (KeyboardInterrupt(), BaseException)],
)
def test_a_write_that_ends_half_way_leaves_the_old_file_and_no_other(tmp_path, error, told):
    path = tmp_path / "file"
    path.write_bytes(OLD)

    def write():
        with replacing(path) as part:
            part.write_bytes(b"half")
            raise error

    with pytest.raises(told, match="file: No space left" if told is StorageError else None):
        write()
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["file"]


def test_writers_of_one_file_at_once_never_mix(tmp_path):
    path, failures = tmp_path / "file", []

    def write(letter):
        try:
            for _ in range(50):
                write_bytes(path, letter * 5000)
                clear_left_over(tmp_path)
                assert len(set(path.read_bytes())) == 1
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(bytes([65 + i]),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(path.read_bytes()) == 5000
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_cleared_and_what_a_living_one_writes_is_not(tmp_path):
    code = (
        "import sys, time; from gridshift.storage import replacing\n"
        "with replacing(sys.argv[1]) as part:\n"
        "    part.write_bytes(b'half'); print('writing', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"writing\n"
        clear_left_over(tmp_path)
        assert len(parts(tmp_path)) == 1
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert len(parts(tmp_path)) == 1
    write_text(tmp_path / "other", "ä")  # the first write of this process in the folder
    assert os.listdir(tmp_path) == ["other"]
    assert (tmp_path / "other").read_bytes() == b"\xc3\xa4"


def test_a_folder_is_looked_through_once_unless_asked(tmp_path):
    write_text(tmp_path / "first", "")
    left = tmp_path / ".gridshift-0.part"
    left.write_text("")
    write_text(tmp_path / "second", "")
    assert left.exists()
    clear_left_over(tmp_path)
    assert not left.exists()
    (tmp_path / ".other.part").write_text("")
    clear_left_over(tmp_path)
    assert (tmp_path / ".other.part").exists()  # not ours


def test_a_part_that_is_cleared_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    lock, made = storage._lock, []

    def late(descriptor, *, wait):
        if not made:  # somebody clears between the making and the lock
            made.extend(parts(tmp_path))
            made[0].unlink()
        lock(descriptor, wait=wait)

    monkeypatch.setattr(storage, "_lock", late)
    storage._cleared.add(tmp_path.resolve())
    write_bytes(tmp_path / "file", b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert len(made) == 1


def test_a_folder_that_cannot_be_made_is_told_with_the_files_name(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match=r"cannot write .*file/more/x: Not a directory"):
        write_text(tmp_path / "file" / "more" / "x", "")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 96 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except OSError:
        done = False
    if not done:
        pytest.skip("no permission to mount a small disk")
    yield folder
    for _ in range(10):
        if subprocess.run(["umount", str(folder)], check=False).returncode == 0:
            break
        time.sleep(0.1)


def _table(path):
    from gridshift.exchange.tables import write_table

    write_table({"a": np.random.default_rng(0).random(60_000)}, path)


def _row(path):
    from gridshift.study.store import Store

    store = Store(path.parent)
    store.save("a" * 32, {"outage": "line:1", "bus": list(np.random.default_rng(0).random(60_000))})


def _figure(path):
    import matplotlib.pyplot as plt

    from gridshift_paper.report import save_figure

    figure = plt.figure()
    figure.gca().imshow(np.random.default_rng(0).random((400, 400)))
    save_figure(figure, path)


def _checkpoint(path):
    import torch

    from gridshift.learn.training_loop import _Checkpoint

    layer = torch.nn.Linear(200, 200)
    _Checkpoint(path, layer, torch.optim.Adam(layer.parameters()), identity="").write(1)


def test_a_study_whose_report_finds_no_room_is_shown_all_the_same(tmp_path, monkeypatch):
    def full(*_):
        raise StorageError("cannot write report.html: No space left on device")

    monkeypatch.setattr("gridshift.study.report.write_report", full)
    run = CliRunner().invoke(
        main, ["screen", "case14", "--scenarios", "20", "--out", str(tmp_path)]
    )
    assert run.exit_code == 1
    assert "the study is finished, but its files are not written: cannot write" in run.stderr
    assert "report:" not in run.stdout
    whole = gs.screen(gs.ScreenConfig(grid="case14", num_scenarios=20))
    worst = whole.rows[0].outage
    assert f" 1  {worst}" in run.stdout
    assert "15 outages, 20 scenarios each" in run.stdout


@pytest.mark.parametrize(
    ("name", "write"),
    [("t.csv", _table), ("t.csv.gz", _table), ("t.parquet", _table), ("row", _row),
     ("f.svg", _figure), ("f.png", _figure), ("training.checkpoint", _checkpoint)],
)  # fmt: skip
def test_a_full_disk_is_one_error_with_the_files_name_and_leaves_nothing(small_disk, name, write):
    with pytest.raises(StorageError, match=r"cannot write .*small/.*: .*[Nn]o space left"):
        write(small_disk / name)
    left = [file for file in small_disk.rglob("*") if file.is_file()]
    assert left == []
    with suppress(StorageError):
        write_bytes(small_disk / "small", b"x" * 1000)
    assert (small_disk / "small").stat().st_size == 1000
