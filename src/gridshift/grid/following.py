"""The operating root: followed from a state known to be one, as the powers move to those asked for.

Power flow has several roots, and Newton's method may end in any of them. The operating one is that
which a grid reaches from light load as its demand rises. Along the way the Jacobian never becomes
singular: where it does, at the nose of the voltage curve, the operating root meets a low-voltage
root and both end. So a step along the way is accepted if Newton's method converges, the sign of the
Jacobian's determinant is the same, and no voltage has leapt. Source: Kundur, Power System Stability
and Control, chapter 14; Ajjarapu and Christy, The continuation power flow, 1992.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from gridshift.arrays import Bool, Int, Real

NEWTON_STEPS = 16
"""Newton steps at most of one step along the way: near the nose each only halves the distance."""
STRETCH, TURN = 0.25, 1.0
"""Largest change of a voltage in one step: of its magnitude as a fraction, of its angle in rad."""
SMALLEST = 1 / 32
"""Smallest step, as a fraction of the way; a shorter one is taken for the end of the curve."""


class Origin(NamedTuple):
    """A state on the operating branch."""

    power: Real
    """(2 B,) specified injections."""
    voltage: Real
    """(2 B,)"""
    orientation: float
    """Sign of the determinant of the Jacobian."""


class Corrected(Protocol):
    """What a corrector returns of n states."""

    @property
    def voltage(self) -> Real:
        """(n, 2 B)."""
        ...

    @property
    def mismatch(self) -> Real:
        """(n,) largest, p.u."""
        ...

    @property
    def steps(self) -> Int:
        """(n,) Newton steps taken."""
        ...

    @property
    def growth(self) -> Real:
        """(n,) largest multiplier of the last factorisation."""
        ...

    @property
    def orientation(self) -> Real:
        """(n,) sign of the determinant of the Jacobian."""
        ...


Correct = Callable[[Real, Real], Corrected]
"""Newton's method for powers (n, 2 B) from voltages (n, 2 B)."""


class Followed(NamedTuple):
    """Where n ways ended."""

    voltage: Real
    """(n, 2 B) the last state on the operating branch."""
    reached: Bool
    """(n,) whether that is at the powers asked for."""
    mismatch: Real
    """(n,) mismatch of the last attempt at the powers asked for, on whichever branch it ended."""
    growth: Real
    """(n,) largest multiplier of the last factorisation of that attempt."""
    steps: Int
    """(n,) Newton steps in all."""


def follow(correct: Correct, origin: Origin, target: Real, *, tol: float) -> Followed:
    """Follow the operating root from one state to each of n powers (n, 2 B).

    The first attempt goes all the way; a step that fails is halved, two that succeed in a row make
    the next one longer. Ways don't depend on each other.
    """
    n = len(target)
    voltage = np.tile(origin.voltage, (n, 1))
    fraction, step = np.zeros(n), np.ones(n)
    eager = np.zeros(n, bool)
    mismatch, growth, steps = np.full(n, np.inf), np.zeros(n), np.zeros(n, np.int64)
    going = np.arange(n)
    while len(going):
        aim = np.minimum(fraction[going] + step[going], 1.0)
        whole = aim == 1.0
        power = origin.power + aim[:, None] * (target[going] - origin.power)
        power[whole] = target[going[whole]]
        found = correct(power, voltage[going])
        good = (found.mismatch <= tol) & (found.orientation == origin.orientation)
        good &= _near(voltage[going], found.voltage)
        steps[going] += found.steps
        mismatch[going[whole]] = found.mismatch[whole]
        growth[going[whole]] = found.growth[whole]
        ahead, back = going[good], going[~good]
        voltage[ahead], fraction[ahead] = found.voltage[good], aim[good]
        step[ahead] *= np.where(eager[ahead], 2.0, 1.0)
        eager[ahead], eager[back] = True, False
        step[back] *= 0.5
        going = going[(fraction[going] < 1) & (step[going] >= SMALLEST)]
    return Followed(voltage, fraction == 1, mismatch, growth, steps)


def _near(before: Real, after: Real) -> Bool:
    """(n,) whether no voltage (n, 2 B) has leapt."""
    old, new = (np.ascontiguousarray(v).view(np.complex128) for v in (before, after))
    ratio = new / old
    stretch = np.abs(np.abs(ratio) - 1).max(1, initial=0.0)
    return (stretch <= STRETCH) & (np.abs(np.angle(ratio)).max(1, initial=0.0) <= TURN)
