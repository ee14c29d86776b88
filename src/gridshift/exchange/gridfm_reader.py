"""gridfm parquet, read back from whatever program wrote it.

Tables may be one file or a folder of partitions of any size, with columns in any order, flags as
integers, and without `load_scenario_idx`.
"""

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftWarning, TableError
from gridshift.exchange.solved_cases import SolvedCases

BUS, COUNT = "bus_data", "n_scenarios.txt"
DEEPEST = 3
"""Folders below the one that is named, as in out/case118/raw."""


def find_tables(folder: Path) -> list[Path]:
    """Folders, this one or below it, that hold gridfm's tables."""
    return sorted({found.parent for depth in range(DEEPEST) for found in folder.glob(
        "*/" * depth + f"{BUS}*"
    ) if found.name in (BUS, f"{BUS}.parquet")})  # fmt: skip


def read_gridfm(folder: Path) -> SolvedCases:
    """The cases whose tables are in a folder.

    Warns:
        GridshiftWarning: the number of cases is not there, so that it may be half written.

    Raises:
        TableError: tables or columns are missing, cases are incomplete, or cells are empty.
    """
    if not (folder / COUNT).exists():
        warnings.warn(
            f"{folder} has no {COUNT}, which is written last: cases may be missing",
            GridshiftWarning,
            stacklevel=3,
        )
    bus = _Table(folder, BUS, ("bus",), ("Pd", "Qd", "Pg", "Qg", "Vm", "Va"))
    gen = _Table(folder, "gen_data", ("idx",), ("bus", "p_mw", "q_mvar"))
    branch = _Table(folder, "branch_data", ("idx", "from_bus", "to_bus"), ("br_status",))
    for other in (gen, branch):
        if not np.array_equal(other.scenario, bus.scenario):
            raise TableError(f"{folder}: {other.name} has other cases than {BUS}")
    pd, qd, pg, qg, vm, va = bus.values
    gen_bus, p, q = gen.values
    if (gen_bus != gen_bus[:1]).any():
        raise TableError(f"{folder}: the generators of gen_data are not those of the first case")
    return SolvedCases(
        source=str(folder), scenario=bus.scenario, demand_p=pd, demand_q=qd, bus_p=pg, bus_q=qg,
        magnitude=vm, angle=va, gen_bus=gen_bus[0].astype(np.int64), gen_p=p, gen_q=q,
        in_service=branch.values[0],
    )  # fmt: skip


class _Table:
    """Some columns of a table, a row for each case."""

    scenario: Int
    """(N,)"""
    values: list[Real]
    """(N, n) of each column, elements in the order of their keys."""

    def __init__(self, folder: Path, name: str, keys: tuple[str, ...], wanted: tuple[str, ...]):
        self.name, self._folder = name, folder
        table = self._read(keys, wanted)
        order = [("scenario", "ascending"), *((key, "ascending") for key in keys)]
        present = [one for one in order if one[0] in table.column_names]
        table = table.sort_by(present)
        columns = {column: self._numbers(table, column) for column in ("scenario", *wanted)}
        numbers, counts = np.unique(columns["scenario"], return_counts=True)
        if not len(numbers):
            raise TableError(f"{folder}: {name} has no rows")
        if (counts != counts[0]).any():
            case = numbers[np.flatnonzero(counts != counts[0])[0]]
            raise TableError(
                f"{folder}: {name} has {counts[0]} rows of case {numbers[0]:g} and "
                f"{counts[numbers == case][0]} of case {case:g}"
            )
        self.scenario = numbers.astype(np.int64)
        self.values = [columns[column].reshape(len(numbers), counts[0]) for column in wanted]

    def _read(self, keys: tuple[str, ...], wanted: tuple[str, ...]) -> pa.Table:
        path = next(
            (p for p in (self._folder / f"{self.name}.parquet", self._folder / self.name)
             if p.exists()), None,
        )  # fmt: skip
        if path is None:
            raise TableError(f"{self._folder} has no {self.name}.parquet")
        try:
            found = ds.dataset(str(path), format="parquet", partitioning="hive")
            known = found.schema.names
            missing = [c for c in ("scenario", *wanted) if c not in known]
            if missing:
                raise TableError(f"{path} lacks column {', '.join(missing)}")
            return found.to_table(columns=[c for c in ("scenario", *keys, *wanted) if c in known])
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise TableError(f"{path} can't be read as parquet: {reason}") from error

    def _numbers(self, table: pa.Table, column: str) -> Real:
        try:
            values = pc.cast(table[column], pa.float64()).to_numpy()
        except pa.ArrowException as error:
            raise TableError(f"{self._folder}: {column} of {self.name} holds no numbers") from error
        if not np.isfinite(values).all():
            raise TableError(
                f"{self._folder}: {column} of {self.name} has an empty cell, NaN or infinity in "
                f"case {table['scenario'][int(np.isfinite(values).argmin())]}"
            )
        return values
