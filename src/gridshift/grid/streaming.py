"""Many scenarios solved for their statistics alone: no more voltages at a time than caches hold."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.engine import Engine
from gridshift.grid.limited_workspace import LimitedStates
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.statistics import Limits, Statistics
from gridshift.grid.topology import RETAINED
from gridshift.grid.workspace import Rows

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
    at_limit: Int
    """(2, B) rows with the generators of a bus at their upper and at their lower reactive limit."""
    any_at_limit: int
    """Rows with generators at a limit anywhere."""

    @property
    def solved(self) -> Bool:
        """(R,)"""
        return ~np.isnan(self.mismatch)

    def merge(self, others: Iterable["Streamed"]) -> "Streamed":
        """These scenarios, then those of others."""
        others = [*others]
        statistics = self.statistics.merge(one.statistics for one in others)
        mismatch = np.concatenate([self.mismatch, *(one.mismatch for one in others)])
        at_limit = np.sum([self.at_limit, *(one.at_limit for one in others)], axis=0)
        reached = self.any_at_limit + sum(one.any_at_limit for one in others)
        return Streamed(statistics, mismatch, at_limit, reached)

    def stored(self) -> dict[str, np.ndarray]:
        """Everything as arrays; `of_stored` makes it again."""
        return self.statistics.stored() | {
            "mismatch": self.mismatch, "at_limit": self.at_limit,
            "any_at_limit": np.array(self.any_at_limit),
        }  # fmt: skip

    @classmethod
    def of_stored(cls, limits: Limits, values: Mapping[str, np.ndarray]) -> "Streamed":
        """Of arrays that `stored` gave.

        Raises:
            KeyError, ValueError: they are of another grid.
        """
        statistics, reached = Statistics.of_stored(limits, values), int(values["any_at_limit"])
        return cls(statistics, values["mismatch"], values["at_limit"], reached)


def stream_rows(
    network: Network, loads: LoadScenarios, limits: Limits, *, tol: float = 1e-8, threads: int = 1,
    q_limits: bool = False,
) -> Streamed:  # fmt: skip
    """Solve every row as `solve` does and count its voltages while they are in cache.

    Blocks of rows take chord steps; rows that these don't settle are solved together afterwards.

    Args:
        network: the topology, which leaves no bus without supply.
        loads: demands, R rows.
        limits: what the voltages are counted against, of this topology.
        tol: as in `solve`.
        threads: that share the rows; results don't depend on it, bit for bit.
        q_limits: whether rows keep the reactive limits of generators.

    Raises:
        ScenarioError: arrays whose shape does not fit the network.
    """
    load_p, load_q = demands(network, loads)
    prepared = prepare(network)
    engine = prepared.engine
    rows, size = len(load_p), rows_at_once(engine, len(load_p))
    mismatch = np.full(rows, np.nan)
    kept = ReactiveLimits.of(network) if q_limits else None

    def count(part_of: "_Part", _: None, first: int, last: int) -> None:
        for start in range(first * size, min(last * size, rows), size):
            part = slice(start, start + size)
            found, good, side = _chord_rows(prepared, kept, load_p[part], load_q[part], tol)
            whole = good.all()
            mismatch[part] = found.mismatch if whole else np.where(good, found.mismatch, np.nan)
            part_of.statistics.add(found.voltage if whole else found.voltage[good])
            if side is not None:
                part_of.add_sides(side[good])

    parts: list[_Part] = []
    run_blocks(count, None, -(-rows // size), threads, parts, lambda: _Part.new(limits, network))
    whole, *others = parts or [_Part.new(limits, network)]
    whole.statistics.merge(other.statistics for other in others)
    for other in others:
        whole.at_limit[:] += other.at_limit
    left = np.flatnonzero(np.isnan(mismatch))
    if len(left):
        solution = solve(prepared, loads.rows(left), tol=tol, threads=threads, q_limits=q_limits)
        whole.statistics.add_complex(solution.voltage)
        mismatch[left] = np.where(solution.solved, solution.mismatch, np.nan)
        if solution.at_limit is not None:
            whole.add_sides(solution.at_limit)
    return Streamed(whole.statistics, mismatch, whole.at_limit[:2, :-1], int(whole.at_limit[2, -1]))


class _Part(NamedTuple):
    """What one thread has counted."""

    statistics: Statistics
    at_limit: Int
    """(3, B + 1) rows at the upper limit and at the lower one by bus; the last entry of all is
    the number of rows at any."""

    @classmethod
    def new(cls, limits: Limits, network: Network) -> "_Part":
        return cls(Statistics(limits), np.zeros((3, network.num_buses + 1), np.int64))

    def add_sides(self, side: NDArray[np.int8]) -> None:
        """Count rows by the sides (n, B) of their buses."""
        self.at_limit[0, :-1] += (side > 0).sum(0)
        self.at_limit[1, :-1] += (side < 0).sum(0)
        self.at_limit[2, -1] += side.any(1).sum()


def _chord_rows(
    prepared: Prepared, kept: ReactiveLimits | None, load_p: Real, load_q: Real, tol: float
) -> tuple[Rows | LimitedStates, Bool, NDArray[np.int8] | None]:
    """Rows by chord steps, which of them are solved, and sides of buses where limits are kept."""
    engine, limit = prepared.engine, tol * prepared.engine.unit
    if kept is not None and kept.at_nominal(prepared):
        found = kept.from_nominal(prepared, load_p, load_q, tol=tol)
        return found, kept.solved(found, limit), kept.at_buses(found.side, engine.num_buses)
    limits = None if kept is None else kept.of_pv
    rows = engine.chord_rows(prepared.topology, load_p, load_q, tol=tol, limits=limits)
    good = (rows.mismatch <= limit) & (rows.retained >= RETAINED**2)
    return rows, good if kept is None else good & (rows.excess <= limit), None


def rows_at_once(engine: Engine, rows: int) -> int:
    """Rows of a block: whole blocks of lanes, of about the same size each."""
    lanes = engine.lanes.width
    most = min(MOST_ROWS, max(lanes, BLOCK_BYTES // (16 * engine.num_buses)))
    even = -(-rows // -(-rows // most)) if rows else 1
    return -(-even // lanes) * lanes
