"""Tap changers and shunts that move in steps to hold a voltage, row by row.

All controls of a row whose voltage is outside their band move by one step, the row is solved again,
and so on until none moves: the rule of pandapower's controllers. Rows at the same positions share a
grid with the admittances of these. Controls of a lower level are done before those of a higher one.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.solution import BatchSolution, RowStatus

MOST_ROUNDS = 60
"""Moves of a row at each level; those that would go on are unsettled."""
MOST_GRIDS = 64
"""Grids at other positions that are kept for the next rows."""


class StepControl(NamedTuple):
    """An element with positions 0, 1, ... and a band of voltage that it moves to."""

    label: str
    bus: int
    """Whose voltage it watches."""
    low: float
    """Band of the magnitude, p.u.; at its ends nothing moves."""
    high: float
    start: int
    """Position in the source."""
    raises: int
    """1 if a higher position raises the voltage, -1 if it lowers it."""
    first: float
    """What the source calls position 0."""
    by: float
    """And by how much the next one is higher."""
    admittance: tuple[tuple[float, ...], ...]
    """Of each position: two-port admittances (8,) of a branch, or (2,) to ground; p.u., real and
    imaginary parts."""
    branch: int = -1
    """Whose admittances they are; -1 for a shunt."""
    shunt_bus: int = -1
    level: int = 0
    stride: int = 1
    """Positions that a move goes."""

    @classmethod
    def of(cls, values: Sequence) -> "StepControl":
        """Of its values in order, as JSON has them."""
        made = cls(*values)
        return made._replace(admittance=tuple(tuple(y) for y in made.admittance))

    def called(self, position: Int) -> Real:
        """What the source calls positions."""
        return np.asarray(self.first + self.by * position, float)

    def on(self, network: Network) -> bool:
        """Whether it is in service in this topology."""
        return self.branch < 0 or bool(network.branch_in_service[self.branch])


def solve_controlled(
    network: Network, loads: LoadScenarios, solve_rows: Callable[..., BatchSolution]
) -> BatchSolution:
    """Rows whose controls are where they want to be."""
    start = np.array([control.start for control in network.controls], np.int64)
    place = np.tile(start, (loads.num_rows, 1))
    found = solve_rows(network, loads)
    for level in sorted({control.level for control in network.controls}):
        own = np.array([c for c, one in enumerate(network.controls) if one.level == level])
        moving = np.flatnonzero(found.solved)
        for _ in range(MOST_ROUNDS):
            moving, wanted = _moves(network, own, found, place, moving)
            if not len(moving):
                break
            place[np.ix_(moving, own)] = wanted
            for rows, grid in _alike(network, place, moving):
                found.take_rows(rows, solve_rows(grid, loads.rows(rows)))
            moving = moving[found.solved[moving]]
        moving, _ = _moves(network, own, found, place, moving)
        _fail(found, moving)
    called = [one.called(place[:, c]) for c, one in enumerate(network.controls)]
    return replace(found, positions=np.array(called).reshape(-1, loads.num_rows).T)


def _moves(
    network: Network, own: Int, found: BatchSolution, place: Int, rows: Int
) -> tuple[Int, Int]:
    """Of these rows those of which a control moves, and where to (n, controls)."""
    wanted = place[np.ix_(rows, own)]
    for k, one in enumerate(network.controls[c] for c in own.tolist()):
        if one.on(network):
            v = np.abs(found.voltage[rows, one.bus])
            up = (v < one.low).astype(np.int64) - (v > one.high)
            to = wanted[:, k] + one.raises * one.stride * up
            wanted[:, k] = np.clip(to, 0, len(one.admittance) - 1)
    moved = (wanted != place[np.ix_(rows, own)]).any(1)
    return rows[moved], wanted[moved]


def _alike(network: Network, place: Int, rows: Int) -> Iterator[tuple[Int, Network]]:
    """Rows that are at the same positions, with their grid, which is made when it is its turn."""
    positions, group = np.unique(place[rows], axis=0, return_inverse=True)
    for g, at in enumerate(positions.tolist()):
        yield rows[group.ravel() == g], at_positions(network, tuple(at))


def at_positions(network: Network, positions: tuple[int, ...]) -> Network:
    """The topology with its controls there."""
    intact = network.intact
    if positions == tuple(control.start for control in network.controls):
        return network
    known = _GRIDS.setdefault(intact, {})
    if positions not in known:
        y, shunt = intact.branch_y.copy(), intact.bus_shunt.copy()
        for one, position in zip(intact.controls, positions, strict=True):
            own = np.array(one.admittance).view(complex)
            if one.branch >= 0:
                y[one.branch] = own[position]
            else:
                shunt[one.shunt_bus] += own[position, 0] - own[one.start, 0]
        if len(known) >= MOST_GRIDS:
            known.pop(next(iter(known)))
        known[positions] = replace(intact, branch_y=y, bus_shunt=shunt, outage_of=None)
    grid = known[positions]
    if network is intact:
        return grid
    return replace(
        grid, branch_in_service=network.branch_in_service, outage_of=grid, outaged=network.outaged
    )


def grid_of_row(solution: BatchSolution, row: int) -> Network:
    """The topology of a solution with its controls where they are in this row."""
    if solution.positions is None:
        return solution.network
    network, at = solution.network, solution.positions[row]
    numbers = [
        round((called - one.first) / one.by)
        for called, one in zip(at.tolist(), network.controls, strict=True)
    ]
    return at_positions(network, tuple(numbers))


def of_part(network: Network, bus: Int, branch: Int) -> tuple[StepControl, ...]:
    """The controls of a part of the grid, with the new numbers of buses and branches, -1 for none.

    A control goes with its element and with the bus that it watches.
    """
    kept = []
    for one in network.controls:
        watched = int(bus[one.bus])
        place = int(branch[one.branch] if one.branch >= 0 else bus[one.shunt_bus])
        if watched >= 0 and place >= 0:
            where = {"branch": place} if one.branch >= 0 else {"shunt_bus": place}
            kept.append(one._replace(bus=watched, **where))
    return tuple(kept)


def _fail(found: BatchSolution, rows: Int) -> None:
    found.status[rows] = RowStatus.UNSETTLED_CONTROLS
    for name in ("voltage", "powers", "loading", "gen_p"):
        whole = getattr(found, name)
        if whole is not None:
            whole[rows] = np.nan
    if found.at_limit is not None:
        found.at_limit[rows] = 0


_GRIDS: "weakref.WeakKeyDictionary[Network, dict[tuple[int, ...], Network]]"
_GRIDS = weakref.WeakKeyDictionary()
