"""`gridshift train` and `gridshift methods`: surrogates, and the ways to adapt them."""

import time
from dataclasses import replace
from pathlib import Path

import click

from gridshift.cli.bases import usable
from gridshift.cli.folders import require_writable
from gridshift.cli.group import SURROGATE_EXAMPLE, command
from gridshift.cli.options import (
    GRID_KEY,
    RenamedOption,
    Roster,
    drawn_options,
    grid_argument,
    path_option,
)
from gridshift.cli.output import emit, progress, table


@command(
    writes={"out": ("surrogate.json", "surrogate.safetensors")},
    keys=GRID_KEY
    | {
        "surrogate": "folder that it was written to",
        "mae": "mean absolute error over all outputs on fresh rows of the intact grid",
        "num_rows": "solved training scenarios",
        "base": "its kind",
        "num_steps": "gradient steps; 0 for a regression",
        "wall_s": "time for data, training and validation, s",
    },
    examples=[
        SURROGATE_EXAMPLE,
        "gridshift train case14 --base quadratic --out quadratic14",
        "gridshift train case14 --base mlp --transform zscore --spread 0.3 --seed 1 "
        "--steps 200 --rows 200 --out base14-zscore --json",
        "gridshift train case14 --paper --steps 200 --rows 200 --out paper14",
    ],
)
@grid_argument
@click.option(
    "--base", "--backbone", "base_name", cls=RenamedOption,
    type=Roster("gridshift.adapt.surrogate_config", "BASES"), default="mlp", show_default=True,
    help="Kind of base: a network (mlp, transformer, pfgnn), or a regression in closed form "
    "(linear, quadratic), which takes seconds.",
)  # fmt: skip
@click.option(
    "--transform", type=Roster("gridshift.adapt.surrogate_config", "OUTPUT_TRANSFORMS"),
    help="Transform of a network's outputs: identity, residual, zscore, zca, or what a tangent, "
    "tangent2 or regression leaves.  [default: zca]",
)  # fmt: skip
@click.option(
    "--paper", is_flag=True,
    help="Train as in the paper: 40,000 steps, a lower learning rate, dropout.",
)  # fmt: skip
@click.option("--steps", type=click.IntRange(max=10**9), help="Gradient steps.  [default: 20,000]")
@click.option("--rows", type=int, help="Training scenarios.  [default: by size of the grid]")
@drawn_options
@path_option("--out", required=True, help="Folder to write the surrogate to.")
def train(
    grid: str, base_name: str, transform: str | None, paper: bool, steps: int | None,
    rows: int | None, spread: float, seed: int, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Train a surrogate of the intact grid and store it.

    By default it is the one that the other commands train at first use for methods that need a
    network.
    """
    from gridshift.adapt.datasets import require_rows
    from gridshift.adapt.surrogate import train as train_surrogate
    from gridshift.adapt.surrogate_config import PAPER_SURROGATE, base_config, num_training_rows
    from gridshift.grid.readers import read_grid
    from gridshift.learn.backbones import BACKBONES

    config = base_config(base_name, transform=transform, num_rows=rows, spread=spread, seed=seed)
    if config.closed_form and (paper or steps is not None):
        raise click.UsageError(
            f"--{'paper' if paper else 'steps'} is for networks; base {base_name} takes no steps"
        )
    if paper:
        training = PAPER_SURROGATE.training
        config = replace(config, backbone=BACKBONES[base_name](), training=training)
    if steps is not None:
        config = replace(config, training=replace(config.training, num_steps=steps))
    num_steps = 0 if config.closed_form else config.training.num_steps
    require_writable(out)
    network = usable(read_grid(grid), "").network
    require_rows(network, num_training_rows(network, config), "training scenarios")
    began = time.perf_counter()
    with progress("training", num_steps, unit="step") as done:
        if num_steps:
            done(0)
        surrogate = train_surrogate(network, config, progress=lambda step, *_: done(step))
    wall_s = time.perf_counter() - began
    surrogate.save(out)
    payload = {
        "grid": network.name, "surrogate": out, "base": base_name, "mae": surrogate.mae,
        "num_rows": surrogate.record["num_rows"], "num_steps": num_steps, "wall_s": wall_s,
    }  # fmt: skip

    def render(console) -> None:
        rows_ = [
            ("training rows", payload["num_rows"]), ("steps", num_steps),
            ("mean absolute error (p.u., rad)", surrogate.mae), ("time (s)", wall_s),
        ]  # fmt: skip
        way = "" if config.closed_form else f" with {config.transform}"
        title = f"{base_name} of {network.name}{way}, in {out}"
        console.print(table(title, ("", ">"), rows_))

    emit(payload, render, as_json=as_json)


@command(
    keys={
        "methods": "list of `name`, `needs`, `gradient`, `source`, `summary`, "
        "`transform` and `backbone` that the surrogate must have (null: any), `own_model` (it "
        "starts from a model of its own instead), `base` (which it starts from unless --base says "
        "otherwise; null if it needs none)"
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
            "base": method.default_base if method.uses_surrogate and not method.base else None,
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
