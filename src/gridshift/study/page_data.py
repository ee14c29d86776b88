"""What the page of a study draws from: whole numbers in base64, few enough for one small file.

Voltages are in 1e-4 p.u., loadings in 1e-3, probabilities in 1e-4 and at least 1 where a violation
was met; 65535 stands for no number. Arrays are little-endian, quantity by quantity.
"""

import base64
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.grid.names import described
from gridshift.grid.statistics import rated_branches
from gridshift.study.frames import rating_ka
from gridshift.study.positions import positions
from gridshift.study.row import OutageRow
from gridshift.study.screening import Screening
from gridshift.study.verdict import (
    Rise,
    branch_probability,
    bus_probability,
    limit_probability,
)

MOST_ROWS = 20_000
"""Outages in the table; the files have all."""
FULL_BYTES, SHORT_BYTES = 4_000_000, 1_300_000
"""Of the page: for outages with every bus and branch, and for those with the most affected."""
NUM_SHORT = 12
"""Buses and branches of the latter."""
NUM_MISSED = 10
"""Outages of which surrogates miss most, in a table of their own."""
NUM_HEAT_ROWS, NUM_HEAT_COLUMNS = 25, 36
NOTHING = 65535
BUS = ("min", "p5", "mean", "p95", "max")
BRANCH = ("", "_p95", "_p99", "_max")


def page_data(study: Screening, rises: Sequence[Rise]) -> dict[str, Any]:
    """All that the page's script needs; `rises` are those of the rows."""
    rows = study.rows[:MOST_ROWS]
    rated = rated_branches(study.limited)
    grid = _grid(study, rated)
    details, num_full = _details(study, rows, rated, emergency=grid["emergency"])
    return {
        "grid": grid,
        "intact": _packed(study.intact_row, None, rated, None, emergency=grid["emergency"]),
        "intactSeverity": _real(study.intact["severity"]),
        "rows": _rows(study, rows, rises[:MOST_ROWS]),
        "details": details,
        "numFull": num_full,
        "heat": {name: _heat(study, rows, bus=name == "voltage")
                 for name in ("voltage", "overload")},
        "beside": _beside(study, rows),
        "splitting": {split["outage"]: _real(split["mw_cut_off"]) for split in study.splitting},
    }  # fmt: skip


def _grid(study: Screening, rated: Int) -> dict[str, Any]:
    network = study.limited
    xy, given = positions(network)
    elements = sorted(set(network.branch_labels) - {""}, key=network.branch_labels.index)
    number = {label: i for i, label in enumerate(elements)}
    return {
        "buses": [described(network, label) for label in network.bus_labels],
        "kv": [_real(kv) for kv in network.bus_kv],
        "elements": [described(network, label) for label in elements],
        "labels": elements,
        "busLabels": list(network.bus_labels),
        "element": _base64([number.get(label, -1) for label in network.branch_labels], "<i4"),
        "from": _base64(network.branch_from, "<u4"),
        "to": _base64(network.branch_to, "<u4"),
        "on": _base64(network.branch_in_service, "<u2"),
        "xy": _base64(np.rint(xy * 60000), "<u2"),
        "given": given,
        "low": _base64(_whole(network.bus_v_min, 1e4), "<u2"),
        "high": _base64(_whole(network.bus_v_max, 1e4), "<u2"),
        "rated": _base64(rated, "<u4"),
        "emergency": bool(np.isfinite(network.branch_emergency[rated]).any()),
        "ka": [_real(value) for value in rating_ka(network)[rated]],
    }


