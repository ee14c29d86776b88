"""An adapted surrogate as an ONNX file, which any runtime evaluates without gridshift."""

import json
from collections.abc import Mapping
from functools import singledispatch
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gridshift.adapt.context import Predictor
from gridshift.adapt.moment_methods import Chosen
from gridshift.adapt.ridge import LinearInInputs
from gridshift.adapt.surrogate import FoldedPredictor, Surrogate, TransformedPredictor
from gridshift.adapt.tangent import Plane
from gridshift.adapt.tangent_methods import Recalibrated
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import outage_text
from gridshift.grid.layout import Entry, Layout
from gridshift.grid.network import Network
from gridshift.learn.folding import FoldedNetwork
from gridshift.learn.onnx_graph import LinearTerms, WrittenModel, write_onnx


class Parts(NamedTuple):
    """A network and what is affine in x; a prediction is their sum."""

    network: FoldedNetwork | None
    linear: tuple[LinearTerms, ...]


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
        path: file to write.
        network: the topology.
        check_on: (N, X) inputs on which the file has to predict what the predictor predicts.
        about: more metadata.

    Raises:
        GridshiftError: the predictor has no ONNX form; onnx or onnxruntime isn't installed.
        StorageError: the file can't be written.
    """
    parts, layout = onnx_parts(predictor), Layout.of(network)
    metadata = {
        "gridshift": version("gridshift"),
        "grid": network.name,
        "grid_digest": network.root.digest,
        "network_digest": network.digest,
        "layout_digest": layout.digest,
        "base_mva": repr(float(network.base_mva)),
        "outage": outage_text(network.outaged),
        "inputs": _described(layout.inputs),
        "outputs": _described(layout.outputs),
    }
    return write_onnx(
        path, parts.network, linear=parts.linear, check_on=check_on,
        expected=predictor.predict(check_on), about=metadata | dict(about or {}),
    )  # fmt: skip


@singledispatch
def onnx_parts(predictor: Predictor) -> Parts:
    """What the predictor consists of, if that is a network and terms that are affine in x.

    Predictors of new kinds are registered below.

    Raises:
        GridshiftError: it consists of something else.
    """
    raise GridshiftError(
        f"a prediction by {type(predictor).__name__} has no ONNX form; those of the methods icw, "
        "icw-paired, ridge, tangent and tangent-icw have one, for instance"
    )


@onnx_parts.register
def _(predictor: Surrogate) -> Parts:
    return onnx_parts(predictor.with_transform(predictor.transform, predictor.plane))


@onnx_parts.register
def _(predictor: FoldedPredictor) -> Parts:
    base = predictor.surrogate
    network = FoldedNetwork(
        input_mean=base.input_mean,
        input_scale=base.input_scale,
        hidden=base.backbone.features,  # type: ignore[arg-type]
        weight=predictor.weight,
        bias=predictor.bias,
    )
    return Parts(network, () if predictor.plane is None else onnx_parts(predictor.plane).linear)


@onnx_parts.register
def _(predictor: TransformedPredictor) -> Parts:
    config = predictor.surrogate.config
    raise GridshiftError(
        f"a surrogate of backbone {config.backbone.name} with transform {config.transform} has no "
        "ONNX form; backbones mlp and transformer have one with every affine transform"
    )


@onnx_parts.register
def _(predictor: Plane) -> Parts:
    if predictor.order != 1:
        raise GridshiftError(
            "the curvature of tangent2 and tangent2-icw has no ONNX form; export the method "
            "tangent or tangent-icw"
        )
    tangent = predictor.expansion.tangent
    plane = LinearTerms(
        matrix=tangent.matrix(),
        columns=np.arange(len(tangent.x)),
        centre=tangent.x,
        offset=tangent.y,
    )
    return Parts(None, (plane,))


@onnx_parts.register
def _(predictor: Chosen) -> Parts:
    return onnx_parts(predictor.predictor)


@onnx_parts.register
def _(predictor: LinearInInputs) -> Parts:
    network, linear = (
        Parts(None, ()) if predictor.network is None else onnx_parts(predictor.network)
    )
    terms = LinearTerms(
        matrix=predictor.weight.T,
        columns=predictor.varied,
        centre=np.zeros(len(predictor.varied)),
        offset=predictor.bias,
    )
    return Parts(network, (*linear, terms))


@onnx_parts.register
def _(predictor: Recalibrated) -> Parts:
    return onnx_parts(predictor.network)


def _described(entries: tuple[Entry, ...]) -> str:
    """Name, bus and unit of every column, in order, as JSON."""
    return json.dumps([{"name": e.name, "bus": e.bus, "unit": e.unit} for e in entries])
