"""Many outages of one grid: studied in parallel, kept row by row, ranked."""

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.arguments import how_many
from gridshift.errors import GridshiftWarning, StorageError, StudyNotWrittenError
from gridshift.grid.contingency import label_order
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.memory import require_memory
from gridshift.study.beside import besides, measured_beside
from gridshift.study.chosen_outages import Chosen, chosen_outages
from gridshift.study.limits import limit_notes
from gridshift.study.provenance import about_this_run
from gridshift.study.row import OutageRow
from gridshift.study.screening import ScreenConfig, Screening
from gridshift.study.set_up import base_of, set_up
from gridshift.study.setting import Setting
from gridshift.study.store import Store
from gridshift.study.summary import (
    intact_row,
    ledger,
    system_per_year,
    told_of_intact,
    with_failure_rates,
)
from gridshift.study.swept import Progress, Swept, rows_bytes, swept
from gridshift.threads import Threads
from gridshift.trial.cost import training_seconds

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.grid.network import Network

NUM_TIMED = 1000
"""Scenarios at most of the intact grid that exact solving is timed on."""


def screen(
    config: ScreenConfig,
    *,
    network: "Network | Any" = None,
    surrogate: "Base | None" = None,
    folder: str | Path | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
) -> Screening:
    """Study every outage that the configuration asks for and rank them, worst first.

    Results depend on the configuration, the grid and the surrogate alone: not on the number of
    workers, on interruptions, or on what else the folder holds.

    Args:
        network: the grid, if it is in memory: a `Network`, or a pandapower network.
        surrogate: trained on the intact grid; by default one of the configuration's spread and
            seed is trained, if the method uses one.
        folder: where finished rows, table, summary and report go; a second call resumes there.
            None keeps everything in memory.
        progress: called in this thread whenever an outage is finished.
        executor: of `concurrent.futures`, whose workers study the outages and see the folder: a
            pool of processes, `dask.distributed.Client.get_executor()`, `mpi4py.futures`. By
            default threads of this process do.

    Raises:
        OutageError: contingencies that are neither a known kind nor a readable file.
        NotConvergedError: the intact grid itself has no nominal solution.
        ScenarioError: a study file that can't be read, doesn't fit the grid, or describes
            scenarios that the method can't predict.
        SurrogateMismatchError: the surrogate is of another grid or does not suit the method.
        StorageError: the folder cannot be written; a `StudyNotWrittenError`, whose `result` is the
            study, if only its table or report can't.
        MemoryNeededError: more scenarios than fit into memory; they are taken in blocks, and only
            a few numbers of each are kept.
        WorkersLostError: workers of the executor died; what they finished is in the folder.
    """
    began = time.perf_counter()
    setting = set_up(config, read_grid(config.grid if network is None else network))
    besides(setting)  # names that mean nothing are told now
    chosen = chosen_outages(setting)
    return study(
        setting, chosen, surrogate=surrogate, store=None if folder is None else Store(folder),
        progress=progress, executor=executor, set_up_s=time.perf_counter() - began,
    )  # fmt: skip


def study(
    setting: Setting,
    chosen: Chosen,
    *,
    surrogate: "Base | None" = None,
    store: Store | None = None,
    progress: Progress | None = None,
    executor: Executor | None = None,
    found: Swept | None = None,
    set_up_s: float = 0.0,
) -> Screening:
    """The study of outages that were chosen, in a setting that is set up; the rest as `screen`.

    Args:
        found: the rows, if they are known.
        set_up_s: what setting up and choosing took, which the study's wall time includes.
    """
    began = time.perf_counter() - set_up_s
    config, network = setting.config, setting.network
    limited = setting.limited(network)
    num = len(chosen.contingencies)
    held = rows_bytes(network, num, on_disk=store is not None)
    where = "" if store is not None else " without a folder to lie in"
    require_memory(held, f"rows of {num:,} outages{where}")
    with warnings.catch_warnings(record=True) as met, Threads(1) as threads:
        warnings.simplefilter("always", GridshiftWarning)
        setting, intact = ready(setting, surrogate)
        exact_us = _exact_us(setting)
        sweep_began = time.perf_counter()
        if found is None:
            outages = [one.outage for one in chosen.contingencies]
            found = swept(setting, outages, store, progress, executor=executor)
        sweep_s = time.perf_counter() - sweep_began
        beside = measured_beside(setting, found.rows, store)
    rows = rank(with_failure_rates(found.rows, chosen.contingencies, network))
    result = Screening(
        config=config,
        network=network,
        rows=tuple(rows),
        splitting=chosen.splitting,
        intact=told_of_intact(intact),
        intact_row=intact,
        beside=tuple(beside),
        system=system_per_year(rows),
        notes=(*limit_notes(limited), *chosen.notes, *_stopped(rows, config), *_met(met)),
        cost={
            "train_s": training_seconds(setting.surrogate),
            "sweep_s": sweep_s,
            "wall_s": time.perf_counter() - began,
            **ledger(rows, config, exact_us),
            "resumed": found.resumed,
            "workers": config.num_workers,
        },
        about=about_this_run(network, setting.surrogate, threads=threads.limits),
    )
    if store is None:
        return result
    try:
        return _written(result, store)
    except StorageError as error:
        raise StudyNotWrittenError(str(error), result) from error


