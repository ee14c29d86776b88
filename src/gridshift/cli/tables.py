"""`gridshift fit-table`, `adapt-table`, `predict-table`: solved cases from any other tool."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gridshift.arguments import how_many
from gridshift.cli.folders import require_writable, require_writable_file
from gridshift.cli.group import command
from gridshift.cli.options import RenamedOption, Roster, path_option, seed_option
from gridshift.cli.output import emit, progress, table

MODEL_FILES = ("estimator.json", "estimator.safetensors")
WORST = 5
"""Outputs that a table on the screen shows; --json has all."""

file_type = click.Path(path_type=Path)
model_argument = click.argument("model", type=file_type, metavar="DIR")


@command(
    writes={"out": MODEL_FILES},
    keys={
        "model": "folder that the model was written to",
        "num_inputs": "columns that it predicts from",
        "num_outputs": "columns that it predicts",
        "constant_inputs": "inputs that never vary in the table; the model can't know what they do",
        "num_rows": "rows trained on",
        "num_holdout": "rows left out, for the errors",
        "mae": "mean absolute error over all outputs on the rows left out, in the table's units",
        "mae_of_mean": "the same for predicting each output's mean, for comparison",
        "mae_by_output": "the error of each output",
        "base": "what was fitted: `linear`, `quadratic` or `mlp`",
        "num_steps": "gradient steps; null for a base in closed form",
        "wall_s": "time of it all, s",
    },
    examples=[
        "gridshift fit-table intact.parquet --inputs 'p_*,q_*' --outputs 'theta_*,v_*' --out model",
        "gridshift fit-table intact.parquet --inputs 'p_*,q_*' --outputs 'v_*' --base mlp "
        "--transform zscore --hidden 64 --steps 200 --seed 1 --out model-zscore --json",
    ],
)
@click.argument("cases", type=file_type, metavar="TABLE")
@click.option("--inputs", required=True, metavar="PATTERNS", help="Columns to predict from.")
@click.option("--outputs", required=True, metavar="PATTERNS", help="Columns to predict.")
@click.option(
    "--base", type=Roster("gridshift.learn.estimator", "BASES"), default="quadratic",
    show_default=True,
    help="What is fitted: linear or quadratic, in closed form, or mlp, the paper's network.",
)  # fmt: skip
@click.option(
    "--transform", type=Roster("gridshift.learn.whitening", "TRANSFORMS"), default="zca",
    show_default=True, help="Moments to match later: identity, residual, zscore or zca.",
)  # fmt: skip
@click.option(
    "--hidden", default=256, show_default=True, help="Units of each hidden layer, for mlp."
)
@click.option("--steps", default=20_000, show_default=True, help="Gradient steps, for mlp.")
@seed_option
@path_option("--out", required=True, help="Folder to write the model to.")
def fit_table(
    cases: Path, inputs: str, outputs: str, base: str, transform: str, hidden: int, steps: int,
    seed: int, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Fit a model to a table of solved cases of one grid state.

    TABLE is a parquet or CSV file with a row for each case and named columns of numbers, from any
    tool, in any units; a CSV file may have semicolons or tabs and decimal commas. PATTERNS are
    names or patterns of columns, separated by commas: 'p_*,q_*'. A tenth of the rows is left out of
    the training to measure the error.
    """
    from gridshift.exchange import table_model
    from gridshift.exchange.tables import read_table
    from gridshift.learn.estimator import ICWRegressor

    require_writable(out)
    began = time.perf_counter()
    regressor = ICWRegressor(
        base=base, whitening=transform, hidden=hidden, num_steps=steps, random_state=seed
    )
    rows = read_table(cases)
    with progress("training", steps, unit="step") as done:
        model = table_model.fit_table(
            regressor, rows, inputs=inputs, outputs=outputs, source=str(cases),
            progress=lambda step, *_: done(step),
        )  # fmt: skip
    model.save(out)
    record = model.record
    payload = {
        "model": out, "num_inputs": len(model.inputs), "num_outputs": len(model.outputs),
        "constant_inputs": model.constant_inputs, "num_rows": record["num_rows"],
        "num_holdout": record["num_holdout"], "mae": record["mae"],
        "mae_of_mean": record["mae_of_mean"], "mae_by_output": record["mae_by_output"],
        "base": base, "num_steps": steps if base == "mlp" else None,
        "wall_s": time.perf_counter() - began,
    }  # fmt: skip

    def render(console) -> None:
        drawn = [
            ("base", base),
            ("inputs", len(model.inputs)), ("of them constant", len(model.constant_inputs)),
            ("outputs", len(model.outputs)), ("rows trained on", record["num_rows"]),
            (f"mean error on {how_many(record['num_holdout'], 'row')} left out", record["mae"]),
            ("the same for predicting the mean", record["mae_of_mean"]),
            ("time (s)", payload["wall_s"]),
        ]  # fmt: skip
        console.print(table(f"model of {cases}, in {out}", ("", ">"), drawn))
        _print_worst(console, record["mae_by_output"])

    emit(payload, render, as_json=as_json)