def _rows(study: Screening, rows: Sequence[OutageRow], rises: Sequence[Rise]) -> dict[str, list]:
    network = study.network
    first = {label: branches[0] for label, branches in network.elements.items()}
    return {
        "label": [row.outage for row in rows],
        "name": [row.name for row in rows],
        "status": [row.status.replace("_", " ") for row in rows],
        "reason": [row.reason for row in rows],
        "severity": [_real(row.severity) for row in rows],
        "mw": [_real(row.mw_at_risk) if row.lost_supply else None for row in rows],
        "p": [_real(limit_probability(row)) for row in rows],
        "sure": [[_real(row.violation_low), _real(row.violation_high)] for row in rows],
        "emergency": [_real(row.any_emergency) for row in rows],
        "emergencyBranch": [first.get(row.emergency_branch, -1) for row in rows],
        "emergencyP": [_real(row.emergency_probability) for row in rows],
        "voltage": [_real(row.any_voltage) for row in rows],
        "overload": [_real(row.any_overload) for row in rows],
        "unsolved": [_real(row.unsolved) for row in rows],
        "rise": [_real(rise.size) for rise in rises],
        "riseBus": [rise.at if rise.is_bus else -1 for rise in rises],
        "riseBranch": [-1 if rise.is_bus else rise.at for rise in rises],
        "bus": [network.bus_rows.get(row.worst_bus, -1) for row in rows],
        "branch": [first.get(row.worst_branch, -1) for row in rows],
        "cut": [[network.bus_rows[label] for label in row.cut_off] for row in rows],
        "cutMw": [[_real(row.mw_cut_off), _real(row.mw_generation_cut_off)] for row in rows],
        "n": [row.num_scenarios for row in rows],
        "shift": [_real(row.shift) for row in rows],
        "error": [_real(row.mae["overall"]) for row in rows],
        "holdout": [
            [_real(row.holdout_excess), _real(row.holdout_excess_predicted)] for row in rows
        ],
        "tails": [
            [[_real(of.get(key)) for key in ("mean", "p95", "p99", "max")]
             for of in (row.worst_voltage, row.worst_loading)] for row in rows
        ],
    }  # fmt: skip


def _beside(study: Screening, rows: Sequence[OutageRow]) -> list[dict[str, Any]]:
    """Of each method: its name, and by rank severity, error, and scenarios missed, violated, false.

    Exact severities are of the scenarios with a solution, those that it was compared on.
    """
    rank_of = {row.outage: rank for rank, row in enumerate(rows)}
    numbers = ("severity", "exact_severity", "mae", "num_missed", "num_violated", "num_false")
    return [
        {
            "name": one["method"],
            "at": {
                rank_of[of["outage"]]: [_real(float(of[name])) for name in numbers]
                for of in one["outages"] if of["outage"] in rank_of
            },
        }
        for one in study.beside
    ]  # fmt: skip


def most_missed(study: Screening) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """Outages of which methods miss most violations, and what each of the methods says of them."""
    of = [{found["outage"]: found for found in one["outages"]} for one in study.beside]
    missed = {
        row.outage: max((each[row.outage]["num_missed"] for each in of if row.outage in each),
                        default=0)
        for row in study.rows
    }  # fmt: skip
    worst = sorted((name for name in missed if missed[name]), key=lambda name: -missed[name])
    return [(name, [each.get(name) for each in of]) for name in worst[:NUM_MISSED]]


def _details(
    study: Screening, rows: Sequence[OutageRow], rated: Int, *, emergency: bool
) -> tuple[dict[int, dict[str, str]], int]:
    """By rank counted from 0; and how many outages have every bus and branch."""
    by_branch = len(BRANCH) + 1 + emergency
    each = 4 / 3 * 2 * ((len(BUS) + 2) * study.network.num_buses + by_branch * len(rated))
    studied = [rank for rank, row in enumerate(rows) if len(row.bus_voltage_mean)]
    num_full = min(len(studied), int(FULL_BYTES / each))
    found = {
        rank: _packed(rows[rank], None, rated, None, emergency=emergency)
        for rank in studied[:num_full]
    }
    short = 8 / 3 * NUM_SHORT * (len(BUS) + len(BRANCH) + 7)
    for rank in studied[num_full : num_full + int(SHORT_BYTES / short)]:
        buses, branches = _most_affected(rows[rank], study.intact_row, rated)
        found[rank] = _packed(rows[rank], buses, rated, branches, emergency=emergency)
    return found, num_full


