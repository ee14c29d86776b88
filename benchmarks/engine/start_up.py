"""Time from a command to its first result: with nothing compiled, and with the cache filled.

Compiling is work of one thread, so CPU time is what it takes on a machine that nobody else uses.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

_PROGRAM = """
import json, time
began = time.process_time()
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import sample_loads, named_rng
network = read_grid("{grid}")
read = time.process_time()
rows = sample_loads(network, named_rng(network.name, "bench"), 400, regime="fixed")
solve(network, rows)
solved = time.process_time()
print(json.dumps([read - began, solved - read]))
"""


@dataclass(frozen=True, kw_only=True)
class StartUp:
    """A fresh process that reads a grid and solves 400 rows; CPU time of each part."""

    grid: str
    read_s: float
    """Imports and reading the grid; most of it is pandapower."""
    first_s: float
    """The first solve ever on this machine: the kernels are compiled."""
    second_s: float
    """The same in the next process: they come from the cache on disk."""


def start_up(grid: str = "case300") -> StartUp:
    """Time both in processes of their own, with a compile cache of their own.

    case300 has rows that go to Newton, so every kernel is needed.
    """
    with tempfile.TemporaryDirectory() as folder:
        first, second = (_run(grid, folder) for _ in range(2))
    return StartUp(grid=grid, read_s=second[0], first_s=first[1], second_s=second[1])


def _run(grid: str, folder: str) -> tuple[float, float]:
    code = _PROGRAM.format(grid=grid)
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "NUMBA_CACHE_DIR": folder},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    read_s, solve_s = json.loads(done.stdout)
    return read_s, solve_s


FEATURES = {
    "AVX2": ("haswell", "+avx2,+fma,+avx,+sse4.2,+popcnt,+bmi,+bmi2,+lzcnt,+f16c"),
    "SSE2": ("x86-64", "+sse2"),
}
"""What numba is told of the processor: its name, and its features, which are this one's if not
told otherwise."""


def compare_with(instructions: str, grid: str, **options: int) -> dict[str, Any]:
    """`gridshift bench solve` of a grid, compiled for narrower vectors than there are here."""
    arguments = [f"--{name}={value}" for name, value in options.items()]
    name, features = FEATURES[instructions]
    with tempfile.TemporaryDirectory() as folder:
        env = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features, "NUMBA_CACHE_DIR": folder}
        done = subprocess.run(
            [sys.executable, "-m", "gridshift", "bench", "solve", grid, "--json", *arguments],
            env={**os.environ, **env}, capture_output=True, text=True, check=True,
        )  # fmt: skip
    return json.loads(done.stdout)
