"""Rows whose controls are where they want to be, as an outer loop around the power flow.

Of every row all controls outside their band move, the row is solved again, and so on until none
moves: the rule of pandapower's controllers. Rows at the same positions share a grid with the
admittances of these. Controls of a lower level are done before those of a higher one.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.grid.controls import Control, alike, at_positions
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.solution import BatchSolution, RowStatus
from gridshift.grid.supplied import supplied_part

MOST_ROUNDS = 60
"""Moves of a row at each level; those that would go on are unsettled."""
FLATTEST, STEEPEST = 0.02, 1.5
"""A secant counts if it is within these multiples of the slope that the branch alone would have."""
DEGREE = 1e-3
"""Change of an angle for that slope, degrees."""

Solving = Callable[[Network, LoadScenarios], BatchSolution]


def solve_controlled(network: Network, loads: LoadScenarios, solve_rows: Solving) -> BatchSolution:
    """Rows whose controls are where they want to be.

    Args:
        network: a topology that leaves no bus without supply.
        loads: demands, R rows, checked.
        solve_rows: the power flow of (network, loads).
    """
    place = np.tile(_start(network), (loads.num_rows, 1))
    found = solve_rows(network, loads)
    for level in sorted({control.level for control in network.controls}):
        own = np.array([c for c, one in enumerate(network.controls) if one.level == level])
        wishes = _Wishes(network, own, loads.num_rows)
        moving = np.flatnonzero(found.solved)
        for _ in range(MOST_ROUNDS):
            moving, wanted = wishes.of(found.voltage, place, moving)
            if not len(moving):
                break
            place[np.ix_(moving, own)] = wanted
            for rows, grid in _alike(network, place, moving):
                found.take_rows(rows, solve_rows(grid, loads.rows(rows)))
            moving = moving[found.solved[moving]]
        moving, _ = wishes.of(found.voltage, place, moving)
        _fail(found, moving)
    called = [one.called(place[:, c]) for c, one in enumerate(network.controls)]
    return replace(found, positions=np.array(called).reshape(-1, loads.num_rows).T)


def positions_of_rest(network: Network, loads: LoadScenarios, solve_part: Solving) -> Real:
    """(R, C) positions in a topology that cuts buses off: those of what is left, NaN elsewhere.

    Args:
        network: the topology.
        loads: demands, R rows.
        solve_part: the power flow with controls of (network, loads).
    """
    part = supplied_part(network)
    positions = np.full((loads.num_rows, len(network.controls)), np.nan)
    kept = {one.label: c for c, one in enumerate(part.network.controls)}
    if kept and part.network.num_buses > len(part.network.slack):
        found = solve_part(part.network, loads.of_loads(part.loads))
        assert found.positions is not None
        for c, one in enumerate(network.controls):
            if one.label in kept:
                positions[:, c] = found.positions[:, kept[one.label]]
    return positions


def at_rest(network: Network, voltage: Complex) -> Bool:
    """(n,) whether no control moves from its start at voltages (n, B)."""
    rows, own = np.arange(len(voltage)), np.arange(len(network.controls))
    place = np.tile(_start(network), (len(rows), 1))
    moving, _ = _Wishes(network, own, len(rows)).of(voltage, place, rows)
    resting = np.ones(len(rows), bool)
    resting[moving] = False
    return resting


def _start(network: Network) -> Real:
    return np.array([control.start for control in network.controls], float)


class _Wishes:
    """Where some controls want to be, round after round."""

    def __init__(self, network: Network, own: Int, num_rows: int):
        self._network, self._controls = network, [network.controls[c] for c in own.tolist()]
        self._own = own
        self._last = np.full((2, len(own), num_rows), np.nan)
        """Positions and what was measured there, a round ago."""

    def of(self, voltage: Complex, place: Real, rows: Int) -> tuple[Int, Real]:
        """Of these rows those of which a control moves, and where to (n, controls)."""
        at = place[np.ix_(rows, self._own)]
        wanted = at.copy()
        there = voltage if len(rows) == len(voltage) else voltage[rows]
        for k, one in enumerate(self._controls):
            if not one.on(self._network) or not len(rows):
                continue
            measured = one.measured(self._network, there, at[:, k])
            above = one.above(measured)
            if one.continuous is None:
                to = at[:, k] - one.raises * one.stride * np.sign(above)
            elif one.continuous.gain is None:
                slope = self._slope(k, one, there, at[:, k], measured, rows)
                to = at[:, k] - above / slope
            else:
                off = one.continuous.gain * (measured - one.continuous.aim)
                to = at[:, k] + np.where(above != 0, off, 0.0)
            wanted[:, k] = np.clip(to, *one.range)
        moved = (wanted != at).any(1)
        return rows[moved], wanted[moved]

    def _slope(
        self, k: int, one: Control, voltage: Complex, at: Real, measured: Real, rows: Int
    ) -> Real:
        """(n,) by the last two rounds, or what the branch would do if voltages stayed."""
        branch = one.branches[0]
        start, end = self._network.branch_from[branch], self._network.branch_to[branch]
        changed = one.flow(voltage[:, start], voltage[:, end], at + DEGREE)
        alone = (changed - measured) / DEGREE
        with np.errstate(all="ignore"):
            before = self._last[:, k, rows]
            secant = (measured - before[1]) / (at - before[0])
            usable = (secant / alone > FLATTEST) & (secant / alone < STEEPEST)
        self._last[:, k, rows] = at, measured
        return np.where(usable, secant, alone)


def _alike(network: Network, place: Real, rows: Int) -> Iterator[tuple[Int, Network]]:
    """Rows that are at the same positions, with their grid, which is made when it is its turn."""
    for group in alike(place[rows]):
        same = rows[group]
        yield same, at_positions(network, tuple(place[same[0]].tolist()))


def _fail(found: BatchSolution, rows: Int) -> None:
    found.status[rows] = RowStatus.UNSETTLED_CONTROLS
    for name in ("voltage", "powers", "loading", "gen_p"):
        whole = getattr(found, name)
        if whole is not None:
            whole[rows] = np.nan
    if found.at_limit is not None:
        found.at_limit[rows] = 0
