"""Topologies of one grid, side by side: nominal points, operating roots, factors for their rows."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.following import follow
from gridshift.grid.kernels.graph import unreachable
from gridshift.grid.kernels.lanes import Lanes, vector_bits
from gridshift.grid.network import BusKind, Network
from gridshift.grid.newton import (
    NO_VOLTAGE,
    PLAIN_STEPS,
    UNTRUSTED_GROWTH,
    Newton,
    Removed,
    retained,
)
from gridshift.grid.workspace import NominalPoint, States, interleaved

KEPT_STEPS, RENEWALS = 8, 2
"""Steps of a topology's nominal point that keep their factors after the first `RENEWALS` ones; full
Newton for those that need more."""
RETAINED = 0.8
"""Share of its magnitude at a known operating root that every voltage must retain; a root with a
lower one counts only if it can be followed."""
UNFOLLOWED = 0.5
"""The same for an outage of a grid that can't be followed, since it has no state without load."""
UNKNOWN = np.empty(0)
LARGE_GRID = 1000
"""Buses from which fewer lanes are faster, because the state no longer fits the cache."""


def settled(mismatch: Real, retained: Real, limit: float, excess: Real = UNKNOWN) -> Bool:
    """(R,) rows that chord steps have led to an operating root.

    Args:
        mismatch: (R,) largest one, p.u.
        retained: (R,) squared share of the nominal voltages that is left.
        limit: of the mismatch, p.u.
        excess: (R,) beyond reactive limits, p.u., if rows that exceed one aren't settled.
    """
    good = (mismatch <= limit) & (retained >= RETAINED**2)
    return good & (excess <= limit) if len(excess) else good


def chord_lanes(num_buses: int) -> int:
    """Lanes of the chord kernel on this processor; GRIDSHIFT_LANES overrides."""
    if given := os.environ.get("GRIDSHIFT_LANES"):
        return int(given)
    registers = {512: 32, 256: 16}.get(vector_bits(), 8)
    return registers // 2 if num_buses > LARGE_GRID else registers


@dataclass(frozen=True, eq=False)
class Topology:
    """One topology, ready to solve rows: its nominal point, and whether that is a solution."""

    removed: Removed
    """Branches that it lacks."""
    cut_off: Int
    """Buses without a path to a slack bus, ascending; with any, the nominal point is not solved."""
    apart: Int
    """Buses that have none either and stand apart: they keep their voltages."""
    point: NominalPoint
    mismatch: float
    """Largest mismatch, as a multiple of the tolerance base."""
    steps: int
    growth: float
    orientation: float
    operating: bool
    """Whether the nominal point is the operating root."""

    def solved(self, tol: float = 1e-8) -> bool:
        """Whether the nominal point is the operating root, balanced to `tol`."""
        return self.operating and self.mismatch <= tol

    @property
    def trusted(self) -> bool:
        """Whether elimination without row exchanges was numerically safe."""
        return self.growth <= UNTRUSTED_GROWTH


