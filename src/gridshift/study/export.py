"""One adaptation as a file for other programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gridshift.adapt.base import Base
from gridshift.adapt.methods import Method
from gridshift.adapt.onnx_export import export_onnx
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.onnx_graph import WrittenModel
from gridshift.study.measure import draw, draw_context

NUM_CHECKED = 256
"""Rows on which the file's prediction is compared with ours."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """An adapted surrogate in a file."""

    method: str
    num_context: int
    """Solved cases that the method was given."""
    num_solves: int
    """Solves that were paid for, failed ones included."""
    num_inputs: int
    num_outputs: int
    model: WrittenModel


def export_adapted(
    surrogate: Base,
    network: Network,
    method: Method,
    path: str | Path,
    *,
    num_context: int = 400,
    spread: float = 0.2,
    seed: int = 0,
    **solver: Any,
) -> Exported:
    """Adapt a surrogate to a topology and write it as ONNX; the context is `measure_adaptation`'s.

    Args:
        surrogate: trained on the intact grid.
        network: the topology.
        method: of `METHODS`.
        path: file to write.
        num_context: scenarios solved for the context, if the method needs solved cases.
        spread: spread of the loads.
        seed: root seed of the context.
        solver: keyword arguments of `solve`.

    Raises:
        ContextError: a context that the method can't work with.
        GridshiftError: the method has no ONNX form; onnx or onnxruntime isn't installed.
        ScenarioError: most of the context rows have no solution.
        StorageError: the file can't be written.
    """
    surrogate.check(network)
    method.check_exportable()
    context = draw_context(
        surrogate, network, method, num_context=num_context, spread=spread, seed=seed, **solver
    )
    predictor = method.fit(surrogate, context)
    loads = draw(network, "test", NUM_CHECKED, spread=spread, regime="drawn", seed=seed)
    layout = Layout.of(network)
    model = export_onnx(
        predictor, path, network=network, check_on=layout.pack_inputs(network, loads),
        about={
            "method": method.name, "num_context": str(len(context.x)), "spread": repr(spread),
            "seed": str(seed),
        },
    )  # fmt: skip
    return Exported(
        method=method.name,
        num_context=len(context.x),
        num_solves=context.num_solves,
        num_inputs=layout.num_inputs,
        num_outputs=layout.num_outputs,
        model=model,
    )
