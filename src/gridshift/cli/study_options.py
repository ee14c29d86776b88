"""Options that say what a study looks at, and the configuration that they and a study file give."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.cli.options import (
    controls_option,
    distributed_slack_option,
    in_order,
    path_option,
    q_limits_option,
)

if TYPE_CHECKING:
    from gridshift.study.screening import ScreenConfig

studied_options = in_order(
    path_option(
        "--study", metavar="FILE",
        help="Study file (TOML) that says what is drawn and studied; options take precedence.",
    ),
    click.option(
        "--contingencies", default="lines", show_default=True, metavar="WHICH",
        help="lines, trafos, all (branches), generators, static (other supply of a bus), buses, "
        "loads, shunts, several of them (all,generators), n-2 (pairs of lines), listed (by the "
        "study file), or a file: one outage a line (elements; name; failures a year; hours of "
        "repair), PSS/E's .con, or a MATPOWER change table (.m).",
    ),
    click.option(
        "--area", metavar="NAME",
        help="Only outages in this area: one of the study file, or else of the grid (pandapower's "
        "zone, MATPOWER's area).",
    ),
    click.option(
        "--refuse-splits", is_flag=True,
        help="List outages that cut demand off apart, and don't study what they leave.",
    ),
    q_limits_option,
    distributed_slack_option,
    controls_option,
    click.option(
        "--redistribute", type=click.Choice(["generators", "slack"]),
        help="Who takes over what a generator gave that is out.  [default: generators, or "
        "those of --distributed-slack]",
    ),
    click.option(
        "--most-pairs", default=1000, show_default=True,
        help="With n-2: pairs to study of more than 10,000, the worst by an estimate.",
    ),
    click.option(
        "--scenarios", default=1000, show_default=True, help="Load scenarios per outage."
    ),
)  # fmt: skip
"""What is studied, and how much of it."""


FIELDS = {
    "scenarios": "num_scenarios", "context": "num_context", "holdout": "num_holdout",
    "rating": "rating_mva",
}  # fmt: skip
"""Options whose field in `ScreenConfig` has another name."""


def config_of(grid: str | None, study: Path | None, options: dict[str, Any]) -> "ScreenConfig":
    """What is asked for: by the study file, if there is one, and by the options that are given."""
    from gridshift.study.risk import rows_for
    from gridshift.study.screening import ScreenConfig

    context = click.get_current_context()
    if "beside" in options:
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
