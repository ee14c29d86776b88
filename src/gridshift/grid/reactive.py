"""Reactive limits of generators, kept row by row: PV buses that become PQ and back.

A bus holds its set-point while the reactive power of its generators is within their limits. At the
upper limit it gives no more and its voltage is at or below the set-point, at the lower one at or
above. Limits of generators at one bus are summed, so these share by their ranges. A slack bus has
no limits, as in pandapower.
"""

import weakref
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Real
from gridshift.errors import GridshiftError
from gridshift.grid.blocks import run_blocks
from gridshift.grid.engine import CHUNK, Engine
from gridshift.grid.following import Origin
from gridshift.grid.kernels.limited_chord import limited_chord
from gridshift.grid.kernels.limited_sensitivity import sensitivities
from gridshift.grid.limited_newton import LimitedNewton, limited_buses
from gridshift.grid.limited_workspace import (
    HeldWork,
    Kept,
    LimitedBuses,
    LimitedStates,
    MovedWork,
    Sensitivity,
)
from gridshift.grid.network import BusKind, Network
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.topology import RETAINED, UNFOLLOWED, Topology
from gridshift.grid.workspace import ChordWork, NominalPoint, Stopping

CHORD_STEPS = 12
"""Chord steps of a row at most, and so many more for slow rows."""
HOPELESS = 1e2
"""Mismatch, as a multiple of the tolerance base, from which on no more chord steps are taken."""
ACCELERATE_FROM = 2
"""Chord steps after a change of kinds without acceleration."""
MOST_MOVED = 128
"""Buses of a row that differ from the point whose factors chord steps have; rows with more go to
Newton's method."""
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


class Basis(NamedTuple):
    """Which buses with limits factors take to be held, and which to be at a limit."""

    engine: Engine
    """Of the grid with these kinds of buses."""
    limits: LimitedBuses
    spare: list
    """Workspaces."""


class Reference(NamedTuple):
    """A point of a topology that rows start from, and what chord steps need there."""

    basis: Basis
    point: NominalPoint
    sensitivity: Sensitivity


