"""Newton's method for rows with reactive limits or a distributed slack that chord steps don't
settle."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.following import Origin, follow
from gridshift.grid.kernels.reactive import limited_states
from gridshift.grid.limited_workspace import HeldWork, Kept, LimitedBuses, LimitedStates
from gridshift.grid.network import BusKind, Network
from gridshift.grid.newton import NEWTON_LANES, UNTRUSTED_GROWTH, Newton, retained
from gridshift.grid.prepared import Prepared
from gridshift.grid.shared_workspace import SharedWork
from gridshift.grid.workspace import NewtonBatch, NewtonRule, NewtonWork

NEAR = 1.0
"""Mismatch, as a multiple of the tolerance base, from which on kinds of buses are decided."""
TOGETHER, ROUNDS = 8, 60
"""Rounds in which all buses on the wrong side change kind, and rounds in all; then one in each."""
STEPS = 80
"""Newton steps of a row at most, all rounds together."""
FOLLOWING_STEPS = 24
"""The same of one step along the way, which is short and changes few kinds."""
APART = 1e-7
"""Distance of a voltage from its set-point, as a share of it, that tells the side at the start."""


def limited_buses(
    newton: Newton, buses: Int, ranges: Real, at_point: Real | None = None
) -> LimitedBuses:
    """Buses (K,) with limits (2 K,) as the kernels of a symbolic factorisation know them."""
    symbolic = newton.symbolic
    node = np.full(newton.num_buses, -1, np.int32)
    node[symbolic.node_bus] = np.arange(len(symbolic.node_bus))
    row = np.empty(len(symbolic.row_node), np.int32)
    row[symbolic.row_node] = np.arange(len(row))
    number = np.full(len(row), -1, np.int32)
    number[row[node[buses]]] = np.arange(len(buses))
    return LimitedBuses(
        buses.astype(np.int32), node[buses], row[node[buses]], row,
        (newton.constant[buses] + 1).astype(np.int32), number,
        np.zeros(len(buses)) if at_point is None else at_point, ranges, APART,
        NEAR * newton.unit, TOGETHER, ROUNDS,
    )  # fmt: skip


class LimitedNewton:
    """Newton's method with two unknowns at every bus with limits, whatever its kind is just now."""

    def __init__(self, intact: Network, buses: Int, ranges: Real):
        kind = intact.bus_kind.copy()
        kind[buses] = BusKind.PQ
        self._newton = Newton(replace(intact, bus_kind=kind))
        self._buses, self._limits = buses, limited_buses(self._newton, buses, ranges)
        self._spare: list = []

    def rows(
        self, prepared: Prepared, rows: Int, power: Real, start: Real, limit: float, threads: int,
        retaining: tuple[Real, float], slack: DistributedSlack | None, out: Kept,
    ) -> None:  # fmt: skip
        """Rows of powers (n, 2 B) from voltages (n, 2 B), with the limit of the mismatch in per
        unit; written to their places in `out`. They must retain a share of voltages (2 B,)."""
        topology, engine = prepared.topology, prepared.engine
        found = self._states(prepared.network, power, start, limit, threads, slack)
        good = _good(found, limit)
        # on the nominal point's side of the nose, as far as elimination tells
        untrusted = ~(found.growth <= UNTRUSTED_GROWTH) | (not topology.trusted)
        good &= (found.orientation == topology.orientation) | untrusted
        voltage, least = retaining
        good &= retained(found.voltage, voltage, engine.pq) >= least**2
        self._write(out, rows, found, good)
        out.unsettled[rows] = ~found.settled & (found.mismatch <= NEAR * engine.unit)

    def origin(
        self, network: Network, near: Origin, limit: float, slack: DistributedSlack
    ) -> Origin | None:
        """A state to follow from where generators share the imbalance, at the powers of one where
        the slack bus gives it; None if there is none near."""
        at = near.power[None], near.voltage[None]
        found = self._states(network, *at, limit, 1, slack)
        if not (_good(found, limit)[0] and found.orientation[0]):
            return None
        return Origin(near.power, found.voltage[0], float(found.orientation[0]))

    def follow(
        self, network: Network, origin: Origin, rows: Int, power: Real, limit: float, threads: int,
        slack: DistributedSlack | None, out: Kept,
    ) -> None:  # fmt: skip
        """Rows that Newton's method has lost, followed from a solution with limits."""
        solve: Callable[[Real, Real], LimitedStates]
        solve = partial(self._states, network, limit=limit, threads=threads, slack=slack,
                        steps=FOLLOWING_STEPS)  # fmt: skip

        def correct(power: Real, start: Real) -> LimitedStates:
            found = solve(power, start)
            found.mismatch[~found.settled] = np.inf
            return found

        found = follow(correct, origin, power, tol=limit)
        out.steps[rows] += found.steps
        done = found.reached
        if done.any():
            last = solve(power[done], found.voltage[done])  # for their sides
            self._write(out, rows[done], last, _good(last, limit))

    def _write(self, out: Kept, rows: Int, found: LimitedStates, good: Bool) -> None:
        out.voltage[rows], out.mismatch[rows] = found.voltage, found.mismatch
        out.growth[rows], out.reached[rows] = found.growth, good
        out.steps[rows] += found.steps
        out.side[np.ix_(rows, self._buses)] = found.side
        if len(found.imbalance):
            out.imbalance[rows] = found.imbalance

    def _states(
        self, network: Network, power: Real, start: Real, limit: float, threads: int,
        slack: DistributedSlack | None, steps: int = STEPS,
    ) -> LimitedStates:  # fmt: skip
        newton = self._newton
        removed = np.array(network.removed_branches, np.int64)
        ptr = np.array([0, len(removed)], np.int64)
        batch = NewtonBatch(newton.symbolic, newton.set_point, ptr, removed, power, start)
        sharing, imbalance = None, None
        if slack is not None:
            sharing, imbalance = slack.sharing(newton, network), np.zeros(len(power))
        out = LimitedStates.empty(len(power), newton.num_buses, len(self._buses), imbalance)
        rule = NewtonRule(limit, steps, steps, False, True, False)

        def kernel(work: tuple, out: LimitedStates, first: int, last: int) -> None:
            limited_states(
                newton.newton_lanes, batch, self._limits, sharing, rule, work[0], work[1], shared(),
                out, first, last,
            )  # fmt: skip

        def room() -> tuple[NewtonWork, HeldWork]:
            return newton.newton_work(), HeldWork.new(NEWTON_LANES, len(self._buses))

        def shared() -> SharedWork | None:
            if sharing is None:
                return None
            number, unknowns = len(sharing.bus), newton.symbolic.num_unknowns
            return SharedWork.new(NEWTON_LANES, number, unknowns)

        run_blocks(kernel, out, -(-len(power) // NEWTON_LANES), threads, self._spare, room)
        return out


def _good(found: LimitedStates, limit: float) -> Bool:
    return found.settled & (found.mismatch <= limit)
