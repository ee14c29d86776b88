"""What each choice in the engine is worth: the same rows with one of them undone."""

import os
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from gridshift.grid import engine as engine_module
from gridshift.grid.engine import Engine
from gridshift.grid.kernels.lanes import Lanes
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.peers.clock import in_turns, pinned
from gridshift.peers.peer import MAX_STEPS

NEVER = 10**6


@dataclass(frozen=True, kw_only=True)
class Choices:
    """Time per row, µs of CPU time, with one choice undone in each entry."""

    grid: str
    num_rows: int
    us_per_row: dict[str, float]
    steps: dict[str, float]
    """Mean over rows."""


def undo_choices(
    source: str, *, num_rows: int = 400, tol: float = 1e-8, rounds: int = 7
) -> Choices:
    """Time the engine as it is, without acceleration, in double only, with half the lanes."""
    network = read_grid(source)
    rows = sample_loads(network, named_rng(network.name, "bench"), num_rows, regime="fixed")
    demands = rows.load_p, rows.load_q
    usual = Engine(network)
    double = Engine(network)
    double.solving = Lanes(double.lanes.width)
    with _environment("GRIDSHIFT_LANES", str(usual.lanes.width // 2)):
        narrow = Engine(network)

    def solving(engine: Engine, accelerate_from: int) -> Callable[[], Any]:
        topology = engine.prepare([()])[0]

        def run() -> Any:
            usual_step = engine_module.ACCELERATE_FROM
            engine_module.ACCELERATE_FROM = accelerate_from
            try:
                return engine.solve(topology, *demands, tol=tol / engine.unit, max_steps=MAX_STEPS)
            finally:
                engine_module.ACCELERATE_FROM = usual_step

        return run

    first = engine_module.ACCELERATE_FROM
    runs = {
        "as it is": solving(usual, first),
        "no acceleration": solving(usual, NEVER),
        "double precision": solving(double, first),
        "half the lanes": solving(narrow, first),
    }
    with pinned():
        steps = {name: float(run().steps.mean()) for name, run in runs.items()}
        times = in_turns(runs, rounds=rounds)
    return Choices(
        grid=network.name, num_rows=num_rows, steps=steps,
        us_per_row={name: t.cpu_s / num_rows * 1e6 for name, t in times.items()},
    )  # fmt: skip


@contextmanager
def _environment(name: str, value: str):
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