@command(
    writes={"out": MODEL_FILES, "onnx": ()},
    keys={
        "model": "folder that the adapted model was written to",
        "num_context": "solved cases that it was adapted to",
        "method": "what was done: `frozen`, `context`, `paired` or `compensation`",
        "mae": "mean absolute error of each of these on cases that it was not adapted to, by "
        "leaving out a tenth of the table at a time, or one case of fewer than twenty",
        "identified": "with --identify: the `pair` of buses, the `reason`, how much `doubt` the "
        "left-out errors leave, and the `ranking` of the first ten pairs; else null",
        "onnx": "with --onnx: the file, else null",
        "max_difference": "with --onnx: largest difference between onnxruntime's prediction and "
        "ours for the rows of the table, else null",
        "fit_s": "time of the adaptation, s",
    },
    examples=[
        "gridshift adapt-table model outage.csv --touching 'theta_1,theta_2,v_1,v_2' --out adapted",
        "gridshift adapt-table model outage.csv --touching buses.toml --between 1,2 --out adapted",
        "gridshift adapt-table model outage.csv --touching buses.toml --identify --out adapted",
        "gridshift adapt-table model outage.csv --method auto --onnx outage.onnx --out adapted "
        "--json",
    ],
)
@model_argument
@click.argument("context", type=file_type, metavar="CONTEXT")
@click.option(
    "--touching", metavar="COLUMNS|FILE",
    help="Outputs of the buses at which the grid has changed: patterns, or a .toml or .json file "
    "that gives each bus its columns.",
)  # fmt: skip
@click.option(
    "--between", multiple=True, metavar="BUS,BUS",
    help="Two buses of the file between which something has changed; may be given again.",
)  # fmt: skip
@click.option("--identify", is_flag=True, help="Find these two buses among all of the file.")
@click.option(
    "--method", "--moments", "method", cls=RenamedOption,
    type=click.Choice(["context", "paired", "compensation", "auto"]), metavar="NAME",
    help="compensation (what the change adds), the new moments held against those of the training "
    "rows (context, as in the paper) or of the model's own predictions (paired), or auto: what has "
    "the smallest error. By default compensation with --touching, else auto.",
)  # fmt: skip
@path_option("--onnx", metavar="FILE", help="Write an ONNX file as well.")
@path_option("--out", required=True, help="Folder for the adapted model.")
def adapt_table(
    model: Path, context: Path, touching: str | None, between: tuple[str, ...], identify: bool,
    method: str | None, onnx: Path | None, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Adapt a model to another grid state by ten solved cases.

    No gradients are needed. DIR is a folder of `fit-table`, CONTEXT a table with the same columns.
    Name what the change touches (--touching), for instance the buses at the ends of the line that
    is out, or let the cases tell (--identify).
    """
    from gridshift.exchange.table_model import TableModel
    from gridshift.exchange.tables import read_table

    require_writable(out)
    if onnx is not None:
        require_writable_file(onnx)
    change = _change(touching, between, identify=identify)
    base, rows = TableModel.load(model), read_table(context)
    began = time.perf_counter()
    adapted = base.adapted(
        rows, source=str(context), touching=change, identify=identify,
        method=method or ("auto" if touching is None else "compensation"),
    )  # fmt: skip
    fit_s = time.perf_counter() - began
    written = None if onnx is None else adapted.export(onnx, rows, source=str(context))
    adapted.save(out)
    record = adapted.record
    payload = {
        "model": out, "num_context": record["num_context"], "method": record["method"],
        "mae": record["context_mae"], "identified": record["identified"], "onnx": onnx,
        "max_difference": written and written.max_difference, "fit_s": fit_s,
    }  # fmt: skip

    def render(console) -> None:
        errors, found = record["context_mae"], record["identified"]
        drawn = [
            (name, text, errors[name], "this one" if name == record["method"] else "")
            for name, text in (
                ("frozen", "not adapted"),
                ("context", "moments of the context"),
                ("paired", "held against own predictions"),
                ("compensation", "what the change adds"),
            )
        ]
        title = (
            f"{model} adapted to {how_many(record['num_context'], 'case')} of {context}, in {out}"
        )
        columns = ("method", "", ">mean error on cases left out", "written")
        console.print(table(title, columns, drawn))
        if found is not None:
            console.print()
            ranked = [(each["name"], each["mae"]) for each in found["ranking"][:WORST]]
            console.print(table("", ("buses", ">left-out error"), ranked, note=found["reason"]))
        if written is not None:
            console.print(f"{onnx}: at most {written.max_difference:.1e} from our prediction")

    emit(payload, render, as_json=as_json)


@command(
    writes={"out": ()},
    keys={
        "out": "file that the predictions were written to",
        "num_rows": "rows predicted",
        "num_outputs": "columns predicted",
        "predict_us_per_row": "time of the prediction, µs for each row",
        "mae": "if the table holds the outputs: mean absolute error over all of them, else null",
        "mae_by_output": "the error of each output, else empty",
    },
    examples=[
        "gridshift predict-table adapted test.csv --out predicted.parquet",
        "gridshift predict-table adapted test.csv --keep 'case,p_*' --out predicted.csv --json",
    ],
)
@model_argument
@click.argument("cases", type=file_type, metavar="TABLE")
@click.option("--keep", metavar="PATTERNS", help="Columns of TABLE to copy, such as a case number.")
@path_option("--out", metavar="FILE", required=True, help="Parquet or CSV file to write.")
def predict_table(model: Path, cases: Path, keep: str | None, out: Path, as_json: bool) -> None:
    """Predict the outputs of every row of a table.

    DIR is a folder of `adapt-table`, or of `fit-table` for the state of the grid that it was fitted
    to. If TABLE holds the outputs as well, the errors are told.
    """
    from gridshift.exchange.table_model import TableModel, output_errors
    from gridshift.exchange.tables import check_kind, read_table, write_predictions

    check_kind(out)
    require_writable_file(out)
    found, rows = TableModel.load(model), read_table(cases)
    found.predict(rows.slice(0, 1), source=str(cases))  # what the first call loads isn't timed
    began = time.perf_counter()
    predicted = found.predict(rows, source=str(cases))
    wall_s = time.perf_counter() - began
    write_predictions(out, found.outputs, predicted, table=rows, keep=keep or "", source=str(cases))
    errors = output_errors(rows, found, predicted)
    payload: dict[str, Any] = {
        "out": out, "num_rows": len(predicted), "num_outputs": len(found.outputs),
        "predict_us_per_row": wall_s / len(predicted) * 1e6,
        "mae": sum(errors.values()) / len(errors) if errors else None, "mae_by_output": errors,
    }  # fmt: skip

    def render(console) -> None:
        drawn = [
            ("rows", len(predicted)), ("outputs", len(found.outputs)),
            ("time (µs per row)", payload["predict_us_per_row"]),
            *([("mean error (the table holds the outputs)", payload["mae"])] if errors else []),
        ]  # fmt: skip
        console.print(table(f"predictions of {model} for {cases}, in {out}", ("", ">"), drawn))
        _print_worst(console, errors)

    emit(payload, render, as_json=as_json)


def _change(touching: str | None, between: tuple[str, ...], *, identify: bool):
    """What --touching names: patterns as they are, or the content of a file."""
    from gridshift.errors import GridshiftError
    from gridshift.exchange.bus_file import ENDINGS, read_buses

    if touching is not None and touching.endswith(ENDINGS):
        buses = read_buses(Path(touching))
        return buses.between(between) if between else buses
    if between or identify:
        option = "--between" if between else "--identify"
        raise GridshiftError(f"{option} needs --touching FILE with the columns of each bus")
    return touching


def _print_worst(console, errors: Mapping[str, float]) -> None:
    if not errors:
        return
    worst = sorted(errors.items(), key=lambda item: -item[1])[:WORST]
    console.print()
    console.print(table("", ("output", ">mean error"), worst, note="the largest errors"))
