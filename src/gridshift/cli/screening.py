"""`gridshift screen`: every outage of a grid, ranked."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.cli.automatic import check_target, choice_json, chosen_method, print_choice
from gridshift.cli.bases import found_base, usable
from gridshift.cli.folders import require_writable
from gridshift.cli.group import command
from gridshift.cli.options import (
    AUTO,
    GRID_KEY,
    certify_options,
    context_option,
    drawn_options,
    export_option,
    grid_argument,
    method_option,
    surrogate_option,
    target_option,
)
from gridshift.cli.output import drawn_spread, emit, progress, table, text

if TYPE_CHECKING:
    from gridshift.grid.network import Network
    from gridshift.study.screening import ScreenConfig, Screening

COLUMNS = {
    "rank": "1 for the worst",
    "outage": "elements out of service",
    "status": "`solved`, `islanded`, another reason why there is no nominal solution, or `failed`",
    "reason": "in words, if it isn't solved",
    "severity": "expected sum of limit violations, each as a share of its limit (loading beyond 1; "
    "distance outside the voltage band over its half width), plus 100 for a scenario without a "
    "solution. From 1e6 on: loss of supply, 1e6 plus the MW at risk (demand cut off, or all demand "
    "times `unsolved` where there is no nominal solution)",
    "unsolved": "share of scenarios without a solution: of all for newton and with --certify, else "
    "of context and hold-out",
    "cut_off": "buses cut off; if no demand goes with them, the rest is solved exactly, whatever "
    "the method",
    "mw_cut_off": "nominal demand there, MW: all that draws active power, whatever is generated "
    "beside it",
    "mw_generation_cut_off": "scheduled generation there, MW",
    "num_scenarios": "scenarios behind the limit statistics",
    "num_context": "solved cases that the method was given",
    "num_solves": "solves that this outage took, failed ones included",
    "excess": "expected sum of limit violations over the scenarios with a solution",
    "voltage_excess": "the part of voltages",
    "overload_excess": "the part of overloads",
    "any_voltage": "share of scenarios with a voltage outside limits",
    "any_overload": "share of scenarios with an overload; null without ratings",
    "shift": "complex voltage shift, p.u.: mean over buses of the distance of the mean complex "
    "voltage from the intact grid's nominal one, mostly of angle; orders equal severities",
    "worst_bus": "bus with the largest expected violation, empty if there is none",
    "worst_bus_probability": "share of scenarios in which it is outside limits",
    "worst_branch": "branch with the largest expected overload, empty if there is none",
    "worst_branch_probability": "share of scenarios in which it is overloaded",
    "worst_voltage": "of each scenario's worst voltage, as distance from the middle of its band in "
    "half widths (1 at a limit): `mean`, `p95`, `p99`, `max`, `tail` (mean of the worst 5 %)",
    "worst_loading": "the same of each scenario's highest loading",
    "scenario_excess": "the same of each scenario's sum of limit violations",
    "mae": "errors on the hold-out, as in adapt",
    "mismatch": "power balance of the hold-out's predictions, as in adapt",
    "holdout_excess": "`excess` of the hold-out's exact solutions",
    "holdout_excess_predicted": "the same from the predictions of these rows",
    "certified": "with --certify or --correct-share: scenarios `predicted`, `repaired`, `solved`, "
    "`marked`; `worst_mismatch` of those counted, p.u.",
    "cost": "s: `data_s` (context), `holdout_s`, `fit_s`, `predict_s`, `certify_s`, `risk_s`, "
    "`wall_s`",
    "bus_under": "parquet only, as those that follow: by bus, share of scenarios below the limit",
    "bus_over": "by bus, share of scenarios above the limit",
    "bus_violation": "by bus, expected distance outside the limits, p.u.",
    "bus_worst": "by bus, share of scenarios in which no voltage is worse",
    "bus_voltage_min": "by bus, least voltage over scenarios, p.u.",
    "bus_voltage_p5": "by bus, its 5 % quantile to 0.004 p.u.",
    "bus_voltage_mean": "by bus, its mean",
    "bus_voltage_p95": "by bus, its 95 % quantile",
    "bus_voltage_max": "by bus, its largest",
    "branch_overload_probability": "by branch, share of scenarios with a loading above 1",
    "branch_overload": "by branch, expected loading beyond 1",
    "branch_loading": "by branch, mean loading",
    "branch_loading_p95": "by branch, 95 % quantile of the loading, to 0.016 below 2",
    "branch_loading_p99": "by branch, its 99 % quantile",
    "branch_loading_max": "by branch, its largest",
    "branch_worst": "by branch, share of scenarios in which no loading is higher",
}
"""Of each outage: columns of screening.parquet, keys in JSON."""


@command(
    writes={
        "out": ("screening.parquet", "summary.json", "report.html"),
        "export_to": ("outages.csv", "branches.parquet", "map.svg"),
    },
    keys=GRID_KEY
    | {
        "num_outages": "outages in the ranking",
        "method": "how the surrogate was adapted to each",
        "surrogate": "where it came from: `trained` now, `reused` from the cache, `given` by "
        "--surrogate; null for methods that start from none",
        "outages": "list, the worst first, with the keys of the next table up to `cost`",
        "splitting": "with lines, trafos, all, n-2: outages that cut demand off, not ranked: "
        "`outage`, `cut_off`, `mw_cut_off` (demand), `mw_generation_cut_off`; from a file they are "
        "in `outages`",
        "intact": "of the intact grid, solved exactly: `severity`, `unsolved`, `any_voltage`, "
        "`any_overload`, `num_scenarios`",
        "notes": "what the study cannot say, and warnings met on the way",
        "cost": "of the whole study: seconds `train_s` (of the surrogate, be it now or long ago), "
        "`sweep_s`, `wall_s`, and summed over outages `data_s`, `holdout_s`, `fit_s`, `predict_s`, "
        "`certify_s`, `risk_s`, `outages_s`; `num_solves`, `num_predicted`; with --certify "
        "`num_kept_as_predicted`, `num_repaired`, `num_solved`, `num_marked`; "
        "`predict_us_per_row`, `exact_us_per_row`, `exact_instead_s`, `break_even_rows` (scenarios "
        "per outage), `resumed` (outages found finished), `workers`",
        "config": "everything that decides the results, and `workers`, the number used",
        "about": "versions, machine, threads, digests",
        "report": "the page written for people",
        "choice": "with --method auto: `method`, `reason`, and the `ledger` of what was measured",
    },
    columns=COLUMNS,
    examples=[
        "gridshift screen case14 --surrogate base14 --context 50 --scenarios 200 --holdout 20 "
        "--out screened14",
        "gridshift screen case14 --contingencies all --method newton --scenarios 50 "
        "--spread 0.3 --seed 1 --v-min 0.94 --v-max 1.06 --rating 100 --workers 1 --top 5 "
        "--out screened14-newton",
        "gridshift screen case14 --method newton --scenarios 50 --export files14 --json",
        "gridshift screen case14 --method auto --target-mae 1e-3 --certify 1e-6 "
        "--correct-share 0.01 --scenarios 200 --context 50 --surrogate base14 --out certified14",
    ],
)
@grid_argument
@click.option(
    "--contingencies", default="lines", show_default=True, metavar="WHICH",
    help="lines, trafos, all, n-2 (pairs of lines), or a file with one outage a line.",
)  # fmt: skip
@click.option("--scenarios", default=1000, show_default=True, help="Load scenarios per outage.")
@method_option(
    "newton", AUTO,
    more="; newton solves all exactly, auto measures on the first outage and takes the cheapest",
)  # fmt: skip
@context_option("each topology")
@click.option(
    "--holdout", default=100, show_default=True, help="Scenarios solved to check each topology."
)
@drawn_options
@click.option("--v-min", type=float, help="Lower voltage limit of every bus, p.u.")
@click.option("--v-max", type=float, help="Upper voltage limit of every bus, p.u.")
@click.option("--rating", type=float, help="Rating where the grid gives none, MVA at 1 p.u.")
@click.option(
    "--workers", type=click.IntRange(1, 1024), help="Outages studied at once.  [default: all cores]"
)
@click.option(
    "--top", type=click.IntRange(min=1), default=15, show_default=True,
    help="Outages to show; the files have all.",
)  # fmt: skip
@surrogate_option
@certify_options
@target_option
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder for rows, summary and report.  [default: results/GRID]",
)  # fmt: skip
@export_option
def screen(
    grid: str, contingencies: str, scenarios: int, method: str, context: int, holdout: int,
    spread: float, seed: int, v_min: float | None, v_max: float | None, rating: float | None,
    workers: int | None, top: int, surrogate: Path | None, certify: float | None,
    correct_share: float, target_mae: float | None, out: Path | None, export_to: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Rank the outages of a grid by what they do under load uncertainty.

    A surrogate of the intact grid (trained at first use and kept) is adapted to each outage with
    a few exact solutions and predicts the scenarios. Finished outages are kept in the output
    folder, so that the same command goes on where it was stopped. With --certify every scenario
    counted is within the tolerance; those without a solution count as unsolved.
    """
    from gridshift.grid.readers import read_grid
    from gridshift.study.screening import ScreenConfig
    from gridshift.study.sweep import require_possible

    config = ScreenConfig(
        grid=grid, contingencies=contingencies, method=method, num_scenarios=scenarios,
        num_context=context, num_holdout=holdout, spread=spread, seed=seed, v_min=v_min,
        v_max=v_max, rating_mva=rating, workers=workers, certify=certify, quantile=correct_share,
    )  # fmt: skip
    check_target(method, target_mae, certify)
    network = usable(read_grid(grid), "").network
    folder = Path("results") / network.name if out is None else out
    require_writable(folder)
    require_writable(export_to or folder)
    require_possible(network, config)
    more: dict[str, Any] = {}
    if method == AUTO:
        more["choice"] = _choice(config, network, surrogate, target_mae)
        config = replace(config, method=more["choice"]["method"])
    result, came_from = _screened(config, network, surrogate, folder)
    more["surrogate"] = came_from
    if export_to is not None:
        result.export(export_to)

    def render(console) -> None:
        if "choice" in more:
            print_choice(console, more["choice"])
        _print(console, result, top, came_from)

    emit(result.to_json() | more, render, as_json=as_json)