class Nominal(NamedTuple):
    """Nominal demand of a topology with limits kept."""

    solved: bool
    voltage: Real
    """(2 B,) those without limits where it has no solution with them."""
    side: NDArray[np.int8]
    """(B,) as in `Kept`."""


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
        self._ranges = ranges[self.buses].ravel()
        self._held = Basis(engine, limited_buses(engine, self.buses, self._ranges), [])
        self._basis: Basis | None = None
        self._newton: LimitedNewton | None = None
        self._plains: weakref.WeakKeyDictionary[Topology, Reference] = weakref.WeakKeyDictionary()
        self._nominals: weakref.WeakKeyDictionary[Topology, Nominal] = weakref.WeakKeyDictionary()
        self._limited: weakref.WeakKeyDictionary[Topology, Reference] = weakref.WeakKeyDictionary()

    def at_nominal(self, prepared: Prepared) -> bool:
        """Whether a generator is at a limit at nominal demand: rows then start from there, else
        they are better solved without limits first."""
        nominal = self._nominal(prepared)
        return nominal.solved and bool(nominal.side.any())

    def keep(
        self, prepared: Prepared, load_p: Real, load_q: Real, start: Real | None = None, *,
        tol: float, threads: int = 1,
    ) -> Kept:  # fmt: skip
        """Rows with every limit kept: by chord steps, then Newton's method, then by following.

        Args:
            prepared: the topology, an outage of the grid or the grid itself.
            load_p: (n, L) demands, p.u.; rows with one that is not finite are not solved.
            load_q: (n, L)
            start: (n, 2 B) solutions that know of no limits; not needed if `at_nominal`.
        """
        nominal, engine = self._nominal(prepared), prepared.engine
        least = RETAINED if nominal.solved else UNFOLLOWED
        if start is None:
            found = self.from_nominal(prepared, load_p, load_q, tol=tol, threads=threads)
            # where chord steps have led, unless they have led nowhere
            near = found.mismatch < HOPELESS * engine.unit
            start = np.where(near[:, None], found.voltage, nominal.voltage)
        else:
            found = self._chord(self._plain(prepared), load_p, load_q, start, tol, threads)
        retaining = nominal.voltage, least
        out = self._settled(prepared, found, load_p, load_q, start, tol, threads, retaining)
        left = np.flatnonzero(~out.reached)
        left = left[np.isfinite(load_p[left] + load_q[left]).all(1)]
        if len(left) and nominal.solved:
            at = Origin(engine.nominal_power, nominal.voltage, prepared.topology.orientation)
            power = engine.injected(load_p[left], load_q[left])
            newton = self._newton_of(prepared.network)
            newton.follow(prepared.network, at, left, power, tol * engine.unit, threads, out)
        return out

    def _settled(
        self, prepared: Prepared, found: LimitedStates, load_p: Real, load_q: Real, start: Real,
        tol: float, threads: int, retaining: tuple[Real, float],
    ) -> Kept:  # fmt: skip
        """Rows of chord steps; those they leave over by Newton's method from voltages `start`.

        Rows retain a share of voltages (2 B,).
        """
        engine = prepared.engine
        limit = tol * engine.unit
        out = Kept(
            voltage=found.voltage, mismatch=found.mismatch, steps=found.steps,
            growth=found.growth, reached=self.solved(found, limit),
            unsettled=np.zeros(len(load_p), bool), side=self.at_buses(found.side, engine.num_buses),
        )  # fmt: skip
        left = np.flatnonzero(~out.reached)
        left = left[np.isfinite(load_p[left] + load_q[left]).all(1)]
        # rows that behave alike share a block, so that a hopeless one keeps few waiting
        left = left[np.argsort(found.mismatch[left], kind="stable")]
        for first in range(0, len(left), CHUNK):
            rows = left[first : first + CHUNK]
            power = engine.injected(load_p[rows], load_q[rows])
            newton = self._newton_of(prepared.network)
            newton.rows(prepared, rows, power, start[rows], limit, threads, retaining, out)
        return out

    def from_nominal(
        self, prepared: Prepared, load_p: Real, load_q: Real, *, tol: float, threads: int = 1
    ) -> LimitedStates:
        """Rows by chord steps from nominal demand with limits, where generators are `at_nominal`;
        those `solved` keep every limit."""
        reference = self._reference(prepared)
        start = np.empty((0, 2 * prepared.engine.num_buses))
        return self._chord(reference, load_p, load_q, start, tol, threads)

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
            at = topology.point.voltage
            found = Nominal(False, at, np.zeros(engine.num_buses, np.int8))
            if topology.solved() and topology.trusted:
                load = prepared.network.load_power[None]
                load_p, load_q = (np.ascontiguousarray(part) for part in (load.real, load.imag))
                # limits lower voltages, and nothing else is known yet that they could be told by
                least = at, UNFOLLOWED
                first = self._chord(self._plain(prepared), load_p, load_q, at[None], 1e-8, 1)
                kept = self._settled(prepared, first, load_p, load_q, at[None], 1e-8, 1, least)
                if kept.reached[0]:  # else the voltages without limits are the ones known
                    found = Nominal(True, kept.voltage[0], kept.side[0])
            self._nominals[topology] = found
        return self._nominals[topology]

    def _plain(self, prepared: Prepared) -> Reference | None:
        """Nominal demand without limits, every bus held; None where its factors are no good."""
        topology = prepared.topology
        if not (topology.solved() and topology.trusted):
            return None
        if topology not in self._plains:
            self._plains[topology] = self._made(self._held, topology.point)
        return self._plains[topology]

    def _reference(self, prepared: Prepared) -> Reference:
        """Nominal demand with limits; kinds of buses are those of the intact grid there."""
        topology = prepared.topology
        if topology not in self._limited:
            if self._basis is None:
                self._basis = self._with_kinds(prepared.network.intact)
            point = self._basis.engine.point_at(topology.removed, self._nominal(prepared).voltage)
            self._limited[topology] = self._made(self._basis, point)
        return self._limited[topology]

    def _with_kinds(self, intact: Network) -> Basis:
        """Buses at a limit at nominal demand of the intact grid are PQ buses."""
        side = self._nominal(prepare(intact)).side[self.buses]
        at = np.flatnonzero(side)
        if not len(at):
            return self._held
        kind, fixed, power = intact.bus_kind.copy(), intact.bus_fixed.copy(), np.zeros(len(side))
        power[at] = self._ranges.reshape(-1, 2)[at, np.where(side[at] > 0, 1, 0)]
        kind[self.buses[at]] = BusKind.PQ
        fixed[self.buses] += 1j * power
        engine = Engine(replace(intact, bus_kind=kind, bus_fixed=fixed))
        return Basis(engine, limited_buses(engine, self.buses, self._ranges, power), [])

    def _made(self, basis: Basis, point: NominalPoint) -> Reference:
        engine, limits = basis.engine, basis.limits
        symbolic, number = engine.symbolic, len(self.buses)
        entries = int(symbolic.row_ptr[symbolic.num_pv])
        angle, magnitude, active, reactive = np.zeros((4, entries))
        out = Sensitivity(angle, magnitude, active, reactive, np.empty((number, number)))
        place = np.full(engine.num_buses, -1)
        place[self.buses] = np.where(symbolic.node_size[limits.node] == 1, np.arange(number), -1)
        work = engine.chord_work()
        sensitivities(engine.lanes, engine.solving, symbolic, point, limits, place, work, out)
        return Reference(basis, point, out)

    def _chord(
        self, reference: Reference | None, load_p: Real, load_q: Real, start: Real, tol: float,
        threads: int,
    ) -> LimitedStates:  # fmt: skip
        """Chord steps with the factors of a point, from there where `start` (n, 2 B) is empty.

        Slow rows go on in blocks of their own, so that they keep few waiting. None are taken where
        loads depend on the voltage: a step moves specified powers, which are not constant then.
        """
        dependent = len(self._held.engine.symbolic.dependent_bus) > 0
        if reference is None or dependent:
            return LimitedStates.empty(len(load_p), self._held.engine.num_buses, len(self.buses))
        unit = self._held.engine.unit
        limit = tol * unit
        out = self._chord_steps(reference, load_p, load_q, start, limit, threads)
        left = np.flatnonzero(~self.solved(out, limit))
        left = left[out.mismatch[left] < HOPELESS * unit]
        left = left[np.argsort(out.mismatch[left], kind="stable")]
        if len(left):
            before = out.steps[left]
            more = self._chord_steps(
                reference, load_p[left], load_q[left], out.voltage[left], limit, threads
            )
            for whole, part in zip(out, more, strict=True):
                whole[left] = part
            out.steps[left] += before
        return out

    def _chord_steps(
        self, reference: Reference, load_p: Real, load_q: Real, start: Real, limit: float,
        threads: int,
    ) -> LimitedStates:  # fmt: skip
        (engine, limits, spare), point, sensitivity = reference
        out = LimitedStates.empty(len(load_p), engine.num_buses, len(self.buses))
        batch = engine.batch(engine.intact, load_p, load_q)._replace(point=point)
        stopping = Stopping(limit, CHORD_STEPS, ACCELERATE_FROM)
        most = min(MOST_MOVED, len(self.buses))

        def kernel(work: tuple, out: LimitedStates, first: int, last: int) -> None:
            limited_chord(
                engine.lanes, engine.solving, batch, start, limits, sensitivity, stopping,
                work[0], work[1], work[2], out, first, last,
            )  # fmt: skip

        def room() -> tuple[ChordWork, HeldWork, MovedWork]:
            width, num = engine.lanes.width, len(self.buses)
            moved = MovedWork.new(
                width, engine.solving.dtype, engine.symbolic.num_unknowns, engine.num_buses, num,
                most,
            )  # fmt: skip
            return engine.chord_work(), HeldWork.new(width, num), moved

        blocks = -(-len(load_p) // engine.lanes.width)
        run_blocks(kernel, out, blocks, threads, spare, room)
        return out

    def _newton_of(self, network: Network) -> LimitedNewton:
        """Newton's method with changing kinds, made when it is needed first."""
        if self._newton is None:
            self._newton = LimitedNewton(network.intact, self.buses, self._ranges)
        return self._newton


_KEPT: "weakref.WeakKeyDictionary[Network, ReactiveLimits | None]" = weakref.WeakKeyDictionary()
