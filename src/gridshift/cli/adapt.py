"""`gridshift adapt`: one method on one outage, measured."""

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.cli.automatic import check_target, choice_json, chosen_method, print_choice
from gridshift.cli.bases import found_base, usable
from gridshift.cli.group import command
from gridshift.cli.options import (
    ADAPTATION_KEYS,
    AUTO,
    certify_options,
    grid_argument,
    measuring_options,
    method_option,
    outage_option,
    target_option,
)
from gridshift.cli.output import drawn_spread, emit, table, text

if TYPE_CHECKING:
    from gridshift.trial.trial import Measurement


@command(
    keys=ADAPTATION_KEYS
    | {
        "num_test": "fresh rows that the errors are means over; each draws its spread from 0.05 to "
        "--spread, or has that if it is smaller",
        "test_status": "number of test scenarios per status of their exact solve",
        "mae": "mean absolute errors: `overall` (all outputs, p.u. and rad), `p_slack`, `q_gen`, "
        "`v` (p.u.), `theta` (rad), `theta_deg`",
        "mismatch": "power balance of the predictions at the worst bus, p.u.: `median`, `p99`, "
        "`max` over rows",
        "cost": "`data_s`, `fit_s`, `gradient_s`, `predict_us_per_row`",
        "certified": "with --certify or --correct-share: `tol`, `correct_share`, `counts` "
        "(`predicted`, `repaired`, `solved`, `marked`), `seconds` (`predict`, `check`, "
        "`repair`, `solve`), `worst_mismatch` (p.u.) and `mae` of the rows returned",
        "error_bars": "with --error-bars: `level`; `way`: `split` (a quarter of the context sets "
        "the widths) or, where that is too few, `left out` (each case in turn); `guaranteed` (rate "
        "of one entry that is proven whatever the method is); `num_context` (solved cases that "
        "each prediction they belong to was fitted on: not those above, and nothing is corrected), "
        "`num_calibration` (cases that set the widths); `widths` (half) and `coverage` "
        "on the test, per quantity: `interval` (one entry), `band` (all at once)",
        "choice": "with --method auto: `method`, `reason`, and the `ledger` of what was measured",
    },
    examples=[
        "gridshift adapt case14 --outage line:2 --method icw --context 100 --surrogate base14",
        "gridshift adapt case14 --outage line:2 --method compensation --context 10",
        "gridshift adapt case14 --outage line:2 --method compensation --base linear --context 20 "
        "--error-bars 0.9 --json",
        "gridshift adapt case14 --outage line:2,line:6 --method frozen --test 500 --seed 1 "
        "--spread 0.3 --surrogate base14 --json",
        "gridshift adapt case14 --outage line:2 --method frozen --certify 1e-6 "
        "--correct-share 0.01 --error-bars 0.9 --surrogate base14",
        "gridshift adapt case14 --outage line:2 --method auto --target-mae 1e-3 --context 100 "
        "--surrogate base14",
    ],
)
@grid_argument
@outage_option
@method_option(
    "newton", AUTO,
    more="; newton solves all exactly, auto measures and takes the cheapest",
)  # fmt: skip
@measuring_options
@certify_options
@click.option(
    "--error-bars", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="LEVEL",
    help="Conformal error bars of the uncorrected prediction that hold at this rate, for instance "
    "0.9, which needs 9 cases: a quarter of the context sets them, or in a small one each "
    "case left out in turn.",
)  # fmt: skip
@target_option
def adapt(
    grid: str, outage: str, method: str, context: int, test: int, spread: float, seed: int,
    surrogate: Path | None, certify: float | None, correct_share: float,
    error_bars: float | None, target_mae: float | None, base_name: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Adapt a base to one outage and measure the error.

    The base is of the intact grid: trained at first use and kept in the cache folder
    ($GRIDSHIFT_CACHE, or gridshift in the user's cache), or taken from --surrogate. With --certify
    every row returned is within the tolerance or marked. With --method auto the choice is for as
    many rows as --test.
    """
    from gridshift.adapt.methods import METHODS
    from gridshift.errors import GridshiftWarning
    from gridshift.grid.equations import require_reachable
    from gridshift.grid.readers import read_grid
    from gridshift.trial.cases import Cases
    from gridshift.trial.compare import measure_exact
    from gridshift.trial.trial import Trial, check_calibration

    check_target(method, target_mae, certify)
    network = read_grid(grid)
    left = usable(network, outage).network
    if certify is not None:
        require_reachable(left, certify)
    rows_ = {"num_context": context, "spread": spread, "seed": seed}
    cases = Cases(left, num_test=test, **rows_)
    more: dict[str, Any] = {"base": None}
    if method == AUTO:
        choice = chosen_method(
            cases, surrogate, base_name, num_rows=test, target_mae=target_mae, certify=certify
        )
        method, more["choice"] = choice.chosen.name, choice_json(choice)
    if method in METHODS:
        if error_bars is not None:
            check_calibration(METHODS[method], context, error_bars)
        base, _ = found_base(METHODS[method], left, surrogate, base_name=base_name, **rows_)
        more["base"] = METHODS[method].base_name(base)
        trial = Trial(base, METHODS[method], cases)
        measured = trial.measurement()
        if certify is not None or correct_share:
            more["certified"] = asdict(trial.certified(certify, correct_share=correct_share))
        if error_bars is not None:
            more["error_bars"] = asdict(trial.error_bars(error_bars))
    else:
        given = {"--correct-share": bool(correct_share), "--error-bars": error_bars is not None}
        if ignored := [name for name, was in given.items() if was]:
            verb = "is" if len(ignored) == 1 else "are"
            warnings.warn(
                f"{' and '.join(ignored)} {verb} ignored: every row is solved exactly",
                GridshiftWarning,
                stacklevel=1,
            )
        measured = measure_exact(cases, tol=min(1e-8, certify or 1e-8))
    payload = {"grid": network.name, **asdict(measured), **more}
    payload["test_status"] = payload.pop("test_counts")

    emit(
        payload, lambda console: _print(console, network.name, measured, spread, more),
        as_json=as_json,
    )  # fmt: skip


def _print(
    console, grid: str, measured: "Measurement", spread: float, more: Mapping[str, Any]
) -> None:
    if "choice" in more:
        print_choice(console, more["choice"])
    mae, mismatch, cost = measured.mae, measured.mismatch, measured.cost
    rows = [
        ("active power of the slack (p.u.)", mae["p_slack"]),
        ("reactive power of generators (p.u.)", mae["q_gen"]),
        ("voltage magnitude (p.u.)", mae["v"]),
        ("voltage angle (°)", mae["theta_deg"]),
        ("all outputs (p.u. and rad)", mae["overall"]),
    ]
    title = f"{measured.method} on {grid} without {measured.outage or 'any outage'}"
    console.print(table(title, (f"over {measured.num_test:,} fresh rows", ">mean error"), rows,
                        note=drawn_spread(spread)))  # fmt: skip
    rows = [
        ("worst-bus mismatch, median (p.u.)", mismatch["median"]),
        ("worst-bus mismatch, 99th percentile (p.u.)", mismatch["p99"]),
        ("solves", measured.num_solves), ("solving the context (s)", cost.data_s),
        ("fitting (s)", cost.fit_s), ("gradient steps (s)", cost.gradient_s),
        ("predicting (µs per row)", cost.predict_us_per_row),
    ]  # fmt: skip
    console.print()
    console.print(table("", ("balance and cost", ">value"), rows))
    _print_certified(console, more)
    _print_error_bars(console, more)


def _print_certified(console, found: Mapping[str, Any]) -> None:
    """What certifying gave, if it was asked for."""
    if certified := found.get("certified"):
        total = sum(certified["counts"].values())
        seconds = {"predicted": "check", "repaired": "repair", "solved": "solve"}
        rows = [
            (name, number, f"{number / total:.1%}" if total else None,
             certified["seconds"].get(seconds.get(name, "")))
            for name, number in certified["counts"].items()
        ]  # fmt: skip
        note = (
            f"predicting took {text(certified['seconds']['predict'])} s; worst mismatch returned "
            f"{text(certified['worst_mismatch'])} p.u., mean error "
            f"{text(certified['mae']['overall'])}"
        )
        console.print()
        console.print(table("", ("rows", ">number", ">share", ">time (s)"), rows, note=note))


def _print_error_bars(console, found: Mapping[str, Any]) -> None:
    """Widths and coverage, if they were asked for."""
    if bars := found.get("error_bars"):
        rows = [
            (name, wide["interval"], f"{bars['coverage'][name]['interval']:.1%}",
             wide["band"], f"{bars['coverage'][name]['band']:.1%}")
            for name, wide in bars["widths"].items()
        ]  # fmt: skip
        columns = (
            f"error bars at {100 * bars['level']:.6g}%",
            ">one entry\n(±)", ">held", ">all at once\n(±)", ">held",
        )  # fmt: skip
        console.print()
        note = (
            "of the prediction before any correction, fitted on "
            f"{how_many(bars['num_context'], 'case')}; "
            f"{bars['num_calibration']:,} others set the widths"
        )
        if bars["way"] == "left out":
            note = (
                f"of the prediction before any correction; each of {bars['num_calibration']:,} "
                f"cases left out in turn; proven is {100 * bars['guaranteed']:.6g}% of an entry"
            )
        console.print(table("", columns, rows, note=note))
