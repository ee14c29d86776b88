"""Loads with parts of constant power, current and impedance (ZIP): what they draw at a voltage.

A demand is what a load draws at 1 p.u. At a magnitude v it draws c + i v + z v^2 times as much. The
shares c + i + z = 1 of its active power are its own, and so are those of its reactive power.
Scenarios scale all parts alike. What a bus with such loads injects is c + i v + z v^2 as well, so
specified powers have six more numbers for each of these buses: c, i and z, of P and Q by turns.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.network import BusKind, Network

PARTS = 3
"""Of constant power, current and impedance."""


def dependent_loads(network: Network) -> Int:
    """Loads with a part that depends on the voltage, ascending."""
    return np.flatnonzero((network.load_current != 0) | (network.load_impedance != 0))


def dependent_buses(network: Network) -> Int:
    """(K,) buses, other than slack ones, with loads that depend on the voltage, ascending."""
    buses = np.unique(network.load_bus[dependent_loads(network)])
    return buses[network.bus_kind[buses] != BusKind.SLACK]


def require_constant_power(network: Network, why: str) -> None:
    """Pass if no load depends on the voltage.

    Raises:
        GridshiftError: one does, and why that isn't followed.
    """
    if len(at := dependent_loads(network)):
        more = f" and {len(at) - 1} more" if len(at) > 1 else ""
        raise GridshiftError(
            f"{network.load_labels[at[0]]}{more} of {network.name} depend on the voltage (shares "
            f"of constant current or impedance); {why}. Use exact power flow on the processor"
        )


def drawn(network: Network, load_power: Complex, voltage: Complex) -> Complex:
    """(..., L) what loads of demands (..., L) draw at voltages (..., B), p.u."""
    at = dependent_loads(network)
    if not len(at):
        return load_power
    v = np.abs(voltage[..., network.load_bus[at]])
    current, impedance = network.load_current[at], network.load_impedance[at]
    more = current * (v - 1) + impedance * (v * v - 1)
    power = np.array(np.broadcast_to(load_power, (*v.shape[:-1], network.num_loads)), complex)
    p, q = np.real(power[..., at]), np.imag(power[..., at])
    power[..., at] += p * more.real + 1j * (q * more.imag)
    return power


class Dependence(NamedTuple):
    """How the demands of a grid's loads add up at the K buses with loads that depend on the
    voltage."""

    load: NDArray[np.int32]
    """(M,) every load at these buses."""
    entry: NDArray[np.int32]
    """(M,) where its bus's six numbers begin among specified powers."""
    active: Real
    """(3 M,) shares c, i, z of its active power."""
    reactive: Real
    scheduled: Real
    """(6 K,) what everything else injects there, p.u."""

    @classmethod
    def of(cls, network: Network) -> "Dependence":
        """That of a grid as read."""
        buses = dependent_buses(network)
        load = np.flatnonzero(np.isin(network.load_bus, buses))
        place = np.searchsorted(buses, network.load_bus[load])
        current, impedance = network.load_current[load], network.load_impedance[load]
        shares = np.stack([1 + 1j - current - impedance, current, impedance], 1)
        scheduled = np.zeros((len(buses), 2 * PARTS))
        power = network.scheduled[buses]
        scheduled[:, 0], scheduled[:, 1] = power.real, power.imag
        entry = 2 * network.num_buses + 2 * PARTS * place
        return cls(
            load.astype(np.int32), entry.astype(np.int32), shares.real.ravel(),
            shares.imag.ravel(), scheduled.ravel(),
        )  # fmt: skip

    def injected(self, load_p: Real, load_q: Real) -> Real:
        """(R, 6 K) specified powers of these buses for demands (R, L)."""
        power = np.tile(self.scheduled, (len(load_p), 1))
        first = np.asarray(self.entry - self.entry.min(initial=2**31 - 1), np.int64)
        for demand, shares, side in ((load_p, self.active, 0), (load_q, self.reactive, 1)):
            for part in range(PARTS):
                taken = demand[:, self.load] * shares[part::PARTS]
                np.subtract.at(power.T, first + 2 * part + side, taken.T)
        return power


def at_voltage(network: Network, specified: Complex, voltage: Complex) -> tuple[Complex, Complex]:
    """(B,) injections at voltages (B,) and their slopes by relative magnitudes.

    Args:
        specified: (B + 3 K,) specified powers.
        voltage: (B,)
    """
    buses = dependent_buses(network)
    power, slope = specified[: network.num_buses].copy(), np.zeros(network.num_buses, complex)
    constant, current, impedance = specified[network.num_buses :].reshape(-1, PARTS).T
    v = np.abs(voltage[buses])
    power[buses] = constant + current * v + impedance * v * v
    slope[buses] = current * v + 2 * impedance * v * v
    return power, slope
