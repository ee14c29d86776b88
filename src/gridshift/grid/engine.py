"""The engine: plans, workspaces, strategy and threads around the kernels, on plain arrays.

Rows are solved by chord steps from the topology's nominal point; rows that contract too slowly go
to full Newton, and what fails there or may have ended in a low-voltage root is followed from the
nominal point (`following`). Everything that depends on the grid alone is done once (`Newton`),
everything that depends on the topology once per topology.
"""

import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.blocks import share_blocks
from gridshift.grid.following import Origin, follow
from gridshift.grid.kernels.chord import chord
from gridshift.grid.kernels.lanes import Lanes, vector_bits
from gridshift.grid.network import Network
from gridshift.grid.newton import PLAIN_STEPS, UNTRUSTED_GROWTH, Newton, Removed, retained
from gridshift.grid.workspace import Branches, ChordWork, Point, Rows, States, interleaved

Device = Literal["cpu", "gpu"]

CHORD_STEPS = 12
"""Chord steps before a row goes to full Newton."""
KEPT_STEPS, RENEWALS = 8, 2
"""Steps of a topology's nominal point that keep their factors after the first `RENEWALS` ones; full
Newton for those that need more."""
ACCELERATE_FROM = 3
"""Chord step from which Anderson's acceleration is on; the measurement is in docs/engine.md."""
NEAR = 1e-2
"""Mismatch, as a multiple of the tolerance base, below which Newton goes on from where the chord
steps have led."""
RETAINED = 0.8
"""Share of its magnitude at a known operating root that every voltage must retain; a root with a
lower one counts only if it can be followed."""
UNFOLLOWED = 0.5
"""The same for an outage of a grid that can't be followed, since it has no state without load."""
CHUNK = 512
"""Rows that go to Newton's method at a time: bounds the memory they need."""
LARGE_GRID = 1000
"""Buses from which fewer lanes are faster, because the state no longer fits the cache."""


def chord_lanes(num_buses: int) -> int:
    """Lanes of the chord kernel on this processor; GRIDSHIFT_LANES overrides."""
    if given := os.environ.get("GRIDSHIFT_LANES"):
        return int(given)
    registers = {512: 32, 256: 16}.get(vector_bits(), 8)
    return registers // 2 if num_buses > LARGE_GRID else registers


@dataclass(frozen=True, eq=False)
class Topology:
    """One topology, ready to solve rows: its nominal point, and whether that is a solution."""

    point: Point
    worst: float
    """Largest mismatch, as a multiple of the tolerance base."""
    steps: int
    growth: float
    orientation: float
    operating: bool
    """Whether the nominal point is the operating root."""

    def solved(self, tol: float = 1e-8) -> bool:
        """Whether the nominal point is the operating root, balanced to `tol`."""
        return self.operating and self.worst <= tol

    @property
    def trusted(self) -> bool:
        """Whether elimination without row exchanges was numerically safe."""
        return self.growth <= UNTRUSTED_GROWTH


