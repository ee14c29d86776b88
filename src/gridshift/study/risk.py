"""What the voltages of many scenarios say about limits: per bus, per branch, and as one number."""

from dataclasses import dataclass

import numpy as np

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.network import Network
from gridshift.grid.statistics import Distribution, Limits, Statistics, half_width, rated_branches

LOST_SUPPLY = 1e6
"""Severity of an outage after which load is left without supply, before the MW are added."""
UNSOLVED_SCENARIO = 100.0
"""Severity of a scenario without a solution, in units of limits exceeded by their own size."""
CONFIDENCE = 0.95
Z = 1.959963984540054
"""Its quantile of the normal distribution."""
VOLTAGE_SHARES, LOADING_SHARES = (0.05, 0.95), (0.95, 0.99)
"""Quantiles of a bus's voltages and of a branch's loadings."""


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
    voltage: Real
    """(B, 5) least, 5 % quantile, mean, 95 % quantile and largest magnitude, p.u."""
    loading_tail: Real
    """(E, 3) 95 % and 99 % quantile and largest of the loading."""
    worst_bus_share: Real
    """(B,) share of scenarios in which it has the worst voltage."""
    worst_branch_share: Real
    """(E,) share of scenarios in which it has the highest loading."""
    worst_voltage: Distribution
    """Of each scenario's worst voltage: distance from the middle of its band in half widths."""
    worst_loading: Distribution
    """Of each scenario's highest loading."""
    scenario_excess: Distribution
    """Of each scenario's sum of limit violations, whose mean is `excess`."""
    any_violation: float
    """Share of scenarios in which any limit is exceeded."""
    any_emergency: float
    """Share of scenarios in which a loading exceeds an emergency rating; NaN without one."""
    emergency_probability: Real
    """(E,) share of scenarios with a loading beyond the emergency rating, NaN without one."""
    excess_variance: float
    """Of the sum of limit violations over scenarios."""

    @property
    def excess(self) -> float:
        """Expected sum of limit violations, each as a share of what its limit allows."""
        return self.voltage_excess + self.overload_excess

    @property
    def bus_probability(self) -> Real:
        """(B,) share of scenarios outside either voltage limit."""
        return np.fmax(0, self.under_probability) + np.fmax(0, self.over_probability)


def risk_from(network: Network, statistics: Statistics) -> Risk:
    """What statistics say about the limits that they were counted against, which are `network`'s.

    NaN throughout if there are no scenarios.
    """
    counts, rows = statistics.counts, statistics.num_rows or np.nan
    low, high = ~np.isnan(network.bus_v_min), ~np.isnan(network.bus_v_max)
    rated, num_branches = rated_branches(network), network.num_branches
    outside = statistics.mean(counts.bus_sums[:, 1])
    voltage = statistics.voltages(VOLTAGE_SHARES)
    scenarios = statistics.scenarios()
    violations = scenarios[2] + scenarios[5]
    excess = np.zeros(network.num_buses)
    np.divide(outside, half_width(network), out=excess, where=low | high)
    by_branch = np.full((num_branches, 8), np.nan)
    by_branch[rated, :2] = statistics.mean(counts.branch_sums)
    by_branch[rated, 2:5] = statistics.loadings(LOADING_SHARES)[:, [2, 3, 1]]
    by_branch[rated, 5] = counts.overloaded / rows
    by_branch[rated, 6] = counts.emergency / rows
    by_branch[rated, 7] = _shares(scenarios[4], len(rated), rows)
    loading, beyond, *_, overloaded, emergency, worst = by_branch.T.copy()

    return Risk(
        num_rows=statistics.num_rows,
        under_probability=np.where(low, counts.under / rows, np.nan),
        over_probability=np.where(high, counts.over / rows, np.nan),
        voltage_violation=np.where(low | high, outside, np.nan),
        overload_probability=overloaded,
        overload=beyond,
        loading=loading,
        any_voltage=float((scenarios[2] > 0).sum() / rows),
        any_overload=float((scenarios[5] > 0).sum() / rows) if len(rated) else float("nan"),
        voltage_excess=float(excess.sum()),
        overload_excess=float(beyond[rated].sum() if statistics.num_rows else np.nan),
        voltage=np.column_stack(
            [voltage[:, 0], voltage[:, 2], statistics.mean(counts.bus_sums[:, 0]),
             voltage[:, 3], voltage[:, 1]]
        ),
        loading_tail=by_branch[:, 2:5],
        worst_bus_share=_shares(scenarios[1], network.num_buses, rows),
        worst_branch_share=worst,
        worst_voltage=Distribution.of(scenarios[0, scenarios[1] >= 0]),
        worst_loading=Distribution.of(scenarios[3, scenarios[4] >= 0]),
        scenario_excess=Distribution.of(violations),
        any_violation=float((violations > 0).sum() / rows),
        any_emergency=float((scenarios[6] > 0).sum() / rows)
        if np.isfinite(network.branch_emergency[rated]).any() else float("nan"),
        emergency_probability=np.where(
            np.isfinite(network.branch_emergency), emergency, np.nan
        ),
        excess_variance=float(np.sort(violations).var()) if len(violations) else float("nan"),
    )  # fmt: skip


