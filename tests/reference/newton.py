"""Textbook Newton-Raphson in polar coordinates with dense matrices; shares no code with gridshift.

Source: Grainger and Stevenson, Power System Analysis, chapter 9.
"""

import numpy as np


def bus_matrix(network) -> np.ndarray:
    """(B, B) dense, stamped branch by branch."""
    y = np.diag(np.asarray(network.bus_shunt, complex))
    for e in range(network.num_branches):
        if network.branch_in_service[e]:
            f, t = network.branch_from[e], network.branch_to[e]
            yff, yft, ytf, ytt = network.branch_y[e]
            y[f, f] += yff
            y[f, t] += yft
            y[t, f] += ytf
            y[t, t] += ytt
    return y


def bus_power(network, load_power) -> np.ndarray:
    """(B,) scheduled injections for demands (L,)."""
    s = np.array(network.bus_fixed, complex)
    for g, bus in enumerate(network.gen_bus):
        s[bus] += network.gen_p[g]
    for k, bus in enumerate(network.load_bus):
        s[bus] -= load_power[k]
    return s


def off_balance(network, v, load_power) -> float:
    """Largest mismatch of what the buses specify."""
    d = v * (bus_matrix(network) @ v).conj() - bus_power(network, load_power)
    p = [abs(d[b].real) for b in range(len(v)) if network.bus_kind[b] != 3]
    q = [abs(d[b].imag) for b in range(len(v)) if network.bus_kind[b] == 1]
    return max([*p, *q, 0.0])


def balance_and_jacobian(y, power, angle, size, free, pq):
    """Mismatch of [P at `free`, Q at `pq`] and its derivative by [angle there, magnitude there]."""
    v = size * np.exp(1j * angle)
    current = y @ v
    off = v * current.conj() - power
    by_angle = 1j * (np.diag(v * current.conj()) - v[:, None] * (y * v).conj())
    by_size = v[:, None] * (y * (v / size)).conj() + np.diag(current.conj() * v / size)
    j = np.block(
        [
            [by_angle[np.ix_(free, free)].real, by_size[np.ix_(free, pq)].real],
            [by_angle[np.ix_(pq, free)].imag, by_size[np.ix_(pq, pq)].imag],
        ]
    )
    return np.concatenate([off[free].real, off[pq].imag]), j


def dense_newton(network, start, load_power, *, tol=1e-10, max_steps=20):
    """(voltage, converged)."""
    y, s = bus_matrix(network), bus_power(network, load_power)
    free, pq = np.flatnonzero(network.bus_kind != 3), np.flatnonzero(network.bus_kind == 1)
    angle, size = np.angle(start), np.abs(start)
    for _ in range(max_steps + 1):
        f, j = balance_and_jacobian(y, s, angle, size, free, pq)
        if np.abs(f).max(initial=0.0) <= tol:
            return size * np.exp(1j * angle), True
        if not np.isfinite(f).all():
            break
        try:
            step = np.linalg.solve(j, f)
        except np.linalg.LinAlgError:
            break
        angle[free] -= step[: len(free)]
        size[pq] -= step[len(free) :]
    return size * np.exp(1j * angle), False


def dense_distributed(network, start, load_power, schedule, factor, *, tol=1e-12, max_steps=30):
    """(voltage, imbalance, converged): generators (G,) give `schedule` + `factor` * imbalance.

    The active balance of the slack bus is one equation more, the imbalance one unknown more.
    Exact derivatives by every unknown; no limits.
    """
    y, s = bus_matrix(network), np.array(network.bus_fixed, complex)
    np.subtract.at(s, network.load_bus, load_power)
    np.add.at(s, network.gen_bus, schedule)
    share = np.zeros(len(s))
    np.add.at(share, network.gen_bus, factor)
    slack = np.flatnonzero(network.bus_kind == 3)
    free, pq = np.flatnonzero(network.bus_kind != 3), np.flatnonzero(network.bus_kind == 1)
    every = np.arange(len(s))
    angle, size, imbalance = np.angle(start), np.abs(start), 0.0
    rows = np.concatenate([free, slack, len(s) + pq])
    columns = np.concatenate([free, len(s) + pq])
    for _ in range(max_steps + 1):
        power = s + share * imbalance
        # all equations by all angles and magnitudes, then those that count
        f, j = balance_and_jacobian(y, power, angle, size, every, every)
        by_imbalance = np.concatenate([-share, np.zeros(len(s))])[rows]
        f, j = f[rows], np.column_stack([j[np.ix_(rows, columns)], by_imbalance])
        if np.abs(f).max() <= tol:
            return size * np.exp(1j * angle), imbalance, True
        if not np.isfinite(f).all():
            break
        step = np.linalg.solve(j, f)
        angle[free] -= step[: len(free)]
        size[pq] -= step[len(free) : -1]
        imbalance -= step[-1]
    return size * np.exp(1j * angle), imbalance, False
