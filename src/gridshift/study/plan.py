"""What an exact study will cost in time, memory and disk: some of its outages are tried."""

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gridshift.errors import GridshiftError
from gridshift.grid.contingency import Outage
from gridshift.grid.equal_outages import EqualOutages
from gridshift.study.chosen_outages import Chosen
from gridshift.study.outage import screen_outages
from gridshift.study.pieces import Piece, grouped, keys, runs
from gridshift.study.row import FAILED, OutageRow
from gridshift.study.set_up import worker_bytes
from gridshift.study.setting import Setting
from gridshift.study.store import Store
from gridshift.study.swept import rows_bytes
from gridshift.threads import Threads
from gridshift.trial.cost import fastest

TRIED = 16
"""Outages that are tried, spread over the list."""
FEW, MANY = 256, 2048
"""Scenarios that each is tried with: the difference tells a row's cost, the rest the outage's."""
WORKERS = (1, 10, 100, 1000)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a study will cost. Times are of one core of this machine."""

    grid: str
    num_outages: int
    num_solved: int
    """Outages that are solved; the others leave a grid equal to that of one of them."""
    num_rows: int
    """Power flows."""
    us_per_row: float | None
    """None where scenarios are too few to tell them from the outage."""
    ms_per_outage: float
    """What an outage costs whatever the number of scenarios; with its rows where these can't be
    told apart."""
    core_hours: float
    memory_gb: float
    """Of one worker that studies one piece at a time, with the program itself, without rows."""
    merge_memory_gb: float
    """Of whoever puts all rows into one table: `merge`, or `screen` on one machine."""
    disk_gb: float
    start_s: float
    """Until a new process can begin."""
    merge_s: float
    """For reading all rows and making table and report."""
    pieces: int
    shards: int
    """Parts of about so many minutes on one core as were asked for."""
    by_workers: tuple[dict[str, float], ...]
    """`workers`, `wall_s`, and `busy`, the share of the workers' time that power flows take."""

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        return asdict(self)


TABLE_SHARE = 0.5
"""Size of the final table over that of the stored rows: it is compressed."""


def plan(setting: Setting, chosen: Chosen, *, minutes_per_shard: float = 30.0) -> Plan:
    """Try some outages of an exact study and tell what all of it will cost.

    Args:
        setting: of `set_up`, of a study that solves every scenario.

    Raises:
        GridshiftError: a study by a surrogate, or of nothing.
    """
    config, network = setting.config, setting.network
    if setting.method is not None:
        raise GridshiftError(f"only an exact study can be planned, not one by {config.method}")
    equal = EqualOutages(network)
    outages = [*dict.fromkeys(equal.representative(one.outage) for one in chosen.contingencies)]
    if not outages:
        raise GridshiftError(f"no outage of {network.name} is to be studied")
    some = [outages[i] for i in np.unique(np.linspace(0, len(outages) - 1, TRIED).astype(int))]
    with Threads(1):
        outage_s, row_s, rows = _tried(setting, some)
    if all(row.status == FAILED for row in rows):
        raise GridshiftError(f"none of the outages tried can be studied: {rows[0].reason}")
    share = sum(row.num_solves > 0 for row in rows) / len(rows)  # of outages that leave scenarios
    num_rows = round(share * len(outages)) * config.num_scenarios
    merged_s, stored = _stored(setting, rows)
    merge_s = merged_s / len(rows) * len(outages)
    work_s = len(outages) * outage_s + num_rows * row_s
    start_s, program = _started()
    long_ones = runs(setting)
    pieces = len(outages) * len(long_ones) if long_ones else len(grouped(config, outages, 1))
    return Plan(
        grid=network.name,
        num_outages=len(chosen.contingencies),
        num_solved=len(outages),
        num_rows=num_rows,
        us_per_row=row_s * 1e6 or None,
        ms_per_outage=outage_s * 1e3,
        core_hours=work_s / 3600,
        memory_gb=(program + worker_bytes(network, replace(config, workers=1))) / 1e9,
        merge_memory_gb=(program + rows_bytes(network, len(outages), on_disk=True)) / 1e9,
        disk_gb=(1 + TABLE_SHARE) * stored / len(rows) * len(outages) / 1e9,
        start_s=start_s,
        merge_s=merge_s,
        pieces=pieces,
        shards=min(pieces, max(1, math.ceil(work_s / (60 * minutes_per_shard)))),
        by_workers=tuple(_on(n, work_s, pieces, start_s, merge_s) for n in WORKERS),
    )  # fmt: skip


def _tried(setting: Setting, outages: Sequence[Outage]) -> tuple[float, float, list[OutageRow]]:
    """Seconds of an outage and of a row on one thread, and the rows of the larger trial."""
    rows: list[OutageRow] = []

    def study(number: int) -> Callable[[], None]:
        num = min(number, setting.loads.num_rows)
        config = replace(setting.config, num_scenarios=num, precision=None, ignore_below=None)
        loads = setting.loads.rows(slice(num))
        within = replace(setting, config=config, loads=loads, threads=1)

        def once() -> None:
            rows[:] = screen_outages(within, outages)

        return once

    few, many = min(FEW, setting.loads.num_rows), min(MANY, setting.loads.num_rows)
    study(few)()  # prepares, and compiles if anything does
    short, long = fastest(study(few), 3), fastest(study(many), 3)
    solved = sum(row.num_solves for row in rows)
    row_s = max(0.0, long - short) / max(1, solved * (1 - few / many)) if many > few else 0.0
    return max(0.0, short - row_s * solved * few / many) / len(outages), row_s, rows


def _stored(setting: Setting, rows: Sequence[OutageRow]) -> tuple[float, int]:
    """Seconds to read rows back and to write their table, and the bytes that they take on disk."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        names = keys(setting, Piece(tuple((row.outage,) for row in rows)))
        places = [store.save(name, row.stored()) for name, row in zip(names, rows, strict=True)]

        def merge() -> None:
            found = Store(folder)
            found.finish([found.load(name) or {} for name in names], {})

        return fastest(merge, 2), sum(place.length for place in places)


def _started() -> tuple[float, int]:
    """Seconds until a process has loaded what a worker needs, and the memory that it holds then."""
    loads = "import gridshift.grid.engine, gridshift.study.shared, gridshift.memory as memory"
    command = [sys.executable, "-c", f"{loads}; print(memory.peak_bytes())"]
    began = time.perf_counter()
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - began, int(told)


def _on(workers: int, work_s: float, pieces: int, start_s: float, merge_s: float) -> dict:
    """What so many workers take: each starts once, and the slowest has one piece more to do."""
    rounds = math.ceil(pieces / workers)
    wall_s = start_s + rounds * work_s / pieces + merge_s
    return {"workers": workers, "wall_s": wall_s, "busy": work_s / (workers * wall_s)}
