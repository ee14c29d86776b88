"""ONNX form of a folded network, and its check in onnxruntime; both packages are optional.

Precision is that of our own prediction: inputs and outputs are float64, scaling is float64, the
layers are float32, and the bias, the large part of y, is added in float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from gridshift.errors import GridshiftError
from gridshift.learn.folding import FoldedNetwork, run
from gridshift.learn.moments import Real
from gridshift.storage import write_bytes

OPSET = 17
IR_VERSION = 8
"""As old as the operators allow, so that runtimes of the last years read the file."""
DOUBLE = 1e-12
"""Relative difference of float64 sums that counts as round-off."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearTerms:
    """A part of y that is affine in x: matrix (x[columns] - centre) + offset, as a tangent is.

    In float64: it may be the larger part of y.
    """

    matrix: Real
    """(Y, C)"""
    columns: NDArray[np.int64]
    """(C,) entries of x."""
    centre: Real
    """(C,)"""
    offset: Real
    """(Y,)"""


@dataclass(frozen=True, kw_only=True)
class WrittenModel:
    """An ONNX file, and how far its predictions are from ours."""

    path: Path
    num_bytes: int
    num_checked: int
    """Rows that were predicted by both."""
    max_difference: float
    """Largest difference of any entry of y in any of these rows."""


def write_onnx(
    path: str | Path,
    network: FoldedNetwork | None,
    *,
    check_on: Real,
    expected: Real,
    linear: Sequence[LinearTerms] = (),
    about: Mapping[str, str] | None = None,
) -> WrittenModel:
    """Write a model with input 'x' (N, X) and output 'y' (N, Y), after checking it row by row.

    Args:
        path: file to write; all of it or nothing.
        network: what to write; None if all is linear.
        check_on: (N, X) inputs for which onnxruntime has to give
        expected: (N, Y) our own prediction.
        linear: added to what the network gives.
        about: metadata of the file.

    Raises:
        GridshiftError: onnx or onnxruntime isn't installed; a layer has no ONNX form here; or the
            runtime predicts something else.
        StorageError: the file can't be written.
    """
    widths = check_on.shape[1], expected.shape[1]
    model = onnx_bytes(network, linear=linear, about=about, widths=widths)
    difference = np.abs(onnx_predict(model, check_on) - expected)
    if not (difference <= _round_off(network, check_on, linear)).all():
        worst = np.unravel_index(difference.argmax(), difference.shape)
        raise GridshiftError(
            f"the ONNX model differs from our prediction by {difference.max():.2g} in output "
            f"{worst[1]} of row {worst[0]}, more than round-off; nothing was written"
        )
    return WrittenModel(
        path=write_bytes(path, model),
        num_bytes=len(model),
        num_checked=len(check_on),
        max_difference=float(difference.max(initial=0.0)),
    )


def require_onnx() -> None:
    """Pass if the optional packages are there, which is better known before the work than after it.

    Raises:
        GridshiftError: one of them isn't.
    """
    _optional("onnx")
    _optional("onnxruntime")


def onnx_bytes(
    network: FoldedNetwork | None,
    *,
    widths: tuple[int, int],
    linear: Sequence[LinearTerms] = (),
    about: Mapping[str, str] | None = None,
) -> bytes:
    """The model as the content of a file, with X inputs and Y outputs; see `write_onnx`."""
    graph = _Graph(_optional("onnx"))
    bias = np.zeros(widths[1]) if network is None else network.bias
    y = graph.constant("bias", sum((terms.offset for terms in linear), bias))
    for number, terms in enumerate(linear):
        y = graph.add("Add", graph.linear(terms, number), y)
    if network is not None:
        y = graph.add("Add", graph.network(network), y)
    graph.add("Identity", y, output="y")
    return graph.model(*widths, about or {})


