"""Columns of an outage's row from what its scenarios say."""

from typing import Any

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.grid.controls import ControlCounts
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus
from gridshift.grid.statistics import Statistics
from gridshift.study.risk import UNSOLVED_SCENARIO, Estimate, Risk, risk_from, severity, wilson
from gridshift.study.row import OutageRow
from gridshift.study.setting import Setting

SEEN = 1e-9
"""Expected violation from which a bus or branch is named."""
CHANGED = 1e-6
"""The same of what an outage adds: two solutions at a tolerance of 1e-8 differ by less."""


def counted(
    setting: Setting, network: Network, statistics: Statistics, unsolved: float
) -> dict[str, Any]:
    """What the scenarios of one outage say, on a network with the limits they count against.

    Args:
        statistics: of the scenarios with a solution.
        unsolved: share of scenarios without one.
    """
    moved = np.abs(statistics.mean_voltage() - setting.voltage)
    if network.apart:
        moved = np.delete(moved, network.apart)
    risk = risk_from(network, statistics)
    bus = _worst(risk.voltage_violation)
    branch = _worst(risk.overload)
    emergency = _worst(risk.emergency_probability)
    under, over = _worst(risk.under_probability), _worst(risk.over_probability)
    return {
        "status": RowStatus.SOLVED.text,
        "reason": "" if risk.num_rows else "no scenario has a solution",
        "severity": severity(excess=risk.excess, unsolved=unsolved),
        "unsolved": unsolved,
        "num_scenarios": risk.num_rows,
        **_estimates(risk, unsolved, setting.config.num_scenarios),
        "excess": risk.excess,
        "voltage_excess": risk.voltage_excess,
        "overload_excess": risk.overload_excess,
        "any_voltage": risk.any_voltage,
        "any_overload": risk.any_overload,
        "any_emergency": risk.any_emergency,
        "emergency_branch": _label(network.branch_labels, emergency),
        "emergency_probability": _at(risk.emergency_probability, emergency),
        "shift": float(moved.mean()),
        "worst_bus": _label(network.bus_labels, bus),
        "worst_bus_probability": _at(risk.bus_probability, bus),
        "worst_bus_share": _at(risk.worst_bus_share, bus),
        "worst_branch": _label(network.branch_labels, branch),
        "worst_branch_probability": _at(risk.overload_probability, branch),
        "worst_branch_share": _at(risk.worst_branch_share, branch),
        "under_bus": _label(network.bus_labels, under),
        "under_probability": _at(risk.under_probability, under),
        "over_bus": _label(network.bus_labels, over),
        "over_probability": _at(risk.over_probability, over),
        "worst_voltage": risk.worst_voltage._asdict(),
        "worst_loading": risk.worst_loading._asdict(),
        "scenario_excess": risk.scenario_excess._asdict(),
        **_arrays(risk),
    }


def limits_reached(
    network: Network, at_limit: Int, any_at_limit: int, num_rows: int
) -> dict[str, Any]:
    """Columns on reactive limits, from the numbers of scenarios at the upper and the lower one.

    Args:
        at_limit: (2, B)
        any_at_limit: scenarios with generators at a limit anywhere.
        num_rows: scenarios with a solution.
    """
    high, low = at_limit / max(num_rows, 1)
    bus = _worst(high + low)
    return {
        "any_at_limit": any_at_limit / num_rows if num_rows else np.nan,
        "limit_bus": _label(network.bus_labels, bus),
        "limit_probability": _at(high + low, bus),
        "bus_at_q_max": high,
        "bus_at_q_min": low,
    }


def controls_moved(
    intact: Network, network: Network, counts: ControlCounts, num_rows: int
) -> dict[str, Any]:
    """Columns on controls.

    Args:
        intact: whose controls they are.
        network: the grid after the outage, which may have fewer.
        counts: of all scenarios.
        num_rows: scenarios with a solution.
    """
    shares = np.full((2, len(intact.controls)), np.nan)
    place = {one.label: c for c, one in enumerate(intact.controls)}
    for c, one in enumerate(network.controls):
        if one.on(network) and num_rows:
            shares[:, place[one.label]] = counts.moved[c] / num_rows, counts.at_end[c] / num_rows
    labels = tuple(one.label for one in intact.controls)
    (moved, at_end), most = shares, [_worst(share) for share in shares]
    return {
        "any_moved": counts.any_moved / num_rows if num_rows else np.nan,
        "moved_control": _label(labels, most[0]),
        "moved_probability": _at(moved, most[0]),
        "end_control": _label(labels, most[1]),
        "end_probability": _at(at_end, most[1]),
        "control_moved": moved,
        "control_at_end": at_end,
    }