def _choice(
    config: "ScreenConfig", network: "Network", surrogate: Path | None, target_mae: float | None
) -> dict[str, Any]:
    """The method for the study: the cheapest on the first outage that can be studied."""
    from gridshift.errors import OutageError
    from gridshift.grid.contingency import assess, select_outages
    from gridshift.trial.cases import Cases

    outages = select_outages(network, config.contingencies)
    found = next((f for f in (assess(network, o) for o in outages) if f.usable), None)
    if found is None:
        raise OutageError(f"none of {len(outages)} outages of {network.name} can be studied")
    cases = Cases(
        found.network, num_context=config.num_context, spread=config.spread, seed=config.seed
    )
    choice = chosen_method(
        cases, surrogate, num_rows=config.num_scenarios, target_mae=target_mae,
        certify=config.certify,
    )  # fmt: skip
    return choice_json(choice)


def _screened(
    config: "ScreenConfig", network: "Network", surrogate: Path | None, folder: Path
) -> "tuple[Screening, str | None]":
    """The finished study, and where its surrogate came from, if it has one.

    What the user got wrong is told before anything is trained.
    """
    from gridshift.grid.contingency import select_outages
    from gridshift.study.risk import with_limits
    from gridshift.study.sweep import screen as study
    from gridshift.trial.exact import EXACT

    with_limits(network, v_min=config.v_min, v_max=config.v_max, rating_mva=config.rating_mva)
    num_outages = len(select_outages(network, config.contingencies))
    base = came_from = None
    if config.method != EXACT:
        from gridshift.adapt.methods import METHODS

        base, came_from = found_base(
            METHODS[config.method], network, surrogate, num_context=config.num_context,
            spread=config.spread, seed=config.seed,
        )  # fmt: skip
    with progress("screening", num_outages, unit="outages") as done:
        done(0)
        result = study(
            config, network=network, surrogate=base, folder=folder,
            progress=lambda num, total, _: done(num, total),
        )  # fmt: skip
    return result, came_from


