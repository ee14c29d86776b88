"""Power flow with a distributed slack: one unknown more for each row, the imbalance.

Rows take chord steps that have the imbalance among their unknowns (`kernels.shared_chord`). Those
that these leave over, and those whose generators reach reactive limits, are solved by secant steps
around the power flow: the slack bus gives what the equations leave, and that must be its own
schedule and share.
"""

import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.engine import ACCELERATE_FROM, CHORD_STEPS, Engine
from gridshift.grid.equations import branch_loading, branch_powers
from gridshift.grid.generation import with_columns
from gridshift.grid.kernels.shared_chord import border, shared_chord
from gridshift.grid.network import BusKind, Network
from gridshift.grid.prepared import Prepared
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.shared_workspace import SharedRows, SharedWork, Sharing
from gridshift.grid.slack_shares import SharedSchedule, SlackShares, given_at_slack, slack_entries
from gridshift.grid.solution import BatchSolution, RowStatus
from gridshift.grid.topology import RETAINED, Topology
from gridshift.grid.workspace import Stopping, interleaved

TIGHTER = 0.1
"""Tolerance of the power flow inside secant steps, as a multiple of the one asked for: the slack's
power sums up the mismatch of all buses."""
MOST_ROUNDS = 20
"""Power flows of a row by secant steps; 2 to 4 are usual."""
NEAR = 1e-2
"""Mismatch, as a multiple of the tolerance base, below which secant steps go on from the imbalance
that chord steps have led to."""
STEEPEST = 4.0
"""Slope of the slack's surplus by the imbalance, about -1, is taken from the last two rounds if it
is within this factor."""


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
        engine = Engine.of(intact)
        self.schedule = SharedSchedule(intact, shares)
        self._scheduled = interleaved(replace(intact, gen_p=self.schedule.power).scheduled)
        unknown = np.full(engine.num_buses, -1, np.int32)
        unknown[engine.symbolic.node_bus] = engine.symbolic.node_first[:-1]
        buses, (up, down) = self.schedule.buses, self.schedule.ways
        self._known = partial(
            Sharing, bus=buses.astype(np.int32), unknown=unknown[buses],
            up_weight=up.weight, up_room=up.room, up_lines=up.lines.ravel(),
            down_weight=down.weight, down_room=down.room, down_lines=down.lines.ravel(),
            slack=int(intact.slack[0]),
        )  # fmt: skip
        self._unknown = unknown
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
            limits: of reactive power, as in `Engine.solve`.
        """
        engine, topology = prepared.engine, prepared.topology
        start = self.schedule.first_imbalance(load_p)
        out = SharedRows.empty(len(load_p), engine.num_buses, start, excess=limits is not None)
        dependent = len(engine.symbolic.dependent_bus)  # whose power isn't to be moved from outside
        if dependent or not (topology.solved(tol) and topology.trusted):
            return out
        if topology not in self._sharings:
            self._sharings[topology] = self._sharing(prepared)
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

    def good(self, rows: SharedRows, limit: float) -> Bool:
        """(R,) rows of chord steps that are solved and exceed no reactive limit that they know of,
        with the limit of the mismatch in per unit."""
        good = (rows.mismatch <= limit) & (rows.retained >= RETAINED**2)
        return good & (rows.excess <= limit) if len(rows.excess) else good

    def _sharing(self, prepared: Prepared) -> Sharing:
        """With the row of the slack bus in a topology's Jacobian, and what follows from it."""
        engine, point = prepared.engine, prepared.topology.point
        symbolic, known = engine.symbolic, self._known.keywords
        columns, y = slack_entries(prepared.network)
        v = prepared.voltage
        power = v[known["slack"]] * (y * v[columns]).conj()  # what each neighbour adds
        row = np.zeros(symbolic.num_unknowns)
        for bus, one in zip(columns.tolist(), power.tolist(), strict=True):
            at = self._unknown[bus]
            if at >= 0:  # derivatives as in `kernels.steps.jacobian`
                row[at] = one.imag
                if engine.kind[bus] == BusKind.PQ:
                    row[at + 1] = one.real
        border(symbolic, point.lower, point.diagonal, point.upper, row)
        weight = known["up_weight"] if known["up_weight"].any() else known["down_weight"]
        at_slack = known["unknown"] < 0
        worth = np.where(at_slack, 1.0, -row[np.maximum(known["unknown"], 0)])
        total = weight.sum()
        step = total / (weight @ worth) if total else 1.0
        return self._known(
            entry_bus=columns.astype(np.int32), admittance=interleaved(y),
            border=row.astype(engine.solving.dtype), step=float(step),
        )  # fmt: skip


_KNOWN: (
    "weakref.WeakKeyDictionary[Network, weakref.WeakKeyDictionary[SlackShares, DistributedSlack]]"
)
_KNOWN = weakref.WeakKeyDictionary()


