"""What a study tells as a whole: of the intact grid, of what happens in a year, of its cost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridshift.grid.contingency import outage_text
from gridshift.grid.network import Network
from gridshift.grid.outage_list import Contingency
from gridshift.study.outage import screen_outages
from gridshift.study.row import CERTIFIED, OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.study.setting import Setting
from gridshift.trial.cost import break_even_rows
from gridshift.trial.exact import EXACT

TOLD = (
    "severity", "unsolved", "violation_probability", "violation_low", "violation_high",
    "standard_error", "any_voltage", "any_overload", "any_emergency", "emergency_branch",
    "emergency_probability", "under_bus", "under_probability", "over_bus",
    "over_probability", "worst_bus", "worst_bus_probability", "worst_branch",
    "worst_branch_probability", "worst_voltage", "worst_loading", "num_scenarios",
)  # fmt: skip


def intact_row(setting: Setting) -> OutageRow:
    """The intact grid under all scenarios of the study, solved exactly: as an outage of nothing."""
    config = replace(
        setting.config, method=EXACT, precision=None, ignore_below=None, certify=None
    )  # fmt: skip
    exact = replace(setting, method=None, surrogate=None, config=config, threads=config.num_workers)
    return screen_outages(exact, [()])[0]


def told_of_intact(row: OutageRow) -> dict[str, Any]:
    """What a summary tells of the intact grid."""
    return {name: getattr(row, name) for name in TOLD}


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


def _certified(rows: Sequence[OutageRow], config: ScreenConfig) -> dict[str, float]:
    """Scenarios by what became of their predictions, if those were corrected."""
    if not config.corrects:
        return {}
    counts = {f"num_{name}": 0.0 for name in CERTIFIED[:-1]}
    for row in rows:
        for name in CERTIFIED[:-1]:
            if row.certified[name] == row.certified[name]:
                counts[f"num_{name}"] += row.certified[name]
    kept = counts.pop("num_predicted")
    return {**counts, "num_kept_as_predicted": kept}


def ledger(rows: Sequence[OutageRow], config: ScreenConfig, exact_us: float) -> dict[str, float]:
    """What the rows cost together, and what solving everything exactly would have cost."""
    names = rows[0].cost if rows else ()
    columns = {name: sum(row.cost[name] for row in rows) for name in names}
    columns["outages_s"] = columns.pop("wall_s", 0.0)
    # Where buses are cut off, the rest is solved and not predicted, whatever the method.
    by_method = [row for row in rows if config.method == EXACT or not row.exact]
    predicted = sum(row.num_scenarios for row in by_method)
    predict_s = sum(
        row.cost.get(name, 0.0) for row in by_method for name in ("predict_s", "certify_s")
    )
    predict_us = predict_s / predicted * 1e6 if predicted else float("nan")
    once = columns.get("data_s", 0.0) + columns.get("fit_s", 0.0)
    return {
        **columns,
        "num_solves": sum(row.num_solves for row in rows),
        "num_predicted": predicted,
        **_certified(rows, config),
        "predict_us_per_row": predict_us,
        "exact_us_per_row": exact_us,
        "exact_instead_s": exact_us * 1e-6 * config.num_scenarios * len(rows),
        "break_even_rows": break_even_rows(once / max(1, len(rows)), predict_us, 0.0, exact_us),
    }
