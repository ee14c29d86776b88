"""Branches as two-ports: the bus admittance matrix of all, and the pi model of each.

That is a series impedance, a shunt at each end and an ideal transformer at the from end.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Bool, Complex, Int, Real

ROUNDING = 1e-13
"""Share of a branch's own admittances below which its shunts are what rounding left."""


class PiModel(NamedTuple):
    """E branches: y_ff = (y + y_from) / |t|^2, y_ft = -y / conj(t), y_tf = -y / t, y_tt = y + y_to.

    Source: MATPOWER's manual, section 3.2, where both shunts are j b / 2.
    """

    series: Complex
    """(E,) admittance y, p.u.; 0 for a branch that leads nowhere."""
    tap: Complex
    """(E,) t, magnitude and shift."""
    shunt_from: Complex
    shunt_to: Complex
    exact: Bool
    """(E,) whether a branch is such a model: its two transfer admittances are equally large."""

    @property
    def impedance(self) -> Complex:
        """(E,) 1 / y, p.u., and 0 for a branch that leads nowhere."""
        y = self.series
        return np.divide(1, y, out=np.zeros_like(y), where=y != 0)

    def two_ports(self) -> Complex:
        """(E, 4) admittances yff, yft, ytf, ytt."""
        y, t = self.series, self.tap
        ff, tt = (y + self.shunt_from) / np.abs(t) ** 2, y + self.shunt_to
        return np.stack([ff, -y / t.conj(), -y / t, tt], axis=1)

    def scaled(self, r_factor: Real, x_factor: Real) -> "PiModel":
        """The branches with (E,) multiples of their series resistance and reactance."""
        z = self.impedance
        z = z.real * r_factor + 1j * z.imag * x_factor
        return self._replace(series=np.divide(1, z, out=np.zeros_like(z), where=z != 0))


def bus_admittance(start: Int, end: Int, y: Complex, shunt: Complex) -> sp.csr_array:
    """(B, B) bus admittance matrix of branches (E,) with two-port admittances (E, 4)."""
    buses = np.arange(len(shunt))
    rows = np.concatenate([start, start, end, end, buses])
    columns = np.concatenate([start, end, start, end, buses])
    values = np.concatenate([y[:, 0], y[:, 1], y[:, 2], y[:, 3], shunt])
    return sp.csr_array((values, (rows, columns)), shape=(len(shunt), len(shunt)))


def pi_model(branch_y: Complex) -> PiModel:
    """The model of (E, 4) two-port admittances.

    Four admittances don't tell all apart. Both shunts are taken to be equal, as they are in case
    files; resistance and reactance to be positive if both are of one sign, and the shift to be less
    than 90 degrees if they aren't.
    """
    ff, ft, tf, tt = branch_y.T
    leads = (ft != 0) & (tf != 0)
    exact = leads == ((ft != 0) | (tf != 0))
    exact &= np.isclose(np.abs(ft), np.abs(tf), rtol=1e-9, atol=0)
    turned = np.where(leads, ft, 1) / np.where(leads, tf, 1)
    both = leads & (ff != 0) & (tt != 0)
    ratio = np.sqrt(np.abs(np.where(both, tt, 1) / np.where(both, ff, 1)))
    tap: Complex = ratio * np.exp(0.5j * np.angle(turned))
    series: Complex = np.where(leads, -tf * tap, 0)
    size = 1e-9 * np.abs(series)
    alike = (np.abs(series.real) > size) & (np.sign(series.real) == np.sign(-series.imag))
    backward = np.where(alike, series.real < 0, tap.real < 0)
    tap, series = np.where(backward, -tap, tap), np.where(backward, -series, series)
    shunts: Complex = np.stack([ff * ratio**2, tt]) - series
    rounding = ROUNDING * (np.abs(ff) * ratio**2 + np.abs(tt))
    shunts = _cut(shunts.real, rounding) + 1j * _cut(shunts.imag, rounding)
    shunts = np.where(np.abs(shunts[0] - shunts[1]) > rounding, shunts, shunts.mean(0))
    return PiModel(series, tap, shunts[0], shunts[1], exact)


def _cut(values: Real, least: Real) -> Real:
    """The values, those smaller than that as 0."""
    return np.where(np.abs(values) < least, 0.0, values)
