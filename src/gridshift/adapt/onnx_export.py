"""An adapted surrogate as an ONNX file, which any runtime evaluates without gridshift."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from gridshift.adapt.layout import Entry, Layout
from gridshift.adapt.methods import Predictor
from gridshift.adapt.surrogate import FoldedPredictor, Surrogate
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import outage_text
from gridshift.grid.network import Network
from gridshift.learn.folding import FoldedNetwork
from gridshift.learn.onnx_graph import LinearTerms, WrittenModel, write_onnx

Parts = tuple[FoldedNetwork, LinearTerms | None]
"""A network and what is affine in x; a prediction is their sum."""


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
    folded, linear = onnx_parts(predictor)
    layout = Layout.of(network)
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
        path, folded, linear=linear, expected=predictor.predict(check_on), check_on=check_on,
        about=metadata | dict(about or {}),
    )  # fmt: skip


def onnx_parts(predictor: Predictor) -> Parts:
    """What the predictor consists of, if that is a network and terms that are affine in x.

    A predictor of another kind says so itself, by a method `onnx_parts`.

    Raises:
        GridshiftError: it consists of something else.
    """
    if isinstance(predictor, Surrogate):
        return onnx_parts(predictor.with_transform(predictor.transform))
    if isinstance(predictor, FoldedPredictor):
        base = predictor.surrogate
        hidden = base.backbone.features
        folded = FoldedNetwork(
            input_mean=base.input_mean,
            input_scale=base.input_scale,
            hidden=hidden,  # type: ignore[arg-type]
            weight=predictor.weight,
            bias=predictor.bias,
        )
        return folded, None
    own = getattr(predictor, "onnx_parts", None)
    if own is None:
        raise GridshiftError(
            f"a {type(predictor).__name__} has no ONNX form; export one of the methods frozen, "
            "residual, zscore and icw"
        )
    return own()


def _described(entries: tuple[Entry, ...]) -> str:
    """Name, bus and unit of every column, in order, as JSON."""
    return json.dumps([{"name": e.name, "bus": e.bus, "unit": e.unit} for e in entries])
