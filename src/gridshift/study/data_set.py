"""Data sets of solved cases: `write_data_set(DataSetConfig(...), folder)`."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Literal, Protocol, get_args

import numpy as np
from filelock import FileLock, Timeout

from gridshift.arguments import how_many, shown, whole_number
from gridshift.errors import NotConvergedError, ScenarioError, StorageError
from gridshift.exchange.solved_part import SolvedPart
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus
from gridshift.grid.quantities import Quantities
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import Spread
from gridshift.storage import require_disk, write_text
from gridshift.study.partition import Partition, write_labels
from gridshift.study.solved_rows import SolvedRows, Source
from gridshift.study.study_file import read_study_file
from gridshift.study.text import differences
from gridshift.study.uncertainty import SpreadOfLoads, Uncertainty
from gridshift.study.varied_grids import Variation
from gridshift.threads import usable_cores
from gridshift.version import VERSION

Format = Literal["gridfm", "pfdelta"]
FORMAT = 2
"""Raised whenever the same configuration gives other files."""
PARTITION = 200
"""Cases that are written at a time, gridfm's partitions."""
RECORD = "data_set.json"
"""What the data set is made of, what its elements are called, and how far it has come."""

Progress = Callable[[int, int], None]
"""Called with the number of scenarios that are done, and of all."""