class Engine(Newton):
    """Solver of one grid and all its outages; get it with `Engine.of`."""

    @classmethod
    def of(cls, network: Network) -> "Engine":
        """The engine of the grid that this network is, or is an outage of."""
        root = network.root
        if root not in _ENGINES:
            _ENGINES[root] = cls(root)
        return _ENGINES[root]

    def __init__(self, root: Network):
        super().__init__(root)
        self.lanes = Lanes(chord_lanes(root.num_buses))
        self.solving = Lanes(self.lanes.width, "float32")
        self.load_bus = root.load_bus.astype(np.int32)
        self.scheduled = interleaved(root.scheduled)
        self.num_loads = root.num_loads
        self.inverse_square = 1.0 / np.square(root.branch_rating.ravel())
        self.by_power = np.array([root.rating_kind == "power"])
        self._no_branches = self._branches(())
        self._chord_spare: list[ChordWork] = []
        self._base: Topology | None = None
        self.base = self.prepare([()])[0]

    @property
    def base(self) -> Topology:
        """The grid as read."""
        assert self._base is not None
        return self._base

    @base.setter
    def base(self, topology: Topology) -> None:
        self._base = topology

    @property
    def start(self) -> Real:
        """(2 B,) where topologies start from: the base case's nominal point, if it has one."""
        known = self._known
        return known.point.voltage if known else self.source_start

    @property
    def _known(self) -> Topology | None:
        """The base case, once there is one whose nominal point is its operating root."""
        return self._base if self._base and self._base.solved() else None

    def prepare(
        self, removed: Sequence[Removed], *, start: Real | None = None, tol: float = 1e-10
    ) -> list[Topology]:
        """Nominal point and factors of topologies, each given by the branches it lacks."""
        out, operating = self.nominal(removed, start=start, tol=tol, keep=True)
        return [self._topology(out, t, bool(operating[t])) for t in range(len(removed))]

    def nominal(
        self,
        removed: Sequence[Removed],
        *,
        start: Real | None = None,
        tol: float = 1e-10,
        max_steps: int = 20,
        keep: bool = False,
        threads: int = 1,
    ) -> tuple[States, Bool]:
        """Solve each topology at nominal demand, topologies side by side in lanes.

        Args:
            removed: branches that each topology lacks.
            start: (2 B,) start of all; `Engine.start` by default.
            tol: largest mismatch, as a multiple of the tolerance base.
            keep: write factors and admittances as well, for solving rows.

        Returns:
            The states, and (T,) whether each is the operating root.
        """
        tol = tol * self.unit
        start = self.start if start is None else start
        solve = partial(
            self.states, start=start[None], power=self.nominal_power[None], tol=tol, keep=keep,
            threads=threads,
        )  # fmt: skip
        kept = min(max_steps, KEPT_STEPS)
        out = solve(removed, renewals=RENEWALS, max_steps=kept)
        failed = np.flatnonzero(~(out.worst <= tol))
        if len(failed):
            most = min(max_steps, PLAIN_STEPS)
            again = solve([removed[t] for t in failed.tolist()], renewals=most, max_steps=most)
            out.replace(failed, again, np.ones(len(failed), bool))
        operating = self._as_the_base(out, tol)
        for t in np.flatnonzero(~operating).tolist():
            operating[t] = self._follow_topology(removed[t], out, t, tol, max_steps)
        return out, operating

    def _as_the_base(self, out: States, tol: float) -> Bool:
        """(T,) topologies whose root is near the base case's and on the same side of the nose."""
        known = self._known
        if known is None:
            return np.zeros(len(out.worst), bool)
        same = (out.orientation == known.orientation) | ~(out.growth <= UNTRUSTED_GROWTH)
        near = retained(out.voltage, known.point.voltage, self.pq) >= RETAINED**2
        return (out.worst <= tol) & same & near

    def _follow_topology(
        self, removed: Removed, out: States, t: int, tol: float, max_steps: int
    ) -> bool:
        """Follow a topology from no load to nominal demand; whether `out` has its operating root.

        Where there is no state without load to follow it from, the base case's root counts as it
        was found, and an outage's if it retains half of the base case's voltages.
        """
        origin = self.no_load(removed)
        if origin is None or not out.growth[t] <= UNTRUSTED_GROWTH:
            known = self._known
            kept = retained(out.voltage[t], known.point.voltage, self.pq) if known else 1.0
            return bool(out.worst[t] <= tol and kept >= UNFOLLOWED**2)
        if out.worst[t] <= tol and out.orientation[t] == origin.orientation:
            kept = retained(out.voltage[t], origin.voltage, self.pq)
            if kept >= RETAINED**2:
                return True
        found = follow(
            self.corrector(removed, tol, max_steps), origin, self.nominal_power[None], tol=tol
        )
        if not found.reached[0]:
            return False
        point = self.states(
            [removed], start=found.voltage, power=self.nominal_power[None], tol=tol,
            renewals=max_steps, max_steps=max_steps, keep=len(out.factors) > 0,
        )  # fmt: skip
        out.replace(np.array([t]), point, np.array([True]))
        return True

    def solve(
        self,
        topology: Topology,
        load_p: Real,
        load_q: Real,
        *,
        removed: Removed = (),
        tol: float = 1e-8,
        max_steps: int = 20,
        threads: int = 1,
        powers: bool = False,
        loading: bool = False,
        device: Device = "cpu",
    ) -> Rows:
        """Solve R rows of one topology; `Rows.worst` and `Rows.operating` tell which are solved.

        `tol` is a multiple of the tolerance base. On a GPU the chord steps run there and the rows
        that are left over here; branch powers and loading are then left to the caller. Rows of a
        topology whose elimination isn't to be trusted are all left to the caller.
        """
        limit = tol * self.unit
        out = self.chord_rows(
            topology, load_p, load_q, removed=removed, tol=tol, threads=threads, powers=powers,
            loading=loading, device=device,
        )  # fmt: skip
        good = (out.worst <= limit) & (out.retained >= RETAINED**2)
        if good.all() or (topology.solved() and not topology.trusted):
            return out
        left = np.flatnonzero(~good)
        left = left[np.isfinite(load_p[left] + load_q[left]).all(axis=1)]
        # rows that behave alike share a block, so that a hopeless one keeps few waiting
        left = left[np.argsort(out.worst[left], kind="stable")]
        for first in range(0, len(left), CHUNK):
            chunk = left[first : first + CHUNK]
            power = self.injected(load_p[chunk], load_q[chunk])
            self._hard_rows(topology, removed, chunk, power, limit, max_steps, threads, out)
        return out

    def chord_rows(
        self, topology: Topology, load_p: Real, load_q: Real, *, removed: Removed = (),
        tol: float = 1e-8, threads: int = 1, powers: bool = False, loading: bool = False,
        device: Device = "cpu",
    ) -> Rows:  # fmt: skip
        """As `solve`, by chord steps from the topology's nominal point alone; none without one."""
        rows, limit = len(load_p), tol * self.unit
        out = Rows.empty(rows, self.num_buses, self.num_branches, powers=powers, loading=loading)
        if not (topology.solved(tol) and topology.trusted):
            return out
        shared = (self.plan.program, self.plan.num_pv, topology.point)
        injected = (self.load_bus, self.scheduled, self.set_point)
        if device == "gpu":
            from gridshift.grid.kernels.gpu import chord_on_gpu

            chord_on_gpu(*shared[:2], self.plan.num_unknowns, topology.point, *injected, load_p,
                         load_q, limit, CHORD_STEPS, ACCELERATE_FROM, out)  # fmt: skip
            out.retained[:] = retained(out.voltage, topology.point.voltage, self.pq)
            return out
        branches = self._branches(removed) if powers or loading else self._no_branches
        kernel = partial(chord, self.lanes, self.solving, *shared, *injected, branches, load_p,
                         load_q, limit, CHORD_STEPS, ACCELERATE_FROM)  # fmt: skip
        self.run_blocks(kernel, out, rows, threads)
        return out

    def _hard_rows(
        self, topology: Topology, removed: Removed, rows: Int, power: Real, tol: float,
        max_steps: int, threads: int, out: Rows,
    ) -> None:  # fmt: skip
        """Rows that chord steps don't settle, with `tol` in per unit: Newton, then following."""
        near = (out.worst[rows] > tol) & (out.worst[rows] < NEAR * self.unit)
        most = min(max_steps, PLAIN_STEPS)
        done = np.zeros(len(rows), bool)
        if near.any():
            found = self.states(
                [removed], power=power[near], start=out.voltage[rows[near]],
                tol=tol, renewals=most, max_steps=most, brisk=True, finish=True, threads=threads,
            )  # fmt: skip
            kept = retained(found.voltage, topology.point.voltage, self.pq) >= RETAINED**2
            good = (found.worst <= tol) & (found.orientation == topology.orientation) & kept
            done[near] = good
            _write(out, rows[near], found, good)
        left = rows[~done]
        if not len(left):
            return
        origin = self._origin(topology, removed)
        if origin is None:
            return
        found = follow(
            self.corrector(removed, tol, max_steps, threads), origin, power[~done], tol=tol
        )
        _write(out, left, found, found.reached)
        lost = ~found.reached
        out.steps[left[lost]] += found.steps[lost]
        out.growth[left[lost]] = found.growth[lost]
        has_root = (out.worst[left] <= tol) | (found.worst <= tol)
        out.worst[left[lost]] = np.fmin(out.worst[left[lost]], found.worst[lost])
        out.operating[left[lost & has_root]] = False

    def _origin(self, topology: Topology, removed: Removed) -> Origin | None:
        """Where rows are followed from: the nominal point, else the state without load."""
        if topology.solved():
            return Origin(self.nominal_power, topology.point.voltage, topology.orientation)
        return self.no_load(removed)

    def injected(self, load_p: Real, load_q: Real) -> Real:
        """(R, 2 B) specified injections of rows of demands."""
        power = np.tile(self.scheduled, (len(load_p), 1))
        np.subtract.at(power.T, 2 * self.load_bus, load_p.T)
        np.subtract.at(power.T, 2 * self.load_bus + 1, load_q.T)
        return power

    def run_blocks(self, kernel: Callable, out: tuple | Real, rows: int, threads: int) -> None:
        """Run a kernel `(work, out, first_block, last_block)` over all rows in blocks of lanes."""
        share_blocks(kernel, out, -(-rows // self.lanes.width), threads, self._chord_spare,
                     self.chord_work)  # fmt: skip

    def chord_work(self) -> ChordWork:
        """A workspace for one block of chord lanes."""
        widest = max(self.num_loads, 4 * self.num_branches, 2 * self.num_buses)
        width, single = self.lanes.width, self.solving.dtype
        return ChordWork.new(width, single, self.plan, self.num_buses, widest)

    def _branches(self, removed: tuple[int, ...]) -> Branches:
        y = interleaved(self.branch_y).reshape(-1, 8)
        y[list(removed)] = 0
        return Branches(self.branch_bus, y.ravel(), self.inverse_square, self.by_power)

    def _topology(self, out: States, t: int, operating: bool) -> Topology:
        a = self.plan.num_lower
        b = a + self.plan.num_diagonal
        factors = out.factors[t].astype(self.solving.dtype)
        point = Point(
            out.admittance[t], out.voltage[t], out.power[t], factors[:a], factors[a:b], factors[b:]
        )
        return Topology(
            point,
            worst=float(out.worst[t]) / self.unit,
            steps=int(out.steps[t]),
            growth=float(out.growth[t]),
            orientation=float(out.orientation[t]),
            operating=operating,
        )


def _write(out: Rows, rows: Int, found: Any, which: Bool) -> None:
    """Take the chosen states as results of their rows."""
    out.voltage[rows[which]] = found.voltage[which]
    out.worst[rows[which]] = found.worst[which]
    out.growth[rows[which]] = found.growth[which]
    out.steps[rows[which]] += found.steps[which]


_ENGINES: "weakref.WeakKeyDictionary[Network, Engine]" = weakref.WeakKeyDictionary()
