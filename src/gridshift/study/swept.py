"""Rows of many outages: found in the store, or studied in parallel; equal ones once."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gridshift.arguments import how_many
from gridshift.errors import GridshiftError, StorageError, WorkersLostError
from gridshift.grid.contingency import Outage, outage_text
from gridshift.grid.equal_outages import EqualOutages
from gridshift.grid.network import Network
from gridshift.study.outage import screen_outages
from gridshift.study.pieces import Piece, grouped, keys, runs, work
from gridshift.study.row import BY_BRANCH, OutageRow, row_bytes
from gridshift.study.setting import Setting
from gridshift.study.shared import run_piece, share
from gridshift.study.store import TABLE_BYTES, Store

ROWS_BYTES = 1 << 28
"""Rows that a study with a folder holds in memory; the others' arrays are looked up on disk."""
SHORT_BYTES = 30_000
"""What a row takes besides its arrays, while table and summary are written."""
Progress = Callable[[int, int, OutageRow], None]
"""Called with the number of finished outages, of all outages, and the latest row."""


def rows_bytes(network: Network, num: int, *, on_disk: bool) -> int:
    """Memory that the rows of so many outages take, with what writing their table takes."""
    arrays = num * row_bytes(network)
    held = min(arrays, ROWS_BYTES) + 4 * min(arrays, TABLE_BYTES) if on_disk else arrays
    return num * SHORT_BYTES + held


