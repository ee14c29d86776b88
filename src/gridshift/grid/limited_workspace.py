"""Arrays that the kernels with reactive limits read and write; see `workspace`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.workspace import aligned


class LimitedBuses(NamedTuple):
    """K buses whose generators have reactive limits, and when they change their kind."""

    bus: NDArray[np.int32]
    node: NDArray[np.int32]
    row: NDArray[np.int32]
    """Of the mismatch, `Symbolic.row_ptr`."""
    row_of: NDArray[np.int32]
    """The same of every node."""
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

    @classmethod
    def empty(cls, count: int, num_buses: int, num_limited: int) -> "LimitedStates":
        """Room for `count` states."""
        return cls(
            voltage=np.empty((count, 2 * num_buses)),
            mismatch=np.full(count, np.inf),
            steps=np.zeros(count, np.int64),
            growth=np.zeros(count),
            orientation=np.zeros(count),
            settled=np.zeros(count, bool),
            retained=np.zeros(count),
            side=np.empty((count, num_limited)),
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
        )


class Sensitivity(NamedTuple):
    """How set-points and reactive power of a topology's K buses with limits go together."""

    angle: Real
    """Derivative of the reactive power at PV rows by the angle of each entry's bus."""
    magnitude: Real
    """The same by its relative magnitude."""
    active: Real
    """Derivative of the active power at each entry's bus by the row's relative magnitude."""
    reactive: Real
    """The same of its reactive power."""
    matrix: Real
    """(K, K) reactive power by relative set-points, everything else in balance, p.u."""


class MovedWork(NamedTuple):
    """Workspace of one block of lanes whose buses at limits have set-points of their own."""

    set_point: Real
    """(B, W)"""
    balance: Real
    """(W,) largest mismatch of what every row specifies."""
    short: Real
    """(K W) what is missing to the limit."""
    at: NDArray[np.int32]
    """(W, A) buses at limits of each lane, as numbers of buses with limits."""
    count: Int
    """(W,) how many they are."""
    factors: Real
    """(W, A, A) triangular factors of their part of the sensitivities."""
    step: Real
    """(A,) relative steps of the set-points of one lane."""

    @classmethod
    def new(cls, width: int, num_buses: int, num_limited: int, most: int) -> "MovedWork":
        """A workspace of `width` lanes, for at most `most` buses at limits in each."""
        return cls(
            set_point=aligned((num_buses, width)),
            balance=aligned(width),
            short=aligned(num_limited * width),
            at=np.zeros((width, most), np.int32),
            count=np.zeros(width, np.int64),
            factors=np.zeros((width, most, most)),
            step=np.zeros(most),
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
