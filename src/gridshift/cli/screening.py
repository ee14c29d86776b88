"""`gridshift screen`: every outage of a grid, ranked."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.cli.automatic import check_target, choice_json, chosen_method, print_choice
from gridshift.cli.bases import found_base, usable
from gridshift.cli.folders import require_writable
from gridshift.cli.group import command
from gridshift.cli.options import (
    AUTO,
    certify_options,
    context_option,
    drawn_options,
    export_option,
    method_option,
    path_option,
    start_options,
    target_option,
    top_option,
)
from gridshift.cli.output import emit, progress
from gridshift.cli.screening_columns import COLUMNS, STUDY_KEYS
from gridshift.cli.sharing import Started, finish_part, shown, workers
from gridshift.cli.study_options import config_of, studied_options

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from gridshift.grid.network import Network
    from gridshift.study.screening import ScreenConfig, Screening
    from gridshift.study.swept import Shard


@command(
    writes={
        "out": ("screening.parquet", "summary.json", "report.html"),
        "export_to": ("outages.csv", "branches.parquet", "map.svg"),
    },
    keys=STUDY_KEYS
    | {
        "base": "what it is made of; null for methods with a model of their own, or none",
        "surrogate": "where it came from: `trained` now, `reused` from the cache, `given` by "
        "--surrogate; null for methods that start from none",
        "shard": "with --shard, and then only `num_outages` (of the study), `num_pieces` (shards "
        "that have something to do at most), `finished` (in the folder), `resumed`, `out` beside "
        "it",
        "num_pieces": "with --shard",
        "finished": "with --shard",
        "resumed": "with --shard",
        "out": "with --shard",
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
        "gridshift screen case14 --scenarios 50 --ratings ratings14.csv --seasonal-factor 0.9 "
        "--out rated14",
        "gridshift screen case14 --precision 0.05 --ignore-below 0.1 --refuse-splits "
        "--out precise14",
        "gridshift screen --study study14.toml --contingencies generators --redistribute slack "
        "--out studied14",
        "gridshift screen case14 --contingencies all --area 1 --scenarios 50 --out area14",
        "gridshift screen case14 --q-limits --controls --scenarios 50 --out limited14",
        "gridshift screen case14 --distributed-slack headroom --scenarios 50 --out shared14",
        "gridshift screen case14 --contingencies n-2 --most-pairs 100 --scenarios 50 --out pairs14",
        "gridshift screen case14 --method compensation --base quadratic --context 10 "
        "--scenarios 200 --out compensated14",
        "gridshift screen case14 --scenarios 50 --export files14 --json",
        "gridshift screen case14 --scenarios 50 --scheduler processes --workers 1 --out sent14",
        "gridshift screen case14 --scenarios 50 --shard 1/2 --out parts14",
        "gridshift screen case14 --scenarios 50 --shard 2/2 --out parts14 --json",
        "gridshift screen case14 --method auto --target-mae 1e-3 --certify 1e-6 "
        "--correct-share 0.01 --scenarios 200 --context 50 --surrogate base14 --out certified14",
    ],
)
@click.argument("grid", metavar="[GRID]", required=False)
@studied_options
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
    "--ratings", type=click.Path(), metavar="FILE",
    help="Ratings by element (CSV or parquet): columns element and some of normal_mva, "
    "emergency_mva, normal_ka, emergency_ka.",
)  # fmt: skip
@click.option(
    "--emergency-rating", type=float, metavar="FACTOR",
    help="Count loadings beyond this multiple of the ratings apart.",
)  # fmt: skip
@click.option(
    "--seasonal-factor",
    type=float,
    help="What all ratings are multiplied by.  [default: 1, or as the season says]",
)
@click.option(
    "--season", metavar="NAME",
    help="One of the study file's, with ratings or a factor; --ratings and --seasonal-factor "
    "come first.",
)  # fmt: skip
@click.option(
    "--workers", type=click.IntRange(1, 1024), help="Outages studied at once.  [default: all cores]"
)
@click.option(
    "--shard", metavar="I/N",
    help="Study every N-th outage only, from the I-th; 'gridshift merge' makes one study of all.",
)  # fmt: skip
@click.option(
    "--scheduler", metavar="WHO", default="threads", show_default=True,
    help="Who studies the outages: threads, processes (of this machine), or the address of a Dask "
    "scheduler, e.g. tcp://host:8786, whose workers see the output folder.",
)  # fmt: skip
@top_option
@start_options
@certify_options
@target_option
@path_option("--out", help="Folder for rows, summary and report.  [default: results/GRID]")
@export_option
def screen(
    grid: str | None, study: Path | None, top: int, base_name: str | None,
    surrogate: Path | None, target_mae: float | None, out: Path | None, export_to: Path | None,
    shard: str | None, scheduler: str, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Rank a grid's outages by what they do under uncertainty.

    Every scenario of every outage is solved, unless --method names a surrogate: one of the intact
    grid (trained at first use and kept) is then adapted to each outage with a few exact solutions
    and predicts the scenarios. Finished outages are kept in the output folder, so that the same
    command goes on where it was stopped. With --certify every scenario counted is within the
    tolerance; those without a solution count as unsolved.
    """
    from gridshift.grid.readers import read_grid
    from gridshift.study.set_up import require_possible
    from gridshift.trial.exact import EXACT

    part = None if shard is None else _part(shard, options)
    config = config_of(grid, study, options)
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
    started = _started(config, network, surrogate, base_name)
    if part is not None:
        finish_part(started, part, folder, as_json=as_json)
        return
    came_from, more["base"] = started.came_from, started.base_name
    more["surrogate"] = came_from

    def studied() -> "Screening":
        with workers(scheduler, config.num_workers) as executor:
            return _studied(started, folder, executor)

    def show(result: "Screening") -> None:
        def render(console) -> None:
            from gridshift.cli.screening_table import print_study

            if "choice" in more:
                print_choice(console, more["choice"])
            print_study(console, result, top, came_from)

        emit(result.to_json() | more, render, as_json=as_json)

    result = shown(studied, show)
    if export_to is not None:
        result.export(export_to)


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
    from gridshift.study.chosen_outages import asked_for
    from gridshift.trial.cases import Cases

    outages = [one.outage for one in asked_for(network, config)]
    outages = [outage for outage in outages if {*outage} <= {*network.elements}]
    found = next((f for f in (assess(network, o) for o in outages) if f.usable), None)
    if found is None:
        raise OutageError(
            f"none of {how_many(len(outages), 'outage')} of {network.name} can be studied"
        )
    cases = Cases(
        found.network, num_context=config.num_context, spread=config.spread, seed=config.seed
    )
    choice = chosen_method(
        cases, surrogate, base_name, num_rows=config.num_scenarios, target_mae=target_mae,
        certify=config.certify,
    )  # fmt: skip
    return choice_json(choice)


def _part(shard: str, options: dict[str, Any]) -> "Shard":
    """The part of a study that is asked for, if it is one that others can continue."""
    from gridshift.study.swept import Shard

    if options["method"] == AUTO:
        raise click.UsageError("--method auto may choose another method for each shard; name one")
    return Shard.parse(shard)


def _started(
    config: "ScreenConfig", network: "Network", surrogate: Path | None, base_name: str | None
) -> Started:
    """What the study starts from.

    What the user got wrong is told before anything is trained.
    """
    from gridshift.study.beside import besides
    from gridshift.study.chosen_outages import chosen_outages
    from gridshift.study.set_up import set_up

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
    return Started(setting, chosen, base, came_from, name, set_up_s)


def _studied(started: Started, folder: Path, executor: "Executor | None") -> "Screening":
    from gridshift.study.store import Store
    from gridshift.study.sweep import study

    with progress("screening", len(started.chosen.contingencies), unit="outage") as done:
        done(0)
        return study(
            started.setting, started.chosen, surrogate=started.base, store=Store(folder),
            executor=executor, set_up_s=started.set_up_s,
            progress=lambda num, total, _: done(num, total),
        )  # fmt: skip
