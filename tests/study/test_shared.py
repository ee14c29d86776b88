"""A study that others work on: the same rows to the bit, and no fault without a name."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from gridshift.cli import main
from gridshift.errors import GridshiftError, StorageError, WorkersLostError
from gridshift.grid.readers import read_grid
from gridshift.study import pieces, shared
from gridshift.study import swept as study_of_outages
from gridshift.study.chosen_outages import chosen_outages
from gridshift.study.plan import plan
from gridshift.study.screening import ScreenConfig, Screening
from gridshift.study.set_up import set_up
from gridshift.study.shards import merge, study_shard
from gridshift.study.sweep import screen
from gridshift.study.swept import Shard

CONFIG = ScreenConfig(grid="case30", contingencies="all", num_scenarios=100, workers=2)


def assert_same(found: Screening, expected: Screening) -> None:
    """All rows, every number to the bit, but for what they took."""
    assert [row.outage for row in found.rows] == [row.outage for row in expected.rows]
    for one, other in zip(found.rows, expected.rows, strict=True):
        theirs = other.stored()
        for name, value in one.stored().items():
            if name != "cost":
                np.testing.assert_equal(value, theirs[name], err_msg=f"{one.outage} {name}")


@pytest.fixture(scope="module")
def expected() -> Screening:
    return screen(CONFIG)


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


def is_mapped(array: np.ndarray | None) -> bool:
    """Whether an array is a view of a file."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, memoryview) and isinstance(array.obj, pa.Buffer)


def shard(folder, number: int, of: int, config: ScreenConfig = CONFIG):
    setting = set_up(config, read_grid(config.grid))
    return study_shard(setting, chosen_outages(setting), Shard(number, of), folder=folder)


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_rows_beyond_what_is_held_in_memory_are_those_on_disk(
    executor, processes, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(study_of_outages, "ROWS_BYTES", 0)
    pool = processes if executor == "processes" else None
    found = screen(CONFIG, folder=tmp_path, executor=pool)
    assert_same(found, expected)
    assert all(is_mapped(row.branch_loading) for row in found.rows if row.num_scenarios)


# executors


def test_processes_find_what_threads_find_and_resume(processes, expected, tmp_path):
    found = screen(CONFIG, executor=processes, folder=tmp_path)
    assert_same(found, expected)
    assert found.cost["resumed"] == 0
    again = screen(CONFIG, executor=processes, folder=tmp_path)
    assert again.cost["resumed"] == len(expected.rows)
    assert_same(again, expected)


def test_workers_draw_what_a_study_file_describes_and_adapt_surrogates(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(
        'grid = "case30"\nscenarios = 64\n[[loads.group]]\ndistribution = "normal"\nsd = 0.1\n'
    )
    (tmp_path / "few.txt").write_text("line:1\nline:5\nline:9\n")
    few = {"contingencies": str(tmp_path / "few.txt"), "num_context": 10, "num_holdout": 10}
    for config in (
        ScreenConfig.of_study(file, workers=2),
        replace(CONFIG, method="compensation", **few),
    ):
        with ThreadPoolExecutor(2) as pool:  # they read the folder as other processes do
            found = screen(config, executor=pool, folder=tmp_path / config.method)
        assert_same(found, screen(config))


def test_the_scenarios_of_one_outage_are_shared_and_give_the_same_bits(monkeypatch, tmp_path):
    config = replace(CONFIG, num_scenarios=10_000)
    expected = screen(config)
    monkeypatch.setattr(pieces, "BUS_ROWS", 30 * 4096)
    assert len(pieces.runs(set_up(config, read_grid("case30")))) == 3
    with ThreadPoolExecutor(2) as pool:
        assert_same(screen(config, executor=pool, folder=tmp_path), expected)


def test_a_killed_worker_is_told_and_the_study_goes_on(expected, tmp_path):
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        victim = pool.submit(os.getpid).result()

        def kill(*_: object) -> None:
            os.kill(victim, signal.SIGKILL)

        with pytest.raises(WorkersLostError, match="the same command goes on from there"):
            screen(CONFIG, executor=pool, folder=tmp_path, progress=kill)
    found = screen(CONFIG, folder=tmp_path)
    assert 0 < found.cost["resumed"] < len(found.rows)
    assert_same(found, expected)


def test_a_full_disk_of_a_worker_is_told(monkeypatch, tmp_path):
    setting = set_up(CONFIG, read_grid("case30"))
    study = shared.share(setting, tmp_path)
    piece = pieces.Piece(chosen_outages(setting).contingencies[0].outage)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StorageError, match="No space left"):
        shared.run_piece(str(tmp_path), study, pieces.Piece((piece.outages,)))


def test_workers_need_a_folder():
    with ThreadPoolExecutor(1) as pool, pytest.raises(GridshiftError, match="folder"):
        screen(CONFIG, executor=pool)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": "0.0.1"}, "begun by gridshift 0.0.1"),
        ({"format": 1}, "rows of format 1"),
        ({"grid_digest": "0"}, ""),
        ({"config": {"grid": "case30", "num_scenarios": 7}}, "is not what its study is of"),
    ],
)
def test_a_worker_of_another_version_or_study_is_refused(change, message, tmp_path):
    setting = set_up(CONFIG, read_grid("case30"))
    study = shared.share(setting, tmp_path)
    told = tmp_path / "shared" / study / "study.json"
    told.write_text(json.dumps(json.loads(told.read_text()) | change))
    if message:
        with pytest.raises(StorageError, match=message):
            shared.shared_setting(tmp_path, study)
    else:  # what is told for people decides nothing
        assert shared.shared_setting(tmp_path, study).network.digest == setting.network.digest


