"""An adapted surrogate as an ONNX file, which any runtime evaluates without gridshift."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridshift.adapt.context import Predictor, SummedPredictor
from gridshift.adapt.context_methods import Chosen, Recombined
from gridshift.adapt.expansion import ExpansionPredictor
from gridshift.adapt.surrogate import Surrogate
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import outage_text
from gridshift.grid.layout import Entry, Layout
from gridshift.grid.network import Network
from gridshift.learn.compensation import Compensated
from gridshift.learn.compensation_graph import CompensatedPart
from gridshift.learn.fitted_network import FittedNetwork
from gridshift.learn.linear_terms import LinearTerms
from gridshift.learn.models import FittedModel
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph, OnnxPart, WrittenModel, write_onnx
from gridshift.version import VERSION


def export_onnx(
    predictor: Predictor,
    path: str | Path,
    *,
    network: Network,
    check_on: Real,
    about: Mapping[str, str] | None = None,
) -> WrittenModel:
    """Write a predictor for one topology, after checking it row by row in onnxruntime.

    The file has the input 'x' (rows, X) and the output 'y' (rows, Y), float64, in the order and the
    units of `Layout`; its metadata names both, the grid and the outage.

    Args:
        predictor: what a method gave for the topology.
        check_on: (N, X) inputs on which the file has to predict what the predictor predicts.

    Raises:
        GridshiftError: the predictor has no ONNX form; onnx or onnxruntime isn't installed.
        StorageError: the file can't be written.
    """
    layout = Layout.of(network)
    metadata = {
        "gridshift": VERSION,
        "grid": network.name,
        "grid_digest": network.intact.digest,
        "network_digest": network.digest,
        "layout_digest": layout.digest,
        "base_mva": repr(float(network.base_mva)),
        "outage": outage_text(network.outaged),
        "inputs": _described(layout.inputs),
        "outputs": _described(layout.outputs),
    }
    return write_onnx(
        path, onnx_parts(predictor), check_on=check_on,
        expected=predictor.predict(check_on), about=metadata | dict(about or {}),
    )  # fmt: skip


def onnx_parts(predictor: Predictor) -> tuple[OnnxPart, ...]:
    """The parts with an ONNX form whose sum the predictor gives.

    Raises:
        GridshiftError: it consists of something else.
    """
    match predictor:
        case Chosen():
            return onnx_parts(predictor.predictor)
        case SummedPredictor():
            return tuple(part for each in predictor.parts for part in onnx_parts(each))
        case Compensated():
            base = onnx_parts(predictor.base)
            return (CompensatedPart(base=base, compensated=predictor),)
        case Recombined():
            return (_RecombinedPart(base=onnx_parts(predictor.of), recombined=predictor),)
        case Surrogate():
            return onnx_parts(predictor.predictor)
        case ExpansionPredictor():
            return (predictor.linear_terms(),)
        case FittedNetwork() if predictor.last_layer is None:
            pass
        case FittedModel() | LinearTerms():
            return (predictor,)
    raise GridshiftError(
        f"a prediction by {type(predictor).__name__} has no ONNX form; those of the methods icw, "
        "icw-paired, ridge, tangent and tangent-icw have one, for instance"
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _RecombinedPart:
    """Outputs of a base, of these parts, times a matrix."""

    base: tuple[OnnxPart, ...]
    recombined: Recombined

    def add_to_graph(self, graph: OnnxGraph) -> str:
        y_hat = graph.total([part.add_to_graph(graph) for part in self.base])
        return graph.add("MatMul", y_hat, graph.constant(self.recombined.weight))

    def round_off(self, x: Real) -> Real:
        size = np.abs(self.recombined.of.predict(x)).max(0, initial=0.0)
        error = np.sum([part.round_off(x) for part in self.base], axis=0)
        return (error + len(size) * DOUBLE * size) @ np.abs(self.recombined.weight)


def _described(entries: tuple[Entry, ...]) -> str:
    """Name, bus and unit of every column, in order, as JSON."""
    return json.dumps([{"name": e.name, "bus": e.bus, "unit": e.unit} for e in entries])
