"""Many outages of one grid: studied in parallel, kept row by row, ranked."""

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.arrays import Complex, Int
from gridshift.errors import GridshiftError, GridshiftWarning, NotConvergedError
from gridshift.grid.contingency import (
    KINDS,
    Outage,
    assess,
    cut_off_buses,
    demand_at,
    generation_at,
    label_order,
    outage_text,
    select_outages,
)
from gridshift.grid.equations import require_reachable
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import scenarios, stream
from gridshift.grid.statistics import SCENARIO_BYTES, statistics_bytes
from gridshift.memory import require_memory
from gridshift.study.ledger import ledger
from gridshift.study.outage import Setting, screen_outages
from gridshift.study.provenance import about_this_run
from gridshift.study.risk import Risk, limit_notes, risk_of, severity
from gridshift.study.row import OutageRow, row_bytes
from gridshift.study.screening import ScreenConfig, Screening
from gridshift.study.store import Store, task_key
from gridshift.threads import Threads
from gridshift.trial.cost import training_seconds
from gridshift.trial.exact import EXACT
from gridshift.version import VERSION

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method

FORMAT = 4
"""Raised whenever stored rows change their meaning; older ones are then recomputed."""
TOGETHER = 16
"""Outages at most whose topologies are prepared together: a multiple of Newton's lanes."""
GROUPS = 4
"""Groups at least for each worker, so that none waits long for the others at the end."""
GROUP_BYTES = 1 << 26
"""What is kept of the scenarios of a group."""
NUM_INTACT = 1000
"""Scenarios at most that are solved on the intact grid, to compare with."""

Progress = Callable[[int, int, OutageRow], None]
"""Called with the number of finished outages, of all outages, and the latest row."""