def solve_distributed(
    prepared: Prepared, loads: LoadScenarios, shares: SlackShares,
    solve_rows: Callable[[Network, LoadScenarios], BatchSolution], *, tol: float, threads: int,
    q_limits: bool, chords: bool, powers: bool, loading: bool,
) -> BatchSolution:  # fmt: skip
    """Rows whose imbalance is shared.

    Args:
        prepared: a topology that leaves no bus without supply.
        shares: who shares it.
        solve_rows: the power flow, with a tolerance of `TIGHTER` times `tol`.
        tol: largest mismatch, as a multiple of the tolerance base, of the slack's share as well.
        q_limits: whether `solve_rows` keeps reactive limits.
        chords: try chord steps first.
    """
    network, limit = prepared.network, tol * prepared.network.tolerance_base
    load_p, load_q = demands(network, loads)
    slack = DistributedSlack.of(network, shares)
    kept = ReactiveLimits.of(network) if q_limits else None
    start, left, first = slack.schedule.first_imbalance(load_p), np.arange(len(load_p)), None
    if chords:
        first = slack.chord_rows(
            prepared, load_p, load_q, tol=tol, threads=threads,
            limits=None if kept is None else kept.of_pv,
        )  # fmt: skip
        left = np.flatnonzero(~slack.good(first, limit))
        near = np.isfinite(first.mismatch) & (first.mismatch < NEAR * network.tolerance_base)
        start = np.where(near, first.imbalance, start)
    rest, imbalance = None, start
    if len(left) or first is None:
        rest, imbalance[left] = _by_rounds(
            network, slack.schedule, loads.rows(left), start[left], solve_rows, limit
        )
    found = _joined(network, first, rest, left, q_limits)
    generation = slack.schedule.generation(imbalance)
    generation[~found.solved] = np.nan
    return replace(
        found, gen_p=generation,
        powers=branch_powers(network, found.voltage) if powers else None,
        loading=branch_loading(network, found.voltage) if loading else None,
    )  # fmt: skip


def _joined(
    network: Network, first: SharedRows | None, rest: BatchSolution | None, left: Int,
    q_limits: bool,
) -> BatchSolution:  # fmt: skip
    """All rows, from those of chord steps and those that these left over."""
    if first is None:
        assert rest is not None
        return rest
    num = len(first.mismatch)
    found = BatchSolution(
        network=network, voltage=first.voltage.view(np.complex128),
        status=np.full(num, RowStatus.SOLVED, np.int64), iterations=first.steps,
        mismatch=first.mismatch, reason="" if rest is None else rest.reason,
        at_limit=np.zeros((num, network.num_buses), np.int8) if q_limits else None,
    )  # fmt: skip
    if rest is not None:
        found.take_rows(left, rest)
    return found


def _by_rounds(
    network: Network, schedule: SharedSchedule, loads: LoadScenarios, start: Real,
    solve_rows: Callable[[Network, LoadScenarios], BatchSolution], limit: float,
) -> tuple[BatchSolution, Real]:  # fmt: skip
    """Rows by secant steps around the power flow, from imbalances (R,), and what these become."""
    imbalance, wide = start.copy(), _widened(network, schedule.labels[: schedule.num_moved])
    known = np.full((2, loads.num_rows), np.nan)  # imbalance and surplus of the last round
    found, left = None, np.arange(loads.num_rows)
    for _ in range(MOST_ROUNDS):
        demand = loads.rows(left)
        moved, rest = schedule.moved(imbalance[left])
        solution = solve_rows(wide, _with_moved(schedule, demand, moved))
        if found is None:
            found = replace(solution, network=network)
        else:
            found.take_rows(left, solution)
        given = given_at_slack(network, solution.voltage, demand.load_p)
        surplus = given - schedule.of_slack(moved, rest)
        found.mismatch[left] = np.fmax(found.mismatch[left], np.abs(surplus))
        on = solution.solved & (np.abs(surplus) > limit)
        left, surplus = left[on], surplus[on]
        if not len(left):
            break
        now = imbalance[left]
        with np.errstate(all="ignore"):
            slope = (surplus - known[1, left]) / (now - known[0, left])
        usual = (slope < -1 / STEEPEST) & (slope > -STEEPEST)
        known[:, left] = now, surplus
        imbalance[left] = now - surplus / np.where(usual, slope, -1.0)
    assert found is not None
    found.status[left] = RowStatus.NO_CONVERGENCE
    found.voltage[left] = np.nan
    if found.at_limit is not None:
        found.at_limit[left] = 0
    return found, imbalance


def _with_moved(schedule: SharedSchedule, loads: LoadScenarios, moved: Real) -> LoadScenarios:
    """What the engine is given: generators that move are demands of the other sign."""
    moving = slice(schedule.num_moved)
    columns = -(schedule.power[schedule.rows[moving]] + moved[:, moving])
    return LoadScenarios(
        load_p=np.concatenate([loads.load_p, columns], 1),
        load_q=np.concatenate([loads.load_q, np.zeros_like(columns)], 1),
    )


_WIDENED: "weakref.WeakKeyDictionary[Network, dict[tuple[str, ...], Network]]"
_WIDENED = weakref.WeakKeyDictionary()
"""Grids whose generators are columns of demand; what is prepared for them is kept with them."""


def _widened(network: Network, labels: tuple[str, ...]) -> Network:
    if not labels:  # the slack bus alone; a value must not refer to its key
        return network
    known = _WIDENED.setdefault(network, {})
    if labels not in known:
        intact = network.intact
        known[labels] = (
            with_columns(network, labels) if intact is network else
            replace(
                (wide := _widened(intact, labels)), branch_in_service=network.branch_in_service,
                outage_of=wide, outaged=network.outaged,
            )
        )  # fmt: skip
    return known[labels]
