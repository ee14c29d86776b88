"""How far predictions are from exact solutions, and from satisfying the power balance."""

import numpy as np

from gridshift.arrays import Complex, Real
from gridshift.grid.equations import worst_mismatch
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network

QUANTITIES = ("overall", "p_slack", "q_gen", "v", "theta", "theta_deg")
"""Keys of `mean_absolute_errors`."""
NO_LIMIT = float(np.finfo(float).max)
"""Mismatch, p.u., that every prediction keeps: as a tolerance it corrects no row by itself."""


def mean_absolute_errors(layout: Layout, y: Real, y_hat: Real) -> dict[str, float]:
    """Mean absolute error of each quantity, and of all entries of y together.

    Powers and magnitudes in per unit, `theta` in radians, `theta_deg` the same in degrees.
    `overall` is the plain mean over all entries, per unit and radians mixed, as in the paper
    (section IV). A quantity without entries has NaN.

    Args:
        y: (R, Y) exact outputs.
        y_hat: (R, Y) predicted outputs.
    """
    error = np.abs(y_hat - y)
    errors = {"overall": _mean(error)}
    for quantity, where in layout.y_slices.items():
        errors[quantity] = _mean(error[:, where])
    errors["theta_deg"] = float(np.rad2deg(errors["theta"]))
    return errors


def _mean(values: Real) -> float:
    return float(values.mean()) if values.size else float("nan")


def mismatch_summary(network: Network, voltage: Complex, load_power: Complex) -> dict[str, float]:
    """Median, 99th percentile and largest over rows of the worst-bus power mismatch, p.u.

    The mismatch of a row is the largest absolute active or reactive imbalance over the buses that
    specify it, as in the solver; exact solutions are below its tolerance.

    Args:
        voltage: (R, B) predicted or exact voltages.
        load_power: (R, L) demands.
    """
    return summarise(worst_mismatch(network, voltage, load_power))


def summarise(values: Real) -> dict[str, float]:
    """Median, 99th percentile and largest of values (R,); NaN if there are none."""
    if not len(values):
        return dict.fromkeys(("median", "p99", "max"), float("nan"))
    ordered = np.sort(values)  # many times faster than `numpy.quantile`, for the same numbers
    last = len(ordered) - 1
    median, p99 = np.interp([0.5 * last, 0.99 * last], np.arange(len(ordered)), ordered)
    return {"median": float(median), "p99": float(p99), "max": float(ordered[-1])}
