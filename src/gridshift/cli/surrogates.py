"""`gridshift train`, `adapt` and `methods`: surrogates and the ways to adapt them."""

import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from gridshift.cli.assuring import (
    certify_option,
    check_request,
    choice_json,
    decide,
    error_bars_option,
    print_assurance,
    print_choice,
    quantile_option,
    target_option,
)
from gridshift.cli.bases import (
    AUTO,
    Roster,
    found_base,
    method_option,
    surrogate_option,
)
from gridshift.cli.folders import require_writable
from gridshift.cli.grids import (
    drawn_spread_option,
    grid_argument,
    outage_option,
    seed_option,
    usable,
)
from gridshift.cli.group import SURROGATE_EXAMPLE, command
from gridshift.cli.output import drawn_spread, emit, progress, table


@command(
    writes={"out": ("surrogate.json", "surrogate.safetensors")},
    keys={
        "grid": "name of the grid",
        "surrogate": "folder that it was written to",
        "mae": "mean absolute error over all outputs on fresh rows of the intact grid",
        "num_rows": "solved training scenarios",
        "num_steps": "gradient steps",
        "wall_s": "time for data, training and validation, s",
    },
    examples=[
        SURROGATE_EXAMPLE,
        "gridshift train case14 --backbone mlp --transform zscore --spread 0.3 --seed 1 "
        "--steps 200 --rows 200 --out base14-zscore --json",
        "gridshift train case14 --paper --steps 200 --rows 200 --out paper14",
    ],
)
@grid_argument
@click.option(
    "--backbone", type=Roster("gridshift.learn.backbones", "BACKBONES"), default="mlp",
    show_default=True, help="Kind of network.",
)  # fmt: skip
@click.option(
    "--transform", type=Roster("gridshift.adapt.surrogate_config", "OUTPUT_TRANSFORMS"),
    default="zca", show_default=True,
    help="Transform of the outputs: identity, residual, zscore, zca, tangent or tangent2.",
)  # fmt: skip
@click.option(
    "--paper", is_flag=True,
    help="Train as in the paper: 40,000 steps, a lower learning rate, dropout.",
)  # fmt: skip
@click.option("--steps", type=click.IntRange(max=10**9), help="Gradient steps.  [default: 20,000]")
@click.option("--rows", type=int, help="Training scenarios.  [default: by size of the grid]")
@drawn_spread_option
@seed_option
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), metavar="DIR",
    help="Folder to write the surrogate to.",
)  # fmt: skip
def train(
    grid: str, backbone: str, transform: str, paper: bool, steps: int | None, rows: int | None,
    spread: float, seed: int, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Train a surrogate of the power flow of the intact grid and store it.

    By default it is the one that the other commands train at first use.
    """
    from gridshift.adapt.datasets import require_rows
    from gridshift.adapt.surrogate import default_num_rows
    from gridshift.adapt.surrogate import train as train_surrogate
    from gridshift.adapt.surrogate_config import (
        PAPER_SURROGATE,
        SurrogateConfig,
        default_backbone,
    )
    from gridshift.grid.readers import read_grid
    from gridshift.learn.backbones import BACKBONES

    config = replace(
        PAPER_SURROGATE if paper else SurrogateConfig(),
        backbone=BACKBONES[backbone]() if paper else default_backbone(backbone),
        transform=transform, num_rows=rows, spread=spread, seed=seed,
    )  # fmt: skip
    if steps is not None:
        config = replace(config, training=replace(config.training, num_steps=steps))
    training = config.training
    require_writable(out)
    network = usable(read_grid(grid), "").network
    require_rows(network, default_num_rows(network) if rows is None else rows, "training scenarios")
    began = time.perf_counter()
    with progress("training", training.num_steps, unit="steps") as done:
        done(0)
        surrogate = train_surrogate(network, config, progress=lambda step, *_: done(step))
    wall_s = time.perf_counter() - began
    surrogate.save(out)
    payload = {
        "grid": network.name, "surrogate": out, "mae": surrogate.mae,
        "num_rows": surrogate.record["num_rows"], "num_steps": training.num_steps,
        "wall_s": wall_s,
    }  # fmt: skip

    def render(console) -> None:
        rows_ = [
            ("training rows", payload["num_rows"]), ("steps", training.num_steps),
            ("mean absolute error (p.u., rad)", surrogate.mae), ("time (s)", wall_s),
        ]  # fmt: skip
        title = f"{backbone} of {network.name} with {transform}, in {out}"
        console.print(table(title, ("", ">"), rows_))

    emit(payload, render, as_json=as_json)


@command(
    keys={
        "grid": "name of the grid",
        "method": "how it was adapted",
        "outage": "elements out of service",
        "num_context": "solved cases that the method was given, for `mae` and `certified`",
        "num_solves": "solves that this took, failed ones included",
        "num_test": "fresh rows that the errors are means over; each draws its spread from 0.05 to "
        "--spread, or has that if it is smaller",
        "test_status": "number of test scenarios per status of their exact solve",
        "mae": "mean absolute errors: `overall` (all outputs, p.u. and rad), `p_slack`, `q_gen`, "
        "`v` (p.u.), `theta` (rad), `theta_deg`",
        "mismatch": "power balance of the predictions at the worst bus, p.u.: `median`, `p99`, "
        "`max` over rows",
        "cost": "`data_s`, `fit_s`, `gradient_s`, `predict_us_per_row`",
        "certified": "with --certify or --quantile: `tol`, `quantile`, `counts` (`predicted`, "
        "`repaired`, `solved`, `marked`), `seconds` (`predict`, `check`, `repair`, `solve`), "
        "`worst_mismatch` (p.u.) and `mae` of the rows returned",
        "error_bars": "with --error-bars: `level`; `num_context` (solved cases that the prediction "
        "they belong to was fitted on: not those above, and nothing is corrected), "
        "`num_calibration` (the other cases, that set the widths); `widths` (half) and `coverage` "
        "on the test, per quantity: `interval` (one entry), `band` (all at once)",
        "choice": "with --method auto: `method`, `reason`, and the `ledger` of what was measured",
    },
    examples=[
        "gridshift adapt case14 --outage line:2 --method icw --context 100 --surrogate base14",
        "gridshift adapt case14 --outage line:2,line:6 --method frozen --test 500 --seed 1 "
        "--spread 0.3 --surrogate base14 --json",
        "gridshift adapt case14 --outage line:2 --method frozen --certify 1e-6 --quantile 0.01 "
        "--error-bars 0.9 --surrogate base14",
        "gridshift adapt case14 --outage line:2 --method auto --target-mae 1e-3 --context 100 "
        "--surrogate base14",
    ],
)
@grid_argument
@outage_option
@method_option
@click.option(
    "--context", default=400, show_default=True, help="Scenarios solved to learn the topology."
)
@click.option(
    "--test", type=click.IntRange(min=1), default=1000, show_default=True,
    help="Fresh scenarios to measure on.",
)  # fmt: skip
@drawn_spread_option
@seed_option
@surrogate_option
@certify_option
@quantile_option
@error_bars_option
@target_option
def adapt(
    grid: str, outage: str, method: str, context: int, test: int, spread: float, seed: int,
    surrogate: Path | None, certify: float | None, quantile: float, error_bars: float | None,
    target_mae: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Adapt the surrogate of the intact grid to one outage and measure the error.

    The base surrogate is trained at first use and kept in the cache folder ($GRIDSHIFT_CACHE, or
    gridshift in the user's cache), or taken from --surrogate. With --certify every row returned is
    within the tolerance or marked. With --method auto the choice is for as many rows as --test.
    """
    from gridshift.adapt.datasets import require_rows
    from gridshift.adapt.methods import METHODS
    from gridshift.errors import GridshiftWarning
    from gridshift.grid.equations import require_reachable
    from gridshift.grid.readers import read_grid
    from gridshift.trial.cases import Cases
    from gridshift.trial.compare import measure_exact
    from gridshift.trial.trial import Trial, check_calibration

    check_request(method, target_mae, certify)
    network = read_grid(grid)
    left = usable(network, outage).network
    if certify is not None:
        require_reachable(left, certify)
    for what, number in (("context", context), ("test", test)):
        require_rows(left, number, f"{what} scenarios")
    rows_ = {"num_context": context, "spread": spread, "seed": seed}
    cases = Cases(left, num_test=test, **rows_)
    more: dict[str, Any] = {}
    if method == AUTO:
        choice = decide(cases, surrogate, num_rows=test, target_mae=target_mae, certify=certify)
        method, more["choice"] = choice.chosen.name, choice_json(choice)
    if method in METHODS:
        if error_bars is not None:
            check_calibration(context)
        base, _ = found_base(METHODS[method], left, surrogate, **rows_)
        trial = Trial(base, METHODS[method], cases)
        measured = trial.measurement()
        if certify is not None or quantile:
            more["certified"] = asdict(trial.certified(certify, correct_share=quantile))
        if error_bars is not None:
            more["error_bars"] = asdict(trial.error_bars(error_bars))
    else:
        given = {"--quantile": bool(quantile), "--error-bars": error_bars is not None}
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

    def render(console) -> None:
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
        title = f"{method} on {network.name} without {measured.outage or 'any outage'}"
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
        print_assurance(console, more)

    emit(payload, render, as_json=as_json)


@command(
    keys={
        "methods": "list of `name`, `needs`, `gradient`, `source`, `summary`, "
        "`transform` and `backbone` that the surrogate must have (null: any), `own_model` (it "
        "starts from a model of its own instead)"
    },
    examples=["gridshift methods", "gridshift methods --json"],
)
def methods(as_json: bool) -> None:
    """List the ways to adapt a surrogate to a new topology."""
    from gridshift.adapt.methods import METHODS

    roster = [
        {
            "name": method.name, "needs": method.needs, "gradient": method.gradient,
            "source": method.source, "summary": method.summary, "transform": method.transform,
            "backbone": method.backbone, "own_model": method.base is not None,
        }
        for method in METHODS.values()
    ]  # fmt: skip

    def render(console) -> None:
        rows = [
            (m["name"], ", ".join(m["needs"]), "yes" if m["gradient"] else "no", m["summary"])
            for m in roster
        ]
        console.print(table("methods", ("method", "needs", "gradient", "what it does"), rows))

    emit({"methods": roster}, render, as_json=as_json)
