"""Given states of one topology against the reactive limits of its generators."""

import numpy as np

from gridshift.arrays import Bool, Complex, Real
from gridshift.grid.network import Network
from gridshift.grid.reactive import bus_limits
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.voltage_dependence import drawn

BLOCK = 1024
"""Rows at a time, so that copies of them stay in the cache."""


def check_limited(network: Network, loads: LoadScenarios, voltage: Complex) -> Real:
    """(R,) how far voltages (R, B) are from a solution that keeps reactive limits, p.u.

    The largest mismatch of what each bus specifies. At a bus whose generators have limits that is
    q - clip(q - (v - set-point), least, most) with their reactive power q: 0 if they are within
    their limits and hold the set-point, at the upper one and not above it, or at the lower one and
    not below it. So each row is judged by its own kinds of buses, whichever they are.

    Raises:
        ScenarioError: loads whose shape doesn't fit the network.
        GridshiftError: a lower limit above the upper one.
    """
    load_p, load_q = demands(network, loads)
    power = voltage * (network.admittance @ voltage.T).T.conj()
    off = power - network.injected(drawn(network, load_p + 1j * load_q, voltage))
    above = np.abs(voltage) - np.nan_to_num(network.bus_v_set, nan=1.0)
    low, high = bus_limits(network)
    pv, slack = network.pv, network.slack
    given = off.imag[:, pv]
    reactive = off.imag.copy()
    reactive[:, pv] = given - np.clip(given - above[:, pv], low[pv], high[pv])
    reactive[:, slack] = above[:, slack]
    active = off.real.copy()
    active[:, slack] = 0
    return np.maximum(np.abs(active), np.abs(reactive)).max(axis=1)


def beyond_limits(
    network: Network, loads: LoadScenarios, voltage: Complex, which: Bool, limit: float
) -> Bool:
    """(R,) rows among some whose generators exceed a reactive limit at their set-points, p.u."""
    low, high = bus_limits(network)
    pv, found = network.pv, np.zeros(len(voltage), bool)
    rows_of = network.admittance[pv]
    chosen = np.flatnonzero(which)
    for first in range(0, len(chosen), BLOCK):
        rows = chosen[first : first + BLOCK]
        v = voltage[rows]
        given = (v[:, pv] * (rows_of @ v.T).T.conj()).imag
        taken = drawn(network, loads.rows(rows).load_power, v)
        given -= network.injected(taken).imag[:, pv]
        beyond = np.maximum(given - high[pv], low[pv] - given)
        found[rows] = beyond.max(axis=1, initial=-np.inf) > limit
    return found
