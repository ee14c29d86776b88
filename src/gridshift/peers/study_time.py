"""The exact study beside the engine alone, and beside lightsim2grid with statistics in numpy."""

import copy
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from gridshift.grid.contingency import outage_text
from gridshift.grid.equations import branch_loading
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare_all
from gridshift.grid.scenarios import LoadScenarios, Scenarios, named_rng, scenarios
from gridshift.peers.case import Case, connected_branches
from gridshift.peers.clock import pinned
from gridshift.peers.lightsim import LIGHTSIM_MODES, Lightsim2grid
from gridshift.study.screening import ScreenConfig
from gridshift.study.sweep import screen


@dataclass(frozen=True, kw_only=True)
class StudyTime:
    """Wall times, s, each of the fastest round: what else runs on the machine only adds to it."""

    grid: str
    num_outages: int
    num_rows: int
    """Scenarios of each outage."""
    threads: int
    sweep_s: float
    """Sweep of the exact study, rows kept on disk."""
    engine_s: float
    """Preparing the same topologies and solving the same rows, nothing counted."""
    ratio_to_engine: float
    """Median over rounds, in each of which the two took turns."""
    lightsim2grid: str | None
    """Its fastest mode that loses no row which another solves."""
    lightsim2grid_s: float | None
    """The same rows on one core, with statistics in numpy, from a few of the outages."""
    ratio_to_lightsim2grid: float | None
    """How many times longer that takes than the sweep on one core."""


PEER_OUTAGES = 5
"""Outages that lightsim2grid is timed on; its time for an outage hardly depends on which."""
TOGETHER = 64
"""Outages that the engine alone prepares together."""


def study_time(
    source: str, *, num_rows: int = 1000, spread: float = 0.2, seed: int = 0, rounds: int = 3,
    threads: int | None = None, most_outages: int | None = None,
) -> StudyTime:  # fmt: skip
    """Time the exact study of outages that keep the grid in one piece, in turns with the engine.

    Args:
        spread: half width of the load factors.
        threads: that the sweep and the engine run on; None: the cores at hand.
        most_outages: an even choice of so many; None: all.
    """
    case = Case.of(source)
    network = case.network
    branches = connected_branches(network)
    every = max(1, -(-len(branches) // (most_outages or len(branches))))
    outages = [(network.branch_labels[b],) for b in branches[::every]]
    rng = named_rng(network.name, "scenarios", seed=seed)
    loads = scenarios(network, rng, num_rows, spread=spread, regime="drawn")
    with tempfile.TemporaryDirectory() as folder:
        listed = os.path.join(folder, "outages.txt")
        with open(listed, "w", encoding="utf-8") as file:
            file.write("\n".join(map(outage_text, outages)))

        def sweep(threads: int | None, name: str) -> float:
            config = ScreenConfig(
                grid=source, contingencies=listed, method="newton", num_scenarios=num_rows,
                spread=spread, seed=seed, workers=threads,
            )  # fmt: skip
            into = os.path.join(folder, name)
            return float(screen(config, network=network, folder=into).cost["sweep_s"])

        number = ScreenConfig(grid=source, workers=threads).num_workers
        sweep(number, "compiles")
        turns = [
            (sweep(number, f"round{turn}"), _engine(network, outages, loads, number))
            for turn in range(rounds)
        ]
        mode = peer_s = None
        one_core = np.nan
        if not case.why_not_pandapower and Lightsim2grid("", "").available(case):
            few = outages[:: -(-len(outages) // PEER_OUTAGES)]
            with pinned():
                mode, peer_s = _lightsim(case, few, loads.rows(slice(0, num_rows)))
                peer_s *= len(outages) / len(few)
                one_core = min(sweep(1, f"alone{turn}") for turn in range(rounds))
    return StudyTime(
        grid=network.name, num_outages=len(outages), num_rows=num_rows, threads=number,
        sweep_s=min(s for s, _ in turns), engine_s=min(e for _, e in turns),
        ratio_to_engine=float(np.median([s / e for s, e in turns])),
        lightsim2grid=mode, lightsim2grid_s=peer_s,
        ratio_to_lightsim2grid=None if peer_s is None else peer_s / one_core,
    )  # fmt: skip


def _engine(
    network: Network, outages: list[tuple[str, ...]], loads: LoadScenarios | Scenarios, threads: int
) -> float:
    """Seconds that preparing and solving takes, outages side by side."""
    rows = loads.rows(slice(0, loads.num_rows))

    def work(first: int) -> None:
        left = [network.without(outage) for outage in outages[first : first + size]]
        for prepared in prepare_all(left):
            solve(prepared, rows)

    size = max(1, min(TOGETHER, len(outages) // (4 * threads)))
    began = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(0, len(outages), size)))
    return time.perf_counter() - began


def _lightsim(
    whole: Case, outages: list[tuple[str, ...]], rows: LoadScenarios
) -> tuple[str, float]:
    """lightsim2grid's fastest mode that keeps most rows, and its seconds for these outages."""
    found: dict[str, tuple[int, float]] = dict.fromkeys(LIGHTSIM_MODES, (0, 0.0))
    for outage in outages:
        net = copy.deepcopy(whole.net)
        for kind, _, index in (label.partition(":") for label in outage):
            net[kind].loc[int(index), "in_service"] = False
        case = Case(network=whole.network.without(outage), net=net)
        for name, (algorithm, keep_factors) in LIGHTSIM_MODES.items():
            peer = Lightsim2grid(name, algorithm, keep_factors=keep_factors)
            run = peer.prepare(case, rows.load_p, rows.load_q, 1e-8)
            run()
            began = time.perf_counter()
            answer = run()
            _statistics(case.network, answer.voltage[answer.converged])
            seconds = time.perf_counter() - began
            solved, before = found[name]
            found[name] = solved + int(answer.converged.sum()), before + seconds
    most = max(solved for solved, _ in found.values())
    return min(
        ((name, seconds) for name, (solved, seconds) in found.items() if solved == most),
        key=lambda one: one[1],
    )


def _statistics(network: Network, voltage: np.ndarray) -> tuple[np.ndarray, ...]:
    """Per bus and branch, as a study counts them, the plain way."""
    size = np.abs(voltage)
    found = [
        (size < network.bus_v_min).mean(0), (size > network.bus_v_max).mean(0), size.mean(0),
        *np.quantile(size, [0, 0.05, 0.95, 1], axis=0),
    ]  # fmt: skip
    if network.branch_rated.any():
        loading = branch_loading(network, voltage)[:, network.branch_rated]
        found += [(loading > 1).mean(0), np.maximum(loading - 1, 0).mean(0), loading.mean(0)]
        found += [*np.quantile(loading, [0.95, 0.99, 1], axis=0), loading.max(1)]
    return tuple(found)
