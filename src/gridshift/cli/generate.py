"""`gridshift generate`: data sets of solved cases for training."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.cli.folders import require_writable
from gridshift.cli.group import command
from gridshift.cli.options import GRID_KEY, path_option, seed_option, spread_option, threads_option
from gridshift.cli.output import emit, progress, table
from gridshift.threads import usable_cores

if TYPE_CHECKING:
    from gridshift.study.data_set import DataSetConfig
    from gridshift.study.varied_grids import Variation


@command(
    writes={"out": ()},
    keys=GRID_KEY
    | {
        "num_rows": "scenarios drawn",
        "num_cases": "those with a solution: the cases in the data set",
        "status": "number of scenarios per status, for instance `solved`",
        "us_per_row": "wall time per scenario of this run, everything written, µs; null if all "
        "were found finished",
        "cost": "seconds of this run: `solve_s` (drawing and solving), `arrange_s` and `write_s` "
        "(summed over threads), `wall_s`",
        "resumed": "scenarios found finished",
        "files": "what to read: the tables of gridfm, or the folder of PFΔ's samples",
        "labels": "table with the status of every scenario, its outage and how it keeps the limits",
        "threads": "threads used",
    },
    examples=[
        "gridshift generate case14 --scenarios 500 --out data14 --json",
        "gridshift generate case14 --scenarios 200 --spread 0.3 --outages 0.3,0.1 "
        "--impedance-spread 0.1 --set-point-spread 0.02 --slack-balances --seed 1 --threads 1 "
        "--out varied14",
        "gridshift generate --study study14.toml --format pfdelta --scenarios 20 --out pfdelta14",
    ],
)
@click.argument("grid", metavar="[GRID]", required=False)
@path_option(
    "--study", metavar="FILE",
    help="Study file (TOML) that says what loads and generation are drawn from.",
)  # fmt: skip
@click.option("--scenarios", default=1000, show_default=True, help="Scenarios to draw and solve.")
@click.option(
    "--format", "form", type=click.Choice(["gridfm", "pfdelta"]), default="gridfm",
    show_default=True, help="gridfm's parquet tables, or PFΔ's JSON files, one a case.",
)  # fmt: skip
@spread_option
@click.option(
    "--outages", default="", metavar="A,B",
    help="Shares of the scenarios with 1, 2, ... branches out that leave every bus with supply.",
)  # fmt: skip
@click.option(
    "--impedance-spread", default=0.0, metavar="SHARE",
    help="Every branch's r and x vary by up to plus or minus this share, anew every 200 scenarios.",
)  # fmt: skip
@click.option(
    "--set-point-spread", default=0.0, metavar="PU",
    help="Voltage set-points vary by up to plus or minus this, p.u., anew every 200 scenarios.",
)  # fmt: skip
@click.option(
    "--slack-balances", is_flag=True,
    help="Leave what loads differ from nominal to the slack, not to all scheduled generators.",
)  # fmt: skip
@seed_option
@threads_option
@path_option(
    "--out", required=True,
    help="Folder of the data set; the same command goes on where it was stopped.",
)  # fmt: skip
def generate(
    grid: str | None, study: Path | None, form: str, threads: int | None, out: Path, as_json: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Write a data set of solved power flows to train models on.

    Loads are drawn, generation shares what they differ, and every scenario is solved exactly; those
    without a solution are counted and left out. DIR/GRID/raw has the cases, DIR/GRID/labels what
    became of every scenario.
    """
    from gridshift.study.data_set import write_data_set

    config = _config(grid, study, form, options)
    require_writable(out)
    threads = threads or usable_cores()
    with progress("generating", config.num_scenarios, unit="scenario") as done:
        made = write_data_set(config, out, threads=threads, progress=done)
    labels = made.folder / "labels"
    payload = {
        "grid": made.grid, "num_rows": made.num_rows, "num_cases": made.status["solved"],
        "status": made.status, "us_per_row": made.us_per_row, "cost": made.cost,
        "resumed": made.resumed, "files": [str(path) for path in made.files],
        "labels": str(labels), "threads": threads,
    }  # fmt: skip

    def render(console) -> None:
        rows = [
            *((f"scenarios {name.replace('_', ' ')}", num) for name, num in made.status.items()),
            ("found finished", made.resumed),
            (f"time per scenario on {how_many(threads, 'thread')} (µs)", made.us_per_row),
        ]
        console.print(table(f"{made.grid}: {how_many(made.num_rows, 'scenario')}", ("", ">"), rows))
        console.print(*(str(path) for path in (*made.files, labels)), sep="\n", soft_wrap=True)

    emit(payload, render, as_json=as_json)


def _config(
    grid: str | None, study: Path | None, form: str, options: dict[str, Any]
) -> "DataSetConfig":
    """What is asked for: by the study file, if there is one, and by the options that are given."""
    from gridshift.study.data_set import DataSetConfig

    context = click.get_current_context()
    fields = {"scenarios": "num_scenarios", "spread": "spread", "seed": "seed"}
    chosen: dict[str, Any] = {
        field: options[name] for name, field in fields.items()
        if study is None
        or context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT
    }  # fmt: skip
    chosen |= {
        "format": form, "redispatch": not options["slack_balances"],
        "variation": _variation(options),
    }  # fmt: skip
    if grid is not None:
        chosen["grid"] = grid
    if study is not None:
        return DataSetConfig.of_study(study, **chosen)
    if grid is None:
        raise click.UsageError("Missing argument 'GRID', or --study with a file that names one.")
    return DataSetConfig(**chosen)


def _variation(options: dict[str, Any]) -> "Variation":
    """What varies beside the loads; what is wrong is told by the name of the option."""
    from gridshift.errors import ScenarioError
    from gridshift.study.description import UncertaintyError
    from gridshift.study.varied_grids import Variation

    text = options["outages"]
    try:
        shares = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        told = f"--outages {text!r} is no list of shares, as in --outages 0.3,0.1"
        raise ScenarioError(told) from None
    try:
        return Variation(
            outages=shares, impedance=options["impedance_spread"],
            set_points=options["set_point_spread"],
        )  # fmt: skip
    except UncertaintyError as error:
        typed = {"impedance": "--impedance-spread", "set_points": "--set-point-spread"}
        raise ScenarioError(
            f"{typed.get(str(error.key[0]), '--outages')}: {error.problem}"
        ) from None
