"""Given states of one topology: how far each is from power balance, and the repair of the far ones.

A repaired row starts where it is, with the factors that the engine has of the topology; what chord
steps don't bring within the tolerance is solved from the nominal point like any other row.
"""

import time
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.engine import ACCELERATE_FROM, CHORD_STEPS
from gridshift.grid.equations import require_reachable
from gridshift.grid.kernels.certify import chord_from
from gridshift.grid.limited_balance import beyond_limits
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus, islanded, solve
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.solution import Origin
from gridshift.grid.topology import RETAINED, settled
from gridshift.grid.workspace import Stopping

BLOCK = 1024
"""Rows that are corrected at a time, so that copies of them stay in the cache."""
EXACT = 1e-8
"""Mismatch, p.u., that rows are brought to which are corrected because they are the worst."""


class StateRows(NamedTuple):
    """States to be judged, one a row: which column of `values` is what of which bus; -1 for none.

    Where it is none, a magnitude is the grid's set-point and an angle the slack bus's own.
    """

    values: Real
    """(R, C)"""
    magnitude_at: Int
    """(B,)"""
    angle_at: Int
    """(B,)"""
    reactive_at: Int
    """(B,) reactive generation at PV buses; enters `Balance.norm` only."""

    @classmethod
    def of_voltage(cls, network: Network, voltage: Complex) -> "StateRows":
        """Voltages (R, B); set-points are the network's, whatever the rows say."""
        buses = np.arange(network.num_buses)
        free, moving = np.full_like(buses, -1), buses + network.num_buses
        free[network.pq], moving[network.slack] = network.pq, -1
        values = np.hstack([np.abs(voltage), np.angle(voltage)])
        return cls(values, free, moving, np.full_like(buses, -1))

    def rows(self, which: Int) -> "StateRows":
        """The same for some of the rows."""
        return self._replace(values=self.values[which])


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Power balance of R states as they were given, p.u.; NaN where a state is not finite."""

    mismatch: Real
    """(R,) largest active or reactive mismatch over the buses that specify it, as in the solver."""
    bus: Int
    """(R,) where it is; -1 where there is no number."""
    norm: Real
    """(R,) largest sqrt(dP^2 + dQ^2) over buses other than slack ones, dQ at a PV bus against the
    state's own generation if it has one: the paper's appendix on physical validity."""


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """R states, every one within the tolerance or marked."""

    voltage: Complex
    """(R, B); NaN in marked rows."""
    origin: Int
    """(R,) values of `Origin`."""
    status: Int
    """(R,) values of `RowStatus`; whatever isn't solved is marked."""
    mismatch: Real
    """(R,) of the state returned; of the last attempt in marked rows."""
    given: Balance
    seconds: dict[str, float]
    """Wall time of `check`, `repair` and `solve`."""
    reason: str = ""
    at_limit: NDArray[np.int8] | None = None
    """(R, B) as in `BatchSolution`; None unless reactive limits are kept."""

    @property
    def returned(self) -> Bool:
        """(R,) rows that have a state."""
        return self.status == RowStatus.SOLVED

    def counts(self) -> dict[str, int]:
        """Number of rows by origin, all four."""
        return {o.text: int((self.origin == o).sum()) for o in Origin}


class _Rows(NamedTuple):
    """What the kernel writes of R rows."""

    bus: Int
    norm: Real
    mismatch: Real
    steps: Int
    retained: Real
    """Smallest squared magnitude at PQ buses, as a share of the nominal point's."""
    voltage: Real
    """(R, 2 B) or empty."""


def check(network: Network, loads: LoadScenarios, state: StateRows, *, threads: int = 1) -> Balance:
    """Power balance of each state under its own loads.

    Raises:
        ScenarioError: loads whose shape doesn't fit the network.
        GridshiftError: another number of states than of loads.
    """
    load_p, load_q = _fitting(network, loads, state)
    nowhere = np.empty((0, 2 * network.num_buses))
    rows = _Given(prepare(network), state, load_p, load_q, threads)
    out = rows.chord_from(slice(None), 0.0, 0, nowhere)
    return Balance(mismatch=out.mismatch, bus=out.bus, norm=out.norm)