class Topologies(Newton):
    """Finds the operating root of a grid and of its outages at nominal demand."""

    def __init__(self, root: Network, other: "Topologies | None" = None):
        super().__init__(root, other)
        self._near = other.intact if other else None
        self.lanes = Lanes(chord_lanes(root.num_buses))
        self.solving = Lanes(self.lanes.width, "float32")
        """Precision of chord steps, and so of the factors that a topology keeps."""
        self._intact: Topology | None = None
        self.intact = self.prepare([()])[0]

    @property
    def intact(self) -> Topology:
        """The grid as read."""
        assert self._intact is not None
        return self._intact

    @intact.setter
    def intact(self, topology: Topology) -> None:
        self._intact = topology

    @property
    def start(self) -> Real:
        """(2 B,) where topologies start from: the intact grid's nominal point, if it has one."""
        known = self._known
        return known.point.voltage if known else self.source_start

    @property
    def _known(self) -> Topology | None:
        """The intact grid, once there is one whose nominal point is its operating root, or a grid
        that is nearly the same."""
        known = (one for one in (self._intact, self._near) if one and one.solved())
        return next(known, None)

    def prepare(
        self, removed: Sequence[Removed], *, apart: Sequence[Sequence[int]] = (),
        start: Real | None = None, tol: float = 1e-10,
    ) -> list[Topology]:  # fmt: skip
        """Nominal point and factors of topologies, each given by the branches it lacks.

        Args:
            apart: buses of each that stand apart (`standing_apart`); () for none at all.
        """
        aside = [np.array(one, np.int64) for one in apart or [()] * len(removed)]
        cut_off = [self.cut_off(gone) for gone in removed]
        for t, one in enumerate(aside):
            if len(one):
                cut_off[t] = np.setdiff1d(cut_off[t], one)
        whole = [t for t, cut in enumerate(cut_off) if not len(cut)]
        split = [t for t, cut in enumerate(cut_off) if len(cut)]
        found: dict[int, tuple[States, int, bool]] = {}
        if whole:
            out, operating = self.nominal(
                [removed[t] for t in whole], apart=[aside[t] for t in whole], start=start, tol=tol,
                keep=True,
            )  # fmt: skip
            found |= {t: (out, at, bool(operating[at])) for at, t in enumerate(whole)}
        if split:
            out = self.states(
                [removed[t] for t in split], start=self.start[None],
                power=self.nominal_power[None], tol=0.0, max_steps=0, keep=True,
            )  # fmt: skip
            found |= {t: (out, at, False) for at, t in enumerate(split)}
        return [
            self._topology(removed[t], cut_off[t], aside[t], *found[t]) for t in range(len(removed))
        ]

    def cut_off(self, removed: Removed) -> Int:
        """Buses that a topology leaves without a path to a slack bus, ascending."""
        on = self.in_service.copy()
        on[list(removed)] = False
        return unreachable(self.branch_from, self.branch_to, on, self.kind == BusKind.SLACK)

    def nominal(
        self,
        removed: Sequence[Removed],
        *,
        apart: Sequence[Int] = (),
        start: Real | None = None,
        tol: float = 1e-10,
        max_steps: int = 20,
        keep: bool = False,
        threads: int = 1,
    ) -> tuple[States, Bool]:
        """Solve each topology at nominal demand, topologies side by side in lanes.

        Args:
            removed: branches that each topology lacks.
            apart: buses of each that stand apart; () for none at all.
            start: (2 B,) start of all; `Engine.start` by default.
            tol: largest mismatch, as a multiple of the tolerance base.
            keep: write factors and admittances as well, for solving rows.

        Returns:
            The states, and (T,) whether each is the operating root.
        """
        tol = tol * self.unit
        start = self.start if start is None else start
        power = self.nominal_power[None]
        aside = [t for t, one in enumerate(apart) if len(one)]
        if aside:
            power = np.stack([self.without_power_at(one, self.nominal_power) for one in apart])
        solve = partial(self.states, start=start[None], tol=tol, keep=keep, threads=threads)
        kept = min(max_steps, KEPT_STEPS)
        out = solve(removed, power=power, renewals=RENEWALS, max_steps=kept)
        failed = np.flatnonzero(~(out.mismatch <= tol))
        if len(failed):
            most = min(max_steps, PLAIN_STEPS)
            again = solve(
                [removed[t] for t in failed.tolist()], power=power[failed] if aside else power,
                renewals=most, max_steps=most,
            )  # fmt: skip
            out.replace(failed, again, np.ones(len(failed), bool))
        operating = self._as_the_intact_grid(out, tol)
        for t in np.setdiff1d(np.flatnonzero(~operating), aside).tolist():
            operating[t] = self._follow_topology(removed[t], out, t, tol, max_steps)
        return out, operating

    def _as_the_intact_grid(self, out: States, tol: float) -> Bool:
        """(T,) topologies whose root is near the intact grid's and on the same side of the nose."""
        known = self._known
        if known is None:
            return np.zeros(len(out.mismatch), bool)
        same = (out.orientation == known.orientation) | ~(out.growth <= UNTRUSTED_GROWTH)
        near = retained(out.voltage, known.point.voltage, self.pq) >= RETAINED**2
        return (out.mismatch <= tol) & same & near

    def _follow_topology(
        self, removed: Removed, out: States, t: int, tol: float, max_steps: int
    ) -> bool:
        """Follow a topology from no load to nominal demand; whether `out` has its operating root.

        Where there is no state without load to follow it from, the intact grid's root counts as it
        was found, and an outage's if it retains half of the intact grid's voltages.
        """
        if self._lift_dead_buses(removed, out, t, tol):
            return True
        origin = self.no_load(removed)
        if origin is None or not out.growth[t] <= UNTRUSTED_GROWTH:
            known = self._known
            kept = retained(out.voltage[t], known.point.voltage, self.pq) if known else 1.0
            return bool(out.mismatch[t] <= tol and kept >= UNFOLLOWED**2)
        if out.mismatch[t] <= tol and out.orientation[t] == origin.orientation:
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

    def _lift_dead_buses(self, removed: Removed, out: States, t: int, tol: float) -> bool:
        """Start again where buses without injection have gone to 0 V, which is a root for them
        whatever their neighbours do: from what these give them. Whether `out` has the operating
        root then."""
        power = self.nominal_power[: 2 * self.num_buses].view(np.complex128)[self.pq]
        size = np.abs(out.voltage[t].view(np.complex128)[self.pq])
        dead = self.pq[(size < NO_VOLTAGE) & (power == 0)]
        if not len(dead):
            return False
        y, start = self.admittance_without(removed), self.start.view(np.complex128).copy()
        start[dead] = 0
        start[dead] = -np.linalg.lstsq(y[dead][:, dead].toarray(), y[dead] @ start, rcond=None)[0]
        found = self.states(
            [removed], start=interleaved(start)[None], power=self.nominal_power[None], tol=tol,
            keep=len(out.factors) > 0,
        )  # fmt: skip
        if not self._as_the_intact_grid(found, tol)[0]:
            return False
        out.replace(np.array([t]), found, np.array([True]))
        return True

    def _topology(
        self, removed: Removed, cut_off: Int, apart: Int, out: States, t: int, operating: bool
    ) -> Topology:
        return Topology(
            removed=removed,
            cut_off=cut_off,
            apart=apart,
            point=self._point(out, t),
            mismatch=float(out.mismatch[t]) / self.unit,
            steps=int(out.steps[t]),
            growth=float(out.growth[t]),
            orientation=float(out.orientation[t]),
            operating=operating,
        )

    def point_at(self, removed: Removed, voltage: Real) -> NominalPoint:
        """Another point of a topology, with the factors there."""
        at = self.states(
            [removed], start=voltage[None], power=self.nominal_power[None], tol=np.inf, max_steps=0,
            keep=True,
        )  # fmt: skip
        return self._point(at, 0)

    def _point(self, out: States, t: int) -> NominalPoint:
        a = self.symbolic.num_lower
        b = a + self.symbolic.num_diagonal
        factors = out.factors[t].astype(self.solving.dtype)
        return NominalPoint(
            out.admittance[t], out.voltage[t], out.power[t], factors[:a], factors[a:b], factors[b:]
        )