def screen(
    config: ScreenConfig,
    *,
    network: "Network | Any" = None,
    surrogate: "Base | None" = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Screening:
    """Study every outage that the configuration asks for and rank them, worst first.

    Results depend on the configuration, the grid and the surrogate alone: not on the number of
    workers, on interruptions, or on what else the folder holds.

    Args:
        config: what to study.
        network: the grid, if it is in memory: a `Network`, or a pandapower network.
        surrogate: trained on the intact grid; by default one of the configuration's spread and
            seed is trained, if the method uses one.
        folder: where finished rows, table, summary and report go; a second call resumes there.
            None keeps everything in memory.
        progress: called in this thread whenever an outage is finished.

    Raises:
        OutageError: contingencies that are neither a known kind nor a readable file.
        NotConvergedError: the intact grid itself has no nominal solution.
        SurrogateMismatchError: the surrogate is of another grid or does not suit the method.
        StorageError: the folder cannot be written.
        MemoryNeededError: more scenarios than fit into memory; they are taken in blocks, and only
            a few numbers of each are kept.
    """
    began = time.perf_counter()
    network = read_grid(config.grid if network is None else network)
    method = _method(config)
    outages, cut_off = _outages(network, config)
    require_possible(network, config)
    loads = scenarios(
        network,
        stream(network.name, "scenarios", seed=config.seed),
        config.num_scenarios,
        spread=config.spread,
        regime=config.regime,
    )
    voltage = _intact_voltage(network)
    setting = Setting(config=config, network=network, voltage=voltage, loads=loads, method=method)
    limited = setting.limited(network)
    store = None if folder is None else Store(folder)
    splitting: tuple[dict[str, Any], ...] = ()
    if config.contingencies in (*KINDS, "n-2"):
        outages, cut_off, splitting = _set_apart(network, outages, cut_off)
    require_memory(len(outages) * row_bytes(network), f"rows of {len(outages):,} outages")

    if method is not None:
        surrogate = _base(network, config, method) if surrogate is None else surrogate
        _check_suits(surrogate, method, network)
        setting = replace(setting, surrogate=surrogate)

    with warnings.catch_warnings(record=True) as met, Threads(1) as threads:
        warnings.simplefilter("always", GridshiftWarning)
        intact, risk, exact_us = _intact(setting, limited)
        sweep_began = time.perf_counter()
        rows, resumed = _sweep(setting, outages, cut_off, store, progress)
        sweep_s = time.perf_counter() - sweep_began
    rows = rank(rows)
    result = Screening(
        config=config,
        network=network,
        rows=tuple(rows),
        splitting=splitting,
        intact=intact,
        intact_risk=risk,
        notes=(*limit_notes(limited), *_met(met)),
        cost={
            "train_s": training_seconds(surrogate),
            "sweep_s": sweep_s,
            "wall_s": time.perf_counter() - began,
            **ledger(rows, config, exact_us),
            "resumed": resumed,
            "workers": config.num_workers,
        },
        about=about_this_run(network, surrogate, threads=threads.limits),
    )
    if store is not None:
        from gridshift.study.report import write_report

        result = replace(result, report=store.folder.resolve() / "report.html")
        write_report(result, store)
        table = [{"rank": number, **row.stored()} for number, row in enumerate(rows, 1)]
        labels = {"bus_labels": network.bus_labels, "branch_labels": network.branch_labels}
        store.finish(table, result.to_json(), labels=labels)
    return result


def rank(rows: Sequence[OutageRow]) -> list[OutageRow]:
    """Rows by severity, the worst first; ties by the complex voltage shift, then by name."""

    def order(row: OutageRow) -> tuple:
        labels = [label_order(label) for label in row.outage.split(",")]
        return -row.severity, -float(np.nan_to_num(row.shift)), labels

    return sorted(rows, key=order)


def require_possible(network: Network, config: ScreenConfig) -> None:
    """Pass if the numbers asked for suit this grid and this machine, before anything is trained.

    Raises:
        GridshiftError: a tolerance that double precision doesn't reach.
        MemoryNeededError: contexts and hold-outs of all workers, or what is kept of the scenarios,
            don't fit.
    """
    from gridshift.adapt.datasets import require_rows

    if config.certify is not None:
        require_reachable(network, config.certify)
    workers = config.num_workers
    for what, number in (("context", config.num_context), ("hold-out", config.num_holdout)):
        require_rows(network, number, f"{what} scenarios", times=workers)
    number = config.num_scenarios
    kept = SCENARIO_BYTES + (16 if config.method == EXACT else 0)  # mismatch, and its copy
    each = TOGETHER if config.method == EXACT else 1
    outages = workers * max(1, min(each, GROUP_BYTES // (kept * number)))
    # twice: what is counted, and the table that it is put together to
    needed = 8 * number + outages * (2 * kept * number + statistics_bytes(network))
    require_memory(needed, f"{number:,} scenarios on {workers} workers", count=number)


def _method(config: ScreenConfig) -> "Method | None":
    if config.method == EXACT:
        return None
    from gridshift.adapt.methods import METHODS

    if config.method not in METHODS:
        names = dict.fromkeys((*METHODS, EXACT))
        raise GridshiftError(f"no method '{config.method}'; choose one of {', '.join(names)}")
    method = METHODS[config.method]
    method.check_num_context(config.num_context)
    return method


def _outages(network: Network, config: ScreenConfig) -> tuple[list[Outage], list[Int]]:
    outages = select_outages(network, config.contingencies)
    return outages, cut_off_buses(network, outages)


def _intact_voltage(network: Network) -> Complex:
    found = assess(network, ())
    if not found.usable:
        raise NotConvergedError(
            f"{network.name} cannot be screened: {found.reason}; check it with "
            f"'gridshift solve {network.name}'"
        )
    return found.voltage


def _set_apart(
    network: Network, outages: list[Outage], cut_off: list[Int]
) -> tuple[list[Outage], list[Int], tuple[dict[str, Any], ...]]:
    """Outages that cut no demand off, and a list of the others by MW cut off."""
    lost = [demand_at(network, buses) for buses in cut_off]
    splits = [
        {
            "outage": outage_text(outage),
            "cut_off": [network.bus_labels[b] for b in buses],
            "mw_cut_off": mw,
            "mw_generation_cut_off": generation_at(network, buses),
        }
        for outage, buses, mw in zip(outages, cut_off, lost, strict=True)
        if mw > 0
    ]
    kept = [i for i, mw in enumerate(lost) if mw <= 0]
    splits.sort(key=lambda split: (-split["mw_cut_off"], -split["mw_generation_cut_off"]))
    return [outages[i] for i in kept], [cut_off[i] for i in kept], tuple(splits)


def _base(network: Network, config: ScreenConfig, method: "Method") -> "Base":
    from gridshift.trial.base import base_for

    return base_for(
        method, network, num_context=config.num_context, spread=config.spread, seed=config.seed
    )


def _check_suits(surrogate: "Base", method: "Method", network: Network) -> None:
    surrogate.check(network)
    method.check_base(surrogate)


def _intact(setting: Setting, limited: Network) -> tuple[dict[str, float], Risk, float]:
    """Limit statistics of the intact grid, and microseconds that an exact row takes."""
    loads = setting.loads.rows(slice(NUM_INTACT))
    solve(setting.network, loads.rows(slice(2)))  # compiles, if anything does
    began = time.perf_counter()
    solution = solve(setting.network, loads)
    seconds = time.perf_counter() - began
    risk, unsolved = risk_of(limited, solution.voltage), float(1 - solution.solved.mean())
    return (
        {
            "severity": severity(excess=risk.excess, unsolved=unsolved),
            "unsolved": unsolved,
            "any_voltage": risk.any_voltage,
            "any_overload": risk.any_overload,
            "num_scenarios": loads.num_rows,
        },
        risk,
        seconds / loads.num_rows * 1e6,
    )


def _sweep(
    setting: Setting,
    outages: list[Outage],
    cut_off: list[Int],
    store: Store | None,
    progress: Progress | None,
) -> tuple[list[OutageRow], int]:
    """Rows of all outages, and how many of them were found in the store."""
    keys = [task_key(task) for task in _tasks(setting, outages)]
    rows: list[OutageRow] = []

    def note(row: OutageRow) -> None:
        rows.append(row)
        if progress is not None:
            progress(len(rows), len(outages), row)

    def work(group: Sequence[int]) -> list[OutageRow]:
        found = screen_outages(within, [outages[i] for i in group], [cut_off[i] for i in group])
        if store is not None:
            for index, row in zip(group, found, strict=True):
                store.save(keys[index], row.stored())
        return found

    missing = []
    for index, key in enumerate(keys):
        found = _found(setting.network, outages[index], store, key)
        if found is None:
            missing.append(index)
        else:
            note(found)
    resumed = len(rows)
    groups, workers, threads = _shared(setting.config, missing)
    within = replace(setting, threads=threads)
    with _pool(workers) as pool:
        for future in as_completed([pool.submit(work, group) for group in groups]):
            for row in future.result():
                note(row)
    return rows, resumed


def _shared(config: ScreenConfig, missing: list[int]) -> tuple[list[list[int]], int, int]:
    """Groups of outages, how many are studied at once, and threads within each outage."""
    workers = max(1, min(config.num_workers, len(missing)))
    size = 1
    if config.method == EXACT:
        kept = (SCENARIO_BYTES + 16) * config.num_scenarios
        size = min(TOGETHER, len(missing) // (GROUPS * workers), GROUP_BYTES // kept)
    size = max(1, size)
    groups = [missing[first : first + size] for first in range(0, len(missing), size)]
    return groups, workers, config.num_workers // workers


def _found(network: Network, outage: Outage, store: Store | None, key: str) -> OutageRow | None:
    """The row of a task if the store has one that is whole; what is damaged is computed anew."""
    values = None if store is None else store.load(key)
    if values is None:
        return None
    return OutageRow.of_stored(
        values,
        outage=outage_text(outage),
        num_buses=network.num_buses,
        num_branches=network.num_branches,
    )


@contextmanager
def _pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Threads; on the way out by an exception, what has not begun is not begun."""
    pool = ThreadPoolExecutor(workers)
    try:
        yield pool
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()


def _tasks(setting: Setting, outages: list[Outage]) -> Iterator[dict[str, Any]]:
    """Everything that the row of each outage depends on."""
    decided_elsewhere = {"grid": None, "contingencies": None, "workers": None}
    common = asdict(setting.config) | decided_elsewhere
    common |= {
        "format": FORMAT,
        "version": VERSION,
        "name": setting.network.name,
        "network": setting.network.digest,
        "surrogate": None if setting.surrogate is None else setting.surrogate.digest,
    }
    return (common | {"outage": outage_text(outage)} for outage in outages)


def _met(met: list[warnings.WarningMessage]) -> list[str]:
    """Gridshift's own warnings, by their kind, once each with the number of times."""
    kinds = Counter(type(w.message) for w in met if isinstance(w.message, GridshiftWarning))
    first = {type(w.message): str(w.message) for w in reversed(met)}
    return [f"{first[kind]} ({number} times)" for kind, number in kinds.items()]
