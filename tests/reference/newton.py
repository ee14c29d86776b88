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


def dense_newton(network, start, load_power, *, tol=1e-10, max_steps=20):
    """(voltage, converged)."""
    y, s = bus_matrix(network), bus_power(network, load_power)
    ns = np.flatnonzero(network.bus_kind != 3)
    pq = np.flatnonzero(network.bus_kind == 1)
    angle, magnitude = np.angle(start), np.abs(start)
    for _ in range(max_steps + 1):
        v = magnitude * np.exp(1j * angle)
        d = v * (y @ v).conj() - s
        f = np.concatenate([d[ns].real, d[pq].imag])
        if np.abs(f).max(initial=0.0) <= tol:
            return v, True
        if not np.isfinite(f).all():
            break
        b = len(v)
        by_angle, by_magnitude = np.zeros((b, b), complex), np.zeros((b, b), complex)
        for i in range(b):
            for k in range(b):
                flow = v[i] * (y[i, k] * v[k]).conjugate()
                by_angle[i, k] += -1j * flow
                by_angle[i, i] += 1j * flow
                by_magnitude[i, k] += flow / magnitude[k]
                by_magnitude[i, i] += flow / magnitude[i]
        j = np.block(
            [
                [by_angle[np.ix_(ns, ns)].real, by_magnitude[np.ix_(ns, pq)].real],
                [by_angle[np.ix_(pq, ns)].imag, by_magnitude[np.ix_(pq, pq)].imag],
            ]
        )
        try:
            step = np.linalg.solve(j, f)
        except np.linalg.LinAlgError:
            break
        angle[ns] -= step[: len(ns)]
        magnitude[pq] -= step[len(ns) :]
    return v, False