class Shard(NamedTuple):
    """One of n parts of a study: every n-th piece."""

    number: int
    """From 1."""
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Of a text like `3/8`.

        Raises:
            GridshiftError: it is none.
        """
        number, slash, of = text.partition("/")
        if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
            raise GridshiftError(
                f"shard '{text}' is no part of a study; give for instance 3/8, the third of eight"
            )
        return cls(int(number), int(of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


@dataclass(kw_only=True)
class Swept:
    """What came of a sweep."""

    rows: list[OutageRow] = field(default_factory=list)
    resumed: int = 0
    """Outages whose rows were found."""
    missing: dict[Outage, list[int]] = field(default_factory=dict)
    """Outages that were not worked on, and the numbers of their pieces among all."""
    num_pieces: int = 0
    """Parts that can be worked on apart, those that are done included."""


def swept(
    setting: Setting,
    outages: Sequence[Outage],
    store: Store | None = None,
    progress: Progress | None = None,
    *,
    executor: Executor | None = None,
    shard: Shard | None = None,
    only_found: bool = False,
) -> Swept:
    """Rows of all outages, and how many of them were found in the store.

    Args:
        store: where finished rows are, and go.
        executor: that runs the pieces, with workers that see the store's folder; by default
            threads of this process.
        shard: the part of the study to work on; by default all of it.
        only_found: work on nothing.

    Raises:
        StorageError: a worker cannot write to the folder.
        WorkersLostError: workers of the executor died.
    """
    sweep = _Sweep(setting, outages, store, progress)
    sweep.look_up()
    resumed = len(sweep.rows)
    pieces = [] if only_found else sweep.pieces(shard)
    if executor is not None and pieces:
        sweep.send(pieces, executor)
    elif pieces:
        sweep.work(pieces)
    missing = {sweep.solving[i]: numbers for i, numbers in sweep.missing().items()}
    num_pieces = sum(1 for _ in sweep.numbered())
    return Swept(rows=sweep.rows, resumed=resumed, missing=missing, num_pieces=num_pieces)


class _Sweep:
    def __init__(
        self, setting: Setting, outages: Sequence[Outage], store: Store | None,
        progress: Progress | None,
    ):  # fmt: skip
        self._setting, self._store, self._progress = setting, store, progress
        self._equal = EqualOutages(setting.limited(setting.network))
        self._num, self._runs = len(outages), runs(setting)
        self._asked: dict[Outage, list[Outage]] = defaultdict(list)
        for outage in outages:
            self._asked[self._equal.representative(outage)].append(outage)
        self.solving = [*self._asked]
        self._keys = keys(setting, Piece(tuple(self.solving)))
        self._index = {outage: i for i, outage in enumerate(self.solving)}
        self._counted: dict[Outage, dict[tuple[int, int], dict[str, Any]]] = defaultdict(dict)
        self._done: set[int] = set()
        self.rows: list[OutageRow] = []
        self._in_memory: list[tuple[Outage, int]] = []
        """Outages whose rows are held, and where their first one is in `rows`."""
        self._most_in_memory = 1 + ROWS_BYTES // row_bytes(setting.network)

    def look_up(self) -> None:
        """Take what the store has; what is damaged is computed anew."""
        for outage, key in zip(self.solving, self._keys, strict=True):
            row = self._row(outage, None if self._store is None else self._store.load(key))
            if row is not None:
                self._note(outage, row)
            elif self._store is not None:
                for run in self._runs:
                    piece = Piece((outage,), run)
                    self._take(piece, [self._store.load(one) for one in self._keys_of(piece)])
        self._in_memory.clear()  # what was found is on disk

    def pieces(self, shard: Shard | None) -> list[Piece]:
        """What is to be worked on."""
        left = [
            (i, run)
            for number, (i, run) in enumerate(self.numbered())
            if (shard is None or number % shard.of == shard.number - 1) and self._lacks(i, run)
        ]
        if self._runs:
            return [Piece((self.solving[i],), run) for i, run in left]
        workers = max(1, min(self._setting.config.num_workers, len(left)))
        return grouped(self._setting.config, [self.solving[i] for i, _ in left], workers)

    def missing(self) -> dict[int, list[int]]:
        """Outages without a row, and the numbers of the pieces that they lack."""
        lacking: dict[int, list[int]] = defaultdict(list)
        for number, (i, run) in enumerate(self.numbered()):
            if self._lacks(i, run):
                lacking[i].append(number)
        return lacking

    def numbered(self) -> Iterator[tuple[int, tuple[int, int] | None]]:
        """Every piece: the outage by its number, and the run of scenarios if there are several."""
        return ((i, run) for i in range(len(self.solving)) for run in self._runs or [None])

    def _lacks(self, index: int, run: tuple[int, int] | None) -> bool:
        return index not in self._done and run not in self._counted[self.solving[index]]

    def _keys_of(self, piece: Piece) -> list[str]:
        """Under which what comes out of a piece is kept; those of whole outages are known."""
        if piece.rows is not None:
            return keys(self._setting, piece)
        return [self._keys[self._index[outage]] for outage in piece.outages]

    def work(self, pieces: Sequence[Piece]) -> None:
        """In threads of this process."""
        num_workers = self._setting.config.num_workers
        workers = max(1, min(num_workers, len(pieces)))
        within = replace(self._setting, threads=num_workers // workers)

        def work_and_keep(piece: Piece) -> list[Any]:
            found = work(within, piece)
            if self._store is not None:
                for key, one in zip(self._keys_of(piece), found, strict=True):
                    self._store.save(key, one.stored() if isinstance(one, OutageRow) else one)
            return found

        with _pool(workers) as pool:
            self._collect({pool.submit(work_and_keep, piece): piece for piece in pieces}, list)

    def send(self, pieces: Sequence[Piece], executor: Executor) -> None:
        """To the workers of an executor, which write to the folder themselves."""
        store = self._store
        if store is None:
            raise GridshiftError(
                "workers of an executor write to the study's folder: give one that they all see"
            )
        study = share(self._setting, store.folder)
        folder = str(store.folder.resolve())
        self._collect(
            {executor.submit(run_piece, folder, study, piece): piece for piece in pieces},
            lambda written: [store.read(key, place) for key, place in written],
        )

    def _collect(self, piece_of: dict[Future, Piece], read: Callable[[Any], list[Any]]) -> None:
        try:
            for future in as_completed(piece_of):
                self._take(piece_of[future], read(future.result()))
        except BaseException as error:
            for future in piece_of:
                future.cancel()
            if isinstance(error, Exception) and not isinstance(error, GridshiftError):
                self._lost(error)
            raise

    def _lost(self, error: Exception) -> None:
        """Tell an error of the workers' own from one of ours."""
        theirs = type(error).__module__.partition(".")[0] in ("distributed", "loky", "mpi4py")
        if theirs or isinstance(error, BrokenExecutor | CancelledError | OSError):
            raise WorkersLostError(
                f"the workers are gone ({type(error).__name__}: {error}); {len(self.rows):,} of "
                f"{how_many(self._num, 'outage')} are in "
                f"{self._store.folder if self._store else 'memory'}, "
                "the same command goes on from there"
            ) from error

    def _take(self, piece: Piece, found: Sequence[Any]) -> None:
        for outage, one in zip(piece.outages, found, strict=True):
            if piece.rows is None:
                row = one if isinstance(one, OutageRow) else self._row(outage, one)
                if row is None:
                    told = f"what a worker wrote of {outage_text(outage)} can't be read"
                    raise StorageError(f"{told}; the same command computes it again")
                self._note(outage, row)
            elif one is not None:
                counted = self._counted[outage]
                counted[piece.rows] = one
                if len(counted) == len(self._runs):
                    self._note(outage, self._together(outage))
        self._to_disk()

    def _together(self, outage: Outage) -> OutageRow:
        """The row of an outage whose scenarios were counted in runs."""
        found = self._counted.pop(outage)
        counted = tuple(found[run] for run in self._runs)
        (row,) = screen_outages(replace(self._setting, counted=counted), [outage])
        if self._store is not None:
            self._store.save(self._keys[self._index[outage]], row.stored())
        return row

    def _note(self, solved: Outage, row: OutageRow) -> None:
        self._done.add(self._index[solved])
        self._in_memory.append((solved, len(self.rows)))
        for outage in self._asked[solved]:
            self.rows.append(_renamed(row, solved, outage, self._equal))
            if self._progress is not None:
                self._progress(len(self.rows), self._num, self.rows[-1])

    def _to_disk(self) -> None:
        """Exchange rows in memory, once there are many, for those that lie in the store."""
        if self._store is None or len(self._in_memory) < self._most_in_memory:
            return
        for solved, first in self._in_memory:
            row = self._row(solved, self._store.load(self._keys[self._index[solved]]))
            if row is None:  # what can't be read again stays in memory
                continue
            for i, outage in enumerate(self._asked[solved], first):
                self.rows[i] = _renamed(row, solved, outage, self._equal)
        self._in_memory.clear()

    def _row(self, outage: Outage, values: dict[str, Any] | None) -> OutageRow | None:
        """A row of values that were stored, if they are whole."""
        network = self._setting.network
        return (
            None
            if values is None
            else OutageRow.of_stored(values, outage=outage_text(outage), network=network)
        )


def _renamed(row: OutageRow, solved: Outage, outage: Outage, equal: EqualOutages) -> OutageRow:
    """The row of an outage from that of the equal one that was solved."""
    if outage == solved:
        return row
    order = equal.branches(outage)
    labels = equal.network.branch_labels
    new_name = {labels[b]: labels[a] for a, b in enumerate(order) if a != b}
    named = {
        name: getattr(row, name) for name in ("worst_branch", "added_branch", "emergency_branch")
    }
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
