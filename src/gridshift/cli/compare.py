"""`gridshift compare` and `gridshift pareto`: what each way to adapt is worth, and costs."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.cli.bases import found_base, usable
from gridshift.cli.folders import require_writable_file
from gridshift.cli.forecast import tell_trainings
from gridshift.cli.group import command
from gridshift.cli.options import (
    GRID_KEY,
    grid_argument,
    in_order,
    measuring_options,
    outage_option,
    path_option,
)
from gridshift.cli.output import drawn_spread, emit, progress, table
from gridshift.errors import ContextError, SurrogateMismatchError

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method
    from gridshift.grid.network import Network
    from gridshift.trial.compare import Comparison

ROW_KEYS = GRID_KEY | {
    "outage": "elements out of service",
    "num_context": "scenarios solved for methods that take solved cases",
    "num_test": "fresh scenarios that errors are means over",
    "spread": "spread of the loads",
    "seed": "root seed",
    "rows": "list, exact solving first: `method`, `kind` (the most it takes), `base`, `mae` (as in "
    "adapt), `mismatch`, `num_solves`, `data_s`, `fit_s`, `gradient_s`, `us_per_row`, "
    "`us_per_1000_rows`, `training_s` (once for the grid), `problem` (why it could not be "
    "measured)",
}
methods_option = click.option(
    "--methods", "names", default="fast", show_default=True, metavar="A,B",
    help="Methods to measure: all, fast (no gradient steps and no model of their own), or names.",
)  # fmt: skip
comparison_options = in_order(grid_argument, outage_option, methods_option, measuring_options)


@command(
    keys=ROW_KEYS,
    examples=[
        "gridshift compare case14 --outage line:2 --methods icw,frozen --context 50 --test 200 "
        "--surrogate base14",
        "gridshift compare case14 --outage line:2 --methods compensation,ridge-features,frozen "
        "--base quadratic --context 10 --test 200",
        "gridshift compare case14 --outage line:2 --methods frozen --spread 0.3 --seed 1 "
        "--surrogate base14 --json",
    ],
)
@comparison_options
def compare(grid: str, as_json: bool, **asked: Any) -> None:
    """Measure methods, exact solving among them, on one outage.

    Every method gets the same context and the same test rows, on one thread. Surrogates that
    aren't there yet are trained and kept, one for each transform and backbone that a method
    needs; methods with a model of their own train that.
    """
    from gridshift.grid.readers import read_grid

    network = read_grid(grid)
    found = _comparison(network, **asked)
    emit(found.to_json(), lambda console: _print(console, found), as_json=as_json)


@command(
    writes={"out": ()},
    keys=ROW_KEYS
    | {
        "break_even_rows": "by method: scenarios of this outage from which it is faster than "
        "solving all, null if it never is",
        "break_even_rows_with_training": "the same with the surrogate's training charged to this "
        "outage alone",
        "figure": "file of the picture",
    },
    examples=[
        "gridshift pareto case14 --outage line:2 --methods icw,frozen --context 50 --test 200 "
        "--surrogate base14 --out pareto14.svg",
        "gridshift pareto case14 --outage line:2 --methods compensation --base quadratic "
        "--context 10 --test 200 --out pareto14.svg",
        "gridshift pareto case14 --outage line:2 --methods frozen --spread 0.3 --seed 1 "
        "--surrogate base14 --out pareto14.png --json",
    ],
)
@comparison_options
@path_option(
    "--out", metavar="FILE",
    help="Picture to write: .svg, .png or .pdf.  [default: results/GRID-pareto.svg]",
)  # fmt: skip
def pareto(grid: str, out: Path | None, as_json: bool, **asked: Any) -> None:
    """Draw error against time per row for all methods.

    Exact solving is among them. Says from how many scenarios of the outage on a method is faster
    than solving all exactly.
    """
    from gridshift.grid.readers import read_grid
    from gridshift.trial.pareto import SUFFIXES, save_pareto

    if out is not None and out.suffix not in SUFFIXES:
        raise click.BadParameter(f"{out} must end in {', '.join(SUFFIXES)}", param_hint="--out")
    network = read_grid(grid)
    path = out or Path("results") / f"{network.name}-pareto.svg"
    require_writable_file(path)
    found = _comparison(network, **asked)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_pareto(found, path)
    even = {
        name: {
            row.method: found.break_even_rows(row, training=training) for row in found.rows[1:]
        }
        for name, training in (
            ("break_even_rows", False), ("break_even_rows_with_training", True),
        )
    }  # fmt: skip
    payload = found.to_json() | even | {"figure": path}

    def render(console) -> None:
        _print(console, found)
        console.print(f"\npicture: {path}", soft_wrap=True)

    emit(payload, render, as_json=as_json)


def _comparison(
    network: "Network", *, outage: str, names: str, context: int, test: int, spread: float,
    seed: int, base_name: str | None, surrogate: Path | None,
) -> "Comparison":  # fmt: skip
    from gridshift.trial.cases import Cases
    from gridshift.trial.compare import compare as measure_all

    chosen, given = _methods(names), {"num_context": context, "spread": spread, "seed": seed}
    cases = Cases(usable(network, outage).network, num_test=test, **given)
    tell_trainings(chosen, cases.network, surrogate, spread, seed, base_name)
    base_for = bases_of(cases.network, surrogate, base_name, **given)
    for method in chosen:
        with suppress(ContextError, SurrogateMismatchError):  # a row of the table says so
            base_for(method)  # trained before anything is timed, with a bar of its own
    with progress("measuring", len(chosen), unit="method") as done:
        done(0)
        return measure_all(chosen, base_for, cases, progress=done)


def bases_of(
    network: "Network",
    folder: Path | None,
    base_name: str | None = None,
    *,
    num_context: int,
    spread: float,
    seed: int,
) -> "Callable[[Method], Base]":
    """Gives each method the surrogate in the folder, or what it starts from for this topology."""
    from gridshift.adapt.surrogate_config import base_config

    found = {}

    def base_for(method: "Method") -> "Base":
        # methods without a wish of their own share one surrogate
        key = method.name
        if method.base is None:
            start = base_config(base_name or method.default_base)
            key = method.uses_surrogate, method.surrogate_config(start)
        if key not in found:
            found[key], _ = found_base(
                method, network, None if method.base else folder,
                num_context=num_context, spread=spread, seed=seed, base_name=base_name,
            )  # fmt: skip
        return found[key]

    return base_for


def _methods(names: str) -> "list[Method]":
    from gridshift.adapt.methods import METHODS

    if names in ("all", "fast"):
        return [m for m in METHODS.values() if names == "all" or m.fast]
    wanted = [name.strip() for name in names.split(",")]
    if unknown := [name for name in wanted if name not in METHODS]:
        raise click.BadParameter(
            f"no {', '.join(map(repr, unknown))}; choose from all, fast, {', '.join(METHODS)}",
            param_hint="--methods",
        )
    return [METHODS[name] for name in dict.fromkeys(wanted)]


def _print(console, found: "Comparison") -> None:
    shown = [row for row in found.rows if not row.problem]
    without = ",".join(found.network.outaged) or "any outage"
    columns = ("method", ">slack P\n(p.u.)", ">Q gen\n(p.u.)", ">V\n(p.u.)", ">angle\n(°)", ">all")
    quantities = ("p_slack", "q_gen", "v", "theta_deg", "overall")
    rows = [(row.method, *(row.mae[q] for q in quantities)) for row in shown]
    title = f"{found.network.name} without {without}: mean errors on {found.num_test:,} fresh rows"
    console.print(table(title, columns, rows, note=drawn_spread(found.spread)))

    columns = (
        "method", ">solves", ">data\n(s)", ">fit\n(s)", ">gradient\n(s)", ">per row\n(µs)",
        ">faster than exact\nfrom row",
    )  # fmt: skip
    rows = [
        (
            row.method, row.num_solves, row.cost.data_s, row.cost.fit_s, row.cost.gradient_s,
            row.cost.predict_us_per_row, _from_row(found, row),
        )
        for row in shown
    ]  # fmt: skip
    console.print()
    console.print(table("what they cost on one thread", columns, rows))
    for row in found.rows:
        if row.problem:
            console.print(f"{row.method}: {row.problem}", style="dim", soft_wrap=True)


def _from_row(found: "Comparison", row) -> str | None:
    if row is found.exact:
        return None
    number = found.break_even_rows(row)
    return f"{max(1, number):,.0f}" if number < float("inf") else "never"
