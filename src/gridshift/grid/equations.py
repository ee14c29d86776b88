"""The power flow equations in plain numpy, for any voltages: mismatch, Jacobian, branch flows."""

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.network import BusKind, Network
from gridshift.grid.voltage_dependence import drawn


def specified_mismatch(network: Network, voltage: Complex, load_power: Complex) -> Complex:
    """(..., B) computed minus scheduled injection, zero where the bus does not specify it."""
    current = (network.admittance @ voltage.reshape(-1, network.num_buses).T).T
    power = voltage * current.reshape(voltage.shape).conj()
    power -= network.injected(drawn(network, load_power, voltage))
    power[..., network.slack] = 0
    power[..., network.pv] = power[..., network.pv].real
    return power


def worst_mismatch(network: Network, voltage: Complex, load_power: Complex) -> Real:
    """(...) largest absolute active or reactive mismatch over the buses that specify it, p.u."""
    off = specified_mismatch(network, voltage, load_power)
    return np.maximum(np.abs(off.real).max(-1), np.abs(off.imag).max(-1))


def round_off(network: Network) -> float:
    """Round-off of the power balance at the worst bus near 1 p.u., p.u.: no tolerance below it.

    A sum of terms y v has an error of about the machine's epsilon times their absolute sum. On
    each of eight grids of 9 to 2,869 buses all of 200 rows were solved to half of this.
    """
    return float(np.finfo(float).eps * abs(network.admittance).sum(1).max())


def require_reachable(network: Network, tol: float) -> None:
    """Pass if the tolerance is a positive number that double precision reaches.

    Raises:
        GridshiftError: it isn't.
    """
    if not tol > 0:
        raise GridshiftError(f"tolerance {tol}; give a positive number, for instance 1e-6")
    if tol < (least := round_off(network) / network.tolerance_base):
        raise GridshiftError(
            f"tolerance {tol:g} is below what double precision reaches on {network.name}, "
            f"about {least:.0e}; give a larger one, for instance 1e-8"
        )


def power_derivatives(network: Network, voltage: Complex) -> tuple[sp.csr_array, sp.csr_array]:
    """(B, B) derivatives of complex injected power by voltage angles and by magnitudes, all buses.

    Source: MATPOWER Technical Note 2, polar coordinates and power balance.
    """
    y, v = network.admittance, voltage
    current = y @ v
    dv, di, dn = sp.diags_array(v), sp.diags_array(current), sp.diags_array(v / np.abs(v))
    by_angle = 1j * dv @ (di - y @ dv).conj()
    by_magnitude = dv @ (y @ dn).conj() + di.conj() @ dn
    return sp.csr_array(by_angle), sp.csr_array(by_magnitude)


def jacobian(network: Network, voltage: Complex, slope: Complex | None = None) -> sp.csc_array:
    """Derivative of [P at PV and PQ buses, Q at PQ buses] by [angle there, magnitude at PQ].

    Of computed power, less that of specified power where it has `slope` (B,) by magnitudes.
    """
    by_angle, by_magnitude = power_derivatives(network, voltage)
    if slope is not None:
        by_magnitude = sp.csr_array(by_magnitude - sp.diags_array(slope))
    moving, pq = np.concatenate([network.pv, network.pq]), network.pq
    return sp.csc_array(
        sp.block_array(
            [
                [by_angle[moving][:, moving].real, by_magnitude[moving][:, pq].real],
                [by_angle[pq][:, moving].imag, by_magnitude[pq][:, pq].imag],
            ]
        )
    )


def no_load_start(
    admittance: sp.csr_array, kind: Int, set_point: Real, v_start: Complex
) -> Complex:
    """(B,) voltages without load and generation but for what PV buses need to keep their magnitude.

    A start that knows of phase shifters, vector groups and line charging, which a flat one does
    not: first the angles of the grid without any current into PV and PQ buses, then, with the
    magnitudes of the PV buses set, the voltages of the PQ buses. The source's start where that has
    no solution.

    Args:
        kind: (B,) values of `BusKind`.
        set_point: (B,) magnitudes at PV buses.
        v_start: (B,) the source's start.
    """
    from scipy.sparse.linalg import splu  # a tenth of a second, which most grids save

    start = v_start.copy()
    steps = ((kind != BusKind.SLACK, False), (kind == BusKind.PQ, True))
    for free, whole in steps:
        fixed = ~free
        with np.errstate(all="ignore"):
            try:
                drawn = admittance[free][:, fixed] @ start[fixed]
                found = splu(sp.csc_array(admittance[free][:, free])).solve(-drawn)
            except RuntimeError:
                return v_start
        start[free] = found if whole else np.exp(1j * np.angle(found))
        pv = kind == BusKind.PV
        start[pv] *= set_point[pv] / np.abs(start[pv])
    return start if np.isfinite(start).all() else v_start


def branch_currents(network: Network, voltage: Complex) -> tuple[Complex, Complex]:
    """(..., E) currents into each branch at its from and its to end; zero where out of service."""
    y = np.where(network.branch_in_service[:, None], network.branch_y, 0)
    v_from, v_to = voltage[..., network.branch_from], voltage[..., network.branch_to]
    return y[:, 0] * v_from + y[:, 1] * v_to, y[:, 2] * v_from + y[:, 3] * v_to


def branch_powers(network: Network, voltage: Complex) -> Real:
    """(..., E, 4) p and q into each branch at its from end, then at its to end."""
    i_from, i_to = branch_currents(network, voltage)
    s_from = voltage[..., network.branch_from] * i_from.conj()
    s_to = voltage[..., network.branch_to] * i_to.conj()
    return np.stack([s_from.real, s_from.imag, s_to.real, s_to.imag], -1)


def branch_loading(network: Network, voltage: Complex) -> Real:
    """(..., E) larger loading of the two ends as a fraction of the rating.

    Ratings limit current (pandapower) or apparent power (MATPOWER), see `Network.rating_kind`;
    placeholders count as ratings here, `Network.branch_rated` tells.
    """
    i_from, i_to = (np.abs(i) for i in branch_currents(network, voltage))
    if network.rating_kind == "power":
        i_from = i_from * np.abs(voltage[..., network.branch_from])
        i_to = i_to * np.abs(voltage[..., network.branch_to])
    limit = network.branch_rating
    return np.maximum(i_from / limit[:, 0], i_to / limit[:, 1])