def _estimates(risk: Risk, unsolved: float, num_scenarios: int) -> dict[str, float]:
    """Probability of a violation, and standard errors."""
    if not risk.num_rows:
        return {**interval(wilson(1.0, num_scenarios)), "severity_standard_error": 0.0}
    solved = 1 - unsolved
    drawn = round(risk.num_rows / solved) if solved > 0 else 0
    probability = wilson(unsolved + solved * risk.any_violation, drawn)
    second = solved * (risk.excess_variance + risk.excess**2) + unsolved * UNSOLVED_SCENARIO**2
    variance = second - severity(excess=risk.excess, unsolved=unsolved) ** 2
    return {
        **interval(probability),
        "severity_standard_error": float(np.sqrt(max(0.0, variance) / drawn)) if drawn else np.nan,
    }


def interval(probability: Estimate) -> dict[str, float]:
    """Columns of the probability of a violation."""
    return {
        "violation_probability": probability.share,
        "violation_low": probability.low,
        "violation_high": probability.high,
        "standard_error": probability.standard_error,
    }


def added(row: dict[str, Any], reference: OutageRow, network: Network) -> dict[str, Any]:
    """What the outage adds to the intact grid, which has the same buses and branches."""
    told = {
        "added_severity": row["severity"] - reference.severity,
        "added_probability": row.get("violation_probability", np.nan)
        - reference.violation_probability,
    }
    if not len(row.get("bus_violation", ())):
        return told
    outside, before = row["bus_violation"], reference.bus_violation
    bus = _worst(outside - _known(before), CHANGED)
    probability = sum(
        _known(row[name]) - _known(getattr(reference, name)) for name in ("bus_under", "bus_over")
    )
    branch = _worst(row["branch_overload"] - _known(reference.branch_overload), CHANGED)
    overloaded = row["branch_overload_probability"] - _known(reference.branch_overload_probability)
    return told | {
        "added_bus": _label(network.bus_labels, bus),
        "added_bus_probability": _at(np.asarray(probability), bus),
        "added_branch": _label(network.branch_labels, branch),
        "added_branch_probability": _at(overloaded, branch),
    }


def _arrays(risk: Risk) -> dict[str, Real]:
    least, p5, mean, p95, most = risk.voltage.T.copy()
    loading_p95, loading_p99, loading_max = risk.loading_tail.T.copy()
    return {
        "bus_under": risk.under_probability,
        "bus_over": risk.over_probability,
        "bus_violation": risk.voltage_violation,
        "bus_worst": risk.worst_bus_share,
        "bus_voltage_min": least,
        "bus_voltage_p5": p5,
        "bus_voltage_mean": mean,
        "bus_voltage_p95": p95,
        "bus_voltage_max": most,
        "branch_overload_probability": risk.overload_probability,
        "branch_emergency_probability": risk.emergency_probability,
        "branch_overload": risk.overload,
        "branch_loading": risk.loading,
        "branch_loading_p95": loading_p95,
        "branch_loading_p99": loading_p99,
        "branch_loading_max": loading_max,
        "branch_worst": risk.worst_branch_share,
    }


def _worst(size: Real, least: float = SEEN) -> int | None:
    """Entry with the largest size; None if there is none of a size that counts."""
    size = _known(size)
    at = int(size.argmax()) if size.size else 0
    return at if size.size and size[at] > least else None


def _known(values: Real) -> Real:
    """Values of at least 0, with 0 in the place of NaN: many times faster than `nan_to_num`."""
    return np.fmax(values, 0.0)


def _label(labels: tuple[str, ...], at: int | None) -> str:
    return "" if at is None else labels[at]


def _at(values: Real, at: int | None) -> float:
    """The value there; 0 where there is nothing to tell of."""
    return 0.0 if at is None else float(values[at])
