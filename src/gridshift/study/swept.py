"""Rows of many outages: found in the store, or studied in parallel; equal ones once."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from gridshift.grid.contingency import Outage, outage_text
from gridshift.grid.equal_outages import EqualOutages
from gridshift.grid.network import Network
from gridshift.grid.statistics import SCENARIO_BYTES
from gridshift.study.outage import screen_outages
from gridshift.study.row import BY_BRANCH, OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.study.setting import Setting
from gridshift.study.store import Store, task_key
from gridshift.trial.exact import EXACT
from gridshift.version import VERSION

FORMAT = 6
"""Raised whenever stored rows change their meaning; older ones are then recomputed."""
TOGETHER = 16
"""Outages at most whose topologies are prepared together: a multiple of Newton's lanes."""
GROUPS = 4
"""Groups at least for each worker, so that none waits long for the others at the end."""
GROUP_BYTES = 1 << 26
"""What is kept of the scenarios of a group."""
NOT_OF_A_ROW = (
    "grid", "study", "contingencies", "beside", "refuse_splits", "most_pairs", "workers",
)  # fmt: skip
"""What no row depends on, or that is known from elsewhere: the grid and its scenarios."""

Progress = Callable[[int, int, OutageRow], None]
"""Called with the number of finished outages, of all outages, and the latest row."""


def swept(
    setting: Setting,
    outages: Sequence[Outage],
    store: Store | None = None,
    progress: Progress | None = None,
) -> tuple[list[OutageRow], int]:
    """Rows of all outages, and how many of them were found in the store.

    Args:
        setting: of the study.
        outages: which.
        store: where finished rows are, and go.
        progress: called whenever an outage is finished.
    """
    equal = EqualOutages(setting.network)
    asked: dict[Outage, list[Outage]] = defaultdict(list)
    for outage in outages:
        asked[equal.representative(outage)].append(outage)
    solving = [*asked]
    keys = [task_key(task) for task in tasks(setting, solving)]
    rows: list[OutageRow] = []

    def note(index: int, row: OutageRow) -> None:
        for outage in asked[solving[index]]:
            rows.append(_renamed(row, solving[index], outage, equal))
            if progress is not None:
                progress(len(rows), len(outages), rows[-1])

    def work(group: Sequence[int]) -> list[OutageRow]:
        found = screen_outages(within, [solving[i] for i in group])
        if store is not None:
            for index, row in zip(group, found, strict=True):
                store.save(keys[index], row.stored())
        return found

    missing = []
    for index, key in enumerate(keys):
        found = _found(setting.network, solving[index], store, key)
        if found is None:
            missing.append(index)
        else:
            note(index, found)
    resumed = len(rows)
    groups, workers, threads = _shared(setting.config, missing)
    within = replace(setting, threads=threads)
    with _pool(workers) as pool:
        group_of = {pool.submit(work, group): group for group in groups}
        for future in as_completed(group_of):
            for index, row in zip(group_of[future], future.result(), strict=True):
                note(index, row)
    return rows, resumed


def _renamed(row: OutageRow, solved: Outage, outage: Outage, equal: EqualOutages) -> OutageRow:
    """The row of an outage from that of the equal one that was solved."""
    if outage == solved:
        return row
    order = equal.branches(outage)
    labels = equal.network.branch_labels
    new_name = {labels[b]: labels[a] for a, b in enumerate(order) if a != b}
    named = {name: getattr(row, name) for name in ("worst_branch", "added_branch")}
    text = outage_text(solved)
    return replace(
        row,
        outage=outage_text(outage),
        equal_to=text,
        reason=outage_text(outage) + row.reason[len(text) :] if row.reason.startswith(text) else
        row.reason,
        **{name: new_name.get(label, label) for name, label in named.items()},
        **{name: _ordered(getattr(row, name), order) for name in BY_BRANCH},
    )  # fmt: skip


def _ordered(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    return values[order] if len(values) else values


def num_together(num_scenarios: int) -> int:
    """Outages at most in a group, for what is kept of their scenarios."""
    return max(1, min(TOGETHER, GROUP_BYTES // ((SCENARIO_BYTES + 16) * num_scenarios)))


def _shared(config: ScreenConfig, missing: list[int]) -> tuple[list[list[int]], int, int]:
    """Groups of outages, how many are studied at once, and threads within each outage."""
    workers = max(1, min(config.num_workers, len(missing)))
    size = 1
    if config.method == EXACT:
        size = max(1, min(num_together(config.num_scenarios), len(missing) // (GROUPS * workers)))
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


def tasks(setting: Setting, outages: Sequence[Outage], **more: Any) -> Iterator[dict[str, Any]]:
    """Everything that the row of each outage depends on."""
    common = asdict(setting.config) | dict.fromkeys(NOT_OF_A_ROW)
    common |= {
        "format": FORMAT,
        "version": VERSION,
        "name": setting.network.name,
        "network": setting.network.digest,
        "limits": setting.network.limits_digest if setting.config.q_limits else "",
        "scenarios": setting.digest,
        "surrogate": None if setting.surrogate is None else setting.surrogate.digest,
        **more,
    }
    return (common | {"outage": outage_text(outage)} for outage in outages)