def repair(
    network: Network,
    loads: LoadScenarios,
    state: StateRows,
    *,
    tol: float = 1e-6,
    correct_share: float = 0.0,
    threads: int = 1,
    q_limits: bool = False,
) -> Repaired:
    """Bring every state within `tol`, or mark it.

    With reactive limits a row whose generators hold their voltages within their limits keeps its
    state; every other row is solved, with limits, and has kinds of buses of its own.

    Args:
        state: where each row starts.
        tol: largest mismatch of a returned row, as a multiple of `Network.tolerance_base`.
        correct_share: share of the rows, those furthest from balance, that are corrected to 1e-8
            even if they are within `tol`.

    Raises:
        ScenarioError: loads whose shape doesn't fit the network.
        GridshiftError: a tolerance that isn't positive or that no row reaches, a share outside 0
            to 1, another number of states than of loads, or a limit that is no range.
    """
    require_reachable(network, tol)
    limited = q_limits and ReactiveLimits.of(network) is not None
    if not 0 <= correct_share <= 1:
        raise GridshiftError(f"share of rows {correct_share}; give a number from 0 to 1")
    unit = network.tolerance_base
    load_p, load_q = _fitting(network, loads, state)
    rows, began = len(load_p), time.perf_counter()
    prepared = prepare(network)
    if len(prepared.cut_off):
        cut = islanded(prepared, rows)
        none = Balance(mismatch=cut.mismatch, bus=np.full(rows, -1), norm=cut.mismatch)
        return Repaired(
            voltage=cut.voltage, origin=np.full(rows, int(Origin.MARKED)), status=cut.status,
            mismatch=cut.mismatch, given=none, seconds=_seconds(), reason=cut.reason,
            at_limit=np.zeros(cut.voltage.shape, np.int8) if q_limits else None,
        )  # fmt: skip
    parts = np.empty((rows, 2 * network.num_buses))
    given_rows = _Given(prepared, state, load_p, load_q, threads)
    seen = given_rows.chord_from(slice(None), 0.0, 0, parts)
    given = Balance(mismatch=seen.mismatch, bus=seen.bus, norm=seen.norm)
    off = _to_correct(seen.mismatch, tol * unit, correct_share)
    # a low-voltage root is balanced as well; without a nominal point nobody can tell
    off |= ~(seen.retained >= RETAINED**2) if prepared.solved else True
    checked = time.perf_counter()

    mismatch, target = seen.mismatch.copy(), min(tol, EXACT) if correct_share else tol
    origin, status = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    if prepared.topology.solved(target) and prepared.topology.trusted:
        for start in range(0, rows, BLOCK):
            block = slice(start, min(start + BLOCK, rows))
            good = given_rows.repair(
                block, off[block], target * unit, parts, mismatch, not correct_share
            )
            origin[block][good] = Origin.REPAIRED
            off[block][good] = False
    voltage, reason = parts.view(np.complex128), ""
    if limited:
        off |= beyond_limits(network, loads, voltage, ~off, target * unit)
    left, repaired = np.flatnonzero(off), time.perf_counter()
    at_limit = np.zeros(voltage.shape, np.int8) if q_limits else None
    if len(left):
        # with limits near the nose a wider tolerance would settle rows that the solver doesn't
        within = min(target, EXACT) if limited else target
        solution = solve(
            prepared, loads.rows(left), tol=within, threads=threads, q_limits=limited
        )  # fmt: skip
        if at_limit is not None and solution.at_limit is not None:
            at_limit[left] = solution.at_limit
        voltage[left], mismatch[left] = solution.voltage, solution.mismatch
        status[left], reason = solution.status, solution.reason
        origin[left] = np.where(solution.solved, Origin.SOLVED, Origin.MARKED)
    return Repaired(
        voltage=voltage, origin=origin, status=status, mismatch=mismatch, given=given,
        seconds=_seconds(checked - began, repaired - checked, time.perf_counter() - repaired),
        reason=reason, at_limit=at_limit,
    )  # fmt: skip


class _Given(NamedTuple):
    """States and loads of one topology, and what the kernel makes of some of their rows."""

    prepared: Prepared
    state: StateRows
    load_p: Real
    load_q: Real
    threads: int

    def chord_from(self, which: slice | Int, tol: float, max_steps: int, voltage: Real) -> _Rows:
        """Balance of the rows and, with steps, where chord steps lead; fills `voltage`, if it has
        rows."""
        engine = self.prepared.engine
        load_p, load_q = self.load_p[which], self.load_q[which]
        state = self.state._replace(values=np.ascontiguousarray(self.state.values[which], float))
        assert state.values.shape[1] <= 2 * engine.num_buses
        rows = len(load_p)
        out = _Rows(
            bus=np.empty(rows, np.int64),
            norm=np.empty(rows),
            mismatch=np.empty(rows),
            steps=np.zeros(rows, np.int64),
            retained=np.empty(rows),
            voltage=voltage,
        )
        batch = engine.batch(self.prepared.topology, load_p, load_q)
        stopping = Stopping(tol, max_steps, ACCELERATE_FROM)
        kernel = partial(chord_from, engine.lanes, engine.solving, batch, state, stopping)
        engine.run_blocks(kernel, out, rows, self.threads)
        return out

    def repair(
        self, block: slice, off: Bool, tol: float, voltage: Real, mismatch: Real, in_place: bool
    ) -> Bool:
        """Correct rows of a block; which are. Their voltages and mismatches are replaced.

        In place all rows of the block go through the kernel: those within the tolerance stay bit
        for bit, and no row is copied.
        """
        number = int(off.sum())
        if not number:
            return off
        if in_place and 4 * number >= len(off):
            out = self.chord_from(block, tol, CHORD_STEPS, voltage[block])
            good = off & settled(out.mismatch, out.retained, tol)
            mismatch[block][good] = out.mismatch[good]
            return good
        which = block.start + np.flatnonzero(off)
        moved = np.empty((number, voltage.shape[1]))
        out = self.chord_from(which, tol, CHORD_STEPS, moved)
        right = settled(out.mismatch, out.retained, tol)
        voltage[which[right]], mismatch[which[right]] = moved[right], out.mismatch[right]
        good = np.zeros_like(off)
        good[off] = right
        return good


def _to_correct(given: Real, tol: float, share: float) -> Bool:
    """(R,) rows above the tolerance or without a number, and the worst ones."""
    off = ~(given <= tol)
    if number := int(np.ceil(share * len(given))):
        off[np.argsort(given, kind="stable")[-number:]] = True  # NaN sorts last
    return off


def _seconds(check: float = 0.0, repair: float = 0.0, solve: float = 0.0) -> dict[str, float]:
    return {"check": check, "repair": repair, "solve": solve}


def _fitting(network: Network, loads: LoadScenarios, state: StateRows) -> tuple[Real, Real]:
    if len(state.values) != loads.num_rows:
        raise GridshiftError(
            f"{len(state.values)} states and {loads.num_rows} rows of loads; give one for each"
        )
    return demands(network, loads)
