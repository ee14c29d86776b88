"""Studies that are killed at random moments, again and again: `python -m tests.study.killed`.

A study that is killed is started anew in its folder, every second time only to be killed again;
once it comes to its end it is compared with an undisturbed one, and the next begins in an empty
folder. With `--scheduler processes` the study or one of its workers is killed, with `--scheduler
dask` the study, the scheduler or a worker of a cluster of three processes of its own.
"""

import argparse
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

from gridshift.study.journal import BEGIN

STUDY = ("screen", "case30", "--contingencies", "all", "--workers", "2")
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
DASK = Path(sys.executable).with_name("dask")


class Started:
    """A study as processes of its own."""

    def __init__(self, folder: Path, scenarios: int, scheduler: str = "threads"):
        self.cluster: list[subprocess.Popen] = []
        arguments = [*STUDY, "--scenarios", str(scenarios), "--out", str(folder)]
        if scheduler == "dask":
            scheduler = self._cluster(folder.with_suffix(f".{time.time_ns()}.json"))
        arguments += ["--scheduler", scheduler]
        code = (
            f"from gridshift.cli import main\nif __name__ == '__main__':\n    main({arguments})\n"
        )
        script = folder.with_suffix(".py")  # workers that are spawned read the main module again
        script.write_text(code)
        command = [sys.executable, "-X", "faulthandler", script]
        self.study = subprocess.Popen(command, **QUIET)  # type: ignore[call-overload]

    def _cluster(self, told: Path) -> str:
        """The address of a new scheduler with two workers."""
        common = [DASK, "scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", told]
        self.cluster.append(subprocess.Popen(common, stderr=subprocess.DEVNULL))
        while not told.exists():
            time.sleep(0.1)
        worker = [DASK, "worker", "--scheduler-file", told, "--nthreads", "1", "--no-dashboard"]
        for _ in range(2):
            command = [*worker, "--no-nanny", "--death-timeout", "10"]
            self.cluster.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        return json.loads(told.read_text())["address"]

    def kill_one(self, chance: random.Random) -> None:
        """Kill the study, a worker of it, or a process of its cluster, and wait for its end."""
        children = Path(f"/proc/{self.study.pid}/task/{self.study.pid}/children")
        workers = [] if self.cluster else children.read_text().split()
        victims = [self.study.pid, *map(int, workers), *(one.pid for one in self.cluster)]
        with contextlib.suppress(ProcessLookupError):  # it may have come to its end
            os.kill(chance.choice(victims), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.study.communicate(timeout=60)
        self.end()

    def end(self) -> None:
        """End what is left."""
        for process in (self.study, *self.cluster):
            process.kill()
            process.wait()


def ended_well(process: subprocess.Popen) -> None:
    """Pass if the study came to its end; else with its exit code, and all that it said.

    A code below 0 is a signal: -9 without a word is the system's, for want of memory.
    """
    _, told = process.communicate(timeout=600)
    assert process.returncode == 0, f"exit code {process.returncode}: {told.decode()!r}"


def finished(folder: Path, scenarios: int) -> str:
    """All of the final table but for the times, as text, after the study has come to its end."""
    ended_well(Started(folder, scenarios).study)
    return table(folder)


def table(folder: Path) -> str:
    """All of the final table but for the times, as text: NaN is equal to NaN there."""
    rows = pq.read_table(folder / "screening.parquet").drop_columns(["cost"])
    return repr(rows.to_pylist())


def survived(
    times: int, seed: int, root: Path, scenarios: int = 100_000, scheduler: str = "threads",
    told: Callable[[str], object] = str,
) -> list[int]:  # fmt: skip
    """Kill so many times; rows that were stored already, each time.

    Raises:
        AssertionError: a final table that isn't that of the undisturbed study.
    """
    chance = random.Random(seed)
    finished(root / "compiles", scenarios)
    began = time.perf_counter()
    expected = finished(root / "undisturbed", scenarios)
    seconds = time.perf_counter() - began
    number, stored = 0, []
    while len(stored) < times:
        folder = root / f"killed{number}"
        process = Started(folder, scenarios, scheduler)
        try:
            process.study.wait(chance.uniform(seconds / 4, seconds))
        except subprocess.TimeoutExpired:
            process.kill_one(chance)
            stored.append(sum(f.read_bytes().count(BEGIN) for f in folder.rglob("*.rows")))
            told(f"kill {len(stored)}: {stored[-1]} rows were there")
            if chance.random() < 0.5 and len(stored) < times:
                continue
        else:
            ended_well(process.study)
            process.end()
        assert finished(folder, scenarios) == expected
        number += 1
    return stored


def main() -> None:
    """Kill, compare, and tell how far each killed study had come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenarios", type=int, default=100_000)
    parser.add_argument("--scheduler", choices=["threads", "processes", "dask"], default="threads")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        tell = partial(print, flush=True)
        stored = survived(given.times, given.seed, root, given.scenarios, given.scheduler, tell)
    print(f"killed {len(stored)} times, with these numbers of rows stored: {stored}")
    print("all final tables are equal to the undisturbed study's")


if __name__ == "__main__":
    main()
