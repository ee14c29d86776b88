"""Chord steps of rows with reactive limits, from a point of a topology."""

import weakref
from typing import NamedTuple

import numpy as np

from gridshift.arrays import Bool, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.engine import Engine
from gridshift.grid.kernels.limited_chord import limited_chord
from gridshift.grid.kernels.limited_sensitivity import sensitivities
from gridshift.grid.limited_workspace import (
    HeldWork,
    LimitedBuses,
    LimitedStates,
    MovedWork,
    Sensitivity,
)
from gridshift.grid.network import Network
from gridshift.grid.shared_workspace import SharedWork, Sharing
from gridshift.grid.topology import settled
from gridshift.grid.voltage_dependence import at_voltage
from gridshift.grid.workspace import ChordWork, NominalPoint, Stopping, interleaved

CHORD_STEPS = 12
"""Chord steps of a row at most, and so many more for slow rows."""
HOPELESS = 1e2
"""Mismatch, as a multiple of the tolerance base, from which on no more chord steps are taken."""
ACCELERATE_FROM = 2
"""Chord steps after a change of kinds without acceleration."""
MOST_MOVED = 128
"""Buses of a row that differ from the point whose factors chord steps have; rows with more go to
Newton's method."""


class Basis(NamedTuple):
    """Which buses with limits factors take to be held, and which to be at a limit."""

    intact: Network
    """The grid with these kinds of buses."""
    engine: Engine
    limits: LimitedBuses
    spare: list
    """Workspaces."""


class Reference(NamedTuple):
    """A point of a topology that rows start from, and what chord steps need there."""

    basis: Basis
    point: NominalPoint
    sensitivity: Sensitivity
    sharings: "weakref.WeakKeyDictionary[DistributedSlack, Sharing]"
    """How those that share an imbalance do so at this point."""

    @classmethod
    def at(cls, basis: Basis, point: NominalPoint) -> "Reference":
        """With the sensitivities of a topology's point."""
        engine, limits = basis.engine, basis.limits
        symbolic, number = engine.symbolic, len(limits.bus)
        entries = int(symbolic.row_ptr[symbolic.num_pv])
        angle, magnitude, active, reactive = np.zeros((4, entries))
        out = Sensitivity(angle, magnitude, active, reactive, np.empty((number, number)))
        place = np.full(engine.num_buses, -1)
        place[limits.bus] = np.where(symbolic.node_size[limits.node] == 1, np.arange(number), -1)
        specified, voltage = (part.view(complex) for part in (engine.nominal_power, point.voltage))
        slope = interleaved(at_voltage(basis.intact, specified, voltage)[1])
        sensitivities(
            engine.lanes, engine.solving, symbolic, point, limits, place, slope,
            engine.chord_work(), out,
        )  # fmt: skip
        return cls(basis, point, out, weakref.WeakKeyDictionary())

    def rows(
        self, network: Network, load_p: Real, load_q: Real, start: Real, limit: float,
        threads: int, slack: DistributedSlack | None = None, imbalance: Real | None = None,
    ) -> LimitedStates:  # fmt: skip
        """Rows from voltages (n, 2 B), or from the point where that is empty, with the limit of
        the mismatch in per unit.

        With generators that share imbalances, they start from those (n,). Slow rows go on in
        blocks of their own, so that they keep few waiting.
        """
        unit = self.basis.engine.unit
        out = self._steps(network, load_p, load_q, start, limit, threads, slack, imbalance)
        left = np.flatnonzero(~solved(out, limit))
        left = left[out.mismatch[left] < HOPELESS * unit]
        left = left[np.argsort(out.mismatch[left], kind="stable")]
        if len(left):
            before = out.steps[left]
            more = self._steps(
                network, load_p[left], load_q[left], out.voltage[left], limit, threads, slack,
                None if slack is None else out.imbalance[left],
            )  # fmt: skip
            for whole, part in zip(out, more, strict=True):
                if len(whole):
                    whole[left] = part
            out.steps[left] += before
        return out

    def _steps(
        self, network: Network, load_p: Real, load_q: Real, start: Real, limit: float,
        threads: int, slack: DistributedSlack | None, imbalance: Real | None,
    ) -> LimitedStates:  # fmt: skip
        engine, limits, spare = self.basis.engine, self.basis.limits, self.basis.spare
        number = len(limits.bus)
        out = LimitedStates.empty(len(load_p), engine.num_buses, number, imbalance)
        batch = engine.batch(engine.intact, load_p, load_q)._replace(point=self.point)
        sharing = None
        if slack is not None:
            sharing = self._sharing(network, slack)
            batch = batch._replace(scheduled=slack.scheduled(engine))
        stopping = Stopping(limit, CHORD_STEPS, ACCELERATE_FROM)
        most = min(MOST_MOVED, number)

        def kernel(work: tuple, out: LimitedStates, first: int, last: int) -> None:
            limited_chord(
                engine.lanes, engine.solving, batch, start, limits, self.sensitivity, sharing,
                stopping, work[0], work[1], work[2], shared(), out, first, last,
            )  # fmt: skip

        def room() -> tuple[ChordWork, HeldWork, MovedWork]:
            width = engine.lanes.width
            moved = MovedWork.new(
                width, engine.solving.dtype, engine.symbolic.num_unknowns, engine.num_buses,
                number, most,
            )  # fmt: skip
            return engine.chord_work(), HeldWork.new(width, number), moved

        def shared() -> SharedWork | None:
            return None if sharing is None else SharedWork.new(engine.lanes.width, len(sharing.bus))

        run_blocks(kernel, out, -(-len(load_p) // engine.lanes.width), threads, spare, room)
        return out

    def _sharing(self, network: Network, slack: DistributedSlack) -> Sharing:
        if slack not in self.sharings:
            self.sharings[slack] = slack.sharing(self.basis.engine, network, self.point)
        return self.sharings[slack]


def solved(found: LimitedStates, limit: float) -> Bool:
    """(n,) rows of chord steps that are solved, with the limit of the mismatch in per unit."""
    return found.settled & settled(found.mismatch, found.retained, limit)
