"""Newton's method with a pivoting factorisation (SuperLU), for the few rows that need one."""

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import splu

from gridshift.arrays import Complex
from gridshift.grid.equations import jacobian, specified_mismatch
from gridshift.grid.network import Network


class Pivoted(NamedTuple):
    """Last iterate of one row; solved if `worst` is within tolerance."""

    voltage: Complex
    worst: float
    steps: int


def pivoting_newton(
    network: Network, start: Complex, demand: Complex, tol: float, max_steps: int
) -> Pivoted:
    """Textbook Newton in polar coordinates for one row (L,) of demands from one start (B,)."""
    v = start.copy()
    moving, pq = np.concatenate([network.pv, network.pq]), network.pq
    for step in range(max_steps + 1):
        off = specified_mismatch(network, v, demand)
        worst = float(np.maximum(np.abs(off.real), np.abs(off.imag)).max(initial=0.0))
        if worst <= tol or not np.isfinite(worst) or step == max_steps:
            break
        try:
            factors = splu(jacobian(network, v))
        except RuntimeError:
            break
        change = factors.solve(np.concatenate([off[moving].real, off[pq].imag]))
        angle, magnitude = np.angle(v), np.abs(v)
        angle[moving] -= change[: len(moving)]
        magnitude[pq] -= change[len(moving) :]
        v = magnitude * np.exp(1j * angle)
    return Pivoted(v, worst, step)
