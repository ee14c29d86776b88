"""Many scenarios solved for their statistics alone: no more voltages at a time than caches hold."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from gridshift.arrays import Bool, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.engine import Engine
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.statistics import Limits, Statistics
from gridshift.grid.topology import RETAINED

BLOCK_BYTES = 1 << 20
"""Voltages of one block; half of the cache that a core has for itself on many processors."""
MOST_ROWS = 512
"""Rows of a block from which handing it over no longer counts."""


class Streamed(NamedTuple):
    """What became of R scenarios."""

    statistics: Statistics
    """Of those with a solution."""
    mismatch: Real
    """(R,) largest power mismatch, p.u.; NaN without a solution."""

    @property
    def solved(self) -> Bool:
        """(R,)"""
        return ~np.isnan(self.mismatch)

    def merge(self, others: Iterable["Streamed"]) -> "Streamed":
        """These scenarios, then those of others."""
        others = [*others]
        statistics = self.statistics.merge(one.statistics for one in others)
        mismatch = np.concatenate([self.mismatch, *(one.mismatch for one in others)])
        return Streamed(statistics, mismatch)

    def stored(self) -> dict[str, np.ndarray]:
        """Everything as arrays; `of_stored` makes it again."""
        return self.statistics.stored() | {"mismatch": self.mismatch}

    @classmethod
    def of_stored(cls, limits: Limits, values: Mapping[str, np.ndarray]) -> "Streamed":
        """Of arrays that `stored` gave.

        Raises:
            KeyError, ValueError: they are of another grid.
        """
        return cls(Statistics.of_stored(limits, values), values["mismatch"])


def stream_rows(
    network: Network, loads: LoadScenarios, limits: Limits, *, tol: float = 1e-8, threads: int = 1
) -> Streamed:
    """Solve every row as `solve` does and count its voltages while they are in cache.

    Blocks of rows take chord steps; rows that these don't settle are solved together afterwards.

    Args:
        network: the topology, which leaves no bus without supply.
        loads: demands, R rows.
        limits: what the voltages are counted against, of this topology.
        tol: as in `solve`.
        threads: that share the rows; results don't depend on it, bit for bit.

    Raises:
        ScenarioError: arrays whose shape does not fit the network.
    """
    load_p, load_q = demands(network, loads)
    prepared = prepare(network)
    engine, topology = prepared.engine, prepared.topology
    limit = tol * engine.unit
    rows, size = len(load_p), rows_at_once(engine, len(load_p))
    mismatch = np.full(rows, np.nan)

    def count(statistics: Statistics, _: None, first: int, last: int) -> None:
        for start in range(first * size, min(last * size, rows), size):
            part = slice(start, start + size)
            found = engine.chord_rows(topology, load_p[part], load_q[part], tol=tol)
            good = (found.mismatch <= limit) & (found.retained >= RETAINED**2)
            whole = good.all()
            mismatch[part] = found.mismatch if whole else np.where(good, found.mismatch, np.nan)
            statistics.add(found.voltage if whole else found.voltage[good])

    parts: list[Statistics] = []
    run_blocks(count, None, -(-rows // size), threads, parts, lambda: Statistics(limits))
    statistics = parts[0].merge(parts[1:]) if parts else Statistics(limits)
    left = np.flatnonzero(np.isnan(mismatch))
    if len(left):
        solution = solve(prepared, loads.rows(left), tol=tol, threads=threads)
        statistics.add_complex(solution.voltage)
        mismatch[left] = np.where(solution.solved, solution.mismatch, np.nan)
    return Streamed(statistics, mismatch)


def rows_at_once(engine: Engine, rows: int) -> int:
    """Rows of a block: whole blocks of lanes, of about the same size each."""
    lanes = engine.lanes.width
    most = min(MOST_ROWS, max(lanes, BLOCK_BYTES // (16 * engine.num_buses)))
    even = -(-rows // -(-rows // most)) if rows else 1
    return -(-even // lanes) * lanes
