"""Elements that move to hold a voltage or a flow: tap changers, shunts, phase shifters.

What they are, what they want at given voltages, and the grid with them at given positions; rows are
solved with them in `controlled_rows`.
"""

import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.network import Network

KEPT_BUSES = 1 << 17
"""Buses of grids at other positions that are kept for the next rows: 1000 grids of case118."""
MOVE_ON_REQUEST = "moves where controls are asked for (solve and screen, --controls)"
FLOW_TOLERANCE = 1e-6
"""By how much a flow may be outside its band and count as inside, p.u."""


class Continuous(NamedTuple):
    """A tap changer or a phase shifter whose position may be any number.

    The winding at one end has `1 + (position - neutral) * step` turns, complex if it shifts the
    phase; without a step, the position is its angle in degrees.
    """

    least: float
    most: float
    end: int
    """Of the branch: 0 for its from end, 1 for its to end."""
    neutral: float = 0.0
    step_real: float = 0.0
    step_imag: float = 0.0
    inverse: bool = False
    """Whether it has the inverse of these turns."""
    aim: float = 1.0
    """Voltage that it goes to when it is outside its band."""
    gain: float | None = None
    """Change of the position for a voltage of 1 p.u. above the aim; None: by secant steps to the
    nearer end of the band."""

    def turns(self, position: Real | float) -> Complex:
        """Of the winding, relative to neutral."""
        step = complex(self.step_real, self.step_imag)
        if not step:
            return np.asarray(np.exp(1j * np.deg2rad(position)), np.complex128)
        turns = np.asarray(1 + (position - self.neutral) * step, np.complex128)
        return 1 / turns if self.inverse else turns


class Control(NamedTuple):
    """An element with positions 0, 1, ..., or a continuous one, and a band that it moves to."""

    label: str
    bus: int
    """Whose voltage it watches; -1: the active power into its first branch at the from end."""
    low: float
    """Band of the magnitude or of the power, p.u.; at its ends nothing moves."""
    high: float
    start: float
    """Position in the source."""
    raises: int
    """1 if a higher position raises what it watches, -1 if it lowers it."""
    first: float
    """What the source calls position 0."""
    by: float
    """And by how much the next one is higher."""
    admittance: tuple[tuple[float, ...], ...]
    """Of each position: two-port admittances (8 E,) of its branches, or (2,) to ground; p.u., real
    and imaginary parts. Of a continuous one at its start."""
    branches: tuple[int, ...] = ()
    """Whose admittances they are; none for a shunt."""
    shunt_bus: int = -1
    level: int = 0
    stride: int = 1
    """Positions that a move goes."""
    continuous: Continuous | None = None

    @classmethod
    def of(cls, values: Sequence) -> "Control":
        """Of its values in order, as JSON has them."""
        made = cls(*values)
        continuous = made.continuous and Continuous(*made.continuous)
        return made._replace(
            admittance=tuple(tuple(y) for y in made.admittance), branches=tuple(made.branches),
            continuous=continuous,
        )  # fmt: skip

    @property
    def range(self) -> tuple[float, float]:
        """First and last position."""
        if self.continuous is not None:
            return self.continuous.least, self.continuous.most
        return 0.0, len(self.admittance) - 1.0

    def called(self, position: Real | float) -> Real:
        """What the source calls positions."""
        return self.first + self.by * np.asarray(position, float)

    def on(self, network: Network) -> bool:
        """Whether it is in service in this topology."""
        return all(bool(network.branch_in_service[b]) for b in self.branches)

    def two_ports(self, position: Real) -> Complex:
        """(n, E, 4) admittances of its branches at positions (n,)."""
        if self.continuous is None:
            known = np.array([self.admittance[int(at)] for at in position])
            return known.view(complex).reshape(len(known), -1, 4)
        y, winding = np.array(self.admittance[0]).view(complex), self.continuous
        turns = winding.turns(position) / winding.turns(self.start)
        ff, ft, tf, tt = np.tile(y, (len(turns), 1)).T
        square = turns.real**2 + turns.imag**2
        if winding.end == 0:
            found = ff / square, ft / turns.conj(), tf / turns, tt
        else:
            found = ff, ft / turns, tf / turns.conj(), tt / square
        return np.stack(found, 1)[:, None]

    def measured(self, network: Network, voltage: Complex, position: Real) -> Real:
        """(n,) what it watches, p.u., at voltages (n, B) and positions (n,)."""
        if self.bus >= 0:
            return np.abs(voltage[:, self.bus])
        branch = self.branches[0]
        start, end = network.branch_from[branch], network.branch_to[branch]
        return self.flow(voltage[:, start], voltage[:, end], position)

    def flow(self, start: Complex, end: Complex, position: Real) -> Real:
        """(n,) active power into its first branch at the from end, with voltages of its ends."""
        y = self.two_ports(position)[:, 0]
        return (start * (y[:, 0] * start + y[:, 1] * end).conj()).real

    def above(self, measured: Real) -> Real:
        """(n,) by how much that is above the band, negative below it, 0 inside."""
        slack = FLOW_TOLERANCE if self.bus < 0 and self.continuous is not None else 0.0
        over = np.where(measured > self.high + slack, measured - self.high, 0.0)
        return np.where(measured < self.low - slack, measured - self.low, over)


