"""Cases of a data set that go into files together, and labels of all scenarios behind them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gridshift.arrays import Complex, Int, Real
from gridshift.exchange.solved_part import SolvedPart
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus
from gridshift.grid.quantities import Quantities, quantities
from gridshift.storage import replacing
from gridshift.study.solved_rows import SolvedRows

LIMITS = {"worst_loading": float, "num_overloads": int, "num_low": int, "num_high": int}
"""Of `Quantities`, that labels are made of."""


class Partition:
    """Scenarios one behind the other, drawn and solved in pieces."""

    def __init__(self, pieces: tuple[SolvedRows, ...], first: int):
        self.pieces = pieces
        self.first = first
        """Number of the first case in the data set."""
        self.num_rows = sum(len(rows.status) for rows in pieces)
        self.num_cases = sum(int(rows.solved.sum()) for rows in pieces)
        self.limits: dict[str, Int | Real] = {
            name: np.empty(0, kind) for name, kind in LIMITS.items()
        }
        """(N,) of each case."""

    def arranged(self, network: Network, room: Quantities, *, alike: bool) -> SolvedPart:
        """The cases as files have them.

        Args:
            network: the grid that the demands belong to.
            room: for the numbers, which are there until it is used again.
            alike: whether all cases have the grid's own branches.
        """
        at, topologies = 0, 0
        drawn, topology, on = [], [], []
        grids: dict[int, Complex] = {}
        grid: list[int] = []
        for rows in self.pieces:
            good = np.flatnonzero(rows.solved)
            whole = slice(None) if len(good) == len(rows.status) else good
            used, number = np.unique(rows.topology[whole], return_inverse=True)
            own = [rows.branch_y[t] for t in used.tolist()]
            quantities(
                network, rows.loads.rows(whole), rows.voltage[whole],
                two_ports=np.where(rows.on[used][:, :, None], own, 0), topology=number,
                out=room.rows(slice(at, at + len(good))),
            )  # fmt: skip
            drawn.append(rows.first + good)
            topology.append(topologies + number)
            on.append(rows.on[used])
            grids |= {id(branches): branches for branches in own}
            grid += [[*grids].index(id(branches)) for branches in own]
            at, topologies = at + len(good), topologies + len(used)
        found = room.rows(slice(at))
        self.limits = {name: getattr(found, name).copy() for name in LIMITS}
        return SolvedPart(
            network=network, quantities=found, first=self.first, drawn=np.concatenate(drawn),
            seconds=float(np.mean([rows.seconds for rows in self.pieces])), alike=alike,
            grids=np.stack([*grids.values()]), grid=np.array(grid), on=np.concatenate(on),
            topology=np.concatenate(topology),
        )  # fmt: skip


def write_labels(folder: Path, parts: Sequence[Partition]) -> None:
    """Write what became of every scenario, and whether it keeps the limits, as parquet.

    `load_scenario_idx` numbers the scenarios, `scenario` the cases (-1 without a solution);
    `secure` says that there is a solution and that it keeps the limits of voltages and branches.

    Raises:
        StorageError: they can't be written.
    """
    pieces = [rows for part in parts for rows in part.pieces]
    solved = np.concatenate([rows.solved for rows in pieces])
    status = np.concatenate([rows.status for rows in pieces])
    first = pieces[0].first
    scenario = np.full(len(solved), -1)
    scenario[solved] = np.arange(solved.sum()) + parts[0].first
    columns = {"load_scenario_idx": first + np.arange(len(solved)), "scenario": scenario}
    limits = {name: np.concatenate([part.limits[name] for part in parts]) for name in LIMITS}
    broken = limits["num_overloads"] + limits["num_low"] + limits["num_high"]
    for name, values in (*limits.items(), ("secure", broken == 0)):
        columns[name] = np.zeros(len(solved), values.dtype)
        columns[name][solved] = values
    texts = {
        "status": pa.DictionaryArray.from_arrays(status, [one.text for one in RowStatus]),
        "outage": pa.concat_arrays(
            [pa.DictionaryArray.from_arrays(rows.topology, list(rows.outages)).cast(pa.string())
             for rows in pieces]
        ),
    }  # fmt: skip
    with replacing(folder / f"from-{first:010}.parquet") as part:
        pq.write_table(pa.table(columns | texts), part, compression="zstd")
