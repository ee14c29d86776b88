"""Chord steps of rows with a distributed slack: one unknown more for each row, the imbalance.

Who shares it, is in `slack_shares`; how whole studies' rows are solved, in `shared_rows`.
"""

import weakref
from dataclasses import replace

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.engine import ACCELERATE_FROM, CHORD_STEPS, Engine
from gridshift.grid.kernels.shared_chord import border, shared_chord
from gridshift.grid.network import Network
from gridshift.grid.newton import Newton
from gridshift.grid.prepared import Prepared
from gridshift.grid.shared_workspace import SharedRows, SharedWork, Sharing
from gridshift.grid.slack_shares import SharedSchedule, SlackShares, slack_entries
from gridshift.grid.topology import Topology
from gridshift.grid.voltage_dependence import Dependence
from gridshift.grid.workspace import NominalPoint, Stopping, interleaved


class DistributedSlack:
    """Shares the imbalance in one grid and all its outages of branches; get it with `of`."""

    @classmethod
    def of(cls, network: Network, shares: SlackShares) -> "DistributedSlack":
        """That of the grid that this network is, or is an outage of."""
        intact = network.intact
        known = _KNOWN.setdefault(intact, weakref.WeakKeyDictionary())
        if shares not in known:
            known[shares] = cls(intact, shares)
        return known[shares]

    def __init__(self, intact: Network, shares: SlackShares):
        self.schedule = SharedSchedule(intact, shares)
        scheduled = replace(intact, gen_p=self.schedule.power)
        self._scheduled = np.append(
            interleaved(scheduled.scheduled), Dependence.of(scheduled).scheduled
        )
        self.change = self._scheduled - Engine.of(intact).scheduled
        """(2 B + 6 K,) what the schedule specifies beyond the grid as read, p.u."""
        self._slack = int(intact.slack[0])
        self._sharings: weakref.WeakKeyDictionary[Topology, Sharing] = weakref.WeakKeyDictionary()
        self._spare: list = []

    def chord_rows(
        self, prepared: Prepared, load_p: Real, load_q: Real, *, tol: float, threads: int = 1,
        limits: Real | None = None,
    ) -> SharedRows:  # fmt: skip
        """Rows by chord steps from the topology's nominal point; those `good` are solved.

        Args:
            prepared: the topology, an outage of the grid or the grid itself.
            load_p: (R, L) demands, p.u.
            load_q: (R, L)
            tol: largest mismatch, as a multiple of the tolerance base.
            threads: that share the rows; results don't depend on it.
            limits: of reactive power, as in `Engine.solve`.
        """
        engine, topology = prepared.engine, prepared.topology
        start = self.schedule.first_imbalance(load_p)
        out = SharedRows.empty(len(load_p), engine.num_buses, start, excess=limits is not None)
        if not (topology.solved(tol) and topology.trusted):
            return out
        if topology not in self._sharings:
            self._sharings[topology] = self.sharing(engine, prepared.network, topology.point)
        sharing = self._sharings[topology]
        batch = engine.batch(topology, load_p, load_q, limits)._replace(scheduled=self._scheduled)
        stopping = Stopping(tol * engine.unit, CHORD_STEPS, ACCELERATE_FROM)

        def kernel(work: tuple, out: SharedRows, first: int, last: int) -> None:
            shared_chord(
                engine.lanes, engine.solving, batch, sharing, stopping, work[0], work[1], out,
                first, last,
            )  # fmt: skip

        def room() -> tuple:
            width = engine.lanes.width
            return engine.chord_work(), SharedWork.new(width, len(sharing.bus))

        blocks = -(-len(load_p) // engine.lanes.width)
        run_blocks(kernel, out, blocks, threads, self._spare, room)
        return out

    def scheduled(self, engine: Engine) -> Real:
        """(2 B + 6 K,) as `Engine.scheduled`, with what generators are to give."""
        active = np.arange(len(self._scheduled)) % 2 == 0
        return np.where(active, self._scheduled, engine.scheduled)

    def sharing(
        self, newton: Newton, network: Network, point: NominalPoint | None = None
    ) -> Sharing:
        """What kernels need to know of a topology, with its buses as the unknowns of `newton`.

        With a point of it, the row of the slack bus in the Jacobian there, and what follows.
        """
        symbolic, slack = newton.symbolic, self._slack
        unknown, size = np.full((2, newton.num_buses), -1)
        unknown[symbolic.node_bus] = symbolic.node_first[:-1]
        size[symbolic.node_bus] = symbolic.node_size
        columns, y = slack_entries(network)
        buses, (up, down) = self.schedule.buses, self.schedule.ways
        row, step = np.zeros(0), 1.0
        if point is not None:
            v = point.voltage.view(np.complex128)
            power = v[slack] * (y * v[columns]).conj()  # what each neighbour adds
            row = np.zeros(symbolic.num_unknowns)
            for bus, one in zip(columns.tolist(), power.tolist(), strict=True):
                at = unknown[bus]
                if at >= 0:  # derivatives as in `kernels.steps.fill_jacobian`
                    row[at] = one.imag
                    if size[bus] == 2:
                        row[at + 1] = one.real
            border(symbolic, point.lower, point.diagonal, point.upper, row)
            weight = up.weight if up.weight.any() else down.weight
            at_slack = unknown[buses] < 0
            worth = np.where(at_slack, 1.0, -row[np.maximum(unknown[buses], 0)])
            total = weight.sum()
            step = total / (weight @ worth) if total else 1.0
        dtype = newton.solving.dtype if isinstance(newton, Engine) else np.float64
        return Sharing(
            bus=buses.astype(np.int32), unknown=unknown[buses].astype(np.int32),
            constant=newton.constant[np.append(buses, slack)].astype(np.int32),
            up_weight=up.weight, up_room=up.room, up_lines=up.lines.ravel(),
            down_weight=down.weight, down_room=down.room, down_lines=down.lines.ravel(),
            slack=slack, entry_bus=columns.astype(np.int32),
            entry_unknown=unknown[columns].astype(np.int32),
            entry_size=size[columns].astype(np.int32), admittance=interleaved(y),
            border=row.astype(dtype), step=float(step),
        )  # fmt: skip


_KNOWN: (
    "weakref.WeakKeyDictionary[Network, weakref.WeakKeyDictionary[SlackShares, DistributedSlack]]"
)
_KNOWN = weakref.WeakKeyDictionary()
