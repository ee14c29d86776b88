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

from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.engine import CHUNK, Engine
from gridshift.grid.following import Origin
from gridshift.grid.limited_chords import HOPELESS, Basis, Reference, solved
from gridshift.grid.limited_newton import LimitedNewton, limited_buses
from gridshift.grid.limited_workspace import Kept, LimitedStates
from gridshift.grid.network import BusKind, Network
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.topology import RETAINED, UNFOLLOWED, Topology

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

    @classmethod
    def none_of(cls, network: Network) -> "ReactiveLimits":
        """No limits at all: what solves rows of a distributed slack that chord steps leave over."""
        intact = network.intact
        if intact not in _FREE:
            none = np.full(intact.num_buses, np.inf)
            _FREE[intact] = cls(intact, -none, none)
        return _FREE[intact]

    def __init__(self, intact: Network, low: Real, high: Real):
        self.buses = np.flatnonzero(np.isfinite(low) | np.isfinite(high))
        ranges = np.clip(np.stack([low, high], 1), -NO_LIMIT, NO_LIMIT)
        engine = Engine.of(intact)
        rows = engine.symbolic.node_bus[engine.symbolic.row_node[: engine.symbolic.num_pv]]
        self.of_pv = ranges[rows].ravel()
        """(2 PV,) limits of PV buses in the order in which the mismatch is computed."""
        self._ranges = ranges[self.buses].ravel()
        self._held = Basis(intact, engine, limited_buses(engine, self.buses, self._ranges), [])
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
        tol: float, threads: int = 1, slack: DistributedSlack | None = None,
        imbalance: Real | None = None,
    ) -> Kept:  # fmt: skip
        """Rows with every limit kept: by chord steps, then Newton's method, then by following.

        Args:
            prepared: the topology, an outage of the grid or the grid itself.
            load_p: (n, L) demands, p.u.; rows with one that is not finite are not solved.
            load_q: (n, L)
            start: (n, 2 B) solutions that know of no limits; not needed if `at_nominal`.
            tol: largest mismatch, as a multiple of the tolerance base.
            threads: that share the rows; results don't depend on it.
            slack: shares the imbalance; None: the slack bus gives it.
            imbalance: (n,) from which the rows of `start` begin to share, p.u.
        """
        nominal, engine = self._nominal(prepared), prepared.engine
        least = RETAINED if nominal.solved else UNFOLLOWED
        if start is None:
            found = self.from_nominal(prepared, load_p, load_q, tol=tol, threads=threads,
                                      slack=slack)  # fmt: skip
            # where chord steps have led, unless they have led nowhere
            near = found.mismatch < HOPELESS * engine.unit
            start = np.where(near[:, None], found.voltage, nominal.voltage)
        else:
            found = self._chord(
                self._plain(prepared), prepared.network, load_p, load_q, start, tol, threads,
                slack, imbalance,
            )  # fmt: skip
        retaining = nominal.voltage, least
        out = self._settled(prepared, found, load_p, load_q, start, tol, threads, retaining, slack)
        left = np.flatnonzero(~out.reached)
        left = left[np.isfinite(load_p[left] + load_q[left]).all(1)]
        at = self._origin(prepared, nominal, tol * engine.unit, slack) if len(left) else None
        if at is not None:
            power = _specified(engine, load_p[left], load_q[left], slack)
            newton, network = self._newton_of(prepared.network), prepared.network
            newton.follow(network, at, left, power, tol * engine.unit, threads, slack, out)
        return out

    def _origin(
        self, prepared: Prepared, nominal: Nominal, limit: float, slack: DistributedSlack | None
    ) -> Origin | None:
        """What rows are followed from: nominal demand with limits.

        Rows that share an imbalance can also come from the state without load.
        """
        engine, topology, network = prepared.engine, prepared.topology, prepared.network
        near = Origin(engine.nominal_power, nominal.voltage, topology.orientation)
        if slack is None:
            return near if nominal.solved else None
        newton = self._newton_of(network)
        near = near._replace(power=near.power + slack.change) if nominal.solved else None
        at = newton.origin(network, near, limit, slack) if near else None
        if at is None and (near := engine.no_load(topology.removed)):
            at = newton.origin(network, near, limit, slack)
        return at

    def _settled(
        self, prepared: Prepared, found: LimitedStates, load_p: Real, load_q: Real, start: Real,
        tol: float, threads: int, retaining: tuple[Real, float],
        slack: DistributedSlack | None = None,
    ) -> Kept:  # fmt: skip
        """Rows of chord steps; those they leave over by Newton's method from voltages `start`.

        Rows retain a share of voltages (2 B,).
        """
        engine = prepared.engine
        limit = tol * engine.unit
        out = Kept(
            voltage=found.voltage, mismatch=found.mismatch, steps=found.steps,
            growth=found.growth, reached=solved(found, limit), imbalance=found.imbalance,
            unsettled=np.zeros(len(load_p), bool), side=self.at_buses(found.side, engine.num_buses),
        )  # fmt: skip
        left = np.flatnonzero(~out.reached)
        left = left[np.isfinite(load_p[left] + load_q[left]).all(1)]
        # rows that behave alike share a block, so that a hopeless one keeps few waiting
        left = left[np.argsort(found.mismatch[left], kind="stable")]
        for first in range(0, len(left), CHUNK):
            rows = left[first : first + CHUNK]
            power = _specified(engine, load_p[rows], load_q[rows], slack)
            newton = self._newton_of(prepared.network)
            newton.rows(prepared, rows, power, start[rows], limit, threads, retaining, slack, out)
        return out

    def from_nominal(
        self, prepared: Prepared, load_p: Real, load_q: Real, *, tol: float, threads: int = 1,
        slack: DistributedSlack | None = None,
    ) -> LimitedStates:  # fmt: skip
        """Rows by chord steps from nominal demand with limits, where generators are `at_nominal`;
        those `solved` keep every limit."""
        reference, network = self._reference(prepared), prepared.network
        start = np.empty((0, 2 * prepared.engine.num_buses))
        imbalance = None if slack is None else slack.schedule.first_imbalance(load_p)
        return self._chord(
            reference, network, load_p, load_q, start, tol, threads, slack, imbalance
        )

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
                plain, network = self._plain(prepared), prepared.network
                first = self._chord(plain, network, load_p, load_q, at[None], 1e-8, 1)
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
            self._plains[topology] = Reference.at(self._held, topology.point)
        return self._plains[topology]

    def _reference(self, prepared: Prepared) -> Reference:
        """Nominal demand with limits; kinds of buses are those of the intact grid there."""
        topology = prepared.topology
        if topology not in self._limited:
            if self._basis is None:
                self._basis = self._with_kinds(prepared.network.intact)
            point = self._basis.engine.point_at(topology.removed, self._nominal(prepared).voltage)
            self._limited[topology] = Reference.at(self._basis, point)
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
        intact = replace(intact, bus_kind=kind, bus_fixed=fixed, outage_of=None)
        engine = Engine(intact)
        return Basis(intact, engine, limited_buses(engine, self.buses, self._ranges, power), [])

    def _chord(
        self, reference: Reference | None, network: Network, load_p: Real, load_q: Real,
        start: Real, tol: float, threads: int, slack: DistributedSlack | None = None,
        imbalance: Real | None = None,
    ) -> LimitedStates:  # fmt: skip
        """Chord steps as `Reference.rows`; none without a reference or without limits."""
        if reference is None or not len(self.buses):
            rows, buses = len(load_p), self._held.engine.num_buses
            return LimitedStates.empty(rows, buses, len(self.buses), imbalance)
        limit = tol * self._held.engine.unit
        return reference.rows(network, load_p, load_q, start, limit, threads, slack, imbalance)

    def _newton_of(self, network: Network) -> LimitedNewton:
        """Newton's method with changing kinds, made when it is needed first."""
        if self._newton is None:
            self._newton = LimitedNewton(network.intact, self.buses, self._ranges)
        return self._newton


def _specified(engine: Engine, load_p: Real, load_q: Real, slack: DistributedSlack | None) -> Real:
    """(n, 2 B + 6 K) specified injections of rows of demands."""
    power = engine.injected(load_p, load_q)
    return power if slack is None else power + slack.change


_KEPT: "weakref.WeakKeyDictionary[Network, ReactiveLimits | None]" = weakref.WeakKeyDictionary()
_FREE: "weakref.WeakKeyDictionary[Network, ReactiveLimits]" = weakref.WeakKeyDictionary()