def _print(console, result: "Screening", top: int, came_from: str | None) -> None:
    rated = any(row.any_overload == row.any_overload for row in result.rows)
    rows = []
    for rank, row in enumerate(result.rows[:top], 1):
        solved = row.status == "solved"
        place = (row.worst_branch or row.worst_bus) if solved else row.status.replace("_", " ")
        if row.islanded and not row.lost_supply:
            place = " ".join(filter(None, (row.worst_branch or row.worst_bus, "(split)")))
        shares = [row.unsolved, row.any_voltage, *([row.any_overload] if rated else [])]
        ranked_by = f"{row.mw_at_risk:,.1f} MW" if row.lost_supply else row.severity
        cells = (rank, row.outage, ranked_by, *map(_percent, shares), place or None)
        rows.append((*cells, row.mae["overall"]))
    columns = (
        ">#", "outage", ">severity", ">unsolved\n(%)", ">voltage\n(%)",
        *([">overload\n(%)"] if rated else []), "worst at", ">error\n(p.u.)",
    )  # fmt: skip
    config, cost, intact = result.config, result.cost, result.intact
    title = (
        f"{result.network.name}: {len(result.rows):,} outages, {config.num_scenarios:,} scenarios "
        f"each, {config.method}"
    )
    console.print(table(title, columns, rows, note=_below(result, top)))
    console.print(
        "shares of scenarios without a solution, with a voltage outside limits"
        + (", with an overload" if rated else "")
        + f"; error: mean over all outputs of the hold-out; {drawn_spread(config.spread)}",
        style="dim",
    )
    if any(row.lost_supply for row in result.rows[:top]):
        console.print(
            "MW instead of a severity: loss of supply, ranked first by the demand at risk "
            "(severity 1e6 + MW in the files)",
            style="dim",
        )
    islands = [row for row in result.rows[:top] if row.islanded and not row.lost_supply]
    if islands:
        mw = max(row.mw_generation_cut_off for row in islands)
        console.print(
            f"split: buses are cut off, without demand and with up to {mw:,.1f} MW of generation; "
            "the rest of the grid is solved exactly, and the slack makes up for what is missing",
            style="dim",
        )
    console.print(
        f"\nintact grid: severity {text(intact['severity'])}, unsolved "
        f"{_percent(intact['unsolved'])} %, voltage {_percent(intact['any_voltage'])} %"
        + (f", overload {_percent(intact['any_overload'])} %" if rated else "")
    )
    if cost.get("num_predicted") and config.corrects and config.method != "newton":
        told = ", ".join(
            f"{cost['num_' + name]:,.0f} {name.replace('_', ' ')}"
            for name in ("kept_as_predicted", "repaired", "solved", "marked")
        )
        console.print(f"scenarios: {told}")
    for note in result.notes:
        console.print(f"note: {note}", style="dim")
    seconds = f"{text(float(cost['train_s']))} s"
    trained = {
        "trained": f"training {seconds} (once for this grid), ",
        "reused": f"surrogate reused (its training took {seconds}), ",
        "given": f"surrogate given (its training took {seconds}), ",
    }.get(came_from or "", "")
    found = f", {cost['resumed']:,.0f} outages found finished" * bool(cost["resumed"])
    console.print(
        f"{trained}sweep {text(float(cost['sweep_s']))} s on {config.num_workers} workers{found}"
    )
    console.print(f"report: {result.report}", soft_wrap=True)


def _percent(share: float) -> str:
    return "-" if share != share else f"{share * 100:.1f}"


def _below(result: "Screening", top: int) -> str:
    from gridshift.grid.contingency import candidate_elements

    more = len(result.rows) - top
    parts = [f"{more:,} more in the report"] if more > 0 else []
    if result.splitting:
        named = [f"{one['outage']} {one['mw_cut_off']:,.1f} MW" for one in result.splitting[:3]]
        left = len(result.splitting) - len(named)
        parts.append(
            f"not ranked, as they cut demand off: {', '.join(named)}"
            + (f" and {left:,} more" if left else "")
            + "; all are in the report, and a file of contingencies that names them ranks them"
        )
    if result.config.contingencies == "lines" and candidate_elements(result.network, "trafos"):
        parts.append("transformers: --contingencies trafos, or all")
    return "; ".join(parts)
