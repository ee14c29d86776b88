"""MATPOWER's power flow with reactive limits, written anew from its source; shares no code with
gridshift.

Source: MATPOWER 8, `runpf.m` (ENFORCE_Q_LIMS), `pfsoln.m`, `bustypes.m`, `dSbus_dV.m`. After each
power flow generators beyond a limit are fixed at it for good, and their bus is a PQ bus from then
on: all of them (rule 1), or the one that is furthest off (rule 2). The reference bus is no
exception: the first PV bus takes its place, and angles are turned back at the end.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

PQ, PV, REF = 1, 2, 3
VIOLATION_MVA = 5e-6
"""`opf.violation`: how far a generator may be beyond its limit."""


class Enforced(NamedTuple):
    """What became of one grid."""

    voltage: np.ndarray | None
    """(B,) or None: no solution, or all that is left violates the same limit."""
    gen_q: np.ndarray
    """(G,) p.u."""
    moved: bool
    """Whether another bus than the grid's took the place of the reference bus."""


def enforced(network, load_power, start, *, limits, rule: int, tol: float) -> Enforced:
    """Power flow with limits (2, G), p.u., from voltages `start` (B,)."""
    y = admittance(network)
    kind = np.array(network.bus_kind)
    fixed = np.array(network.bus_fixed, complex)
    np.subtract.at(fixed, network.load_bus, load_power)
    bus, p = network.gen_bus, np.array(network.gen_p)
    low, high = limits
    violation = VIOLATION_MVA / network.base_mva
    first_ref = np.flatnonzero(kind == REF)
    on, q = np.ones(len(bus), bool), np.zeros(len(bus))
    v = np.array(start)
    while True:
        power = fixed.copy()
        np.add.at(power, bus, p + 1j * q * (~on | (kind[bus] == PQ)))
        v, good = newton(y, power, v, kind, tol)
        if not good:
            return Enforced(None, q, False)
        given = v * (y @ v).conj() - fixed
        for b in np.flatnonzero(kind == REF):
            here = np.flatnonzero(bus == b)
            p[here[0]] = given[b].real - p[here[1:]].sum()
        share(q, on & (kind[bus] != PQ), bus, np.imag(given), low, high)
        above, below = on & (q > high + violation), on & (q < low - violation)
        if not (above | below).any():
            break
        remaining = on & (kind[bus] != PQ)
        if (remaining == (above | below)).all() and not (above.any() and below.any()):
            return Enforced(None, q, False)
        if rule == 2:
            over = np.where(above, q - high, np.where(below, low - q, -np.inf))
            only = np.arange(len(bus)) == np.argmax(over)
            above, below = above & only, below & only
        q = np.where(above, high, np.where(below, low, q))
        on &= ~(above | below)
        kind[bus[above | below]] = PQ
        if not (kind == REF).any():
            kind[np.flatnonzero(kind == PV)[:1]] = REF
            if len(first_ref) > 1 or not (kind == REF).any():
                return Enforced(None, q, False)
    moved = not np.array_equal(np.flatnonzero(kind == REF), first_ref)
    if moved:
        v = v * np.exp(1j * (np.angle(start[first_ref[0]]) - np.angle(v[first_ref[0]])))
    return Enforced(v, q, moved)


def share(q, which, bus, total, low, high) -> None:
    """Reactive power (B,) of the generators at a bus among these by their ranges, `pfsoln.m`;
    in equal parts where a limit is infinite, and as equal violations where there is no range."""
    for b in np.unique(bus[which]):
        here = np.flatnonzero(which & (bus == b))
        least, most = low[here].sum(), high[here].sum()
        if not np.isfinite(most - least):
            q[here] = total[b] / len(here)
        elif most == least:
            q[here] = low[here] + (total[b] - least) / len(here)
        else:
            part = (total[b] - least) / (most - least)
            q[here] = low[here] + part * (high[here] - low[here])


def admittance(network):
    """(B, B) sparse, of branches as two-ports and shunts."""
    on = np.flatnonzero(network.branch_in_service)
    f, t = network.branch_from[on], network.branch_to[on]
    buses = np.arange(network.num_buses)
    rows, columns = np.concatenate([f, f, t, t, buses]), np.concatenate([f, t, f, t, buses])
    values = np.concatenate([*network.branch_y[on].T, network.bus_shunt])
    return sparse.csr_matrix((values, (rows, columns)), (len(buses), len(buses)))


def newton(y, power, start, kind, tol, *, max_steps=30):
    """(voltage, converged) by Newton-Raphson in polar coordinates; magnitudes at PV and reference
    buses and the angle at the latter are those of the start."""
    free, pq = np.flatnonzero(kind != REF), np.flatnonzero(kind == PQ)
    v, angle, size = np.array(start), np.angle(start), np.abs(start)
    for _ in range(max_steps):
        current = y @ v
        off = v * current.conj() - power
        f = np.concatenate([off[free].real, off[pq].imag])
        if not np.isfinite(f).all():
            return v, False
        if np.abs(f).max(initial=0.0) <= tol:
            return v, True
        across, unit = sparse.diags(v), sparse.diags(v / np.abs(v))
        by_angle = (1j * across @ (sparse.diags(current) - y @ across).conj()).tocsr()
        by_size = across @ (y @ unit).conj() + sparse.diags(current.conj()) @ unit
        by_size = by_size.tocsr()
        j = sparse.bmat(
            [
                [by_angle[free][:, free].real, by_size[free][:, pq].real],
                [by_angle[pq][:, free].imag, by_size[pq][:, pq].imag],
            ],
            format="csc",
        )
        try:
            step = splu(j).solve(f)
        except RuntimeError:
            return v, False
        angle[free] -= step[: len(free)]
        size[pq] -= step[len(free) :]
        v = size * np.exp(1j * angle)
    return v, False