@dataclass(frozen=True, kw_only=True)
class DataSetConfig:
    """What a data set is made of."""

    grid: str
    """Name or file, as `read_grid` takes it."""
    num_scenarios: int = 1000
    """Scenarios drawn; those without a solution are counted and left out."""
    format: Format = "gridfm"
    spread: float = 0.2
    regime: Spread = "fixed"
    """As in `sample_loads`."""
    study: str | None = None
    """Study file that says what loads and generation are drawn from, instead of the spread, and
    which limits cases are to keep."""
    redispatch: bool = True
    """Scheduled generators share what the demand differs from nominal, in proportion to their
    schedules; else the slack takes it. A study file that speaks of generation decides itself."""
    variation: Variation = field(default_factory=Variation)
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number(self.num_scenarios, "the number of scenarios", ScenarioError)
        if self.format not in get_args(Format):
            told = f"no format {shown(self.format)}; choose {' or '.join(get_args(Format))}"
            raise ScenarioError(told)

    @classmethod
    def of_study(cls, path: str | PathLike[str], **more: Any) -> "DataSetConfig":
        """What a study file says, and what is given beside it, which takes precedence.

        Raises:
            ScenarioError: as `read_study_file`.
        """
        told = read_study_file(path).options(spread="spread" in more)
        kept = ("grid", "study", "num_scenarios", "seed", "spread", "regime")
        return cls(**{name: told[name] for name in kept if name in told} | more)


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set that was written."""

    grid: str
    folder: Path
    num_rows: int
    """Scenarios drawn."""
    status: dict[str, int]
    """Number of them per status; 'solved' ones are cases of the data set."""
    files: tuple[Path, ...]
    """What to read: tables, or the folder of the samples."""
    cost: dict[str, float]
    """Seconds of this run: `solve_s` (all threads together take it), `arrange_s` and `write_s`
    (summed over threads), `wall_s`."""
    resumed: int
    """Scenarios that were found done."""

    @property
    def us_per_row(self) -> float | None:
        """Wall time per scenario of this run, µs; None if all were found done."""
        done = self.num_rows - self.resumed
        return self.cost["wall_s"] / done * 1e6 if done else None


class Files(Protocol):
    """Writes solved cases in one format."""

    paths: tuple[Path, ...]

    def write(self, part: SolvedPart) -> None:
        """Write a part; several threads may do so at once."""

    def finish(self, num_cases: int) -> None:
        """Write how many cases there are."""


def write_data_set(
    config: DataSetConfig, folder: str | PathLike[str], *, network: Network | None = None,
    threads: int | None = None, progress: Progress | None = None,
) -> DataSet:  # fmt: skip
    """Draw, solve and write the scenarios of a data set, a piece at a time.

    Results don't depend on threads. What is finished stays in the folder, so that the same call
    goes on where it was stopped. The cases are in `<folder>/<grid>/raw`, beside them are `labels`:
    what became of every scenario, and whether it keeps the limits.

    Args:
        network: the grid of the configuration, if it has been read.
        threads: to solve and write with; all cores by default.

    Raises:
        ScenarioError: scenarios that can't be drawn.
        OutageError: outages that can't.
        NotConvergedError: most scenarios have no solution.
        StorageError: the folder can't be written, holds another data set, or is being written.
    """
    network = network or read_grid(config.grid)
    source = _source(config, network)
    place = Path(folder) / network.name
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot write to {place}: {error.strerror or error}") from error
    with _locked(place):
        return _Run(config, source, place, threads or usable_cores()).all(progress)


def _source(config: DataSetConfig, network: Network) -> Source:
    loads = SpreadOfLoads(spread=config.spread, regime=config.regime)
    if config.study is None:
        uncertainty = Uncertainty(loads=loads)
    else:
        told = read_study_file(config.study)
        network, uncertainty = told.with_limits(network), told.uncertainty
        if uncertainty.spread_of_loads is not None:
            uncertainty = replace(uncertainty, loads=loads)
    return Source.of(
        network, uncertainty, config.variation, config.num_scenarios, seed=config.seed,
        redispatch=config.redispatch,
    )  # fmt: skip


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    try:
        with FileLock(place / ".lock", timeout=0):
            yield
    except Timeout:
        told = f"another process is writing to {place}; wait or choose another"
        raise StorageError(told) from None


class _Run:
    """One run that writes what isn't there yet."""

    def __init__(self, config: DataSetConfig, source: Source, place: Path, threads: int):
        self._source, self._place, self._threads = source, place, threads
        self._network = source.drawn.network
        self._files = files_of(config.format, place, self._network)
        self._record = _record(config, source)
        self._num_cases, self._next_row = 0, 0
        self._status = np.zeros(len(RowStatus), np.int64)
        self._find_what_is_done()
        self._lock = Lock()
        self._spare: list[Quantities] = []
        self._cost = dict.fromkeys(("solve", "arrange", "write"), 0.0)

    def all(self, progress: Progress | None) -> DataSet:
        """Write all that is missing."""
        began, resumed, total = time.perf_counter(), self._next_row, self._source.num_rows
        if resumed < total:
            self._go_on(progress)
        self._files.finish(self._num_cases)
        if 2 * self._num_cases < total:
            told = ", ".join(f"{count} {name}" for name, count in self._counts().items())
            most = f"most of {how_many(total, 'scenario')}"
            raise NotConvergedError(f"{most} have no solution: {told}")
        spent = {f"{name}_s": seconds for name, seconds in self._cost.items()}
        return DataSet(
            grid=self._network.name, folder=self._place, num_rows=total, resumed=resumed,
            status=self._counts(), files=self._files.paths,
            cost=spent | {"wall_s": time.perf_counter() - began},
        )  # fmt: skip

    def _go_on(self, progress: Progress | None) -> None:
        with ThreadPoolExecutor(self._threads) as pool:
            waiting: deque[list[tuple[Partition, Future[None]]]] = deque()
            try:
                for partitions in self._partitions():
                    waiting.append([(one, pool.submit(self._write, one)) for one in partitions])
                    if len(waiting) > 1:  # one piece is written while the next one is solved
                        self._note(waiting.popleft(), progress)
                while waiting:
                    self._note(waiting.popleft(), progress)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _partitions(self) -> Iterator[list[Partition]]:
        """Partitions of the scenarios that are left, those that a piece completes together."""
        first, kept = self._num_cases, list[SolvedRows]()
        pieces = self._source.solved(self._next_row, threads=self._threads)
        while True:
            began = time.perf_counter()
            rows = next(pieces, None)
            self._cost["solve"] += time.perf_counter() - began
            if rows is None:
                break
            complete = []
            while (end := _end(kept, rows)) is not None:
                complete.append(Partition((*kept, rows.rows(slice(0, end))), first))
                kept, rows, first = [], rows.rows(slice(end, None)), first + PARTITION
            kept.append(rows)
            yield complete
        yield [Partition(tuple(kept), first)]

    def _write(self, partition: Partition) -> None:
        """Write the cases of a partition."""
        if not partition.num_cases:
            return
        began = time.perf_counter()
        with self._lock:
            room = self._spare.pop() if self._spare else None
        room = room or Quantities.empty(self._network, PARTITION)
        part = partition.arranged(self._network, room, alike=self._source.alike)
        arranged = time.perf_counter()
        self._files.write(part)
        with self._lock:
            self._spare.append(room)
            self._cost["arrange"] += arranged - began
            self._cost["write"] += time.perf_counter() - arranged

    def _note(
        self, done: Sequence[tuple[Partition, Future[None]]], progress: Progress | None
    ) -> None:
        """Write down what is done, once all of it is."""
        for _, future in done:
            future.result()
        began, first = time.perf_counter(), not self._next_row
        if not (parts := [partition for partition, _ in done if partition.num_rows]):
            return
        write_labels(self._place / "labels", parts)
        for rows in (rows for part in parts for rows in part.pieces):
            self._status += np.bincount(rows.status, minlength=len(self._status))
            self._next_row = rows.first + len(rows.status)
        self._num_cases += sum(part.num_cases for part in parts)
        self._record["done"] = {
            "num_cases": self._num_cases, "next_row": self._next_row,
            "status": self._status.tolist(),
        }  # fmt: skip
        write_text(self._place / RECORD, json.dumps(self._record))
        self._cost["write"] += time.perf_counter() - began
        total = self._source.num_rows
        if first:
            require_disk(self._place, self._next_row, total, "scenarios")
        if progress is not None:
            progress(self._next_row, total)

    def _counts(self) -> dict[str, int]:
        counts = {status.text: int(self._status[status]) for status in RowStatus}
        return {name: count for name, count in counts.items() if count or name == "solved"}

    def _find_what_is_done(self) -> None:
        """Take up what a run that was stopped has finished.

        Raises:
            StorageError: the folder holds something else.
        """
        if not (path := self._place / RECORD).exists():
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            same = found["digest"] == self._record["digest"]
            differing = _in_what(found, self._record)
            done = found["done"]
            state = int(done["num_cases"]), int(done["next_row"])
            status = np.array(done["status"], np.int64)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{path} can't be read; choose another folder") from error
        if not same:
            raise StorageError(
                f"{self._place} holds another data set: {differing}; choose another folder"
            )
        (self._num_cases, self._next_row), self._status = state, status


