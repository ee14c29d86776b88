"""Exact AC power flow for many scenarios of one topology."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import NotConvergedError
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Injections, nominal_loads


class RowStatus(IntEnum):
    """What became of one row; the one taxonomy of the product."""

    SOLVED = 0
    NO_CONVERGENCE = 1
    SINGULAR = 2
    IMPLAUSIBLE = 3
    """A root of the equations, but a low-voltage one that no operator would meet."""
    ISLANDED = 4
    NOT_RUN = 5

    @property
    def text(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, kw_only=True)
class BatchSolution:
    """Voltages of R scenarios on one topology. A row that failed is NaN and says why."""

    network: Network
    voltage: Complex
    """(R, B) complex bus voltages; NaN in every row whose status is not SOLVED."""
    status: Int
    """(R,) values of `RowStatus`."""
    iterations: Int
    """(R,)"""
    mismatch: Real
    """(R,) largest specified active or reactive power mismatch, p.u.; NaN where not run."""
    reason: str = ""
    """Why rows were not run, in words; empty if all were."""

    @property
    def solved(self) -> Bool:
        """(R,)"""
        return self.status == RowStatus.SOLVED

    def counts(self) -> dict[str, int]:
        """Number of rows per status, those that occur only, 'solved' always."""
        found = {s.text: int((self.status == s).sum()) for s in RowStatus}
        return {k: v for k, v in found.items() if v or k == RowStatus.SOLVED.text}

    def require_converged(self) -> "BatchSolution":
        """This solution, if every row is solved.

        Raises:
            NotConvergedError: with the first row numbers that are not.
        """
        failed = np.flatnonzero(~self.solved)
        if len(failed):
            shown = ", ".join(map(str, failed[:5])) + (", ..." if len(failed) > 5 else "")
            raise NotConvergedError(
                f"{len(failed)} of {len(self.status)} rows have no solution (rows {shown}): "
                + ", ".join(f"{v} {k}" for k, v in self.counts().items() if v)
            )
        return self


def specified_mismatch(network: Network, voltage: Complex, load_power: Complex) -> Complex:
    """(..., B) computed minus scheduled injection, zero where the bus does not specify it."""
    current = (network.admittance @ voltage.reshape(-1, network.num_buses).T).T
    power = voltage * current.reshape(voltage.shape).conj() - network.injected(load_power)
    power[..., network.slack] = 0
    power[..., network.pv] = power[..., network.pv].real
    return power


def worst_mismatch(network: Network, voltage: Complex, load_power: Complex) -> Real:
    """(...) largest absolute active or reactive mismatch over the buses that specify it, p.u."""
    off = specified_mismatch(network, voltage, load_power)
    return np.maximum(np.abs(off.real).max(-1), np.abs(off.imag).max(-1))


def jacobian(network: Network, voltage: Complex) -> sp.csc_array:
    """Derivative of [P at PV and PQ buses, Q at PQ buses] by [angle there, magnitude at PQ].

    Source: MATPOWER Technical Note 2, polar coordinates and power balance.
    """
    y, v = network.admittance, voltage
    current = y @ v
    dv, di, dn = sp.diags_array(v), sp.diags_array(current), sp.diags_array(v / np.abs(v))
    by_angle = 1j * dv @ (di - y @ dv).conj()
    by_magnitude = dv @ (y @ dn).conj() + di.conj() @ dn
    moving, pq = np.concatenate([network.pv, network.pq]), network.pq
    by_angle, by_magnitude = sp.csr_array(by_angle), sp.csr_array(by_magnitude)
    return sp.csc_array(
        sp.block_array(
            [
                [by_angle[moving][:, moving].real, by_magnitude[moving][:, pq].real],
                [by_angle[pq][:, moving].imag, by_magnitude[pq][:, pq].imag],
            ]
        )
    )


def solve(
    network: Network,
    injections: Injections,
    *,
    start: Complex | None = None,
    tol: float = 1e-8,
    max_iterations: int = 20,
    threads: int = 1,
) -> BatchSolution:
    """Solve every row by Newton's method; a row that fails never touches another.

    Args:
        network: the topology.
        injections: demands, R rows.
        start: (B,) starting voltages; by default the nominal solution of the topology.
        tol: largest allowed mismatch, p.u.
        max_iterations: Newton steps before a row is given up.
        threads: worker threads over blocks of rows; results do not depend on it.
    """
    rows, buses = injections.num_rows, network.num_buses
    voltage = np.full((rows, buses), np.nan, complex)
    status = np.full(rows, RowStatus.NOT_RUN)
    iterations = np.zeros(rows, np.int64)
    worst = np.full(rows, np.nan)
    reason = ""
    cut_off = network.cut_off_buses()
    if len(cut_off):
        status[:] = RowStatus.ISLANDED
        reason = "cut off: " + ", ".join(network.bus_labels[b] for b in cut_off)
    else:
        if start is None:
            start = nominal(network, tol=tol).voltage[0]
        for row in range(rows):
            demand = injections.load_power[row]
            if not np.isfinite(demand).all() or not np.isfinite(start).all():
                continue
            voltage[row], status[row], iterations[row], worst[row] = _newton(
                network, start, demand, tol, max_iterations
            )
        voltage[status != RowStatus.SOLVED] = np.nan
    return BatchSolution(network=network, voltage=voltage, status=status, iterations=iterations,
                         mismatch=worst, reason=reason)


def nominal(network: Network, *, tol: float = 1e-10) -> BatchSolution:
    """The topology at nominal demand, one row, from the source's own starting point."""
    start = network.v_start if network.base is None else nominal(network.base).voltage[0]
    if not np.isfinite(start).all():
        start = network.v_start
    return solve(network, nominal_loads(network), start=start, tol=tol)


def _newton(network, start, demand, tol, max_iterations):
    v = start.copy()
    moving, pq, n = np.concatenate([network.pv, network.pq]), network.pq, len(network.pv) + len(network.pq)
    for it in range(max_iterations + 1):
        off = specified_mismatch(network, v, demand)
        worst = float(max(np.abs(off.real).max(), np.abs(off.imag).max()))
        if worst <= tol:
            return v, RowStatus.SOLVED, it, worst
        if not np.isfinite(worst) or it == max_iterations:
            break
        try:
            step = splu(jacobian(network, v)).solve(np.concatenate([off[moving].real, off[pq].imag]))
        except RuntimeError:
            return v, RowStatus.SINGULAR, it, worst
        angle, magnitude = np.angle(v), np.abs(v)
        angle[moving] -= step[:n]
        magnitude[pq] -= step[n:]
        v = magnitude * np.exp(1j * angle)
    return v, RowStatus.NO_CONVERGENCE, it, worst
