"""Where a chord step's time goes: each kernel on its own, in a loop on a real workspace."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.engine import ACCELERATE_FROM, Engine, Rows, Topology
from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.chord import accelerate, begin_at_nominal
from gridshift.grid.kernels.flows import retained
from gridshift.grid.kernels.lanes import load, store, width
from gridshift.grid.kernels.rows import scatter
from gridshift.grid.kernels.steps import apply_step, power_balance, substitute
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng, sample_loads
from gridshift.peers.clock import least_cpu_seconds, pinned
from gridshift.peers.peer import MAX_STEPS

# pyright: basic, reportCallIssue=false, reportArgumentType=false


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One kernel's cost for one block of lanes."""

    name: str
    ns: float
    """Per row: the time for a block divided by its lanes."""
    fma: float
    """Multiply-adds per row that the plan asks for; 0 where the work is not arithmetic."""
    bytes: float
    """Bytes per row of tables and state that pass through, each counted once."""

    @property
    def fma_per_ns(self) -> float:
        return self.fma / self.ns


def phases_of(source: str, *, num_rows: int, tol: float = 1e-8) -> dict[str, Any]:
    """Phases of the rows that `compare` solves, their shares, and what is left to Newton."""
    network = read_grid(source)
    prepared = prepare(network)
    engine, topology = prepared.engine, prepared.topology
    rows = sample_loads(network, named_rng(network.name, "bench"), num_rows, regime="fixed")
    with pinned():
        phases = chord_phases(engine, topology, rows.load_p, rows.load_q)
        share, left = share_of_phases(engine, topology, rows, phases, tol)
    return {"phases": [asdict(one) for one in phases], "share": share, "left_to_newton": left}


def chord_phases(engine: Engine, topology: Topology, load_p: Real, load_q: Real) -> list[Phase]:
    """Cost of each kernel of a chord step, and of what surrounds the steps, for the first block."""
    work, lanes, solving = engine.chord_work(), engine.lanes, engine.solving
    w, symbolic, point = lanes.width, engine.symbolic, topology.point
    rows = min(w, len(load_p))
    out = np.empty((rows, 2 * engine.num_buses))
    batch = engine.batch(topology, load_p, load_q)
    collect(lanes, solving, batch, work, 1)
    start = work.residual.copy()
    work.active[:] = 0.0  # steps are applied with all the work and move nothing
    runs: dict[str, Callable[[int], Any]] = {
        "copy": partial(copies, solving, start, work.residual),
        "gather": partial(collect, lanes, solving, batch, work),
        "substitute": partial(
            substitutions, solving, symbolic, point.lower, point.diagonal, point.upper, start,
            work.residual,
        ),
        "accelerate": partial(accelerations, solving, symbolic, work),
        "turn": partial(turns, lanes, solving, symbolic, engine.set_point, work),
        "mismatch": partial(mismatches, lanes, solving, symbolic, point.admittance, work),
        "scatter": partial(scatters, lanes, symbolic, point.voltage, work, out, rows),
    }  # fmt: skip
    times = {}
    for name, run in runs.items():
        if name == "accelerate":
            copies(solving, start, work.residual, 1)
            work.chord_step[:], work.taken_step[:] = work.residual, work.residual
        times[name] = _per_call(run)
    times["substitute"] -= times.pop("copy")
    fma = _multiply_adds(engine)
    size = _bytes(engine)
    return [
        Phase(name=name, ns=seconds / w * 1e9, fma=fma.get(name, 0.0), bytes=size.get(name, 0.0))
        for name, seconds in times.items()
    ]


