"""Where a chord step's time goes: each kernel on its own, in a loop on a real workspace."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from gridshift.arrays import Real
from gridshift.bench.clock import fastest
from gridshift.grid.engine import Engine, Topology
from gridshift.grid.kernels.chord import first_residual, gather, remember, scatter
from gridshift.grid.kernels.flows import lowest
from gridshift.grid.kernels.lanes import load, store, width
from gridshift.grid.kernels.steps import mismatch, substitute, turn

# pyright: basic, reportCallIssue=false, reportArgumentType=false

repeated = njit(nogil=True, error_model="numpy")
"""Loops of timed kernels: not kept on disk, they would be stale when a kernel changes."""


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


def chord_phases(engine: Engine, topology: Topology, load_p: Real, load_q: Real) -> list[Phase]:
    """Cost of each kernel of a chord step, and of what surrounds the steps, for the first block."""
    work, lanes, solving = engine.chord_work(), engine.lanes, engine.solving
    w, plan, point = lanes.width, engine.plan, topology.point
    p = plan.program
    rows = min(w, len(load_p))
    out = np.empty((rows, 2 * engine.num_buses))
    collect(lanes, solving, p, point, engine.load_bus, engine.scheduled, load_p, load_q, work, 1)
    start = work.residual.copy()
    work.active[:] = 0.0  # turn does all its work and moves nothing
    runs: dict[str, Callable[[int], Any]] = {
        "copy": partial(copies, solving, start, work.residual),
        "gather": partial(
            collect, lanes, solving, p, point, engine.load_bus, engine.scheduled, load_p, load_q,
            work,
        ),
        "substitute": partial(
            substitutions, solving, p, point.lower, point.diagonal, point.upper, start,
            work.residual,
        ),
        "accelerate": partial(accelerations, lanes, solving, p, work),
        "turn": partial(turns, lanes, solving, p, engine.set_point, work),
        "mismatch": partial(mismatches, lanes, solving, p, plan.num_pv, point.admittance, work),
        "scatter": partial(scatters, lanes, p, work, out, rows),
    }  # fmt: skip
    times = {}
    for name, run in runs.items():
        if name == "accelerate":
            copies(solving, start, work.residual, 1)
            work.plain[:], work.taken[:] = work.residual, work.residual
        times[name] = _per_call(run)
    times["substitute"] -= times.pop("copy")
    fma = _multiply_adds(engine)
    size = _bytes(engine)
    return [
        Phase(name=name, ns=seconds / w * 1e9, fma=fma.get(name, 0.0), bytes=size.get(name, 0.0))
        for name, seconds in times.items()
    ]


def _per_call(run: Callable[[int], Any], at_least: float = 0.004) -> float:
    """Seconds of one repetition; loops are long enough for the clock."""
    run(1)
    calls = 1
    while True:
        seconds = fastest(lambda calls=calls: run(calls), repeats=5)
        if seconds > at_least:
            return seconds / calls
        calls = max(2 * calls, int(1.2 * at_least / max(seconds, 1e-7) * calls))


def _multiply_adds(engine: Engine) -> dict[str, float]:
    """Multiply-adds per row, from the plan; what the kernels do, not what could be saved."""
    plan = engine.plan
    nodes, unknowns = len(plan.program.node_bus), plan.num_unknowns
    return {
        "substitute": plan.num_factors,
        "mismatch": 4 * plan.num_entries + 2 * unknowns,
        "accelerate": 4 * unknowns,
        "turn": 9 * nodes + unknowns,
    }


def _bytes(engine: Engine) -> dict[str, float]:
    plan, w = engine.plan, engine.lanes.width
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


@repeated
def copies(solving, source, target, times):
    w = width(solving)
    for _ in range(times):
        for q in range(len(source) // w):
            store(target, q * w, load(solving, source, q * w))


@repeated
def collect(lanes, solving, p, point, load_bus, scheduled, load_p, load_q, work, times):
    for _ in range(times):
        gather(lanes, load_bus, scheduled, point.voltage, load_p, load_q, 0, work)
        first_residual(lanes, solving, p, point.power, work)


@repeated
def substitutions(solving, p, lower, diagonal, upper, start, x, times):
    w = width(solving)
    for _ in range(times):
        for q in range(len(start) // w):
            store(x, q * w, load(solving, start, q * w))
        substitute(solving, p, lower, diagonal, upper, x)


@repeated
def accelerations(lanes, solving, p, work, times):
    for _ in range(times):
        remember(lanes, solving, p, False, work)


@repeated
def turns(lanes, solving, p, set_point, work, times):
    for _ in range(times):
        turn(lanes, solving, p, work.residual, work.active, set_point, False, work.voltage)


@repeated
def mismatches(lanes, solving, p, num_pv, admittance, work, times):
    for _ in range(times):
        mismatch(
            lanes, solving, p, num_pv, admittance, work.voltage, work.power, work.residual,
            work.worst,
        )  # fmt: skip


@repeated
def scatters(lanes, p, work, out, rows, times):
    for _ in range(times):
        lowest(lanes, p, work.voltage, work.worst)
        scatter(lanes, work.voltage, out, 0, rows)
