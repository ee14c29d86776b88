"""A study on the terminal, in 80 columns."""

from typing import TYPE_CHECKING

import numpy as np

from gridshift.arguments import how_many
from gridshift.cli.output import drawn_spread, table, text
from gridshift.grid.contingency import candidate_elements
from gridshift.study.verdict import Rise, largest_rises, worst_place
from gridshift.trial.exact import EXACT

if TYPE_CHECKING:
    from rich.console import Console

    from gridshift.grid.network import Network
    from gridshift.study.row import OutageRow
    from gridshift.study.screening import Screening


def print_study(console: "Console", result: "Screening", top: int, came_from: str | None) -> None:
    """The worst outages, the intact grid, the methods beside, and what was not analysed."""
    shown, config = result.rows[:top], result.config
    console.print(_ranking(result, top))
    for line in _legend(result, shown):
        console.print(line, style="dim")
    intact = result.intact
    console.print(
        f"\nintact grid: severity {text(intact['severity'])}, violation "
        f"{_probability(intact['violation_probability'], intact['standard_error'])} %"
        + (f", worst at {_worst(result.intact_row)}" if _worst(result.intact_row) else "")
    )
    if config.distributed_slack:
        console.print(f"generators share the imbalance by: {config.distributed_slack}")
    if config.q_limits:
        console.print(_at_limits(result))
    if config.controls:
        console.print(_moved(result))
    if result.beside:
        console.print(_beside(result))
    if result.system["num_with_rates"]:
        told = result.system
        console.print(
            f"per year, {how_many(int(told['num_with_rates']), 'outage')} with rates: "
            f"{text(told['violations_per_year'])} violations, "
            f"{text(told['energy_not_served_mwh'])} MWh not served"
        )
    cost = result.cost
    if cost.get("num_predicted") and config.corrects and config.method != EXACT:
        told = ", ".join(
            f"{cost['num_' + name]:,.0f} {name.replace('_', ' ')}"
            for name in ("kept_as_predicted", "repaired", "solved", "marked")
        )
        console.print(f"scenarios: {told}")
    for note in result.notes:
        console.print(f"note: {note}", style="dim")
    console.print(_seconds(result, came_from))
    if result.report is not None:
        console.print(f"report: {result.report}", soft_wrap=True)


def _at_limits(result: "Screening") -> str:
    """Which generators are at a reactive limit most often, over all outages alike."""
    known = [row for row in result.rows if len(row.bus_at_q_max)]
    if not known:
        return "reactive limits: no outage could be studied"
    high, low = np.nanmean([(row.bus_at_q_max, row.bus_at_q_min) for row in known], axis=0)
    most = [
        b for b in np.argsort(-(high + low), kind="stable")[:3].tolist() if high[b] + low[b] > 0
    ]
    named = ", ".join(
        f"{_place(result.network.bus_labels[b])} {_percent(high[b] + low[b])} "
        f"({'upper' if high[b] > low[b] else 'lower'})"
        for b in most
    )
    told = float(np.nanmean([row.any_at_limit for row in known]))
    most_often = f"; most often, in %, at {named}" if named else ""
    return f"reactive limits: reached in {_percent(told)} % of the scenarios{most_often}"


def _moved(result: "Screening") -> str:
    """Which controls move most often, over all outages alike, and which are at an end."""
    known = [row for row in result.rows if len(row.control_moved)]
    if not known:
        return "controls: the grid has none, or no outage could be studied"
    labels, parts = [one.label for one in result.network.controls], []
    for name, words in (("control_moved", "most often"), ("control_at_end", "at their end")):
        shares = np.array([getattr(row, name) for row in known])
        share = np.fmax(shares, 0).sum(0) / np.maximum(1, np.isfinite(shares).sum(0))
        most = [c for c in np.argsort(-share, kind="stable")[:3].tolist() if share[c] > 0]
        named = ", ".join(f"{labels[c]} {_percent(share[c])}" for c in most)
        parts += [f"{words}, in %: {named}"] if named else []
    moving = [row.any_moved for row in known if row.any_moved == row.any_moved]
    told = _percent(float(np.mean(moving))) if moving else "-"
    endless = max(row.unsettled for row in known)
    parts += [f"without end in up to {_percent(endless)} %"] if endless > 0 else []
    return "; ".join([f"controls: some move in {told} % of the scenarios", *parts])


def _ranking(result: "Screening", top: int):
    shown, config = result.rows[:top], result.config
    unsolved = any(row.unsolved > 0 for row in shown)
    emergency = any(row.any_emergency > 0 for row in shown)
    predicted = any(row.mae["overall"] == row.mae["overall"] for row in shown)
    rises = largest_rises(shown, result.intact_row)
    rows = [
        (
            rank,
            _named(row, result.network),
            f"{row.mw_at_risk:,.1f} MW" if row.lost_supply else row.severity,
            _probability(row.violation_probability, row.standard_error),
            *([_percent(row.any_emergency)] if emergency else []),
            *([_percent(row.unsolved)] if unsolved else []),
            _where(row),
            _adds(rise, result.network),
            *([row.mae["overall"]] if predicted else []),
        )
        for rank, (row, rise) in enumerate(zip(shown, rises, strict=True), 1)
    ]
    columns = (
        ">#", "…outage", ">severity", ">violation\n(%)",
        *([">emergency\n(%)"] if emergency else []), *([">unsolved\n(%)"] if unsolved else []),
        "worst at\n(% violated)", "it adds\n(%)", *([">error\n(p.u.)"] if predicted else []),
    )  # fmt: skip
    up_to = "up to " if config.precision is not None else ""
    title = (
        f"{result.network.name}: {how_many(len(result.rows), 'outage')}, {up_to}"
        f"{how_many(config.num_scenarios, 'scenario')} each, "
        f"{'solved' if config.method == EXACT else config.method}"
    )
    return table(title, columns, rows, note=_below(result, top))