def _most_affected(row: OutageRow, intact: OutageRow, rated: Int) -> tuple[Int, Int]:
    """Buses, and places among the rated branches, by the rise of a violation, then by the shift."""
    rise = np.fmax(bus_probability(row), 0) - np.fmax(bus_probability(intact), 0)
    moved = np.abs(row.bus_voltage_mean - intact.bus_voltage_mean)
    bus = _largest(rise * 100 + np.fmax(moved, 0))
    rise = np.fmax(branch_probability(row), 0) - np.fmax(branch_probability(intact), 0)
    return bus, _largest((rise * 100 + np.fmax(row.branch_loading_p99, 0))[rated])


def _largest(score: Real) -> Int:
    if len(score) <= NUM_SHORT:
        return np.arange(len(score))
    return np.sort(np.argpartition(-score, NUM_SHORT)[:NUM_SHORT])


def _packed(
    of: OutageRow, buses: Int | None, rated: Int, branches: Int | None, *, emergency: bool
) -> dict[str, str]:
    """Quantities of buses and rated branches: all of them, or those given, whose numbers follow."""
    voltage = [getattr(of, f"bus_voltage_{name}") for name in BUS]
    loading = [getattr(of, f"branch_loading{name}") for name in BRANCH]
    under, over = of.bus_under, of.bus_over
    at = slice(None) if buses is None else buses
    on = rated if branches is None else rated[branches]
    by_bus = [*(_whole(v[at], 1e4) for v in voltage), _share(under[at]), _share(over[at])]
    by_branch = [*(_whole(v[on], 1e3) for v in loading), _share(branch_probability(of)[on])]
    if emergency:
        by_branch.append(_share(of.branch_emergency_probability[on]))
    packed = {"b": _base64(np.concatenate(by_bus), "<u2"),
              "l": _base64(np.concatenate(by_branch), "<u2")}  # fmt: skip
    if buses is not None and branches is not None:
        packed |= {"bi": _base64(buses, "<u4"), "li": _base64(branches, "<u4")}
    return packed


def _heat(study: Screening, rows: Iterable[OutageRow], *, bus: bool) -> dict[str, Any] | None:
    """Probabilities of violations on the intact grid and after the worst outages; None for none."""
    share = bus_probability if bus else branch_probability
    before = np.fmax(share(study.intact_row), 0)
    found: list[tuple[int, Real]] = []
    for rank, row in enumerate(rows):
        after = np.fmax(share(row), 0)
        if len(after) and ((after - before) > 0).any():
            found.append((rank, after))
        if len(found) == NUM_HEAT_ROWS:
            break
    if not found:
        return None
    matrix = np.array([before, *(after for _, after in found)])
    rise = np.maximum(0, matrix - before).sum(axis=0)
    columns = np.sort(np.argsort(-rise, kind="stable")[:NUM_HEAT_COLUMNS])
    columns = columns[rise[columns] > 0]
    return {"ranks": [rank for rank, _ in found], "columns": columns.tolist(),
            "p": [[_real(p) for p in line] for line in matrix[:, columns]]}  # fmt: skip


def _whole(values: Real, scale: float) -> Real:
    return np.where(np.isnan(values), NOTHING, np.minimum(np.rint(values * scale), NOTHING - 1))


def _share(values: Real) -> Real:
    return np.where(np.isnan(values), NOTHING, np.maximum(np.rint(values * 1e4), values > 0))


def _base64(values: Any, kind: str) -> str:
    return base64.b64encode(np.asarray(values).astype(kind).tobytes()).decode()


def _real(value: float | None) -> float | None:
    """Five significant digits; None for no number."""
    if value is None or not np.isfinite(value):
        return None
    return float(f"{value:.5g}")