def _shares(places: Real, size: int, rows: float) -> Real:
    """Share of scenarios in which each place is named; -1 names none."""
    found: Int = places[places >= 0].astype(np.int64)
    return np.bincount(found, minlength=size) / rows


def risk_of(network: Network, voltage: Complex) -> Risk:
    """Statistics of limit violations over the scenarios whose voltages (R, B) are finite.

    Limits and ratings are the network's; `with_limits` sets others.
    """
    statistics = Statistics(Limits.of(network))
    statistics.add_complex(voltage)
    return risk_from(network, statistics)


def severity(*, excess: float, unsolved: float) -> float:
    """One number to rank outages that have a nominal solution, larger being worse.

    The expected sum over buses and branches of what exceeds a limit, each as a share of what the
    limit allows (loading beyond 1; distance outside the voltage band over its half width), plus
    `UNSOLVED_SCENARIO` for each scenario without a solution. 0 means that no limit is exceeded
    in any scenario.

    Args:
        excess: `Risk.excess` over the scenarios with a solution; NaN if there are none.
    """
    solved_part = (1 - unsolved) * excess if unsolved < 1 else 0.0
    return float(solved_part + UNSOLVED_SCENARIO * unsolved)


def lost_supply_severity(mw_at_risk: float) -> float:
    """Severity of an outage that cuts load off or has no nominal solution: above all others.

    These are ordered by the MW at risk: the demand cut off, or all demand times the share of
    scenarios without a solution.
    """
    return LOST_SUPPLY + float(mw_at_risk)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A probability from a number of scenarios, after Wilson (1927)."""

    share: float
    low: float
    high: float
    """Bounds of the interval of `CONFIDENCE`."""

    @property
    def half_width(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2

    def of_the_rest(self, taken: "Estimate") -> "Estimate":
        """Of what this happens to or another takes: this is a share of what the other leaves."""
        parts = {
            name: getattr(taken, name) + (1 - getattr(taken, name)) * getattr(self, name)
            for name in ("share", "low", "high")
        }
        return Estimate(**parts)

    @property
    def standard_error(self) -> float:
        """Half the width of the interval over its normal quantile: not 0 where none was seen."""
        return self.half_width / Z


def wilson(share: float, num_rows: int) -> Estimate:
    """The probability that a share of so many independent scenarios tells; NaN for none."""
    if not num_rows:
        return Estimate(share=float("nan"), low=float("nan"), high=float("nan"))
    n, z2 = num_rows, Z**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z / (1 + z2 / n) * float(np.sqrt(share * (1 - share) / n + z2 / (4 * n * n)))
    return Estimate(share=share, low=max(0.0, middle - half), high=min(1.0, middle + half))


def rows_for(precision: float) -> int:
    """Scenarios after which a Wilson interval is at most so wide to either side, come what may."""
    return max(1, int(np.ceil((Z / (2 * precision)) ** 2 - Z**2)))
