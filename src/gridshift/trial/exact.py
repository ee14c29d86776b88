"""Exact solving as one more way to get a topology's rows, and what it costs."""

import time
from dataclasses import dataclass

from gridshift.grid.network import Network
from gridshift.grid.powerflow import BatchSolution, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.scenarios import LoadScenarios
from gridshift.trial.cost import fastest

EXACT = "newton"
"""Name of solving every row, beside the names of `METHODS`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactRows:
    """Solved rows of one topology, and what they took on one thread."""

    solution: BatchSolution
    setup_s: float
    """Preparing the topology, before the first row."""
    us_per_row: float


def solve_timed(network: Network, loads: LoadScenarios, *, tol: float = 1e-8) -> ExactRows:
    """Solve the rows, and tell how long that takes once everything is compiled."""
    solution = solve(network, loads, tol=tol)
    seconds = fastest(lambda: solve(network, loads, tol=tol))
    began = time.perf_counter()
    prepare(network, anew=True)
    return ExactRows(
        solution=solution,
        setup_s=time.perf_counter() - began,
        us_per_row=seconds / loads.num_rows * 1e6,
    )
