"""The operating root by following it from no load, with dense matrices; no code of gridshift's.

Power flow has several roots. The operating one is the root that grows out of the state without load
and generation as both rise together, up to where the Jacobian first becomes singular (the nose of
the voltage curve). Source: Kundur, Power System Stability and Control, chapter 14.
"""

import numpy as np

from tests.reference.newton import balance_and_jacobian, bus_matrix, bus_power

FEWEST, MOST = 1e-6, 0.1
"""Smallest and largest share of the powers by which a step goes on."""


def operating_root(network, load_power):
    """(B,) voltages, or None where the path ends before the whole demand is reached."""
    y, full = bus_matrix(network), bus_power(network, load_power)
    slack = np.flatnonzero(network.bus_kind == 3)
    free = np.flatnonzero(network.bus_kind != 3)
    pq = np.flatnonzero(network.bus_kind == 1)
    start = np.array(network.v_start, complex)
    turned = np.linalg.solve(y[np.ix_(free, free)], -y[np.ix_(free, slack)] @ start[slack])
    size = np.nan_to_num(network.bus_v_set[free], nan=1.0)
    start[free] = size * turned / np.abs(turned)
    found = _correct(y, 0 * full, start, free, pq, most=30, reach=np.inf)
    if found is None:
        return None
    v, sign = found
    share, step = 0.0, MOST
    while share < 1:
        step = min(step, 1 - share)
        found = _correct(y, (share + step) * full, v, free, pq, most=8, reach=0.1)
        if found is None or found[1] != sign:
            step /= 2
            if step < FEWEST:
                return None
            continue
        v, share, step = found[0], share + step, min(2 * step, MOST)
    return v


def _correct(y, power, start, free, pq, *, most, reach):
    """(voltage, sign of the Jacobian's determinant), None if Newton fails or leaps."""
    angle, size = np.angle(start), np.abs(start)
    for _ in range(most + 1):
        f, j = balance_and_jacobian(y, power, angle, size, free, pq)
        if not np.isfinite(f).all():
            return None
        if np.abs(f).max(initial=0.0) < 1e-10:
            v = size * np.exp(1j * angle)
            leapt = np.abs(v / start - 1).max() > reach
            return None if leapt else (v, np.linalg.slogdet(j)[0])
        try:
            step = np.linalg.solve(j, f)
        except np.linalg.LinAlgError:
            return None
        angle[free] -= step[: len(free)]
        size[pq] -= step[len(free) :]
        if (size[pq] <= 0).any():
            return None
    return None