class ControlCounts(NamedTuple):
    """What became of C controls in many rows; numbers of rows."""

    moved: Int
    """(C,) in which a control is not where it was in the source."""
    at_end: Int
    """(C,) in which it is at its first or its last position."""
    any_moved: int
    unsettled: int
    """Rows without a solution, as controls move without end."""

    @classmethod
    def of(cls, network: Network, positions: Real, *, unsettled: int = 0) -> "ControlCounts":
        """Of positions (n, C) of solved rows, as the source counts."""
        moved, at_end = np.zeros((2, *positions.shape), bool)
        for c, one in enumerate(network.controls):
            moved[:, c] = positions[:, c] != one.called(one.start)
            at_end[:, c] = np.isin(positions[:, c], [one.called(end) for end in one.range])
        return cls(moved.sum(0), at_end.sum(0), int(moved.any(1).sum()), unsettled)

    @classmethod
    def at_rest(cls, network: Network, num_rows: int) -> "ControlCounts":
        """Of solved rows in which nothing has moved."""
        start = [one.called(one.start) for one in network.controls]
        one = cls.of(network, np.array(start, float).reshape(1, -1))
        return cls(one.moved, one.at_end * num_rows, 0, 0)

    def plus(self, other: "ControlCounts") -> "ControlCounts":
        """These rows and others."""
        return ControlCounts(
            self.moved + other.moved, self.at_end + other.at_end,
            self.any_moved + other.any_moved, self.unsettled + other.unsettled,
        )  # fmt: skip

    def stored(self) -> dict[str, np.ndarray]:
        """Everything as arrays; `of_stored` makes it again."""
        return {f"controls_{name}": np.array(value) for name, value in self._asdict().items()}

    @classmethod
    def of_stored(cls, values: Any) -> "ControlCounts":
        """Of arrays that `stored` gave.

        Raises:
            KeyError: they are something else.
        """
        moved, at_end, *numbers = (values[f"controls_{name}"] for name in cls._fields)
        return cls(moved, at_end, *(int(number) for number in numbers))


def alike(values: Real) -> Iterator[Int]:
    """Places of rows (n, C) of the same values, group by group."""
    if len(values):
        _, group = np.unique(values, axis=0, return_inverse=True)
        for g in range(group.max() + 1):
            yield np.flatnonzero(group.ravel() == g)


def at_positions(network: Network, positions: tuple[float, ...]) -> Network:
    """The topology with its controls there."""
    intact = network.intact
    if positions == tuple(control.start for control in intact.controls):
        return network
    keep = all(one.continuous is None for one in intact.controls)
    with _LOCK:
        known = _GRIDS.setdefault(intact, {})
        grid = known.get(positions)
    if grid is None:
        grid = _moved(intact, positions)
        with _LOCK:
            if keep:
                while len(known) * intact.num_buses >= KEPT_BUSES:
                    known.pop(next(iter(known)))
                grid = known.setdefault(positions, grid)
    if network is intact:
        return grid
    return replace(
        grid, branch_in_service=network.branch_in_service, outage_of=grid, outaged=network.outaged
    )


def _moved(intact: Network, positions: tuple[float, ...]) -> Network:
    """The grid as read with its controls there, whose engine takes over what stays the same."""
    from gridshift.grid.engine import Engine  # compiled code, which reading doesn't need

    y, shunt = intact.branch_y.copy(), intact.bus_shunt.copy()
    for one, position in zip(intact.controls, positions, strict=True):
        if one.branches:
            y[list(one.branches)] = one.two_ports(np.array([position]))[0]
        else:
            now, before = (complex(*one.admittance[int(at)]) for at in (position, one.start))
            shunt[one.shunt_bus] += now - before
    grid = replace(intact, branch_y=y, bus_shunt=shunt, outage_of=None)
    Engine.like(grid, intact)
    return grid


def grid_of_row(solution: Any, row: int) -> Network:
    """The topology of a solution with its controls where they are in this row.

    Args:
        solution: a `BatchSolution`.
        row: which row.
    """
    if solution.positions is None:
        return solution.network
    network = solution.network
    at = [
        one.start if np.isnan(called)
        else called if one.continuous is not None
        else float(round((called - one.first) / one.by))
        for called, one in zip(solution.positions[row].tolist(), network.controls, strict=True)
    ]  # fmt: skip
    return at_positions(network, tuple(at))


def of_part(network: Network, bus: Int, branch: Int) -> tuple[Control, ...]:
    """The controls of a part of the grid, with the new numbers of buses and branches, -1 for none.

    A control goes with its element and with the bus that it watches.
    """
    kept = []
    for one in network.controls:
        watched = int(bus[one.bus]) if one.bus >= 0 else 0
        branches = tuple(int(branch[b]) for b in one.branches)
        shunt = int(bus[one.shunt_bus]) if one.shunt_bus >= 0 else -1
        if min(watched, *branches, 0 if one.branches else shunt) >= 0:
            watched = watched if one.bus >= 0 else -1
            kept.append(one._replace(bus=watched, branches=branches, shunt_bus=shunt))
    return tuple(kept)


_LOCK = threading.Lock()
_GRIDS: "weakref.WeakKeyDictionary[Network, dict[tuple[float, ...], Network]]"
_GRIDS = weakref.WeakKeyDictionary()
