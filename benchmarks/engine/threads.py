"""How much sooner several threads are done."""

import time
from dataclasses import dataclass

from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Wall time of one batch, by number of threads."""

    grid: str
    num_rows: int
    seconds: dict[int, float]
    """Fastest round: what else runs on the machine can only add to it."""


def scaling(
    source: str, *, num_rows: int = 4000, threads: tuple[int, ...] = (1, 2), rounds: int = 15
) -> Scaling:
    """Time the public `solve` with each number of threads, in turns."""
    network = read_grid(source)
    rows = sample_loads(network, named_rng(network.name, "bench"), num_rows, regime="fixed")
    seconds = dict.fromkeys(threads, float("inf"))
    for number in threads:
        solve(network, rows, threads=number)
    for _ in range(rounds):
        for number in threads:
            began = time.perf_counter()
            solve(network, rows, threads=number)
            seconds[number] = min(seconds[number], time.perf_counter() - began)
    return Scaling(grid=network.name, num_rows=num_rows, seconds=seconds)