def _named(row: "OutageRow", network: "Network") -> str:
    """The outage with its name, or the buses at the ends of a single branch."""
    branches = network.elements.get(row.outage, ())
    if row.name or len(branches) != 1:
        return f"{row.outage} {row.name}".rstrip()
    ends = (network.branch_from[branches[0]], network.branch_to[branches[0]])
    start, end = (_place(network.bus_labels[b]).removeprefix("bus:") for b in ends)
    return f"{row.outage} {start}–{end}"


def _where(row: "OutageRow") -> str | None:
    """Where limits are exceeded most, or why nothing is known."""
    if row.status == "solved":
        return _worst(row) or None
    if row.islanded:
        return f"{_worst(row)} (split)".strip()
    return row.status.replace("_", " ")


def _worst(row: "OutageRow") -> str:
    """The worst place, and how often its limit is exceeded."""
    label, share = worst_place(row)
    return label and f"{_place(label)} {_percent(share)}"


def _adds(rise: Rise, network: "Network") -> str | None:
    """The branch or bus whose violation the outage makes more likely by most, and by how much."""
    return f"{_place(rise.label(network))} +{_percent(rise.size)}" if rise.size > 0 else None


def _place(label: str) -> str:
    """A bus of many fused ones by the first of them."""
    first, plus, _ = label.partition("+")
    return first + "+…" * bool(plus)


def _percent(share: float) -> str:
    return "-" if share != share else f"{share * 100:.1f}"


def _probability(share: float, error: float) -> str:
    return "-" if share != share else f"{share * 100:.1f} ± {error * 100:.1f}"


def _legend(result: "Screening", shown: "tuple[OutageRow, ...]") -> list[str]:
    drawn = drawn_spread(result.config.spread)
    if result.config.study is not None:
        drawn = f"scenarios of {result.config.study}"
    lines = [
        "violation: share of scenarios with a limit exceeded or without a solution, ± standard "
        f"error; it adds: against the intact grid; {drawn}"
    ]
    if any(row.any_emergency > 0 for row in shown):
        lines.append("emergency: share of scenarios with a loading beyond an emergency rating")
    if any(row.mae["overall"] == row.mae["overall"] for row in shown):
        lines.append(
            "error: mean over all outputs of the hold-out; the standard error counts what the "
            "largest error there leaves undecided"
        )
    if any(row.lost_supply for row in shown):
        lines.append(
            "MW instead of a severity: loss of supply, ranked first by the demand at risk "
            "(severity 1e6 + MW in the files)"
        )
    islands = [row for row in shown if row.islanded]
    if islands:
        mw = max(row.mw_generation_cut_off for row in islands)
        gone = f", with up to {mw:,.1f} MW of generation" if mw > 0 else ""
        lines.append(
            f"split: buses are cut off{gone}; the rest of the grid is solved exactly, where "
            "a slack bus is left"
        )
    return lines


def _beside(result: "Screening"):
    rows = [
        (
            f"{one['method']}:{one['num_context']}" if one["num_context"] else one["method"],
            one["mae"]["overall"], one["rank_correlation"], _percent(one["missed_violations"]),
            one["num_failed"] or None, one["cost"]["train_s"],
            one["cost"]["data_s"] + one["cost"]["fit_s"], one["cost"]["predict_s"],
        )
        for one in result.beside
    ]  # fmt: skip
    columns = (
        "method", ">error\n(p.u.)", ">rank\nagrees", ">missed\n(%)", ">failed", ">training\n(s)",
        ">adapting\n(s)", ">predicting\n(s)",
    )  # fmt: skip
    num = max(one["num_outages"] for one in result.beside)
    note = (
        "error: mean over all outputs; rank: Spearman's correlation of severities; missed: share "
        "of the scenarios with a violation in which none is predicted; times of all outages, the "
        f"exact sweep took {text(float(result.cost['predict_s']))} s of computing"
    )
    return table(
        f"\nbeside, on the same scenarios of {how_many(num, 'outage')}", columns, rows, note=note
    )


def _seconds(result: "Screening", came_from: str | None) -> str:
    cost = result.cost
    seconds = f"{text(float(cost['train_s']))} s"
    trained = {
        "trained": f"training {seconds} (once for this grid), ",
        "reused": f"surrogate reused (its training took {seconds}), ",
        "given": f"surrogate given (its training took {seconds}), ",
    }.get(came_from or "", "")
    found = f", {how_many(int(cost['resumed']), 'outage')} found finished" * bool(cost["resumed"])
    workers = result.config.num_workers
    if cost["resumed"] == len(result.rows):
        return f"{trained}all outages found finished"
    return (
        f"{trained}sweep {text(float(cost['sweep_s']))} s on {how_many(workers, 'worker')}{found}"
    )


def _below(result: "Screening", top: int) -> str:
    more = len(result.rows) - top
    parts = [f"{more:,} more in the report"] if more > 0 else []
    if result.splitting:
        named = [f"{one['outage']} {one['mw_cut_off']:,.1f} MW" for one in result.splitting[:3]]
        left = len(result.splitting) - len(named)
        parts.append(
            f"not ranked, as they cut demand off: {', '.join(named)}"
            + (f" and {left:,} more" if left else "")
        )
    if result.config.contingencies == "lines" and candidate_elements(result.network, "trafos"):
        parts.append("transformers: --contingencies trafos, or all")
    return "; ".join(parts)