def test_a_damaged_grid_is_refused(tmp_path):
    study = shared.share(set_up(CONFIG, read_grid("case30")), tmp_path)
    grid = tmp_path / "shared" / study / "grid"
    grid.write_bytes(grid.read_bytes()[:-5] + b"wrong")
    with pytest.raises(StorageError, match="damaged"):
        shared.shared_setting(tmp_path, study)


def test_a_dask_cluster_over_tls_finds_the_same_and_outlives_a_killed_worker(expected, tmp_path):
    distributed = pytest.importorskip("distributed", reason="Dask is an extra: gridshift[dask]")
    security = distributed.Security.temporary()
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, security=security,
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        assert cluster.scheduler_address.startswith("tls://")
        victims = [*client.run(os.getpid).values()][:1]

        def kill_once(*_: object) -> None:
            while victims:
                os.kill(victims.pop(), signal.SIGKILL)

        executor = client.get_executor()
        found = screen(CONFIG, executor=executor, folder=tmp_path, progress=kill_once)
    assert not victims
    assert_same(found, expected)


# shards


@pytest.mark.parametrize("apart", [True, False])
def test_shards_merge_to_the_study(apart, expected, tmp_path):
    folders = [tmp_path / str(number if apart else 0) for number in range(3)]
    for number, folder in enumerate(folders, 1):
        done = shard(folder, number, 3)
        assert done.num_outages == len(expected.rows)
    found = merge(folders if apart else folders[:1], out=tmp_path / "all")
    assert_same(found, expected)
    assert (tmp_path / "all" / "report.html").exists()


def test_a_missing_shard_is_named_and_run_again(expected, tmp_path):
    for number in (1, 3):
        shard(tmp_path, number, 3)
    with pytest.raises(StorageError, match=r"--shard 2/3 \(14: "):
        merge([tmp_path])
    half_written = sorted((tmp_path / "rows").glob("*.rows"))[0]
    half_written.write_bytes(half_written.read_bytes()[:-100])
    shard(tmp_path, 2, 3)
    with pytest.raises(StorageError, match=r"--shard 1/3 \(1: "):
        merge([tmp_path])
    shard(tmp_path, 1, 3)
    assert_same(merge([tmp_path]), expected)


def test_shards_of_different_studies_are_refused(tmp_path):
    shard(tmp_path / "a", 1, 2)
    shard(tmp_path / "b", 2, 2, replace(CONFIG, seed=1))
    shard(tmp_path / "c", 2, 2, replace(CONFIG, contingencies="generators"))
    with pytest.raises(StorageError, match="different studies: seed 0 and 1"):
        merge([tmp_path / "a", tmp_path / "b"])
    with pytest.raises(StorageError, match="another study: num_scenarios 100 and 101; choose"):
        shard(tmp_path / "a", 2, 2, replace(CONFIG, num_scenarios=101))
    with pytest.raises(StorageError, match="another list of outages"):
        merge([tmp_path / "a", tmp_path / "c"])
    with pytest.raises(StorageError, match="no shard of a study"):
        merge([tmp_path / "none"])
    with ThreadPoolExecutor(1) as pool:
        screen(CONFIG, executor=pool, folder=tmp_path / "whole")
    with pytest.raises(StorageError, match="a study without --shard needs no merge"):
        merge([tmp_path / "whole"])


def test_what_is_shared_is_valid_json_and_keeps_rates(tmp_path):
    listed = tmp_path / "list.txt"
    listed.write_text("line:1; tie; 0.5; 8\nline:2\n")
    done = shard(tmp_path / "s", 1, 1, replace(CONFIG, contingencies=str(listed)))
    assert (done.finished, done.num_pieces) == (2, 2)
    told = next((tmp_path / "s").rglob("study.json")).read_text()
    json.loads(told, parse_constant=lambda constant: pytest.fail(constant))
    found = {row.outage: row for row in merge([tmp_path / "s"]).rows}
    assert (found["line:1"].failures_per_year, found["line:1"].repair_hours) == (0.5, 8)
    assert np.isnan(found["line:2"].failures_per_year)


def test_a_plan_of_outages_that_cannot_be_studied_says_why():
    network = read_grid("case14")
    crossed = replace(network, gen_q_min=network.gen_q_max + 1)
    config = ScreenConfig(grid="case14", num_scenarios=50, q_limits=True)
    setting = set_up(config, crossed)
    with pytest.raises(GridshiftError, match="no range"):
        plan(setting, chosen_outages(setting))


def test_a_shard_beyond_the_pieces_of_a_study_says_that_it_has_nothing_to_do(tmp_path):
    (tmp_path / "list.txt").write_text("line:1\nline:2\n")
    asked = ["screen", "case14", "--contingencies", str(tmp_path / "list.txt"), "--scenarios", "5"]
    asked += ["--out", str(tmp_path / "out"), "--shard"]
    told = CliRunner().invoke(main, [*asked, "3/4"]).stdout
    assert "shard 3/4 has nothing to do, as the study is 2 pieces" in told
    assert "shard 2/4 is done" in CliRunner().invoke(main, [*asked, "2/4"]).stdout


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(GridshiftError, match="no part of a study"):
        Shard.parse(text)


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import multiprocessing, os, signal, time\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from gridshift.study.shared import begin_worker\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    with ProcessPoolExecutor(1, spawn, initializer=begin_worker) as pool:\n"
        "        pool.submit(os.getpid).result()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    # the pipe is closed once no process has it any more
    ended = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, timeout=60)
    assert ended.returncode == -signal.SIGKILL
