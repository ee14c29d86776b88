"""The engine over many topologies: scenarios on every outage, and one scenario on every outage."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gridshift.arrays import Bool, Complex
from gridshift.grid.contingency import cut_off_buses, enumerate_outages
from gridshift.grid.engine import Engine
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare_all
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng, sample_loads
from gridshift.peers.case import Case, connected_branches
from gridshift.peers.clock import in_turns, least_cpu_seconds, pinned
from gridshift.peers.lightsim import LIGHTSIM_MODES, configure_lightsim, lightsim_model
from gridshift.peers.peer import MAX_CHORD_STEPS, MAX_STEPS

PAPER_SECONDS, PAPER_CORES = 24.0, 48
"""The paper's time for 400 scenarios on each line of case118 that may go out (section V)."""
PUBLISHED_MS = {
    "case118": 0.054,
    "case300": 0.20,
    "case1354pegase": 1.14,
    "case9241pegase": 9.95,
}
"""lightsim2grid's own figures for N-1, ms per outage, on another and faster processor."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """All scenarios on every line outage that keeps the grid connected, set-up included."""

    grid: str
    num_outages: int
    num_rows: int
    num_solved: int
    threads: int
    seconds: float
    """Wall time of the fastest round: what else runs on the machine can only add to it."""
    cpu_s: float
    """CPU time of all threads; what wall time would be alone on the machine, on one thread."""
    setup_s: float
    """Of the CPU time: finding the outages and their nominal points, factorising."""


def sweep_lines(
    source: str = "case118", *, num_rows: int = 400, threads: int = 1, rounds: int = 5
) -> Sweep:
    """Time the sweep, the grid's plan not included; CPU time is the median of some rounds."""
    network = read_grid(source)
    rng = named_rng(network.name, "bench")
    rows = sample_loads(network, rng, num_rows, regime="fixed")
    with pinned() if threads == 1 else nullcontext():
        found = [_sweep(network, rows, threads) for _ in range(rounds + 1)][1:]
    middle = sorted(found, key=lambda sweep: sweep.cpu_s)[len(found) // 2]
    return replace(middle, seconds=min(sweep.seconds for sweep in found))


def _sweep(network: Network, rows: LoadScenarios, threads: int) -> Sweep:
    network = replace(network)  # another network to every cache
    Engine.of(network)
    wall, cpu = time.perf_counter(), time.process_time()
    outages = enumerate_outages(network, "lines")
    cut_off = cut_off_buses(network, outages)
    left = [network.without(o) for o, cut in zip(outages, cut_off, strict=True) if not len(cut)]
    prepare_all(left)
    setup_s = time.process_time() - cpu
    run = partial(_num_solved, rows=rows)
    if threads == 1:
        solved = sum(map(run, left))
    else:
        with ThreadPoolExecutor(threads) as pool:
            solved = sum(pool.map(run, left))
    return Sweep(
        grid=network.name, num_outages=len(left), num_rows=rows.num_rows, num_solved=solved,
        threads=threads, seconds=time.perf_counter() - wall, cpu_s=time.process_time() - cpu,
        setup_s=setup_s,
    )  # fmt: skip


def _num_solved(network: Network, rows: LoadScenarios) -> int:
    return int(solve(network, rows).solved.sum())


@dataclass(frozen=True, kw_only=True)
class NMinusOne:
    """One scenario, nominal demand, on many single outages of lines and transformers."""

    grid: str
    num_outages: int
    """Those that keep the grid connected, or a sample of them."""
    sampled: bool
    ms_per_outage: float
    """Of the engine, CPU time of its thread."""
    num_solved: int
    peers: dict[str, float]
    """lightsim2grid's contingency analysis in the same run, ms per outage by mode."""
    peers_solved: dict[str, int]
    max_dv: float
    """Largest voltage difference over outages that both solve, p.u."""
    published_ms: float | None

    @property
    def ratio_to_lightsim2grid(self) -> float | None:
        """To its fastest mode that solves as many outages as any of its modes."""
        most = max(self.peers_solved.values(), default=0)
        keeping = [ms for mode, ms in self.peers.items() if self.peers_solved[mode] == most]
        return min(keeping) / self.ms_per_outage if keeping else None

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio_to_lightsim2grid": self.ratio_to_lightsim2grid}


def n_minus_one(
    source: str, *, most: int | None = None, tol: float = 1e-8, rounds: int = 5
) -> NMinusOne:
    """Every single outage that keeps the grid connected, by the engine and by lightsim2grid.

    Both start from the base case's nominal solution and are given the same list.
    """
    case = Case.of(source)
    network, engine = case.network, Engine.of(case.network)
    every = connected_branches(network)
    branches = every if most is None else every[:: -(-len(every) // most)]
    removed = [(b,) for b in branches]
    share = tol / case.network.tolerance_base
    with pinned():
        ours, _ = engine.nominal(removed, tol=share, max_steps=MAX_STEPS)
        runs: dict[str, Callable[[], object]] = {
            "gridshift": lambda: engine.nominal(removed, tol=share, max_steps=MAX_STEPS)
        }
        solved, apart = {}, 0.0
        for mode in LIGHTSIM_MODES if not case.why_not_pandapower else ():
            analysis = ContingencyAnalysis(case, branches, mode, tol)
            runs[mode] = analysis.run
            voltage, done = analysis.run()
            solved[mode] = int(done.sum())
            both = done & (ours.mismatch <= tol)
            off = ours.voltage.view(np.complex128)[both] - voltage[both]
            apart = max(apart, float(np.abs(off).max(initial=0.0)))
        times = in_turns(runs, rounds=rounds)
    ms = {name: timing.cpu_s / len(branches) * 1e3 for name, timing in times.items()}
    return NMinusOne(
        grid=network.name, num_outages=len(branches), sampled=len(branches) < len(every),
        ms_per_outage=ms.pop("gridshift"), num_solved=int((ours.mismatch <= tol).sum()),
        peers=ms, peers_solved=solved, max_dv=apart, published_ms=PUBLISHED_MS.get(network.name),
    )  # fmt: skip


class ContingencyAnalysis:
    """lightsim2grid's contingency analysis of some branches of a case."""

    def __init__(self, case: Case, branches: Sequence[int], mode: str, tol: float):
        from lightsim2grid.lightsim2grid_cpp import ContingencyAnalysisCPP

        algorithm, self.keep_factors = LIGHTSIM_MODES[mode]
        self.analysis = ContingencyAnalysisCPP(lightsim_model(case))
        configure_lightsim(self.analysis, algorithm, keep_factors=self.keep_factors)
        numbers = [_lightsim_branch(case, b) for b in branches]
        self.analysis.add_multiple_n1(numbers)
        # It answers in an order of its own.
        place = {found[0]: k for k, found in enumerate(self.analysis.my_defaults())}
        self.order = np.array([place[number] for number in numbers])
        self.case, self.tol_mva = case, tol * case.network.base_mva

    def run(self) -> tuple[Complex, Bool]:
        """(T, B) voltages in the network's order, and (T,) which outages are solved."""
        steps = MAX_CHORD_STEPS if self.keep_factors else MAX_STEPS
        self.analysis.compute(self.case.start.copy(), steps, self.tol_mva)
        voltage = self.analysis.get_voltages()
        done = np.array(self.analysis.converged_mask())
        return voltage[self.order][:, self.case.bus_rows], done[self.order]


def _lightsim_branch(case: Case, branch: int) -> int:
    """Its number: lines first, then transformers."""
    kind, _, index = case.network.branch_labels[branch].partition(":")
    before = 0 if kind == "line" else len(case.net.line)
    return before + int(case.net[kind].index.get_loc(int(index)))


@dataclass(frozen=True, kw_only=True)
class SetUp:
    """What a new topology costs before its first row: values, nominal solution, factors."""

    grid: str
    plan_s: float
    """Symbolic work, once per grid and valid for all its outages."""
    alone_ms: float
    """One topology on its own."""
    together_ms: float
    """Each of 64 that are set up together, side by side in lanes."""


def set_up(source: str) -> SetUp:
    """Time the set-up of topologies, each with one branch less."""
    network = read_grid(source)
    began = time.thread_time()
    engine = Engine(network)
    plan_s = time.thread_time() - began
    branches = connected_branches(network)
    some = [(b,) for b in branches[:: -(-len(branches) // 64)]]
    with pinned():
        alone = least_cpu_seconds(lambda: engine.prepare(some[:1]), repeats=9)
        together = least_cpu_seconds(lambda: engine.prepare(some), repeats=5) / len(some)
    return SetUp(grid=network.name, plan_s=plan_s, alone_ms=alone * 1e3, together_ms=together * 1e3)


def busy() -> float | None:
    """Mean number of running processes over the last minute, this one included."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None
