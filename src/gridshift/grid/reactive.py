"""Reactive limits of generators, kept row by row: PV buses that become PQ and back.

A bus holds its set-point while the reactive power of its generators is within their limits. At the
upper limit it gives no more and its voltage is at or below the set-point, at the lower one at or
above. Limits of generators at one bus are summed, so these share by their ranges. A slack bus has
no limits, as in pandapower.
"""

import weakref
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Real
from gridshift.errors import GridshiftError
from gridshift.grid.blocks import run_blocks
from gridshift.grid.engine import CHUNK, Engine
from gridshift.grid.following import Origin
from gridshift.grid.kernels.limited_chord import limited_chord, sensitivities
from gridshift.grid.limited_newton import LimitedNewton, limited_buses
from gridshift.grid.limited_workspace import (
    HeldWork,
    Kept,
    LimitedStates,
    MovedWork,
    Sensitivity,
)
from gridshift.grid.network import BusKind, Network
from gridshift.grid.prepared import Prepared
from gridshift.grid.topology import RETAINED, UNFOLLOWED, Topology
from gridshift.grid.workspace import ChordWork, NominalPoint, Stopping

CHORD_STEPS = 12
"""Chord steps of a row at most, and so many more for slow rows."""
HOPELESS = 1e2
"""Mismatch, as a multiple of the tolerance base, from which on no more chord steps are taken."""
MOST_AT_LIMITS = 128
"""Buses at limits of a row that chord steps take; rows with more go to Newton's method."""
NO_LIMIT = 1e9
"""Stands for infinity, p.u."""


def bus_limits(network: Network) -> tuple[Real, Real]:
    """(B,) least and most reactive power of the generators at each PV bus, p.u.

    Infinite where a generator has no limit, and at other buses.

    Raises:
        GridshiftError: a lower limit above the upper one.
    """
    crossed = np.flatnonzero(~(network.gen_q_min <= network.gen_q_max))
    if len(crossed):
        row = int(crossed[0])
        low, high = (q[row] * network.base_mva for q in (network.gen_q_min, network.gen_q_max))
        raise GridshiftError(
            f"{network.gen_labels[row]} of {network.name} can give {low:g} to {high:g} Mvar, which "
            "is no range; correct it, or leave reactive limits out"
        )
    found = np.zeros((2, network.num_buses))
    np.add.at(found[0], network.gen_bus, network.gen_q_min)
    np.add.at(found[1], network.gen_bus, network.gen_q_max)
    found[:, network.bus_kind != BusKind.PV] = [[-np.inf], [np.inf]]
    return found[0], found[1]


class Reference(NamedTuple):
    """A point of a topology that rows start from, and what chord steps need there."""

    point: NominalPoint
    sensitivity: Sensitivity


class Nominal(NamedTuple):
    """Nominal demand of a topology with limits kept."""

    solved: bool
    voltage: Real
    """(2 B,)"""
    reference: Reference | None
    """None if no generator is at a limit: rows are then better solved without limits first."""


