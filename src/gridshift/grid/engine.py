"""The engine: workspaces, strategy and threads around the kernels, on plain arrays.

Rows are solved by chord steps from the topology's nominal point; rows that contract too slowly go
to full Newton, and what fails there or may have ended in a low-voltage root is followed from the
nominal point (`following`). Everything that depends on the grid alone is done once (`Newton`),
everything that depends on the topology once per topology (`Topologies`).
"""

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.blocks import run_blocks, taken
from gridshift.grid.following import Origin, follow
from gridshift.grid.kernels.chord import chord
from gridshift.grid.kernels.statistics import NUM_OF_SCENARIO, solve_and_tally
from gridshift.grid.network import BusKind, Network
from gridshift.grid.newton import PLAIN_STEPS, Removed, retained
from gridshift.grid.statistics import Limits, Statistics, Workspace
from gridshift.grid.topology import RETAINED, Topologies, Topology, settled
from gridshift.grid.workspace import (
    Batch,
    Branches,
    ChordWork,
    FromIntact,
    Rows,
    Stopping,
    interleaved,
)

Device = Literal["cpu", "gpu"]

CHORD_STEPS = 12
"""Chord steps before a row goes to full Newton."""
ACCELERATE_FROM = 3
"""Chord step from which Anderson's acceleration is on; the measurement is in docs/engine.md."""
NEAR = 1e-2
"""Mismatch, as a multiple of the tolerance base, below which Newton goes on from where the chord
steps have led."""
ACCELERATE_NEAR = 1
"""The same for rows that start from their solutions on the intact grid: decision 0010."""
NOWHERE = FromIntact(
    np.empty(0), np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64)
)
CHUNK = 512
"""Rows that go to Newton's method at a time: bounds the memory they need."""


