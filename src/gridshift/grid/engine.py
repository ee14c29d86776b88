"""The engine: plans, workspaces, strategy and threads around the kernels, on plain arrays.

Rows are solved by chord steps from the topology's nominal point; rows that contract too slowly go
to full Newton, rows that fail there to damped Newton, and where elimination without row exchanges
is not to be trusted, to a pivoting factorisation. Everything that depends on the grid alone is done
once, everything that depends on the topology once per topology.
"""

import os
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.grid.equations import no_load_start
from gridshift.grid.kernels.chord import chord
from gridshift.grid.kernels.lanes import Lanes, vector_bits
from gridshift.grid.kernels.newton import newton_rows, newton_topologies
from gridshift.grid.network import Network
from gridshift.grid.program import compile_plan
from gridshift.grid.workspace import (
    Branches,
    ChordWork,
    NewtonWork,
    Point,
    Rows,
    Topologies,
    interleaved,
)

Device = Literal["cpu", "gpu"]

NEWTON_LANES = 8
CHORD_STEPS = 12
"""Chord steps before a row goes to full Newton."""
KEPT_STEPS, RENEWALS = 8, 2
"""Steps of a topology's nominal point that keep their factors after the first `RENEWALS` ones; full
Newton for those that need more."""
PLAIN_STEPS = 12
"""Full Newton steps before damped ones take over. In 10,000 rows and 13,000 outages of up to eight
branches, what undamped Newton found later than this was a low-voltage root or found by both."""
ACCELERATE_FROM = 3
"""Chord step from which Anderson's acceleration is on; the measurement is in docs/engine.md."""
NEAR = 1e-2
"""Mismatch, p.u., below which Newton goes on from where the chord steps have led."""
IMPLAUSIBLE_BELOW = 0.5
"""Voltage magnitude, p.u., below which a root counts as a low-voltage one: past the nose of the
voltage curve no operating grid sits there, and motors have stalled."""
UNTRUSTED_GROWTH = 1e8
"""Multiplier in the elimination above which a topology is left to a pivoting factorisation."""
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
    steps: int
    lowest: float
    growth: float

    def solved(self, tol: float = 1e-8) -> bool:
        return self.worst <= tol

    @property
    def trusted(self) -> bool:
        """Whether elimination without row exchanges was numerically safe."""
        return self.growth <= UNTRUSTED_GROWTH


