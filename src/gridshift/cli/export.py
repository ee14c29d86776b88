"""`gridshift export`: an adapted surrogate as a file for other programs."""

from pathlib import Path

from gridshift.arguments import how_many
from gridshift.cli.bases import found_base, usable
from gridshift.cli.folders import require_writable_file
from gridshift.cli.group import command
from gridshift.cli.options import (
    ADAPTATION_KEYS,
    context_option,
    drawn_options,
    grid_argument,
    method_option,
    outage_option,
    path_option,
    start_options,
)
from gridshift.cli.output import emit, table

NO_FILE = {
    "newton": "newton solves every row and has no surrogate to export; take a method of "
    "'gridshift methods'",
    "auto": "export writes one method's surrogate; let 'gridshift adapt --method auto' choose it "
    "and name it here",
}
"""Names that `adapt` takes and `export` can't."""


@command(
    writes={"out": ()},
    keys=ADAPTATION_KEYS
    | {
        "num_inputs": "columns of the input `x`",
        "num_outputs": "columns of the output `y`",
        "onnx": "the file",
        "num_bytes": "its size",
        "num_checked": "rows that onnxruntime and gridshift both predicted",
        "max_difference": "largest difference of any output in any of them, p.u. or rad",
    },
    examples=[
        "gridshift export case14 --outage line:2 --method icw --context 100 --surrogate base14 "
        "--out line2.onnx",
        "gridshift export case14 --outage line:2 --method compensation --base quadratic "
        "--context 10 --out compensation14.onnx",
        "gridshift export case14 --outage line:2 --context 50 --spread 0.3 --seed 1 "
        "--surrogate base14 --out line2.onnx --json",
    ],
)
@grid_argument
@outage_option
@method_option(never=NO_FILE)
@context_option()
@drawn_options
@start_options
@path_option("--out", metavar="FILE", required=True, help="ONNX file to write.")
def export(
    grid: str, outage: str, method: str, context: int, spread: float, seed: int,
    base_name: str | None, surrogate: Path | None, out: Path, as_json: bool,
) -> None:  # fmt: skip
    """Adapt a surrogate to one outage and write it as ONNX.

    The file has one input `x` and one output `y` (rows by columns, float64, per unit and radians);
    its metadata names every column, the grid and the outage. It is checked row by row against
    gridshift's own prediction before it is written. Needs `pip install 'gridshift[onnx]'`.
    """
    from gridshift.adapt.datasets import require_rows
    from gridshift.adapt.methods import METHODS
    from gridshift.exchange.export import export_adapted
    from gridshift.grid.readers import read_grid
    from gridshift.learn.onnx_graph import require_onnx

    require_onnx()
    require_writable_file(out)
    chosen = METHODS[method]
    chosen.check_exportable()
    network = read_grid(grid)
    found = usable(network, outage)
    require_rows(found.network, context, "context scenarios")
    base, _ = found_base(
        chosen, found.network, surrogate, num_context=context, spread=spread, seed=seed,
        base_name=base_name,
    )  # fmt: skip
    done = export_adapted(
        base, chosen, out,
        network=found.network, num_context=context, spread=spread, seed=seed,
    )  # fmt: skip
    model = done.model
    payload = {
        "grid": network.name, "outage": outage, "method": method,
        "base": chosen.base_name(base), "num_context": done.num_context,
        "num_solves": done.num_solves, "num_inputs": done.num_inputs,
        "num_outputs": done.num_outputs, "onnx": out, "num_bytes": model.num_bytes,
        "num_checked": model.num_checked, "max_difference": model.max_difference,
    }  # fmt: skip

    def render(console) -> None:
        rows = [
            ("inputs", done.num_inputs), ("outputs", done.num_outputs),
            ("solves", done.num_solves), ("size (bytes)", model.num_bytes),
            (
                f"largest difference on {how_many(model.num_checked, 'row')} (p.u.)",
                model.max_difference,
            ),
        ]  # fmt: skip
        title = f"{method} on {network.name} without {outage or 'any outage'}, in {out}"
        console.print(table(title, ("", ">"), rows))

    emit(payload, render, as_json=as_json)
