"""Options that several commands share, and what the JSON keys mean that they have in common."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from gridshift.errors import GridshiftError

AUTO = "auto"
"""Name of the method that measures all others and takes the cheapest."""
GRID_KEY = {"grid": "name of the grid"}
ADAPTATION_KEYS = GRID_KEY | {
    "outage": "elements out of service",
    "method": "how it was adapted",
    "base": "what it started from; null for methods with a model of their own, or none",
    "num_context": "solved cases that the method was given",
    "num_solves": "solves that this took, failed ones included",
}


class Roster(click.ParamType):
    """A name in one of the library's rosters, which is loaded only when a value is given."""

    name = "name"

    def __init__(
        self, module: str, attribute: str, *also: str, never: Mapping[str, str] | None = None
    ):
        """`also`: more names; `never`: names of other commands, and why not here."""
        self.module, self.attribute, self.also = module, attribute, also
        self.never = never or {}

    def convert(self, value, param, ctx) -> str:
        """The name, if the roster has it.

        Raises:
            GridshiftError: it is another command's, and why.
        """
        if why := self.never.get(value):
            raise GridshiftError(why)
        if value in self.also:  # such as newton, which needs none of what the roster loads
            return value
        names = [*dict.fromkeys((*getattr(import_module(self.module), self.attribute), *self.also))]
        if value not in names:
            self.fail(f"no {value!r}; choose from {', '.join(names)}", param, ctx)
        return value


class RenamedOption(click.Option):
    """An option whose help shows its first name alone; the others are former ones."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The option's line of the help, by its first name."""
        names, self.opts = self.opts, self.opts[:1]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = names


def in_order(*decorators: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """One decorator for several options, which the help lists in this order."""

    def decorate(function: Any) -> Any:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return decorate


def path_option(
    *names: str, metavar: str = "DIR", required: bool = False, help: str
) -> Callable[[Any], Any]:
    """An option that names a folder, or a file."""
    path = click.Path(path_type=Path)
    return click.option(*names, type=path, metavar=metavar, required=required, help=help)


def count_option(name: str, default: int, help: str) -> Callable[[Any], Any]:
    """An option that takes a number of at least 1."""
    least = click.IntRange(min=1)
    return click.option(name, type=least, default=default, show_default=True, help=help)


def method_option(
    *also: str, never: Mapping[str, str] | None = None, more: str = "", default: str = "icw"
):
    """`--method`, with names beside those of `METHODS`, names that are refused, and more help."""
    return click.option(
        "--method", type=Roster("gridshift.adapt.methods", "METHODS", *also, never=never),
        default=default, show_default=True, help=f"How to adapt (`gridshift methods`){more}.",
    )  # fmt: skip


def context_option(learn: str = "the topology"):
    """`--context`, the scenarios solved to adapt to what is named."""
    return click.option(
        "--context", default=400, show_default=True, help=f"Scenarios solved to learn {learn}."
    )


grid_argument = click.argument("grid", metavar="GRID")
outage_option = click.option(
    "--outage", default="", metavar="A,B", help="Elements out of service, for instance line:9."
)
q_limits_option = click.option(
    "--q-limits", is_flag=True,
    help="Keep reactive limits: a generator that reaches one no longer holds its voltage.",
)  # fmt: skip
distributed_slack_option = click.option(
    "--distributed-slack", type=click.Choice(["generation", "headroom", "given"]),
    help="Generators share losses and changes of demand, by their schedule, by what their active "
    "limits leave, or by the file's factors.  [default: the slack bus alone]",
)  # fmt: skip
controls_option = click.option(
    "--controls", is_flag=True,
    help="Let tap changers, shunts and phase shifters move to hold their voltages and flows.",
)  # fmt: skip
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
    help="Root random seed.",
)  # fmt: skip
spread_option = click.option(
    "--spread", default=0.2, show_default=True,
    help="Every load of every row varies by up to plus or minus this share.",
)  # fmt: skip
drawn_spread_option = click.option(
    "--spread", default=0.2, show_default=True,
    help="Largest share by which loads vary up and down. Each row draws its own share from 0.05 to "
    "this, but half of the rows to learn from take this; below 0.05 all rows do.",
)  # fmt: skip
test_option = count_option("--test", 1000, "Fresh scenarios to measure on.")
surrogate_option = path_option(
    "--surrogate", help="Use this surrogate instead of training or re-using one."
)
drawn_options = in_order(drawn_spread_option, seed_option)
base_option = click.option(
    "--base", "base_name", type=Roster("gridshift.adapt.surrogate_config", "BASES"), metavar="NAME",
    help="Base to start from, trained at first use and kept: mlp, transformer, pfgnn, linear or "
    "quadratic.  [default: mlp for methods that need a network, else quadratic]",
)  # fmt: skip
start_options = in_order(base_option, surrogate_option)
measuring_options = in_order(context_option(), test_option, drawn_options, start_options)
certify_options = in_order(
    click.option(
        "--certify", type=float, metavar="TOL",
        help="Correct every row whose power balance is off by more, p.u., for instance 1e-6.",
    ),
    click.option(
        "--correct-share", "--quantile", "correct_share", cls=RenamedOption,
        type=click.FloatRange(0, 1), default=0.0, metavar="SHARE",
        help="Correct this share of the rows, the worst ones, in any case.",
    ),
)  # fmt: skip
target_option = click.option(
    "--target-mae", type=float, metavar="ERROR",
    help="Largest mean error over all outputs, for --method auto.",
)  # fmt: skip
top_option = count_option("--top", 15, "Outages to show; the files have all.")

export_option = path_option(
    "--export", "export_to",
    help="Folder for tables as CSV and parquet and pictures as PNG and SVG.",
)  # fmt: skip
threads_option = click.option(
    "--threads", type=click.IntRange(1, 1024), help="Threads to use.  [default: all cores]"
)
