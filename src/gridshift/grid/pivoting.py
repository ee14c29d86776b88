"""Newton's method with a pivoting factorisation (SuperLU), for the few rows that need one."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.equations import jacobian
from gridshift.grid.network import Network
from gridshift.grid.voltage_dependence import at_voltage

if TYPE_CHECKING:
    from scipy.sparse.linalg import SuperLU


class Pivoted(NamedTuple):
    """Last iterates of n states; those within the tolerance are solved."""

    voltage: Real
    """(n, 2 B) real and imaginary parts."""
    mismatch: Real
    steps: Int
    growth: Real
    """0: with row exchanges no multiplier exceeds 1."""
    orientation: Real
    """Sign of the determinant of the Jacobian, 0 where it is singular."""


def pivoting_newton(
    network: Network, power: Real, start: Real, *, tol: float, max_steps: int
) -> Pivoted:
    """Textbook Newton in polar coordinates for powers (n, 2 B + 6 K) from starts (n, 2 B)."""
    found = [
        _solve_one(network, p.view(np.complex128), v.view(np.complex128), tol, max_steps)
        for p, v in zip(power, start, strict=True)
    ]
    voltage, mismatch, steps, orientation = zip(*found, strict=True)
    return Pivoted(
        np.array(voltage).view(np.float64), np.array(mismatch), np.array(steps, np.int64),
        np.zeros(len(found)), np.array(orientation),
    )  # fmt: skip


def _solve_one(
    network: Network, power: Complex, v: Complex, tol: float, max_steps: int
) -> tuple[Complex, float, int, float]:
    from scipy.sparse.linalg import splu  # a tenth of a second, which most grids save

    moving, pq = np.concatenate([network.pv, network.pq]), network.pq
    for step in range(max_steps + 1):
        injected, slope = at_voltage(network, power, v)
        off = v * (network.admittance @ v).conj() - injected
        change = np.concatenate([off[moving].real, off[pq].imag])
        mismatch = float(np.abs(change).max(initial=0.0))
        try:
            factors = (
                splu(jacobian(network, v, slope / np.abs(v))) if np.isfinite(mismatch) else None
            )
        except RuntimeError:
            factors = None
        if mismatch <= tol or factors is None or step == max_steps:
            break
        change = factors.solve(change)
        angle, magnitude = np.angle(v), np.abs(v)
        angle[moving] -= change[: len(moving)]
        magnitude[pq] -= change[len(moving) :]
        v = magnitude * np.exp(1j * angle)
    return v, mismatch, step, 0.0 if factors is None else _orientation(factors)


def _orientation(factors: "SuperLU") -> float:
    """Sign of the determinant: that of the pivots, turned by each odd permutation."""
    sign = np.prod(np.sign(factors.U.diagonal()))
    return float(sign * _parity(factors.perm_r) * _parity(factors.perm_c))


def _parity(permutation: Int) -> int:
    """1 for an even permutation, -1 for an odd one."""
    seen, sign = np.zeros(len(permutation), bool), 1
    for first in range(len(permutation)):
        at = first
        while not seen[at]:
            seen[at] = True
            at = permutation[at]
            if at != first:
                sign = -sign
    return sign
