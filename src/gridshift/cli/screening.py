"""`gridshift screen`: every outage of a grid, ranked."""

import time
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
    method_option,
    q_limits_option,
    start_options,
    target_option,
)
from gridshift.cli.output import emit, progress
from gridshift.cli.screening_columns import COLUMNS

if TYPE_CHECKING:
    from gridshift.grid.network import Network
    from gridshift.study.screening import ScreenConfig, Screening


@command(
    writes={
        "out": ("screening.parquet", "summary.json", "report.html"),
        "export_to": ("outages.csv", "branches.parquet", "map.svg"),
    },
    keys=GRID_KEY
    | {
        "num_outages": "outages in the ranking",
        "method": "`newton`, or how the surrogate was adapted to each",
        "base": "what it is made of; null for methods with a model of their own, or none",
        "surrogate": "where it came from: `trained` now, `reused` from the cache, `given` by "
        "--surrogate; null for methods that start from none",
        "outages": "list, the worst first, with the keys of the next table up to `cost`",
        "splitting": "with --refuse-splits: outages that cut demand off, not ranked: `outage`, "
        "`cut_off`, `mw_cut_off` (demand), `mw_generation_cut_off`",
        "intact": "of the intact grid, solved exactly in the same scenarios: `severity`, "
        "`violation_probability` and other columns of an outage",
        "beside": "of each method of --beside, on outages of branches that leave the grid in one "
        "piece: `method`, `num_context`, `mae` (as in adapt, mean over outages), "
        "`rank_correlation` (Spearman, of severities), `missed_violations` (share of the "
        "scenarios with a violation in which it predicts none), `num_violated`, "
        "`num_missed`, `num_false`, `num_outages`, `num_failed`, "
        "`problem` (of the first that failed), `outages`, `cost` (s: `train_s`, `data_s`, "
        "`fit_s`, `predict_s`, `wall_s`; `num_solves`)",
        "system": "sums over the outages with failure rates: `failures_per_year`, "
        "`violations_per_year`, `energy_not_served_mwh`; `num_with_rates`",
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
        "gridshift screen case14 --method icw --surrogate base14 --context 50 --scenarios 200 "
        "--holdout 20 "
        "--out screened14",
        "gridshift screen case14 --contingencies all --scenarios 50 "
        "--spread 0.3 --seed 1 --v-min 0.94 --v-max 1.06 --rating 100 --workers 1 --top 5 "
        "--out screened14-newton",
        "gridshift screen case14 --scenarios 50 --beside ridge:40,tangent2 --emergency-rating 1.2 "
        "--rating 100 --out screened14-newton --json",
        "gridshift screen case14 --precision 0.05 --ignore-below 0.1 --refuse-splits "
        "--out precise14",
        "gridshift screen --study study14.toml --contingencies generators --redistribute slack "
        "--out studied14",
        "gridshift screen case14 --q-limits --scenarios 50 --out limited14",
        "gridshift screen case14 --contingencies n-2 --most-pairs 100 --scenarios 50 --out pairs14",
        "gridshift screen case14 --method compensation --base quadratic --context 10 "
        "--scenarios 200 --out compensated14",
        "gridshift screen case14 --scenarios 50 --export files14 --json",
        "gridshift screen case14 --method auto --target-mae 1e-3 --certify 1e-6 "
        "--correct-share 0.01 --scenarios 200 --context 50 --surrogate base14 --out certified14",
    ],
)
@click.argument("grid", metavar="[GRID]", required=False)
@click.option(
    "--study", type=click.Path(path_type=Path), metavar="FILE",
    help="Study file (TOML) that says what is drawn and studied; options take precedence.",
)  # fmt: skip
@click.option(
    "--contingencies", default="lines", show_default=True, metavar="WHICH",
    help="lines, trafos, all (branches), generators, buses, loads, shunts, n-2 (pairs of lines), "
    "or a file with one outage a line: elements; name; failures a year; hours of repair.",
)  # fmt: skip
@click.option(
    "--refuse-splits", is_flag=True,
    help="List outages that cut demand off apart, and don't study what they leave.",
)  # fmt: skip
@q_limits_option
@click.option(
    "--redistribute", type=click.Choice(["generators", "slack"]), default="generators",
    show_default=True, help="Who takes over what a generator gave that is out.",
)  # fmt: skip
@click.option(
    "--most-pairs", default=1000, show_default=True,
    help="With n-2: pairs to study of more than 10,000, the worst by an estimate.",
)  # fmt: skip
@click.option("--scenarios", default=1000, show_default=True, help="Load scenarios per outage.")
@click.option(
    "--precision", type=float, metavar="P",
    help="Solve as many scenarios as it takes to know each probability of a violation to plus or "
    "minus this (95 %), and each severity to this share; without --scenarios as many as may be.",
)  # fmt: skip
@click.option(
    "--ignore-below", type=float, metavar="P",
    help="With --precision: be done with an outage once its probability is surely below this.  "
    "[default: the precision]",
)  # fmt: skip
@method_option(
    "newton", AUTO, default="newton",
    more="; newton solves all exactly, auto measures on the first outage and takes the cheapest",
)  # fmt: skip
@click.option(
    "--beside", default="", metavar="A,B",
    help="Methods to measure beside newton on the same outages and scenarios, each perhaps with "
    "the size of its context: icw:400,ridge.",
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
    "--emergency-rating", type=float, metavar="FACTOR",
    help="Count loadings beyond this multiple of the ratings apart.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(1, 1024), help="Outages studied at once.  [default: all cores]"
)
@click.option(
    "--top", type=click.IntRange(min=1), default=15, show_default=True,
    help="Outages to show; the files have all.",
)  # fmt: skip
@start_options
@certify_options
@target_option
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder for rows, summary and report.  [default: results/GRID]",
)  # fmt: skip
@export_option
def screen(
    grid: str | None, study: Path | None, top: int, base_name: str | None,
    surrogate: Path | None, target_mae: float | None, out: Path | None, export_to: Path | None,
    as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Rank the outages of a grid by what they do under uncertainty.

    Every scenario of every outage is solved, unless --method names a surrogate: one of the intact
    grid (trained at first use and kept) is then adapted to each outage with a few exact solutions
    and predicts the scenarios. Finished outages are kept in the output folder, so that the same
    command goes on where it was stopped. With --certify every scenario counted is within the
    tolerance; those without a solution count as unsolved.
    """
    from gridshift.grid.readers import read_grid
    from gridshift.study.set_up import require_possible
    from gridshift.trial.exact import EXACT

    config = _config(grid, study, options)
    check_target(config.method, target_mae, config.certify)
    if config.method == EXACT and not (surrogate is None and base_name is None):
        raise click.UsageError(
            "newton solves every scenario and uses no base; name a method, for instance "
            "--method icw"
        )
    network = usable(read_grid(config.grid), "").network
    folder = Path("results") / network.name if out is None else out
    require_writable(folder)
    require_writable(export_to or folder)
    require_possible(network, config)
    more: dict[str, Any] = {}
    if config.method == AUTO:
        more["choice"] = _choice(config, network, surrogate, base_name, target_mae)
        config = replace(config, method=more["choice"]["method"])
    result, came_from, more["base"] = _screened(config, network, surrogate, base_name, folder)
    more["surrogate"] = came_from
    if export_to is not None:
        result.export(export_to)

    def render(console) -> None:
        from gridshift.cli.screening_table import print_study

        if "choice" in more:
            print_choice(console, more["choice"])
        print_study(console, result, top, came_from)

    emit(result.to_json() | more, render, as_json=as_json)


FIELDS = {
    "scenarios": "num_scenarios", "context": "num_context", "holdout": "num_holdout",
    "rating": "rating_mva",
}  # fmt: skip
"""Options whose field in `ScreenConfig` has another name."""


def _config(grid: str | None, study: Path | None, options: dict[str, Any]) -> "ScreenConfig":
    """What is asked for: by the study file, if there is one, and by the options that are given."""
    from gridshift.study.risk import rows_for
    from gridshift.study.screening import ScreenConfig

    context = click.get_current_context()
    options["beside"] = tuple(filter(None, map(str.strip, options["beside"].split(","))))
    given = {
        name for name in options
        if context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT
    }  # fmt: skip
    chosen = {
        FIELDS.get(name, name): value
        for name, value in options.items() if study is None or name in given
    }  # fmt: skip
    if grid is not None:
        chosen["grid"] = grid
    if study is not None:
        config = ScreenConfig.of_study(study, **chosen)
    elif grid is None:
        raise click.UsageError("Missing argument 'GRID', or --study with a file that names one.")
    else:
        config = ScreenConfig(**chosen)
    if config.precision is not None and study is None and "scenarios" not in given:
        config = replace(config, num_scenarios=ROOM * rows_for(config.precision))
    return config


ROOM = 4
"""Scenarios at most with --precision, as a multiple of what the least certain probability takes:
severities may take more."""


def _choice(
    config: "ScreenConfig",
    network: "Network",
    surrogate: Path | None,
    base_name: str | None,
    target_mae: float | None,
) -> dict[str, Any]:
    """The method for the study: the cheapest on the first outage that can be studied."""
    from gridshift.errors import OutageError
    from gridshift.grid.contingency import assess
    from gridshift.grid.outage_list import select_outages
    from gridshift.trial.cases import Cases

    outages = select_outages(network, config.contingencies)
    outages = [outage for outage in outages if {*outage} <= {*network.elements}]
    found = next((f for f in (assess(network, o) for o in outages) if f.usable), None)
    if found is None:
        raise OutageError(f"none of {len(outages)} outages of {network.name} can be studied")
    cases = Cases(
        found.network, num_context=config.num_context, spread=config.spread, seed=config.seed
    )
    choice = chosen_method(
        cases, surrogate, base_name, num_rows=config.num_scenarios, target_mae=target_mae,
        certify=config.certify,
    )  # fmt: skip
    return choice_json(choice)


def _screened(
    config: "ScreenConfig", network: "Network", surrogate: Path | None, base_name: str | None,
    folder: Path,
) -> "tuple[Screening, str | None, str | None]":  # fmt: skip
    """The finished study, where its surrogate came from, if it has one, and that one's base.

    What the user got wrong is told before anything is trained.
    """
    from gridshift.study.beside import besides
    from gridshift.study.chosen_outages import chosen_outages
    from gridshift.study.set_up import set_up
    from gridshift.study.sweep import study

    began = time.perf_counter()
    setting = set_up(config, network)
    chosen = chosen_outages(setting)
    set_up_s = time.perf_counter() - began
    base = came_from = name = None
    if setting.method is not None:
        base, came_from = found_base(
            setting.method, setting.network, surrogate, num_context=config.num_context,
            spread=config.spread, seed=config.seed, base_name=base_name,
        )  # fmt: skip
        name = setting.method.base_name(base)
    for one in besides(setting):  # trained where it can be seen, and then found in the cache
        found_base(
            one.method, setting.network, None, num_context=one.num_context, spread=config.spread,
            seed=config.seed,
        )  # fmt: skip
    with progress("screening", len(chosen.contingencies), unit="outages") as done:
        done(0)
        result = study(
            setting, chosen, surrogate=base, folder=folder, set_up_s=set_up_s,
            progress=lambda num, total, _: done(num, total),
        )  # fmt: skip
    return result, came_from, name
