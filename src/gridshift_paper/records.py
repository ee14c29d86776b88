"""Studies, their tasks, and the rows that these leave on disk: one parquet file a study.

A task is the unit of work: it has a key, takes at most minutes, and its rows are written as soon as
it is done. A study that was cut off goes on with the tasks that are missing.
"""

import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock

from gridshift.errors import StorageError
from gridshift.storage import replacing, write_text
from gridshift.study.provenance import about_this_machine
from gridshift.threads import Threads
from gridshift_paper.protocol import DEFAULT_SCALE, GRIDS, SCALES, Experiment, Scale

Value = str | int | float | bool
Key = Mapping[str, Value]
"""What is measured: grid, outage, seed, ...; these become columns of its rows."""
Record = Mapping[str, Value | None]
REMEDY = "restore it, or delete it to measure its rows again"
Progress = Callable[[int, int], None]
"""Called with the number of what is done, and of all that there is to do now."""
OF_EXPERIMENTS = {field.name for field in fields(Experiment)}
"""Entries of a key that make its experiment."""


STORED = "paper"
"""Folder of rows in a checkout, and beside this module in an installed package."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One measurement."""

    key: Key
    measure: Callable[[], Sequence[Record]]
    """Rows with further columns."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """Measurements of one kind; artefacts are drawn from them."""

    name: str
    about: str
    """One sentence: what is measured."""
    keys: Callable[[Scale], Iterable[Key]]
    """One for each task, in the order in which they are measured."""
    measure: Callable[..., Sequence[Record]]
    """Rows of a task: gets its experiment, and the key's other entries by name."""
    version: int = 1
    """Raised when the meaning of a row changes, so that older rows are measured anew."""

    def tasks(self, scale: Scale) -> Iterator[Task]:
        """What there is to measure at a scale."""
        for key in self.keys(scale):
            own: Any = {name: value for name, value in key.items() if name in OF_EXPERIMENTS}
            others = {name: value for name, value in key.items() if name not in own}
            measure = partial(self.measure, Experiment(scale, **own), **others)
            yield Task(key=key, measure=measure)


def crossed(**columns: Iterable[Value]) -> Iterator[Key]:
    """Keys of all combinations; the last column changes fastest."""
    for values in product(*columns.values()):
        yield dict(zip(columns, values, strict=True))


def on_outage(
    scale: Scale, *grids: str, topology: str = "N-2", **columns: Iterable[Value]
) -> Iterator[Key]:
    """Keys of each of these grids with its standard outage, and all combinations of the columns."""
    for grid in scale.grids_of(*grids):
        yield from crossed(grid=[grid], outage=[GRIDS[grid].topologies[topology]], **columns)


