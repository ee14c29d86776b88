"""Reactive limits and a distributed slack together, with dense matrices; no code of gridshift's.

Newton's method on the complementarity problem. Each bus whose generators have limits has one
equation more, q = clip(q - (v - set-point), least, most), which is all of the rule at once: held
within the limits, at most the set-point at the upper one, at least at the lower one. Which of its
three branches holds, and so its derivative, is decided anew in each step (a primal-dual active set
method; Hintermueller, Ito, Kunisch, SIAM J. Optim. 13, 2002). A distributed slack adds the active
balance of the slack bus as an equation and the imbalance as an unknown. Loads may have parts of
constant current and impedance.
"""

from typing import NamedTuple

import numpy as np

from tests.reference.newton import balance_and_jacobian, bus_matrix

FEWEST, MOST = 1e-3, 0.1
"""Smallest and largest part of the way from one demand to another by which a step goes on."""


class Limited(NamedTuple):
    """A solution of one row."""

    voltage: np.ndarray
    """(B,)"""
    imbalance: float
    side: np.ndarray | None = None
    """(B,) 1 at the upper limit, -1 at the lower one."""


class LimitedGrid:
    """One topology; generators (G,) give `schedule` + `factor` * imbalance, if factors are told."""

    def __init__(self, network, *, schedule=None, factor=None):
        self.n, self.y = network, bus_matrix(network)
        kind, b = network.bus_kind, network.num_buses
        self.base = np.array(network.bus_fixed, complex)
        np.add.at(self.base, network.gen_bus, network.gen_p if schedule is None else schedule)
        self.share = np.zeros(b)
        if factor is not None:
            np.add.at(self.share, network.gen_bus, factor)
        self.low, self.high = np.zeros((2, b))
        np.add.at(self.low, network.gen_bus, network.gen_q_min)
        np.add.at(self.high, network.gen_bus, network.gen_q_max)
        self.pv = np.flatnonzero(kind == 2)
        slack, free = np.flatnonzero(kind == 3), np.flatnonzero(kind != 3)
        active = free if factor is None else np.concatenate([free, slack])
        self.rows = np.concatenate([active, b + free])
        self.columns = np.concatenate([free, b + free])
        self.free, self.shared = free, factor is not None

    def drawn(self, load_power, size):
        """(B,) demand of each bus at magnitudes (B,), and its slope by them."""
        n, at = self.n, self.n.load_bus
        power, slope = np.zeros((2, n.num_buses), complex)
        v = size[at]
        for part, share in enumerate((1j * 0, n.load_current, n.load_impedance)):
            if part:
                for unit, s, demand in ((1, share.real, load_power.real),
                                        (1j, share.imag, load_power.imag)):  # fmt: skip
                    np.add.at(power, at, unit * demand * s * v**part)
                    np.add.at(slope, at, unit * demand * s * part * v ** (part - 1))
        rest = n.load_current + n.load_impedance
        np.add.at(power, at, load_power.real * (1 - rest.real))
        np.add.at(power, at, 1j * load_power.imag * (1 - rest.imag))
        return power, slope

    def off(self, voltage, load_power) -> float:
        """By how much voltages (B,) break the rule at most, p.u., with the imbalance that all buses
        together need; at a bus with limits q - clip(q - (v - set-point), least, most)."""
        size, pv = np.abs(voltage), self.pv
        demand, _ = self.drawn(load_power, size)
        given = voltage * (self.y @ voltage).conj() - self.base + demand
        imbalance = given.real.sum() if self.shared else 0.0
        active, reactive = given.real - self.share * imbalance, given.imag.copy()
        above = size[pv] - self.n.bus_v_set[pv]
        reactive[pv] -= np.clip(reactive[pv] - above, self.low[pv], self.high[pv])
        both = np.concatenate([active, reactive])
        return float(np.abs(both[self.rows]).max())

    def solve(self, start: Limited, load_power, *, tol=1e-11, most=30) -> Limited | None:
        """Newton's method from a state; None where it doesn't settle."""
        n, every = self.n, np.arange(self.n.num_buses)
        angle, size = np.angle(start.voltage), np.abs(start.voltage)
        imbalance, b = start.imbalance, n.num_buses
        for _ in range(most):
            demand, slope = self.drawn(load_power, size)
            power = self.base + self.share * imbalance - demand
            f, j = balance_and_jacobian(self.y, power, angle, size, every, every)
            j[:b, b:] += np.diag(slope.real)
            j[b:, b:] += np.diag(slope.imag)
            given = f[b:].copy()
            off = size[self.pv] - n.bus_v_set[self.pv]
            least, largest = self.low[self.pv], self.high[self.pv]
            wanted = given[self.pv] - off
            side = np.where(wanted > largest, 1, np.where(wanted < least, -1, 0))
            for k, bus in enumerate(self.pv):
                if side[k]:
                    f[b + bus] -= largest[k] if side[k] > 0 else least[k]
                else:
                    f[b + bus], j[b + bus] = off[k], 0.0
                    j[b + bus, b + bus] = 1.0
            f, j = f[self.rows], j[np.ix_(self.rows, self.columns)]
            if np.abs(f).max() <= tol:
                sides = np.zeros(b, int)
                sides[self.pv] = side
                return Limited(size * np.exp(1j * angle), imbalance, sides)
            if not np.isfinite(f).all():
                return None
            if self.shared:
                j = np.column_stack([j, np.concatenate([-self.share, np.zeros(b)])[self.rows]])
            try:
                step = np.linalg.solve(j, f)
            except np.linalg.LinAlgError:
                return None
            angle[self.free] -= step[: len(self.free)]
            size[self.free] -= step[len(self.free) : 2 * len(self.free)]
            imbalance -= step[-1] if self.shared else 0.0
            if (size <= 0).any():
                return None
        return None

    def follow(self, start: Limited, from_power, load_power, *, reach=0.1) -> Limited | None:
        """From a solution at one demand to another along the straight line; None where it ends."""
        way, step, now = 0.0, MOST, start
        while way < 1:
            step = min(step, 1 - way)
            found = self.solve(now, from_power + (way + step) * (load_power - from_power))
            if found is None or np.abs(found.voltage / now.voltage - 1).max() > reach:
                step /= 2
                if step < FEWEST:
                    return None
                continue
            now, way, step = found, way + step, min(2 * step, MOST)
        return now