def _written(result: Screening, store: Store) -> Screening:
    """The study with its report, after writing that, the table and the summary."""
    from gridshift.study.report import write_report

    result = replace(result, report=store.folder.resolve() / "report.html")
    write_report(result, store)
    table = [{"rank": number, **row.stored()} for number, row in enumerate(result.rows, 1)]
    network = result.network
    labels = {"bus_labels": network.bus_labels, "branch_labels": network.branch_labels}
    if result.config.controls:
        labels["control_labels"] = tuple(one.label for one in network.controls)
    store.finish(table, result.to_json(), labels=labels)
    return result


def ready(setting: Setting, surrogate: "Base | None" = None) -> tuple[Setting, OutageRow]:
    """The setting with what the method starts from and the row of the intact grid, and that row."""
    if setting.method is not None:
        setting = replace(setting, surrogate=base_of(setting, setting.method, surrogate))
    intact = setting.reference or intact_row(setting)
    return replace(setting, reference=intact), intact


def rank(rows: Sequence[OutageRow]) -> list[OutageRow]:
    """Rows by severity, the worst first; ties by the complex voltage shift, then by name."""

    def order(row: OutageRow) -> tuple:
        labels = [label_order(label) for label in row.outage.split(",")]
        return -row.severity, -float(np.nan_to_num(row.shift)), labels

    return sorted(rows, key=order)


def _exact_us(setting: Setting) -> float:
    """Microseconds that an exact row takes."""
    loads = setting.loads.rows(slice(NUM_TIMED))
    config = setting.config
    solving = partial(
        solve, q_limits=config.q_limits, distributed_slack=setting.shares, controls=config.controls
    )
    solving(setting.network, loads.rows(slice(2)))  # compiles, if anything does
    began = time.perf_counter()
    solving(setting.network, loads)
    return (time.perf_counter() - began) / loads.num_rows * 1e6


def _stopped(rows: Sequence[OutageRow], config: ScreenConfig) -> list[str]:
    """How many scenarios were drawn and why no more, if their number was left open."""
    if config.precision is None:
        return []
    counts = Counter(row.stopped for row in rows if row.stopped)
    drawn = sum(row.num_solves for row in rows)
    words = {
        "precision": f"{{}} reached the precision of {config.precision:g}",
        "harmless": f"{{}} surely below a probability of {config.harmless_below:g}",
        "all": f"{{}} used all {config.num_scenarios:,} scenarios and are less precise",
    }
    told = ", ".join(words[why].format(f"{n:,}") for why, n in sorted(counts.items()))
    return [
        f"{how_many(drawn, 'scenario was', 'scenarios were')} solved for "
        f"{how_many(len(rows), 'outage')}: {told}"
    ]


def _met(met: list[warnings.WarningMessage]) -> list[str]:
    """Gridshift's own warnings, by their kind, once each with the number of times."""
    kinds = Counter(type(w.message) for w in met if isinstance(w.message, GridshiftWarning))
    first = {type(w.message): str(w.message) for w in reversed(met)}
    return [f"{first[kind]} ({how_many(number, 'time')})" for kind, number in kinds.items()]
