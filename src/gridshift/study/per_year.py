"""What outages mean in a year, where it is known how often they happen."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gridshift.grid.contingency import outage_text
from gridshift.grid.network import Network
from gridshift.grid.outage_list import Contingency
from gridshift.study.row import OutageRow


def with_failure_rates(
    rows: Sequence[OutageRow], contingencies: Sequence[Contingency], network: Network
) -> list[OutageRow]:
    """The rows with name, failure rate and what follows from it."""
    known = {outage_text(one.outage): one for one in contingencies}
    demand_mw = float(network.bus_demand.sum() * network.base_mva)
    return [_with_rate(row, known[row.outage], demand_mw) for row in rows]


def _with_rate(row: OutageRow, listed: Contingency, demand_mw: float) -> OutageRow:
    rate, hours = listed.failures_per_year, listed.repair_hours
    probability = 1.0 if row.lost_supply else row.violation_probability
    return replace(
        row,
        name=listed.name,
        failures_per_year=rate,
        repair_hours=hours,
        violations_per_year=rate * probability,
        energy_not_served_mwh=rate * hours * row.mw_not_served(demand_mw),
    )


def system_per_year(rows: Sequence[OutageRow]) -> dict[str, float]:
    """Sums over the outages that have rates; outages at the same time are not in it."""
    columns = ("failures_per_year", "violations_per_year", "energy_not_served_mwh")
    sums = {name: np.array([getattr(row, name) for row in rows], float) for name in columns}
    rated = {f"num_with_{name}": int(np.isfinite(values).sum()) for name, values in sums.items()}
    totals = {
        name: float(np.nansum(values)) if rated[f"num_with_{name}"] else float("nan")
        for name, values in sums.items()
    }
    return totals | {"num_with_rates": rated["num_with_failures_per_year"]}