def onnx_predict(model: bytes | str | Path, x: Real) -> Real:
    """(N, Y) what onnxruntime predicts for inputs (N, X), on one thread."""
    runtime = _optional("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    source = str(model) if isinstance(model, Path) else model
    session = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": np.ascontiguousarray(x, np.float64)})[0]


class _Graph:
    """Nodes and constants of a graph, in the order of their use."""

    def __init__(self, onnx: Any):
        self.onnx, self.nodes, self.constants = onnx, [], []

    def constant(self, name: str, values: np.ndarray | np.floating) -> str:
        array = np.ascontiguousarray(values)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def network(self, network: FoldedNetwork) -> str:
        """All of a network but its bias."""
        scaled = self.add("Sub", "x", self.constant("input_mean", network.input_mean))
        scaled = self.add("Div", scaled, self.constant("input_scale", network.input_scale))
        value = self.add("Cast", scaled, to=self.onnx.TensorProto.FLOAT)
        for layer in _layers(network.hidden):
            value = self.layer(value, layer)
        value = self.add("MatMul", value, self.constant("weight", network.weight.T))
        return self.add("Cast", value, to=self.onnx.TensorProto.DOUBLE)

    def linear(self, terms: LinearTerms, number: int) -> str:
        """All of the terms but their offset."""
        columns = self.constant(f"columns_{number}", terms.columns)
        chosen = self.add("Gather", "x", columns, axis=1)
        shifted = self.add("Sub", chosen, self.constant(f"centre_{number}", terms.centre))
        return self.add("MatMul", shifted, self.constant(f"matrix_{number}", terms.matrix.T))

    def layer(self, value: str, layer: nn.Module) -> str:
        number = len(self.nodes)
        if isinstance(layer, nn.Linear):
            weight = self.constant(f"weight_{number}", layer.weight.detach().numpy())
            bias = self.constant(f"bias_{number}", layer.bias.detach().numpy())
            return self.add("Gemm", value, weight, bias, transB=1)
        # GELU(h) = h/2 (1 + erf(h / sqrt 2)); the operator Gelu is younger than many runtimes
        half = self.constant(f"half_{number}", np.float32(0.5))
        one = self.constant(f"one_{number}", np.float32(1))
        root = self.constant(f"root_{number}", np.float32(np.sqrt(0.5)))
        error = self.add("Erf", self.add("Mul", value, root))
        return self.add("Mul", self.add("Mul", value, half), self.add("Add", error, one))

    def model(self, num_inputs: int, num_outputs: int, about: Mapping[str, str]) -> bytes:
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        graph = helper.make_graph(
            self.nodes,
            "gridshift",
            [helper.make_tensor_value_info("x", double, ["rows", num_inputs])],
            [helper.make_tensor_value_info("y", double, ["rows", num_outputs])],
            self.constants,
        )
        model = helper.make_model(
            graph, producer_name="gridshift", opset_imports=[helper.make_opsetid("", OPSET)]
        )
        model.ir_version = IR_VERSION
        helper.set_model_props(model, dict(about))
        self.onnx.checker.check_model(model)
        return model.SerializeToString()


def _layers(hidden: nn.Module) -> list[nn.Module]:
    """Linear and GELU layers in order; dropout does nothing in prediction."""
    layers = list(hidden) if isinstance(hidden, nn.Sequential) else [hidden]
    for layer in layers:
        exact = not isinstance(layer, nn.GELU) or layer.approximate == "none"
        if not isinstance(layer, nn.Linear | nn.GELU | nn.Dropout) or not exact:
            raise GridshiftError(
                f"layer {layer} has no ONNX form here; networks of the backbone mlp have one"
            )
    return [layer for layer in layers if not isinstance(layer, nn.Dropout)]


def _round_off(network: FoldedNetwork | None, x: Real, linear: Sequence[LinearTerms]) -> Real:
    """(Y,) how far apart two orders of the same sums may be: terms · machine epsilon · sizes.

    In single precision, that of the network; our own tangent goes through factors of it as well.
    """
    single, allowed = np.finfo(np.float32).eps, np.asarray(DOUBLE)
    for terms in linear:
        shifted = np.abs(x[:, terms.columns] - terms.centre)
        size = (shifted @ np.abs(terms.matrix.T)).max(0, initial=0.0)
        allowed = allowed + DOUBLE * np.abs(terms.offset) + len(terms.columns) * single * size
    if network is None:
        return allowed
    num_terms = sum(network.weight.shape) + len(network.input_mean)
    weight = np.abs(network.weight.T)
    blocks = run(network.hidden, x, network.input_mean, network.input_scale)
    size = np.max([(np.abs(h) @ weight).max(0, initial=0.0) for _, h in blocks], axis=0)
    return allowed + DOUBLE * np.abs(network.bias) + num_terms * single * size


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise GridshiftError(
            f"ONNX export needs the package {name}, which isn't installed; "
            "run pip install 'gridshift[onnx]'"
        ) from error