class Engine:
    """Solver of one grid and all its outages; get it with `Engine.of`."""

    @classmethod
    def of(cls, network: Network) -> "Engine":
        """The engine of the grid that this network is, or is an outage of."""
        root = network.root
        if root not in _ENGINES:
            _ENGINES[root] = cls(root)
        return _ENGINES[root]

    def __init__(self, root: Network):
        self.plan = compile_plan(root)
        self.num_buses, self.num_loads = root.num_buses, root.num_loads
        self.num_branches = root.num_branches
        self.lanes = Lanes(chord_lanes(root.num_buses))
        self.solving = Lanes(self.lanes.width, "float32")
        self.newton_lanes = Lanes(NEWTON_LANES)
        self.load_bus = root.load_bus.astype(np.int32)
        self.scheduled = interleaved(root.scheduled)
        self.nominal_power = interleaved(root.injected(root.load_power))
        self.set_point = np.nan_to_num(root.bus_v_set, nan=1.0)
        self.source_start = interleaved(root.v_start)
        self.branch_bus = np.stack([root.branch_from, root.branch_to], 1).ravel()
        self.inverse_square = 1.0 / np.square(root.branch_rating.ravel())
        self.branch_y = np.where(root.branch_in_service[:, None], root.branch_y, 0)
        self.by_power = np.array([root.rating_kind == "power"])
        self._no_branches = self._branches(())
        self._chord_spare: list[ChordWork] = []
        self._newton_spare: list[NewtonWork] = []
        self.base = self.prepare([()], start=self.source_start)[0]
        if not self.base.solved():
            turned = self.prepare([()], start=interleaved(no_load_start(root)))[0]
            self.base = turned if turned.solved() else self.base

    def prepare(
        self, removed: Sequence[tuple[int, ...]], *, start: Real | None = None, tol: float = 1e-10
    ) -> list[Topology]:
        """Nominal point and factors of topologies, each given by the branches it lacks."""
        out = self.nominal(removed, start=start, tol=tol, keep=True)
        return [self._topology(out, t) for t in range(len(removed))]

    @property
    def start(self) -> Real:
        """(2 B,) where topologies start from: the base case's nominal point, if it has one."""
        return self.base.point.voltage if self.base.solved() else self.source_start

    def nominal(
        self,
        removed: Sequence[tuple[int, ...]],
        *,
        start: Real | None = None,
        tol: float = 1e-10,
        max_steps: int = 20,
        keep: bool = False,
        threads: int = 1,
    ) -> Topologies:
        """Solve each topology at nominal demand, topologies side by side in lanes.

        Args:
            removed: branches that each topology lacks.
            start: (2 B,) start of all; the base case's nominal point by default.
            keep: write factors and admittances as well, for solving rows.
        """
        start = self.start if start is None else start

        def run(
            which: Int, *, damped: bool, renewals: int, max_steps: int, start: Real = start
        ) -> Topologies:
            out = Topologies.empty(len(which), self.num_buses, self.plan, keep=keep)
            parts = [removed[t] for t in which]
            ptr = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
            branch = np.array([b for p in parts for b in p], np.int64)
            kernel = partial(
                newton_topologies, self.newton_lanes, self.plan.program, self.plan.num_pv, ptr,
                branch, self.nominal_power, start, self.set_point, damped, renewals, tol,
                max_steps, keep,
            )  # fmt: skip
            self._newton(kernel, out, len(which), threads)
            return out

        kept = min(max_steps, KEPT_STEPS)
        out = run(np.arange(len(removed)), damped=False, renewals=RENEWALS, max_steps=kept)
        for damped, most in ((False, min(max_steps, PLAIN_STEPS)), (True, max_steps)):
            failed = np.flatnonzero(~(out.worst <= tol))
            if not len(failed):
                break
            again = run(failed, damped=damped, renewals=most, max_steps=most)
            better = again.worst <= tol if damped else slice(None)
            for whole, part in zip(out, again, strict=True):
                if len(whole):
                    whole[failed[better]] = part[better]
        # what the base case's point doesn't lead to, or leads to a low root, the source's may
        odd = np.flatnonzero(~(out.worst <= tol) | (out.lowest < IMPLAUSIBLE_BELOW**2))
        if len(odd):
            again = run(odd, damped=False, renewals=max_steps, max_steps=max_steps,
                        start=self.source_start)  # fmt: skip
            better = (again.worst <= tol) & (again.lowest >= IMPLAUSIBLE_BELOW**2)
            for whole, part in zip(out, again, strict=True):
                if len(whole):
                    whole[odd[better]] = part[better]
        return out

    def solve(
        self,
        topology: Topology,
        load_p: Real,
        load_q: Real,
        *,
        removed: tuple[int, ...] = (),
        tol: float = 1e-8,
        max_steps: int = 20,
        threads: int = 1,
        powers: bool = False,
        loading: bool = False,
        device: Device = "cpu",
    ) -> Rows:
        """Solve R rows of one topology; `Rows.worst` tells which are solved.

        On a GPU the chord steps run there and the rows that are left over here; branch powers and
        loading are then left to the caller.
        """
        rows = len(load_p)
        out = Rows.empty(rows, self.num_buses, self.num_branches, powers=powers, loading=loading)
        shared = (self.plan.program, self.plan.num_pv, topology.point)
        injected = (self.load_bus, self.scheduled, self.set_point)
        if topology.solved(tol) and topology.trusted and device == "gpu":
            from gridshift.grid.kernels.gpu import chord_on_gpu

            chord_on_gpu(*shared[:2], self.plan.num_unknowns, topology.point, *injected, load_p,
                         load_q, tol, CHORD_STEPS, ACCELERATE_FROM, out)  # fmt: skip
        elif topology.solved(tol) and topology.trusted:
            branches = self._branches(removed) if powers or loading else self._no_branches
            kernel = partial(chord, self.lanes, self.solving, *shared, *injected, branches, load_p,
                             load_q, tol, CHORD_STEPS, ACCELERATE_FROM)  # fmt: skip
            self.run_blocks(kernel, out, rows, threads)
        if (out.worst <= tol).all():
            return out

        def newton(near: float, *, damped: bool) -> None:
            left = np.flatnonzero(~(out.worst <= tol) & (out.worst < near if near else True))
            left = left[np.isfinite(load_p[left] + load_q[left]).all(axis=1)]
            if len(left):
                # rows that behave alike share a block, so that a hopeless one keeps few waiting
                left = left[np.argsort(out.worst[left], kind="stable")]
                kernel = partial(newton_rows, self.newton_lanes, *shared, *injected, load_p, load_q,
                                 left, near, damped, tol,
                                 max_steps if damped else min(max_steps, PLAIN_STEPS))  # fmt: skip
                self._newton(kernel, out, len(left), threads)

        newton(NEAR, damped=False)
        newton(0.0, damped=False)
        newton(0.0, damped=True)
        return out

    def run_blocks(self, kernel: Callable, out: tuple | Real, rows: int, threads: int) -> None:
        """Run a kernel `(work, out, first_block, last_block)` over all rows in blocks of lanes."""
        self._share(kernel, out, -(-rows // self.lanes.width), threads, self._chord_spare,
                    self.chord_work)  # fmt: skip

    def _newton(self, kernel: Callable, out, rows: int, threads: int) -> None:
        self._share(kernel, out, -(-rows // NEWTON_LANES), threads, self._newton_spare,
                    self.newton_work)  # fmt: skip

    def chord_work(self) -> ChordWork:
        """A workspace for one block of chord lanes."""
        widest = max(self.num_loads, 4 * self.num_branches, 2 * self.num_buses)
        width, single = self.lanes.width, self.solving.dtype
        return ChordWork.new(width, single, self.plan, self.num_buses, widest)

    def newton_work(self) -> NewtonWork:
        """A workspace for one block of Newton lanes."""
        return NewtonWork.new(NEWTON_LANES, self.plan, self.num_buses)

    def _share(self, kernel, out, blocks: int, threads: int, spare: list, new: Callable) -> None:
        """Run a kernel over all blocks, which threads share: the caller and `threads - 1` others.

        Each takes a piece and comes back for the next; a piece is long against handing it over.
        """
        each = min(8, max(1, blocks // (16 * threads)))
        size = max(1, -(-blocks // (each * threads)))
        pieces = deque((b, min(b + size, blocks)) for b in range(0, blocks, size))

        def work_off() -> None:
            work = None
            while piece := _taken(pieces):
                work = work or _taken(spare) or new()
                kernel(work, out, *piece)
            if work:
                spare.append(work)

        helpers = min(threads, len(pieces)) - 1
        others = [_pool(threads).submit(work_off) for _ in range(helpers)] if helpers > 0 else []
        try:
            work_off()
        finally:
            pieces.clear()  # after an interrupt nobody takes another one
            for other in others:
                other.result()

    def _branches(self, removed: tuple[int, ...]) -> Branches:
        y = interleaved(self.branch_y).reshape(-1, 8)
        y[list(removed)] = 0
        return Branches(self.branch_bus, y.ravel(), self.inverse_square, self.by_power)

    def _topology(self, out: Topologies, t: int) -> Topology:
        a = self.plan.num_lower
        b = a + self.plan.num_diagonal
        factors = out.factors[t].astype(self.solving.dtype)
        point = Point(
            out.admittance[t], out.voltage[t], out.power[t], factors[:a], factors[a:b], factors[b:]
        )
        return Topology(
            point,
            float(out.worst[t]),
            int(out.steps[t]),
            float(out.lowest[t]),
            float(out.growth[t]),
        )


_ENGINES: "weakref.WeakKeyDictionary[Network, Engine]" = weakref.WeakKeyDictionary()


def _taken(items: Any) -> Any:
    """The last item, removed; None if there is none. Another thread can't come between."""
    try:
        return items.pop()
    except IndexError:
        return None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads are kept: starting them costs more than a small batch."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gridshift")
