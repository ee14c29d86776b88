"""Many scenarios solved for their statistics alone: no more voltages at a time than caches hold."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.controlled_rows import at_rest
from gridshift.grid.controls import ControlCounts, alike, grid_of_row
from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.engine import Engine
from gridshift.grid.intact_rows import from_nominal
from gridshift.grid.limited_chords import solved
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.shared_workspace import SharedRows
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.solution import BatchSolution, RowStatus
from gridshift.grid.statistics import Limits, Statistics
from gridshift.grid.supplied import supplied_part
from gridshift.grid.topology import settled
from gridshift.grid.workspace import FromIntact, Rows

BLOCK_BYTES = 1 << 22
"""Voltages of one block."""
MOVED_BYTES = 1 << 26
"""Voltages of rows whose controls move, which are solved together."""
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
    controls: ControlCounts | None = None
    """What became of the controls, if they may move."""

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
        controls = self.controls
        for one in others:
            controls = controls.plus(one.controls) if controls and one.controls else None
        return Streamed(statistics, mismatch, at_limit, reached, controls)

    def stored(self) -> dict[str, np.ndarray]:
        """Everything as arrays; `of_stored` makes it again."""
        return self.statistics.stored() | {
            "mismatch": self.mismatch, "at_limit": self.at_limit,
            "any_at_limit": np.array(self.any_at_limit),
            **(self.controls.stored() if self.controls else {}),
        }  # fmt: skip

    @classmethod
    def of_stored(cls, limits: Limits, values: Mapping[str, np.ndarray]) -> "Streamed":
        """Of arrays that `stored` gave.

        Raises:
            KeyError, ValueError: they are of another grid.
        """
        statistics, reached = Statistics.of_stored(limits, values), int(values["any_at_limit"])
        moved = ControlCounts.of_stored(values) if "controls_moved" in values else None
        return cls(statistics, values["mismatch"], values["at_limit"], reached, moved)


def stream_rows(
    network: Network, loads: LoadScenarios, limits: Limits, *, tol: float = 1e-8, threads: int = 1,
    q_limits: bool = False, distributed_slack: SlackShares | None = None, controls: bool = False,
    start: Callable[[Prepared], FromIntact] = from_nominal,
) -> Streamed:  # fmt: skip
    """Solve every row as `solve` does and count its voltages while they are in cache.

    Rows take chord steps in lanes; those that these don't settle, or whose controls move, are
    solved together afterwards.

    Args:
        network: the topology, which leaves no bus without supply but those that stand apart; with
            such only plain rows: no reactive limits, distributed slack or controls.
        limits: what the voltages are counted against, of this topology.
        controls: let tap changers, shunts and phase shifters move.
        start: where rows that take plain chord steps start on a topology (`IntactRows`).

    Raises:
        ScenarioError: arrays whose shape does not fit the network.
    """
    load_p, load_q = demands(network, loads)
    prepared = prepare(network)
    kept = ReactiveLimits.of(network) if q_limits else None
    at_limit = np.zeros((3, network.num_buses + 1), np.int64)
    chords = _chords(prepared, kept, distributed_slack, load_p, load_q, tol)
    moving = controls and bool(network.controls)
    if moving:
        chords = _resting(prepared, kept, chords, load_p, load_q, tol)
    if chords is None:
        statistics, mismatch = prepared.engine.count_rows(
            prepared.topology, load_p, load_q, limits, tol=tol, threads=threads,
            q_limits=None if kept is None else kept.of_pv, intact=start(prepared),
        )  # fmt: skip
    else:
        size = rows_at_once(prepared.engine, len(load_p))
        statistics, mismatch = _in_blocks(chords, limits, len(load_p), size, threads, at_limit)
    left = np.flatnonzero(np.isnan(mismatch))
    if network.apart and len(left):
        mismatch[left] = _on_rest(prepared, loads.rows(left), statistics, tol, threads)
        left = left[:0]
    counts = ControlCounts.at_rest(network, len(mismatch) - len(left))
    most = max(1, MOVED_BYTES // (16 * network.num_buses)) if moving else max(1, len(left))
    for first in range(0, len(left), most):
        rows = left[first : first + most]
        solution = solve(
            prepared, loads.rows(rows), tol=tol, threads=threads, q_limits=q_limits,
            distributed_slack=distributed_slack, controls=moving,
        )  # fmt: skip
        mismatch[rows] = np.where(solution.solved, solution.mismatch, np.nan)
        if solution.at_limit is not None:
            _add_sides(at_limit, solution.at_limit)
        _add_voltages(statistics, solution)
        if moving:
            unsettled = int((solution.status == RowStatus.UNSETTLED_CONTROLS).sum())
            positions = np.asarray(solution.positions)[solution.solved]
            counts = counts.plus(ControlCounts.of(network, positions, unsettled=unsettled))
    counts = counts if controls else None
    return Streamed(statistics, mismatch, at_limit[:2, :-1], int(at_limit[2, -1]), counts)


def _on_rest(
    prepared: Prepared, loads: LoadScenarios, statistics: Statistics, tol: float, threads: int
) -> Real:
    """Solve and count rows on what is left of a grid that buses stand apart of: mismatches."""
    part = supplied_part(prepared.network)
    found = solve(part.network, loads.of_loads(part.loads), tol=tol, threads=threads)
    voltage = np.tile(prepared.voltage, (loads.num_rows, 1))
    voltage[:, part.buses] = found.voltage
    statistics.add_complex(voltage)
    return np.where(found.solved, found.mismatch, np.nan)


def _add_voltages(statistics: Statistics, solution: BatchSolution) -> None:
    """Count solved rows, those at the same positions of controls with their admittances."""
    if solution.positions is None:
        statistics.add_complex(solution.voltage)
        return
    solved = np.flatnonzero(solution.solved)
    for group in alike(solution.positions[solved]):
        rows = solved[group]
        limits = statistics.limits.moved(grid_of_row(solution, int(rows[0])))
        statistics.add_complex(solution.voltage[rows], limits)


class _Found(NamedTuple):
    """Rows of a block."""

    voltage: Real
    mismatch: Real
    good: Bool
    """Whether they are solved."""
    side: NDArray[np.int8] | None
    """(n, B) limits that generators are at; None: nowhere."""

    @classmethod
    def of(cls, rows: Rows | SharedRows, limit: float) -> "_Found":
        """Of chord steps that know of reactive limits at most by how much they are exceeded."""
        good = settled(rows.mismatch, rows.retained, limit, rows.excess)
        return cls(rows.voltage, rows.mismatch, good, None)


Chords = Callable[[slice], _Found]


def _chords(
    prepared: Prepared, kept: ReactiveLimits | None, shares: SlackShares | None, load_p: Real,
    load_q: Real, tol: float,
) -> Chords | None:  # fmt: skip
    """Chord steps for a block of rows; None for the plain ones, that are counted in their lanes."""
    limit = tol * prepared.engine.unit
    if shares is not None:
        slack = DistributedSlack.of(prepared.network, shares)
        if kept is not None and kept.at_nominal(prepared):
            return _limited_chords(kept, prepared, slack, load_p, load_q, tol)
        limits = None if kept is None else kept.of_pv

        def shared(part: slice) -> _Found:
            found = slack.chord_rows(prepared, load_p[part], load_q[part], tol=tol, limits=limits)
            return _Found.of(found, limit)

        return shared
    if kept is None or not kept.at_nominal(prepared):
        return None
    return _limited_chords(kept, prepared, None, load_p, load_q, tol)


def _limited_chords(
    kept: ReactiveLimits, prepared: Prepared, slack: DistributedSlack | None, load_p: Real,
    load_q: Real, tol: float,
) -> Callable[[slice], _Found]:  # fmt: skip
    """Chord steps from nominal demand with limits, for a block of rows."""
    engine = prepared.engine

    def limited(part: slice) -> _Found:
        found = kept.from_nominal(prepared, load_p[part], load_q[part], tol=tol, slack=slack)
        side = kept.at_buses(found.side, engine.num_buses)
        return _Found(found.voltage, found.mismatch, solved(found, tol * engine.unit), side)

    return limited


def _resting(
    prepared: Prepared, kept: ReactiveLimits | None, chords: Chords | None, load_p: Real,
    load_q: Real, tol: float,
) -> Chords:  # fmt: skip
    """Chord steps for a block of rows, of which those whose controls would move are not solved."""
    engine, limit = prepared.engine, tol * prepared.engine.unit
    limits = None if kept is None else kept.of_pv

    def plain(part: slice) -> _Found:
        found = engine.chord_rows(
            prepared.topology, load_p[part], load_q[part], tol=tol, limits=limits
        )
        return _Found.of(found, limit)

    def resting(part: slice) -> _Found:
        found = (chords or plain)(part)
        good = found.good.copy()
        voltage = (found.voltage if good.all() else found.voltage[good]).view(np.complex128)
        good[good] = at_rest(prepared.network, voltage)
        return found._replace(good=good)

    return resting


def _in_blocks(
    chords: Chords, limits: Limits, rows: int, size: int, threads: int,
    at_limit: Int,
) -> tuple[Statistics, Real]:  # fmt: skip
    """Rows in blocks whose voltages caches hold; the mismatch of those not solved is NaN.

    Adds to `at_limit` (3, B + 1): rows at the upper limit and at the lower one by bus; the last
    entry of all is the number of rows at any.
    """
    mismatch = np.full(rows, np.nan)

    def count(part_of: tuple[Statistics, Int], _: None, first: int, last: int) -> None:
        for start in range(first * size, min(last * size, rows), size):
            part = slice(start, start + size)
            found = chords(part)
            mismatch[part] = np.where(found.good, found.mismatch, np.nan)
            part_of[0].add(found.voltage[found.good])
            if found.side is not None:
                _add_sides(part_of[1], found.side[found.good])

    parts = [(Statistics(limits), at_limit)]
    run_blocks(count, None, -(-rows // size), threads, parts,
               lambda: (Statistics(limits), np.zeros_like(at_limit)))  # fmt: skip
    for _, more in parts:
        if more is not at_limit:
            at_limit += more
    return parts[0][0].merge(other for other, _ in parts[1:]), mismatch


def _add_sides(at_limit: Int, side: NDArray[np.int8]) -> None:
    """Count rows by the sides (n, B) of their buses."""
    at_limit[0, :-1] += (side > 0).sum(0)
    at_limit[1, :-1] += (side < 0).sum(0)
    at_limit[2, -1] += side.any(1).sum()


def rows_at_once(engine: Engine, rows: int) -> int:
    """Rows of a block: whole blocks of lanes, of about the same size each."""
    lanes = engine.lanes.width
    most = min(MOST_ROWS, max(lanes, BLOCK_BYTES // (16 * engine.num_buses)))
    even = -(-rows // -(-rows // most)) if rows else 1
    return -(-even // lanes) * lanes