class Book:
    """The rows of all studies at one scale, in one folder."""

    def __init__(self, folder: Path, scale: Scale, *, shipped: Path | None = None):
        """`shipped`: where rows are read from that the folder has no file of; never written to."""
        self.folder, self.scale = folder / scale.name, scale
        self._shipped = None if shipped is None else shipped / scale.name
        self._frames: dict[tuple[Study, Path, int], pd.DataFrame] = {}

    @property
    def options(self) -> str:
        """Options of the command by which it works on this book; a space before each."""
        scale, parent = self.scale, self.folder.parent
        usual = SCALES[scale.name].seeds if scale.name in SCALES else scale.seeds
        return "".join((
            f" --scale {scale.name}" if scale.name != DEFAULT_SCALE else "",
            f" --seeds {len(scale.seeds)}" if scale.seeds != usual else "",
            f" --results {shlex.quote(str(parent))}" if parent != Path(STORED) else "",
        ))  # fmt: skip

    def path(self, study: Study) -> Path:
        """File that a study's rows are written to."""
        return self.folder / f"{study.name}.parquet"

    def _source(self, study: Study) -> Path:
        """File that a study's rows are read from: until there is one here, the one shipped."""
        path = self.path(study)
        if path.exists() or self._shipped is None:
            return path
        shipped = self._shipped / path.name
        return shipped if shipped.exists() else path

    def rows(self, study: Study) -> pd.DataFrame:
        """Rows there are of the study's tasks at this scale; columns of the key come first.

        Raises:
            StorageError: the file is damaged.
        """
        path = self._source(study)
        state = study, path, path.stat().st_mtime_ns if path.exists() else 0
        if state not in self._frames:  # several artefacts are drawn from one study
            wanted = {_identity(study, self.scale, task.key) for task in study.tasks(self.scale)}
            kept = [row for row in self._read(study) if row["task"] in wanted]
            self._frames[state] = pd.DataFrame(kept)
        return self._frames[state].copy()

    def num_rows(self, study: Study) -> int:
        """Rows in the study's file, whatever they are of; nothing but its head is read."""
        path = self._source(study)
        try:
            return pq.read_metadata(path).num_rows if path.exists() else 0
        except (OSError, pa.ArrowInvalid) as problem:
            raise StorageError(f"{path} is damaged: {problem}; {REMEDY}") from problem

    def missing(self, study: Study) -> list[Task]:
        """Tasks without rows."""
        done = {row["task"] for row in self._read(study)}
        return [task for task in study.tasks(self.scale)
                if _identity(study, self.scale, task.key) not in done]  # fmt: skip

    def run(self, study: Study, progress: Progress | None = None) -> int:
        """Measure what is missing, and the number of tasks that this took.

        Raises:
            StorageError: rows can't be written.
        """
        missing = self.missing(study)
        if missing and progress is not None:
            progress(0, len(missing))
        run = self._note_run() if missing else ""
        for number, task in enumerate(missing, 1):
            with Threads(1):  # times can be compared then, and runs side by side don't spin
                rows = task.measure()
            made = {"task": _identity(study, self.scale, task.key), "run": run}
            self._add(study, [{**task.key, **row, **made} for row in rows])
            if progress is not None:
                progress(number, len(missing))
        return len(missing)

    def _read(self, study: Study) -> list[dict[str, Any]]:
        path = self._source(study)
        if not path.exists():
            return []
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as problem:
            raise StorageError(f"{path} is damaged: {problem}; {REMEDY}") from problem
        if "task" not in table.column_names:
            raise StorageError(f"{path} is damaged: it has no column 'task'; {REMEDY}")
        return table.to_pylist()

    def _add(self, study: Study, rows: Sequence[dict[str, Any]]) -> None:
        """Append the rows of a task, unless another process has added them meanwhile."""
        path = self.path(study)
        try:
            with FileLock(f"{path}.lock"):
                everything = self._read(study)
                if any(row["task"] == rows[0]["task"] for row in everything):
                    return
                everything += rows
                columns = dict.fromkeys(name for row in everything for name in row)
                table = pa.Table.from_pylist(
                    [{name: row.get(name) for name in columns} for row in everything]
                )
                with replacing(path) as part:
                    pq.write_table(table, part, compression="zstd")
        except OSError as problem:
            raise StorageError(f"cannot write {path}: {problem.strerror}") from problem

    def _note_run(self) -> str:
        """Write down what this run is made with; its name, by which rows refer to it."""
        about = about_this_machine() | {"threads": 1, "scale": asdict(self.scale)}
        run = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]
        path = self.folder / "runs.json"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{path}.lock"):
                runs = _runs(path)
                made = datetime.now(UTC).isoformat(timespec="seconds")
                if run not in runs:
                    noted = runs | {run: {"first": made, **about}}
                    write_text(path, json.dumps(noted, indent=1))
        except OSError as problem:
            raise StorageError(f"cannot write {path}: {problem.strerror}") from problem
        return run


def _runs(path: Path) -> dict[str, Any]:
    """What is noted of earlier runs.

    Raises:
        StorageError: the file is damaged.
    """
    if not path.exists():
        return {}
    try:
        runs = json.loads(path.read_bytes())
    except ValueError as problem:
        raise StorageError(f"{path} is damaged: {problem}; delete it") from problem
    if not isinstance(runs, dict):
        raise StorageError(f"{path} is damaged: it is no JSON object; delete it")
    return runs


def _identity(study: Study, scale: Scale, key: Key) -> str:
    settings = scale.settings(str(key.get("backbone", "mlp")))
    parts = (study.name, study.version, settings, dict(key))
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def shipped_rows() -> Path | None:
    """Folder of measured rows, one folder a scale; None if they were left out of the package."""
    here = Path(__file__).parent
    for folder in (here / STORED, here.parent.parent / STORED):
        if (folder / "full").is_dir():
            return folder
    return None
