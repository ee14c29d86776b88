"""What the voltages of many scenarios say about limits: per bus, per branch, and as one number."""

from dataclasses import dataclass, replace

import numpy as np

from gridshift.arrays import Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.equations import branch_loading
from gridshift.grid.network import Network

LOST_SUPPLY = 1e6
"""Severity of an outage after which load is left without supply, before the MW are added."""
UNSOLVED_SCENARIO = 100.0
"""Severity of a scenario without a solution, in units of limits exceeded by their own size."""
MARGIN = 1e-9
"""A limit counts as exceeded from this share of it on; set-points sit on limits exactly."""


def with_limits(
    network: Network,
    *,
    v_min: float | None = None,
    v_max: float | None = None,
    rating_mva: float | None = None,
) -> Network:
    """The network with the user's limits: voltages at every bus, a rating where the grid has none.

    Args:
        network: a grid or an outage of it.
        v_min: lower limit of every bus, p.u.; None keeps the grid's own.
        v_max: upper limit of every bus, p.u.; None keeps the grid's own.
        rating_mva: rating of the branches whose own is missing or a placeholder, MVA at 1 p.u.
            voltage; None leaves them unrated.

    Raises:
        GridshiftError: limits that are not positive numbers, or the lower above the upper, be it
            the grid's own.
    """
    for name, value in (("v_min", v_min), ("v_max", v_max), ("rating_mva", rating_mva)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise GridshiftError(f"{name} {value} must be a positive number")
    if v_min is not None and v_max is not None and v_min >= v_max:
        raise GridshiftError(f"v_min {v_min} must be below v_max {v_max}, for instance 0.94, 1.06")
    low = network.bus_v_min if v_min is None else np.full(network.num_buses, v_min)
    high = network.bus_v_max if v_max is None else np.full(network.num_buses, v_max)
    crossed = np.flatnonzero(low > high)
    if len(crossed):
        at, b = network.bus_labels[crossed[0]], crossed[0]
        raise GridshiftError(
            f"the lower voltage limit is above the upper one at {len(crossed)} buses, "
            f"{low[b]:g} above {high[b]:g} at {at}: the limit that isn't given is the grid's own; "
            "give both"
        )
    rating, rated = network.branch_rating, network.branch_rated
    if rating_mva is not None:
        rating = np.where(rated[:, None], rating, rating_mva / network.base_mva)
        rated = np.ones_like(rated)
    return replace(network, bus_v_min=low, bus_v_max=high, branch_rating=rating, branch_rated=rated)


def limit_notes(network: Network) -> list[str]:
    """What cannot be said about this grid because it lacks limits or ratings, in sentences."""
    notes = []
    unlimited = int((np.isnan(network.bus_v_min) & np.isnan(network.bus_v_max)).sum())
    if unlimited:
        some = f"{unlimited} of {network.num_buses} buses have no"
        which = "no bus has" if unlimited == network.num_buses else some
        notes.append(
            f"{network.name}: {which} voltage limits, so no violations are counted there; "
            "give limits (--v-min, --v-max) to count them"
        )
    unrated = int((~network.branch_rated).sum())
    if unrated == network.num_branches:
        notes.append(
            f"{network.name}: no branch has a rating, so there are no overload statistics; "
            "give a default rating (--rating, in MVA) to get them"
        )
    elif unrated:
        notes.append(
            f"{network.name}: {unrated} of {network.num_branches} branches have no rating; "
            "their overloads are not counted unless a default rating is given (--rating, in MVA)"
        )
    return notes


@dataclass(frozen=True, kw_only=True)
class Risk:
    """Limit violations over scenarios. NaN where a bus has no limit or a branch no rating."""

    num_rows: int
    """Scenarios behind the numbers: those with a solution."""
    under_probability: Real
    """(B,) share of scenarios below the lower voltage limit."""
    over_probability: Real
    """(B,) share of scenarios above the upper voltage limit."""
    voltage_violation: Real
    """(B,) expected distance outside the limits, p.u., 0 for scenarios inside."""
    overload_probability: Real
    """(E,) share of scenarios with a loading above 1."""
    overload: Real
    """(E,) expected loading beyond 1, 0 for scenarios below."""
    loading: Real
    """(E,) mean loading."""
    any_voltage: float
    """Share of scenarios with a voltage outside limits at some bus."""
    any_overload: float
    """Share of scenarios with an overload of some branch."""
    voltage_excess: float
    """Expected sum over buses of the violation, in half widths of the allowed band."""
    overload_excess: float
    """Expected sum over branches of the loading beyond 1."""

    @property
    def excess(self) -> float:
        """Expected sum of limit violations, each as a share of what its limit allows."""
        return self.voltage_excess + self.overload_excess

    @property
    def bus_probability(self) -> Real:
        """(B,) share of scenarios outside either voltage limit."""
        return np.fmax(0, self.under_probability) + np.fmax(0, self.over_probability)


class RiskCounter:
    """Adds up limit violations block by block, so that memory does not grow with scenarios."""

    def __init__(self, network: Network):
        self.network = network
        low, high = network.bus_v_min, network.bus_v_max
        self._low, self._high = np.nan_to_num(low, nan=-np.inf), np.nan_to_num(high, nan=np.inf)
        half = (high - low) / 2
        # With one limit only, or a band of no width, 0.05 p.u. stands for the half width.
        self._half = np.where(np.isfinite(half) & (half > 0), half, 0.05)
        self._rated = np.flatnonzero(network.branch_rated & network.branch_in_service)
        self._branches = _only_branches(network, self._rated)
        self._rows = 0
        self._bus = np.zeros((3, network.num_buses))
        self._branch = np.zeros((3, network.num_branches))
        self._total = np.zeros(4)

    def add(self, voltage: Complex) -> None:
        """Count scenarios with voltages (R, B); rows that are not finite are left out."""
        voltage = voltage[np.isfinite(voltage).all(1)]
        magnitude = np.abs(voltage)
        below, above = self._low - magnitude, magnitude - self._high
        under, over = below > MARGIN, above > MARGIN
        outside = np.maximum(np.where(under, below, 0), np.where(over, above, 0))
        self._bus += [under.sum(0), over.sum(0), outside.sum(0)]
        loading = branch_loading(self._branches, voltage)
        overloaded = loading > 1 + MARGIN
        beyond = np.where(overloaded, loading - 1, 0)
        self._branch[:, self._rated] += [overloaded.sum(0), beyond.sum(0), loading.sum(0)]
        self._total += [
            (under | over).any(1).sum(),
            overloaded.any(1).sum(),
            (outside / self._half).sum(),
            beyond.sum(),
        ]
        self._rows += len(voltage)

    def result(self) -> Risk:
        """The statistics of all scenarios added so far; NaN throughout if there are none."""
        rows = self._rows or np.nan
        limited = ~np.isnan(self.network.bus_v_min), ~np.isnan(self.network.bus_v_max)
        rated = self.network.branch_rated
        return Risk(
            num_rows=self._rows,
            under_probability=np.where(limited[0], self._bus[0] / rows, np.nan),
            over_probability=np.where(limited[1], self._bus[1] / rows, np.nan),
            voltage_violation=np.where(limited[0] | limited[1], self._bus[2] / rows, np.nan),
            overload_probability=np.where(rated, self._branch[0] / rows, np.nan),
            overload=np.where(rated, self._branch[1] / rows, np.nan),
            loading=np.where(rated, self._branch[2] / rows, np.nan),
            any_voltage=float(self._total[0] / rows),
            any_overload=float(self._total[1] / rows) if rated.any() else float("nan"),
            voltage_excess=float(self._total[2] / rows),
            overload_excess=float(self._total[3] / rows),
        )


def _only_branches(network: Network, which: Int) -> Network:
    """The network with these branches alone: all that their loading needs."""
    return replace(
        network,
        branch_labels=tuple(network.branch_labels[b] for b in which),
        branch_from=network.branch_from[which],
        branch_to=network.branch_to[which],
        branch_y=network.branch_y[which],
        branch_in_service=network.branch_in_service[which],
        branch_rating=network.branch_rating[which],
        branch_rated=network.branch_rated[which],
    )


def risk_of(network: Network, voltage: Complex) -> Risk:
    """Statistics of limit violations over the scenarios whose voltages (R, B) are finite.

    Limits and ratings are the network's; `with_limits` sets others.
    """
    counter = RiskCounter(network)
    counter.add(voltage)
    return counter.result()


def severity(*, excess: float, unsolved: float) -> float:
    """One number to rank outages that have a nominal solution, larger being worse.

    The expected sum over buses and branches of what exceeds a limit, each as a share of what the
    limit allows (loading beyond 1; distance outside the voltage band over its half width), plus
    `UNSOLVED_SCENARIO` for each scenario without a solution. 0 means that no limit is exceeded
    in any scenario.

    Args:
        excess: `Risk.excess` over the scenarios with a solution; NaN if there are none.
        unsolved: share of scenarios without a solution.
    """
    solved_part = (1 - unsolved) * excess if unsolved < 1 else 0.0
    return float(solved_part + UNSOLVED_SCENARIO * unsolved)


def lost_supply_severity(mw_at_risk: float) -> float:
    """Severity of an outage that cuts load off or has no nominal solution: above all others.

    These are ordered by the MW at risk: the demand cut off, or all demand times the share of
    scenarios without a solution.
    """
    return LOST_SUPPLY + float(mw_at_risk)
