"""Arrays that the kernel of a distributed slack reads and writes; see `workspace`."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Int, Real
from gridshift.grid.workspace import aligned


class Sharing(NamedTuple):
    """K generators that share the imbalance t of a row, and the balance of the slack bus.

    Generator k gives min(up_weight f(t), up_room) above its schedule for t > 0, and as much below
    it by the other two for t < 0. The common factor f is piecewise linear and convex, so it is the
    largest of some lines.
    """

    bus: NDArray[np.int32]
    unknown: NDArray[np.int32]
    """(K,) of the angle at the bus; -1 at the slack bus."""
    constant: NDArray[np.int32]
    """(K + 1,) where each bus's constant part of active power is among specified powers, and the
    slack bus's."""
    up_weight: Real
    up_room: Real
    """(K,) p.u., infinite without a limit."""
    down_weight: Real
    down_room: Real
    up_lines: Real
    """(2 J,) value at 0 and slope of each line, alternating."""
    down_lines: Real
    slack: int
    entry_bus: NDArray[np.int32]
    """(n,) columns of the slack bus's row of the admittance matrix."""
    entry_unknown: NDArray[np.int32]
    """(n,) of the angle at each of these buses; -1 at the slack bus itself."""
    entry_size: NDArray[np.int32]
    """(n,) how many unknowns each has."""
    admittance: Real
    """(2 n,)"""
    border: np.ndarray
    """(N,) by how much the slack bus must give more for what is missing at each bus, negative: the
    row of the slack bus in the Jacobian times the inverse of the rest. Empty without a point, as
    Newton's method needs none."""
    step: float
    """By how much the imbalance is moved for what is missing at the slack bus, all else balanced;
    about 1."""


class SharedWork(NamedTuple):
    """Workspace of one block of lanes with a distributed slack."""

    imbalance: Real
    """(W,)"""
    given: Real
    """(K + 1, W) what each generator gives above its schedule, then what is left to the slack."""
    off: Real
    """(W,) what is missing at the slack bus."""
    slope: Real
    """(K + 1, W) how `given` grows with the imbalance."""
    along: Real
    """(N, W) how unknowns move with it; empty for chord steps."""

    @classmethod
    def new(cls, width: int, num_shared: int, num_unknowns: int = 0) -> "SharedWork":
        """A workspace of `width` lanes for K generators, of Newton's method for N unknowns."""
        given, slope = (aligned((num_shared + 1) * width) for _ in range(2))
        return cls(aligned(width), given, aligned(width), slope, aligned(num_unknowns * width))


class SharedRows(NamedTuple):
    """What chord steps made of R rows; see `Rows`."""

    voltage: Real
    mismatch: Real
    """(R,) the slack bus's share included."""
    steps: Int
    retained: Real
    excess: Real
    imbalance: Real
    """(R,) what generators share, p.u."""

    @classmethod
    def empty(cls, rows: int, num_buses: int, imbalance: Real, *, excess: bool) -> "SharedRows":
        """Room for R rows, none of them solved, with the imbalances that they start from."""
        return cls(
            voltage=np.empty((rows, 2 * num_buses)),
            mismatch=np.full(rows, np.inf),
            steps=np.zeros(rows, np.int64),
            retained=np.zeros(rows),
            excess=np.full(rows if excess else 0, np.inf),
            imbalance=np.array(imbalance, float),
        )
