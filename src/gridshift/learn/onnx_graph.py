"""ONNX form of a sum of parts, and its check in onnxruntime; both packages are optional.

Precision is that of our own prediction: inputs and outputs are float64, scaling is float64, the
layers are float32, and the bias, the large part of y, is added in float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.storage import write_bytes

if TYPE_CHECKING:
    from torch import nn

OPSET = 17
IR_VERSION = 8
"""As old as the operators allow, so that runtimes of the last years read the file."""
DOUBLE = 1e-12
"""Relative difference of float64 sums that counts as round-off."""


class OnnxPart(Protocol):
    """A part of y that has an ONNX form: a `FittedModel`, or `LinearTerms`."""

    def add_to_graph(self, graph: "OnnxGraph") -> str:
        """Add it to a graph that has x as 'x'; the name of its part of y there.

        Raises:
            GridshiftError: it has no ONNX form.
        """
        ...

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X)."""
        ...


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
    parts: Sequence[OnnxPart],
    *,
    check_on: Real,
    expected: Real,
    about: Mapping[str, str] | None = None,
) -> WrittenModel:
    """Write a model with input 'x' (N, X) and output 'y' (N, Y), after checking it row by row.

    Args:
        path: file to write; all of it or nothing.
        parts: what y is the sum of.
        check_on: (N, X) inputs for which onnxruntime has to give
        expected: (N, Y) our own prediction.

    Raises:
        GridshiftError: onnx or onnxruntime isn't installed; a layer has no ONNX form here; or the
            runtime predicts something else.
        StorageError: the file can't be written.
    """
    widths = check_on.shape[1], expected.shape[1]
    model = onnx_bytes(parts, about=about, widths=widths)
    difference = np.abs(onnx_predict(model, check_on) - expected)
    if not (difference <= DOUBLE + sum(part.round_off(check_on) for part in parts)).all():
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
    parts: Sequence[OnnxPart],
    *,
    widths: tuple[int, int],
    about: Mapping[str, str] | None = None,
) -> bytes:
    """The model as the content of a file, with X inputs and Y outputs; see `write_onnx`."""
    graph = OnnxGraph(_optional("onnx"))
    graph.add("Identity", graph.total([part.add_to_graph(graph) for part in parts]), output="y")
    return graph.model(*widths, about or {})


def onnx_predict(model: bytes | str | Path, x: Real) -> Real:
    """(N, Y) what onnxruntime predicts for inputs (N, X), on one thread."""
    runtime = _optional("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    source = str(model) if isinstance(model, Path) else model
    session = runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(["y"], {"x": np.ascontiguousarray(x, np.float64)})[0]


class OnnxGraph:
    """Nodes and constants of a graph, in the order of their use; the input is 'x'."""

    def __init__(self, onnx: Any):
        self.onnx, self.nodes, self.constants = onnx, [], []
        self.float32, self.float64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE

    def constant(self, values: np.ndarray | np.floating) -> str:
        """The name of a constant."""
        name = f"constant_{len(self.constants)}"
        array = np.ascontiguousarray(values)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """The name of what an operator gives for these inputs."""
        output = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def total(self, values: Sequence[str]) -> str:
        """The name of the sum of these."""
        total, *others = values
        for other in others:
            total = self.add("Add", total, other)
        return total

    def layers(self, value: str, hidden: "nn.Module") -> str:
        """The name of what linear and GELU layers give; dropout does nothing in prediction.

        Raises:
            GridshiftError: a layer is of another kind.
        """
        from torch import nn

        for layer in hidden if isinstance(hidden, nn.Sequential) else [hidden]:
            if isinstance(layer, nn.Linear):
                weight = self.constant(layer.weight.detach().numpy())
                bias = self.constant(layer.bias.detach().numpy())
                value = self.add("Gemm", value, weight, bias, transB=1)
            elif isinstance(layer, nn.GELU) and layer.approximate == "none":
                value = self._gelu(value)
            elif not isinstance(layer, nn.Dropout):
                raise GridshiftError(
                    f"layer {layer} has no ONNX form here; networks of the backbone mlp have one"
                )
        return value

    def _gelu(self, value: str) -> str:
        """h/2 (1 + erf(h / sqrt 2)); the operator Gelu is younger than many runtimes."""
        half, one, root = (self.constant(np.float32(number)) for number in (0.5, 1, np.sqrt(0.5)))
        error = self.add("Erf", self.add("Mul", value, root))
        return self.add("Mul", self.add("Mul", value, half), self.add("Add", error, one))

    def model(self, num_inputs: int, num_outputs: int, about: Mapping[str, str]) -> bytes:
        """The content of a file, after onnx's own check."""
        helper, double = self.onnx.helper, self.float64
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


def _optional(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise GridshiftError(
            f"ONNX export needs the package {name}, which isn't installed; "
            "run pip install 'gridshift[onnx]'"
        ) from error
