"""Studies that are killed at random moments, again and again: `python -m tests.study.killed`.

A study that is killed is started anew in its folder, every second time only to be killed again;
once it comes to its end it is compared with an undisturbed one, and the next begins in an empty
folder.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from gridshift.study.journal import BEGIN

STUDY = ("screen", "case30", "--contingencies", "all", "--workers", "2")


def started(folder: Path, scenarios: int) -> subprocess.Popen:
    """The study as a process of its own, which tells where it is if a signal ends it."""
    arguments = [*STUDY, "--scenarios", str(scenarios), "--out", str(folder)]
    code = f"from gridshift.cli import main; main({arguments})"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    return subprocess.Popen(command, **quiet)  # type: ignore[call-overload]


def ended_well(process: subprocess.Popen) -> None:
    """Pass if the study came to its end; else with its exit code, and all that it said.

    A code below 0 is a signal: -9 without a word is the system's, for want of memory.
    """
    _, told = process.communicate(timeout=600)
    assert process.returncode == 0, f"exit code {process.returncode}: {told.decode()!r}"


def finished(folder: Path, scenarios: int) -> str:
    """All of the final table but for the times, as text, after the study has come to its end."""
    ended_well(started(folder, scenarios))
    return table(folder)


def table(folder: Path) -> str:
    """All of the final table but for the times, as text: NaN is equal to NaN there."""
    rows = pq.read_table(folder / "screening.parquet").drop_columns(["cost"])
    return repr(rows.to_pylist())


def survived(times: int, seed: int, root: Path, scenarios: int = 100_000) -> list[int]:
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
        process = started(folder, scenarios)
        try:
            process.wait(chance.uniform(seconds / 4, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            stored.append(sum(f.read_bytes().count(BEGIN) for f in folder.rglob("*.rows")))
            if chance.random() < 0.5 and len(stored) < times:
                continue
        else:
            ended_well(process)
        assert finished(folder, scenarios) == expected
        number += 1
    return stored


def main() -> None:
    """Kill, compare, and tell how far each killed study had come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scenarios", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stored = survived(given.times, given.seed, Path(folder), given.scenarios)
    print(f"killed {len(stored)} times, with these numbers of rows stored: {stored}")
    print("all final tables are equal to the undisturbed study's")


if __name__ == "__main__":
    main()