class Engine(Topologies):
    """Solver of one grid and all its outages; get it with `Engine.of`."""

    @classmethod
    def of(cls, network: Network) -> "Engine":
        """The engine of the grid that this network is, or is an outage of."""
        intact = network.intact
        if intact not in _ENGINES:
            _ENGINES[intact] = cls(intact)
        return _ENGINES[intact]

    @classmethod
    def like(cls, network: Network, other: Network) -> "Engine":
        """The engine of a grid as read that has another one's pattern and, nearly, its state.

        What depends on the pattern is taken over, and nominal demand is solved from the other's
        solution and judged by it: branches and shunts may differ in their admittances alone.
        """
        if network not in _ENGINES:
            _ENGINES[network] = cls(network, cls.of(other))
        return _ENGINES[network]

    def __init__(self, intact: Network, other: "Engine | None" = None):
        super().__init__(intact, other)
        self.load_bus = intact.load_bus.astype(np.int32)
        self.scheduled = np.append(interleaved(intact.scheduled), self.dependence.scheduled)
        self.num_loads = intact.num_loads
        self.branch_bus = np.stack([intact.branch_from, intact.branch_to], 1).ravel()
        self.inverse_square = 1.0 / np.square(intact.branch_rating.ravel())
        self.by_power = np.array([intact.rating_kind == "power"])
        self._no_branches = self._branches(())
        self._chord_spare: list[ChordWork] = []
        self._tally_spare: list[tuple[ChordWork, Workspace]] = []

    def solve(
        self,
        topology: Topology,
        load_p: Real,
        load_q: Real,
        *,
        tol: float = 1e-8,
        max_steps: int = 20,
        threads: int = 1,
        powers: bool = False,
        loading: bool = False,
        device: Device = "cpu",
        limits: Real | None = None,
    ) -> Rows:
        """Solve R rows of one topology; `Rows.mismatch` and `Rows.operating` tell which are solved.

        `tol` is a multiple of the tolerance base. On a GPU the chord steps run there and the rows
        that are left over here; branch powers and loading are then left to the caller. Rows of a
        topology whose elimination isn't to be trusted are all left to the caller. With `limits` of
        reactive power (2 PV,) `Rows.excess` tells which rows of chord steps exceed them.
        """
        limit = tol * self.unit
        out = self.chord_rows(
            topology, load_p, load_q, tol=tol, threads=threads, powers=powers, loading=loading,
            device=device, limits=limits,
        )  # fmt: skip
        good = settled(out.mismatch, out.retained, limit)
        if good.all() or (topology.solved() and not topology.trusted):
            return out
        left = np.flatnonzero(~good)
        out.excess[left if limits is not None else []] = np.inf
        left = left[np.isfinite(load_p[left] + load_q[left]).all(axis=1)]
        # rows that behave alike share a block, so that a hopeless one keeps few waiting
        left = left[np.argsort(out.mismatch[left], kind="stable")]
        for first in range(0, len(left), CHUNK):
            chunk = left[first : first + CHUNK]
            power = self.injected(load_p[chunk], load_q[chunk])
            self._hard_rows(topology, chunk, power, limit, max_steps, threads, out)
        return out

    def chord_rows(
        self, topology: Topology, load_p: Real, load_q: Real, *, tol: float = 1e-8,
        threads: int = 1, powers: bool = False, loading: bool = False,
        device: Device = "cpu", limits: Real | None = None,
    ) -> Rows:  # fmt: skip
        """As `solve`, by chord steps from the topology's nominal point alone; none without one."""
        rows, limit = len(load_p), tol * self.unit
        out = Rows.empty(
            rows, self.num_buses, self.num_branches, powers=powers, loading=loading,
            excess=limits is not None,
        )  # fmt: skip
        if not (topology.solved(tol) and topology.trusted):
            return out
        batch = self.batch(topology, load_p, load_q, limits)
        stopping = Stopping(limit, CHORD_STEPS, ACCELERATE_FROM)
        if device == "gpu":
            from gridshift.grid.kernels.gpu import chord_on_gpu

            chord_on_gpu(batch, stopping, out)
            out.retained[:] = retained(out.voltage, topology.point.voltage, self.pq)
            return out
        branches = self._branches(topology.removed) if powers or loading else self._no_branches
        kernel = partial(chord, self.lanes, self.solving, batch, branches, stopping)
        self.run_blocks(kernel, out, rows, threads)
        return out

    def count_rows(
        self, topology: Topology, load_p: Real, load_q: Real, limits: Limits, *, tol: float = 1e-8,
        threads: int = 1, q_limits: Real | None = None, intact: FromIntact = NOWHERE,
    ) -> tuple[Statistics, Real]:  # fmt: skip
        """As `chord_rows`, and solved rows are counted while their lanes are in cache.

        Rows start from their solutions on the intact grid if these are given. No voltage is kept.
        Returns the statistics, and the mismatch of each row, NaN for those that are left to
        `solve`. With `q_limits` (2 PV,) rows that exceed these are left, too.
        """
        rows, parts = len(load_p), [Statistics(limits)]
        out = Rows.empty(
            rows, self.num_buses, 0, powers=False, loading=False, excess=q_limits is not None,
            voltage=False,
        )  # fmt: skip
        scenarios = np.full((NUM_OF_SCENARIO, rows), np.nan)
        if topology.solved(tol) and topology.trusted:
            batch = self.batch(topology, load_p, load_q, q_limits)
            accelerate_from = ACCELERATE_NEAR if len(intact.order) else ACCELERATE_FROM
            stopping = Stopping(tol * self.unit, CHORD_STEPS, accelerate_from)

            def kernel(statistics: Statistics, out: Rows, first: int, last: int) -> None:
                chord, own = taken(self._tally_spare) or self._tally_work()
                solve_and_tally(
                    self.lanes, self.solving, batch, intact, stopping, RETAINED**2, limits,
                    scenarios, (chord, own, statistics.counts), out, first, last,
                )  # fmt: skip
                self._tally_spare.append((chord, own))

            run_blocks(kernel, out, -(-rows // self.lanes.width), threads, parts,
                       lambda: Statistics(limits))  # fmt: skip
        if len(intact.order):
            scenarios[:, intact.order] = scenarios.copy()
            out.mismatch[intact.order] = out.mismatch.copy()
        solved = ~np.isnan(scenarios[0])
        whole = solved.all()
        statistics = parts[0].merge(parts[1:])
        statistics.take(scenarios if whole else scenarios[:, solved])
        return statistics, out.mismatch if whole else np.where(solved, out.mismatch, np.nan)

    def _hard_rows(
        self, topology: Topology, rows: Int, power: Real, tol: float,
        max_steps: int, threads: int, out: Rows,
    ) -> None:  # fmt: skip
        """Rows that chord steps don't settle, with `tol` in per unit: Newton, then following."""
        near = (out.mismatch[rows] > tol) & (out.mismatch[rows] < NEAR * self.unit)
        most = min(max_steps, PLAIN_STEPS)
        done = np.zeros(len(rows), bool)
        if near.any():
            found = self.states(
                [topology.removed], power=power[near], start=out.voltage[rows[near]],
                tol=tol, renewals=most, max_steps=most, brisk=True, finish=True, threads=threads,
            )  # fmt: skip
            kept = retained(found.voltage, topology.point.voltage, self.pq) >= RETAINED**2
            good = (found.mismatch <= tol) & (found.orientation == topology.orientation) & kept
            done[near] = good
            _write(out, rows[near], found, good)
        left = rows[~done]
        if not len(left):
            return
        origin = self._origin(topology)
        if origin is None:
            return
        found = follow(
            self.corrector(topology.removed, tol, max_steps, threads), origin, power[~done], tol=tol
        )
        _write(out, left, found, found.reached)
        lost = ~found.reached
        out.steps[left[lost]] += found.steps[lost]
        out.growth[left[lost]] = found.growth[lost]
        has_root = (out.mismatch[left] <= tol) | (found.mismatch <= tol)
        out.mismatch[left[lost]] = np.fmin(out.mismatch[left[lost]], found.mismatch[lost])
        out.operating[left[lost & has_root]] = False

    def _origin(self, topology: Topology) -> Origin | None:
        """Where rows are followed from: the nominal point, else the state without load."""
        if topology.solved():
            return Origin(self.nominal_power, topology.point.voltage, topology.orientation)
        return self.no_load(topology.removed)

    def injected(self, load_p: Real, load_q: Real) -> Real:
        """(R, 2 B + 6 K) specified injections of rows of demands (`voltage_dependence`)."""
        power = np.tile(self.scheduled, (len(load_p), 1))
        np.subtract.at(power.T, 2 * self.load_bus, load_p.T)
        np.subtract.at(power.T, 2 * self.load_bus + 1, load_q.T)
        power[:, 2 * self.num_buses :] = self.dependence.injected(load_p, load_q)
        return power

    def run_blocks(self, kernel: Callable, out: tuple | Real, rows: int, threads: int) -> None:
        """Run a kernel `(work, out, first_block, last_block)` over all rows in blocks of lanes."""
        run_blocks(kernel, out, -(-rows // self.lanes.width), threads, self._chord_spare,
                     self.chord_work)  # fmt: skip

    def batch(
        self, topology: Topology, load_p: Real, load_q: Real, limits: Real | None = None
    ) -> Batch:
        """Rows of demands (R, L) on a topology, as the kernels take them."""
        load_bus, scheduled = self.load_bus, self.scheduled
        if len(topology.apart):  # what is drawn there is put to a slack bus, which takes anything
            slack = np.int32(np.flatnonzero(self.kind == BusKind.SLACK)[0])
            load_bus = np.where(np.isin(load_bus, topology.apart), slack, load_bus)
            scheduled = self.without_power_at(topology.apart, scheduled)
        known = self.symbolic, topology.point, load_bus, scheduled, self.set_point
        limits = np.empty(0) if limits is None else limits
        return Batch(*known, load_p, load_q, limits, self.dependence)

    def chord_work(self) -> ChordWork:
        """A workspace for one block of chord lanes."""
        widest = max(self.num_loads, 4 * self.num_branches, 2 * self.num_buses)
        width, single = self.lanes.width, self.solving.dtype
        return ChordWork.new(width, single, self.symbolic, self.num_buses, widest)

    def _tally_work(self) -> tuple[ChordWork, Workspace]:
        return self.chord_work(), Workspace.new(0, self.lanes.width)

    def _branches(self, removed: Removed) -> Branches:
        y = interleaved(self.branch_y).reshape(-1, 8)
        y[list(removed)] = 0
        return Branches(self.branch_bus, y.ravel(), self.inverse_square, self.by_power)


def _write(out: Rows, rows: Int, found: Any, which: Bool) -> None:
    """Take the chosen states as results of their rows."""
    out.voltage[rows[which]] = found.voltage[which]
    out.mismatch[rows[which]] = found.mismatch[which]
    out.growth[rows[which]] = found.growth[which]
    out.steps[rows[which]] += found.steps[which]


_ENGINES: "weakref.WeakKeyDictionary[Network, Engine]" = weakref.WeakKeyDictionary()
