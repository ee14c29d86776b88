"""Arrays that the kernels with reactive limits read and write; see `workspace`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.workspace import aligned, room_for_states


class LimitedBuses(NamedTuple):
    """K buses whose generators have reactive limits, and when they change their kind."""

    bus: NDArray[np.int32]
    node: NDArray[np.int32]
    row: NDArray[np.int32]
    """Of the mismatch, `Symbolic.row_ptr`."""
    row_of: NDArray[np.int32]
    """The same of every node."""
    constant: NDArray[np.int32]
    """Where each bus's constant part of reactive power is among specified powers."""
    number: NDArray[np.int32]
    """Of the bus with limits that each row belongs to, -1 for other rows."""
    at_point: Real
    """(K,) limit that the factors take the bus to be at, p.u.; 0 where they take it to be held."""
    range: Real
    """(2 K,) least and most reactive power of the generators, p.u., alternating."""
    apart: float
    """Distance of a magnitude from its set-point, as a share, that tells the side at the start."""
    near: float
    """Mismatch, p.u., from which on kinds are decided."""
    together: int
    """Rounds in which all buses change kind that are on the wrong side; then one in each."""
    most_rounds: int


class LimitedStates(NamedTuple):
    """What Newton's method with changing kinds made of n states; see `States`."""

    voltage: Real
    mismatch: Real
    steps: Int
    growth: Real
    orientation: Real
    settled: Bool
    """(n,) whether every bus is on the right side."""
    retained: Real
    """(n,) as in `Rows`."""
    side: Real
    """(n, K) 1 at the upper limit, -1 at the lower one, 0 held at the set-point."""
    imbalance: Real
    """(n,) what generators share, p.u.; empty where the slack bus gives it."""

    @classmethod
    def empty(
        cls, count: int, num_buses: int, num_limited: int, imbalance: Real | None = None
    ) -> "LimitedStates":
        """Room for `count` states, with the imbalances that they start from, if shared."""
        return cls(
            **room_for_states(count, num_buses),
            settled=np.zeros(count, bool),
            retained=np.zeros(count),
            side=np.zeros((count, num_limited)),
            imbalance=np.zeros(0) if imbalance is None else np.array(imbalance, float),
        )


class HeldWork(NamedTuple):
    """Workspace of one block of lanes for K buses with limits, lanes last."""

    side: Real
    fixed: Real
    """1 where the bus is at a limit, 0 where it is held at its set-point."""
    limit: Real
    """That limit, 0 where it is held."""
    given: Real
    """Reactive power of its generators."""
    range: Real
    wrong: Real
    """How far it is off its side; negative where it isn't."""
    worst: Real
    """(W,) the largest of these."""
    rounds: Int
    """(W,) in which buses have changed their kind."""
    changed: Bool
    """(W,) whether one has in this round."""
    settled: Bool
    stalls: Int
    """(W,) Newton steps with these kinds that have not halved the mismatch."""

    @classmethod
    def new(cls, width: int, num_limited: int) -> "HeldWork":
        """A workspace of `width` lanes."""
        size = num_limited * width
        return cls(
            side=aligned(size),
            fixed=aligned(size),
            limit=aligned(size),
            given=aligned(size),
            range=aligned(2 * size),
            wrong=aligned(size),
            worst=aligned(width),
            rounds=np.zeros(width, np.int64),
            changed=np.zeros(width, bool),
            settled=np.zeros(width, bool),
            stalls=np.zeros(width, np.int64),
        )


class Sensitivity(NamedTuple):
    """How moved quantities of K buses with limits and their targets go together, at one point."""

    angle: Real
    """Derivative of the reactive power at PV rows by the angle of each entry's bus."""
    magnitude: Real
    """The same by its relative magnitude."""
    active: Real
    """Derivative of the active power at each entry's bus by the row's relative magnitude."""
    reactive: Real
    """The same of its reactive power."""
    matrix: Real
    """(K, K) everything else in balance, p.u. Where the point holds a bus: its reactive power, by
    its relative set-point; where it has it at a limit: its relative magnitude, by its power."""


class MovedWork(NamedTuple):
    """Workspace of one block of lanes whose buses with limits differ from the point's."""

    set_point: Real
    """(B, W)"""
    power: Real
    """(K W) specified reactive power of generators where the point has them at a limit."""
    at: NDArray[np.int32]
    """(W, A) moved buses of each lane, as numbers of buses with limits."""
    count: Int
    """(W,) how many they are."""
    age: Int
    """(W,) steps since kinds have changed."""
    factors: Real
    """(W, A, A) triangular factors of their part of the sensitivities."""
    short: Real
    """(W, A) what is missing to their targets."""
    step: Real
    """(W, A) by how much they move."""
    chord: Real
    """(W, A) the same in the chord step before, before acceleration."""
    taken: Real
    """(W, A) and after it."""
    mix: np.ndarray
    """(W,) factor of the acceleration."""
    change: np.ndarray
    """As `ChordWork.residual`: what moving changes of the power at other buses."""

    @classmethod
    def new(
        cls, width: int, single: np.dtype, num_unknowns: int, num_buses: int, num_limited: int,
        most: int,
    ) -> "MovedWork":  # fmt: skip
        """A workspace of `width` lanes, for at most `most` moved buses in each."""
        short, step, chord, taken = np.zeros((4, width, most))
        return cls(
            set_point=aligned((num_buses, width)),
            power=aligned(num_limited * width),
            at=np.zeros((width, most), np.int32),
            count=np.zeros(width, np.int64),
            age=np.zeros(width, np.int64),
            factors=np.zeros((width, most, most)),
            short=short,
            step=step,
            chord=chord,
            taken=taken,
            mix=aligned(width, single),
            change=aligned(num_unknowns * width, single),
        )


class Kept(NamedTuple):
    """What became of n rows whose limits are kept."""

    voltage: Real
    """(n, 2 B)"""
    mismatch: Real
    steps: Int
    growth: Real
    reached: Bool
    """(n,) whether this is a solution, and the operating one."""
    unsettled: Bool
    """(n,) rows without one since kinds of buses did not settle."""
    side: NDArray[np.int8]
    """(n, B) 1 at the upper limit, -1 at the lower one."""
    imbalance: Real
    """(n,) or empty, as in `LimitedStates`."""