class ReactiveLimits:
    """Keeps the reactive limits of one grid and all its outages; get it with `of`."""

    @classmethod
    def of(cls, network: Network) -> "ReactiveLimits | None":
        """Those of the grid that this network is, or is an outage of; None if it has none.

        Raises:
            GridshiftError: a lower limit above the upper one.
        """
        intact = network.intact
        if intact not in _KEPT:
            low, high = bus_limits(intact)
            limited = np.isfinite(low) | np.isfinite(high)
            _KEPT[intact] = cls(intact, low, high) if limited.any() else None
        return _KEPT[intact]

    def __init__(self, intact: Network, low: Real, high: Real):
        self.buses = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        ranges = np.clip(np.stack([low, high], 1), -NO_LIMIT, NO_LIMIT)
        engine = Engine.of(intact)
        rows = engine.symbolic.node_bus[engine.symbolic.row_node[: engine.symbolic.num_pv]]
        self.of_pv = ranges[rows].ravel()
        """(2 PV,) limits of PV buses in the order in which the mismatch is computed."""
        self._limits = limited_buses(engine, self.buses, ranges[self.buses].ravel())
        self._newton: LimitedNewton | None = None
        self._plains: weakref.WeakKeyDictionary[Topology, Reference] = weakref.WeakKeyDictionary()
        self._nominals: weakref.WeakKeyDictionary[Topology, Nominal] = weakref.WeakKeyDictionary()
        self._spare: list = []

    def keep(
        self, prepared: Prepared, load_p: Real, load_q: Real, start: Real, *, tol: float,
        threads: int = 1,
    ) -> Kept:  # fmt: skip
        """Rows with every limit kept: by chord steps, then Newton's method, then by following.

        Args:
            prepared: the topology, an outage of the grid or the grid itself.
            load_p: (n, L) demands, p.u.
            load_q: (n, L)
            start: (n, 2 B) solutions that know of no limits.
            tol: largest mismatch, as a multiple of the tolerance base.
            threads: that share the rows; results don't depend on it.
        """
        nominal, engine = self._nominal(prepared), prepared.engine
        least = RETAINED if nominal.solved else UNFOLLOWED
        out = self._keep(prepared, load_p, load_q, start, tol, threads, (nominal.voltage, least))
        left = np.flatnonzero(~out.reached)
        if len(left) and nominal.solved:
            at = Origin(engine.nominal_power, nominal.voltage, prepared.topology.orientation)
            power = engine.injected(load_p[left], load_q[left])
            newton = self._newton_of(prepared.network)
            newton.follow(prepared.network, at, left, power, tol * engine.unit, threads, out)
        return out

    def _keep(
        self, prepared: Prepared, load_p: Real, load_q: Real, start: Real, tol: float, threads: int,
        retaining: tuple[Real, float],
    ) -> Kept:  # fmt: skip
        """As `keep`, without following; rows retain a share of voltages (2 B,)."""
        engine = prepared.engine
        limit, plain = tol * engine.unit, self._plain(prepared)
        found = self._chord(prepared, plain, load_p, load_q, start, tol, threads)
        out = Kept(
            voltage=found.voltage, mismatch=found.mismatch, steps=found.steps,
            growth=found.growth, reached=self.solved(found, limit),
            unsettled=np.zeros(len(start), bool), side=self.at_buses(found.side, engine.num_buses),
        )  # fmt: skip
        left = np.flatnonzero(~out.reached)
        # rows that behave alike share a block, so that a hopeless one keeps few waiting
        left = left[np.argsort(found.mismatch[left], kind="stable")]
        for first in range(0, len(left), CHUNK):
            rows = left[first : first + CHUNK]
            power = engine.injected(load_p[rows], load_q[rows])
            newton = self._newton_of(prepared.network)
            newton.rows(prepared, rows, power, start[rows], limit, threads, retaining, out)
        return out

    def at_nominal(self, prepared: Prepared) -> bool:
        """Whether a generator is at a limit at nominal demand; see `from_nominal`."""
        return self._nominal(prepared).reference is not None

    def from_nominal(
        self, prepared: Prepared, load_p: Real, load_q: Real, *, tol: float, threads: int = 1
    ) -> LimitedStates | None:
        """Rows by chord steps from nominal demand with limits; those `solved` keep every limit.

        None if no generator is at a limit there: rows are then better solved without limits first.
        """
        nominal = self._nominal(prepared)
        if nominal.reference is None:
            return None
        start = nominal.voltage[None]
        return self._chord(prepared, nominal.reference, load_p, load_q, start, tol, threads)

    def solved(self, found: LimitedStates, limit: float) -> Bool:
        """(n,) rows of chord steps that are solved, with the limit of the mismatch in per unit."""
        return found.settled & (found.mismatch <= limit) & (found.retained >= RETAINED**2)

    def at_buses(self, side: Real, num_buses: int) -> NDArray[np.int8]:
        """(n, B) sides of all buses, from those (n, K) of the buses with limits."""
        found = np.zeros((len(side), num_buses), np.int8)
        found[:, self.buses] = side
        return found

    def _nominal(self, prepared: Prepared) -> Nominal:
        topology, engine = prepared.topology, prepared.engine
        if topology not in self._nominals:
            found = Nominal(False, topology.point.voltage, None)
            if topology.solved() and topology.trusted:
                load, start = prepared.network.load_power[None], topology.point.voltage[None]
                load_p, load_q = (np.ascontiguousarray(part) for part in (load.real, load.imag))
                # limits lower voltages, and nothing else is known yet that they could be told by
                least = topology.point.voltage, UNFOLLOWED
                kept = self._keep(prepared, load_p, load_q, start, 1e-8, 1, least)
                found = Nominal(bool(kept.reached[0]), kept.voltage[0], None)
                if kept.reached[0] and kept.side.any():
                    point = engine.point_at(topology.removed, kept.voltage[0])
                    found = found._replace(reference=self._reference(engine, point))
            self._nominals[topology] = found
        return self._nominals[topology]

    def _plain(self, prepared: Prepared) -> Reference:
        """Nominal demand without limits."""
        topology = prepared.topology
        if topology not in self._plains:
            self._plains[topology] = self._reference(prepared.engine, topology.point)
        return self._plains[topology]

    def _reference(self, engine: Engine, point: NominalPoint) -> Reference:
        symbolic, number = engine.symbolic, len(self.buses)
        entries = int(symbolic.row_ptr[symbolic.num_pv])
        angle, magnitude, active, reactive = np.zeros((4, entries))
        out = Sensitivity(angle, magnitude, active, reactive, np.empty((number, number)))
        place = np.full(engine.num_buses, -1)
        place[self.buses] = np.arange(number)
        work, limits = engine.chord_work(), self._limits
        sensitivities(engine.lanes, engine.solving, symbolic, point, limits, place, work, out)
        return Reference(point, out)

    def _chord(
        self, prepared: Prepared, reference: Reference, load_p: Real, load_q: Real, start: Real,
        tol: float, threads: int,
    ) -> LimitedStates:  # fmt: skip
        """Chord steps with the factors of a point; none where these are no good.

        Slow rows go on in blocks of their own, so that they keep few waiting.
        """
        engine = prepared.engine
        if not (prepared.topology.solved(tol) and prepared.topology.trusted):
            return LimitedStates.empty(len(load_p), engine.num_buses, len(self.buses))
        limit = tol * engine.unit
        out = self._chord_steps(prepared, reference, load_p, load_q, start, limit, threads)
        left = np.flatnonzero(~self.solved(out, limit))
        left = left[out.mismatch[left] < HOPELESS * engine.unit]
        left = left[np.argsort(out.mismatch[left], kind="stable")]
        if len(left):
            before = out.steps[left]
            more = self._chord_steps(
                prepared, reference, load_p[left], load_q[left], out.voltage[left], limit, threads
            )
            for whole, part in zip(out, more, strict=True):
                whole[left] = part
            out.steps[left] += before
        return out

    def _chord_steps(
        self, prepared: Prepared, reference: Reference, load_p: Real, load_q: Real, start: Real,
        limit: float, threads: int,
    ) -> LimitedStates:  # fmt: skip
        engine = prepared.engine
        out = LimitedStates.empty(len(load_p), engine.num_buses, len(self.buses))
        batch = engine.batch(prepared.topology, load_p, load_q)._replace(point=reference.point)
        stopping = Stopping(limit, CHORD_STEPS, CHORD_STEPS)
        most = min(MOST_AT_LIMITS, len(self.buses))

        def kernel(work: tuple, out: LimitedStates, first: int, last: int) -> None:
            limited_chord(
                engine.lanes, engine.solving, batch, start, self._limits, reference.sensitivity,
                stopping, work[0], work[1], work[2], out, first, last,
            )  # fmt: skip

        def room() -> tuple[ChordWork, HeldWork, MovedWork]:
            width, num = engine.lanes.width, len(self.buses)
            return (
                engine.chord_work(), HeldWork.new(width, num),
                MovedWork.new(width, engine.num_buses, num, most),
            )  # fmt: skip

        blocks = -(-len(load_p) // engine.lanes.width)
        run_blocks(kernel, out, blocks, threads, self._spare, room)
        return out

    def _newton_of(self, network: Network) -> LimitedNewton:
        """Newton's method with changing kinds, made when it is needed first."""
        if self._newton is None:
            self._newton = LimitedNewton(network.intact, self.buses, self._limits.range)
        return self._newton


_KEPT: "weakref.WeakKeyDictionary[Network, ReactiveLimits | None]" = weakref.WeakKeyDictionary()
