"""One adaptation as a file for other programs."""

from dataclasses import dataclass
from pathlib import Path

from gridshift.adapt.base import Base
from gridshift.adapt.methods import Method
from gridshift.adapt.onnx_export import export_onnx
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.onnx_graph import WrittenModel
from gridshift.trial.cases import Cases
from gridshift.trial.trial import Trial


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


NUM_CHECKED = 256
"""Rows on which the file's prediction is compared with ours."""


def export_adapted(
    base: Base,
    method: Method,
    path: str | Path,
    *,
    network: Network,
    num_context: int = 400,
    spread: float = 0.2,
    seed: int = 0,
) -> Exported:
    """Adapt to a topology and write that as ONNX; the context is `measure_adaptation`'s.

    Raises:
        ContextError: a context that the method can't work with.
        GridshiftError: the method has no ONNX form; onnx or onnxruntime isn't installed.
        ScenarioError: most of the context rows have no solution.
        StorageError: the file can't be written.
    """
    method.check_exportable()
    cases = Cases(
        network, num_context=num_context, num_test=NUM_CHECKED, spread=spread, seed=seed
    )  # fmt: skip
    trial, layout = Trial(base, method, cases), Layout.of(network)
    num_given = len(trial.context.x)
    model = export_onnx(
        trial.predictor, path, network=network,
        check_on=layout.pack_inputs(network, cases.test_loads),
        about={
            "method": method.name, "num_context": str(num_given), "spread": repr(spread),
            "seed": str(seed),
        },
    )  # fmt: skip
    return Exported(
        method=method.name,
        num_context=num_given,
        num_solves=trial.context.num_solves,
        num_inputs=layout.num_inputs,
        num_outputs=layout.num_outputs,
        model=model,
    )