def _end(kept: Sequence[SolvedRows], rows: SolvedRows) -> int | None:
    """Rows after which a partition is complete; None if these aren't enough."""
    need = PARTITION - sum(int(one.solved.sum()) for one in kept)
    solved = np.flatnonzero(rows.solved)
    return int(solved[need - 1]) + 1 if len(solved) >= need else None


def _record(config: DataSetConfig, source: Source) -> dict[str, Any]:
    """What the data set is made of."""
    network, state = source.drawn.network, hashlib.sha256()
    for part in (asdict(config) | {"grid": network.name}, FORMAT, VERSION, source.uncertainty):
        state.update(repr(part).encode())
    for digest in (network.digest, network.limits_digest, network.slack_digest):
        state.update(digest.encode())
    if source.uncertainty.table is not None:
        loads = source.drawn.loads.rows(slice(None))
        state.update(loads.load_p.tobytes() + loads.load_q.tobytes())
    return {
        "config": asdict(config), "version": VERSION, "digest": state.hexdigest(),
        "bus": network.bus_labels, "gen": network.gen_labels, "branch": network.branch_labels,
    }  # fmt: skip


def _in_what(found: dict[str, Any], ours: dict[str, Any]) -> str:
    """In what the data set that was found differs, in words."""
    one, other = ({"version": told["version"], **told["config"]} for told in (found, ours))
    return differences(one, other, of_no_account=("grid",)) or "another state of grid or table"


def files_of(name: Format, folder: Path, network: Network) -> Files:
    """What writes this format."""
    from gridshift.exchange.gridfm import GridfmFiles
    from gridshift.exchange.pfdelta import PfdeltaFiles

    return {"gridfm": GridfmFiles, "pfdelta": PfdeltaFiles}[name](folder, network)