def share_of_phases(
    engine: Engine, topology: Topology, rows: LoadScenarios, phases: Sequence[Phase], tol: float
) -> tuple[dict[str, float], int]:
    """Share of the time of a whole solve that each phase takes, 0 to 1; rows left to Newton.

    Steps of a block are those of its slowest lane. What the phases don't explain is 'other':
    Python, calls, and caches that are colder than in the loops of the phases. Rows that the chord
    steps leave over are 'Newton', timed as the difference that they make.
    """

    demands, share = (rows.load_p, rows.load_q), tol / engine.unit

    def solve_all() -> Rows:
        return engine.solve(topology, *demands, tol=share, max_steps=MAX_STEPS)

    def chord_alone() -> Rows:
        return engine.chord_rows(topology, *demands, tol=share)

    chord = chord_alone()
    w = engine.lanes.width
    slowest = np.array([chord.steps[k : k + w].max() for k in range(0, len(chord.steps), w)])
    calls = {
        "gather": len(slowest),
        "substitute": slowest.sum(),
        "accelerate": np.maximum(slowest - ACCELERATE_FROM, 0).sum(),
        "turn": slowest.sum(),
        "mismatch": slowest.sum(),
        "scatter": len(slowest),
    }
    whole = least_cpu_seconds(solve_all, repeats=9)
    without_newton = least_cpu_seconds(chord_alone, repeats=9)
    seconds = {phase.name: phase.ns * w * 1e-9 * calls[phase.name] for phase in phases}
    left = int((~(chord.mismatch <= tol)).sum())
    seconds["newton"] = whole - without_newton if left else 0.0
    seconds["other"] = whole - sum(seconds.values())
    return {name: max(0.0, part / whole) for name, part in seconds.items()}, left


def _per_call(run: Callable[[int], Any], at_least: float = 0.004) -> float:
    """Seconds of one repetition; loops are long enough for the clock."""
    run(1)
    calls = 1
    while True:
        seconds = least_cpu_seconds(lambda calls=calls: run(calls), repeats=5)
        if seconds > at_least:
            return seconds / calls
        calls = max(2 * calls, int(1.2 * at_least / max(seconds, 1e-7) * calls))


def _multiply_adds(engine: Engine) -> dict[str, float]:
    """Multiply-adds per row, from the plan; what the kernels do, not what could be saved.

    Applying a step ('turn') works in both precisions: counted in doubles, two singles for one.
    """
    plan = engine.symbolic
    unknowns, num_pv = plan.num_unknowns, plan.num_pv
    num_pq = (unknowns - num_pv) // 2
    return {
        "substitute": plan.num_factors,
        "mismatch": 4 * plan.num_entries + 2 * unknowns,
        "accelerate": 4 * unknowns,
        "turn": 8 * num_pq + 13 * num_pv,
    }


def _bytes(engine: Engine) -> dict[str, float]:
    plan, w = engine.symbolic, engine.lanes.width
    single = engine.solving.dtype.itemsize
    state, unknowns = 16 * engine.num_buses, single * plan.num_unknowns
    return {
        "gather": 2 * state + 16 * engine.num_loads + unknowns,
        "substitute": single * plan.num_factors / w + 2 * unknowns,
        "mismatch": 16 * plan.num_entries / w + 2 * state + unknowns,
        "accelerate": 5 * unknowns,
        "turn": 2 * state + unknowns,
        "scatter": 2 * state,
    }


@compiled
def copies(solving, source, target, times):
    w = width(solving)
    for _ in range(times):
        for q in range(len(source) // w):
            store(target, q * w, load(solving, source, q * w))


@compiled
def collect(lanes, solving, batch, work, times):
    for _ in range(times):
        begin_at_nominal(lanes, solving, batch, 0, work)


@compiled
def substitutions(solving, symbolic, lower, diagonal, upper, start, x, times):
    w = width(solving)
    for _ in range(times):
        for q in range(len(start) // w):
            store(x, q * w, load(solving, start, q * w))
        substitute(solving, symbolic, lower, diagonal, upper, x)


@compiled
def accelerations(solving, symbolic, work, times):
    for _ in range(times):
        accelerate(solving, symbolic, False, work)


@compiled
def turns(lanes, solving, symbolic, set_point, work, times):
    for _ in range(times):
        apply_step(lanes, solving, symbolic, set_point, False, work)


@compiled
def mismatches(lanes, solving, symbolic, admittance, work, times):
    for _ in range(times):
        power_balance(lanes, solving, symbolic, admittance, work)


@compiled
def scatters(lanes, symbolic, nominal, work, out, rows, times):
    for _ in range(times):
        retained(lanes, symbolic, nominal, work.voltage, work.mismatch)
        scatter(lanes, work.voltage, out, 0, rows)
