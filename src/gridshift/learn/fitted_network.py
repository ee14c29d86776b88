"""`FittedNetwork`: a trained backbone with the affine maps around it, from inputs x to outputs y.

    x -> (x - input_mean) / input_scale -> backbone -> z -> transform.inverse -> y

The hidden layers work in float32. Where the backbone ends in a linear head and the transform is
affine, both are one last layer, whose bias, the large part of y, is added in float64, so that it
keeps its digits. Adapting is another transform behind the same backbone (`refolded`). torch is
loaded by what computes with layers, not by this module.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftError, StorageError
from gridshift.learn.backbones.configs import BackboneConfig, backbone_fields, parse_backbone
from gridshift.learn.backbones.graph import NodeGraph
from gridshift.learn.model_file import Arrays, Stored, array
from gridshift.learn.model_file import field as field_of
from gridshift.learn.onnx_graph import DOUBLE, OnnxGraph
from gridshift.learn.training import Progress, TrainingConfig
from gridshift.learn.transform_file import restored_constants, restored_transform
from gridshift.learn.whitening import Affine, Transform

if TYPE_CHECKING:
    from torch import nn

BLOCK = 1_024
"""Rows that go through the layers at a time, so that hidden ones stay in the cache."""

MakeGraph = Callable[[Real, Real], NodeGraph]
"""The graph that a backbone takes, for a mean and a scale (X,) of its inputs."""


def input_scaling(x: Real) -> tuple[Real, Real]:
    """Mean and standard deviation (X,) of rows (R, X); 1 for an input that never varies.

    A constant's computed deviation is round-off, not zero, so constants are told by their range.
    Nor does an input vary whose differences are too small to be squared.
    """
    deviation = x.std(0)
    constant = (x.min(0) == x.max(0)) | (deviation == 0)
    return np.where(constant, x[0], x.mean(0)), np.where(constant, 1.0, deviation)


def constants_of(y: Real) -> Real:
    """(Y,) value of each column of rows (R, Y) that never varies, NaN for the others."""
    return np.where(y.min(0) == y.max(0), y[0], np.nan)


def run_blocks(
    module: "nn.Module", x: Real, mean: Real, scale: Real
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """What the module gives for blocks of scaled rows of x (R, X), with the rows they are.

    Always one block at least, so that results have a width; it may be empty.
    """
    import torch

    for start in range(0, max(len(x), 1), BLOCK):
        rows = slice(start, start + BLOCK)
        scaled = (x[rows] - mean) / scale
        with torch.inference_mode():
            out = module(torch.from_numpy(scaled.astype(np.float32))).numpy()
        yield rows, out


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedNetwork:
    """Input scaling, backbone and output transform: a `FittedModel` that can be refolded."""

    kind: ClassVar[str] = "network"
    config: BackboneConfig
    input_mean: Real
    """(X,)"""
    input_scale: Real
    """(X,) standard deviation, 1 where the input is constant."""
    backbone: "nn.Module" = field(repr=False)
    """Maps scaled inputs (R, X) to z (R, Y)."""
    transform: Transform = field(repr=False)
    constants: Real | None = field(default=None, repr=False)
    """(Y,) outputs that never varied, given as they are, NaN for the others; None: no such care.

    A network's round-off around a constant is no information, and scores divide by variances."""
    loss: float | None = None
    """Mean squared error of z in the last steps of the training, if it was trained just now."""

    @classmethod
    def untrained(
        cls,
        config: BackboneConfig,
        scaling: tuple[Real, Real],
        transform: Transform,
        *,
        num_outputs: int,
        seed: int,
        make_graph: MakeGraph | None = None,
        constants: Real | None = None,
    ) -> "FittedNetwork":
        """Random weights of this seed, behind this mean and scale (X,) of the inputs."""
        from gridshift.learn.training_loop import seeded

        mean, scale = scaling
        return cls(
            config=config,
            input_mean=mean,
            input_scale=scale,
            backbone=seeded(
                lambda: _built(config, num_outputs, mean, scale, make_graph), seed
            ).eval(),
            transform=transform,
            constants=constants,
        )

    def trained(
        self,
        x: Real,
        y: Real,
        schedule: TrainingConfig,
        *,
        seed: int,
        progress: Progress | None = None,
        **options: Any,
    ) -> "FittedNetwork":
        """The same with its backbone trained on rows x (N, X) and y (N, Y); this one stays.

        Args:
            seed: of the order of rows and of the dropout.
            options: `checkpoint`, `checkpoint_every` and `device` of `training_loop.fit`.

        Raises:
            StorageError: the checkpoint is of another training, or cannot be read or written.
            GridshiftError: the training diverged.
        """
        from gridshift.learn.training_loop import fit

        losses: list[float] = []

        def watch(step: int, num_steps: int, loss: float) -> None:
            losses.append(loss)
            if progress is not None:
                progress(step, num_steps, loss)

        backbone = fit(
            self.backbone, self.scaled(x), self.transform.forward(y), schedule, seed=seed,
            progress=watch, **options,
        )  # fmt: skip
        return replace(self, backbone=backbone, loss=losses[-1] if losses else None)

    def refolded(self, transform: Transform, constants: Real | None = None) -> "FittedNetwork":
        """The same backbone with another way back to y, equation 8 of the paper; this one stays."""
        return replace(self, transform=transform, constants=constants, loss=None)

    def on(self, graph: NodeGraph) -> "FittedNetwork":
        """The same weights over another graph, for a backbone that takes one."""
        return replace(self, backbone=self.backbone.on(graph))  # type: ignore[operator]

    def scaled(self, x: Real) -> Real:
        """(R, X) what the backbone is given for inputs (R, X)."""
        return (x - self.input_mean) / self.input_scale

    @property
    def varied(self) -> Int:
        """(V,) numbers of the inputs that weren't constant."""
        return np.flatnonzero(self.input_scale != 1)

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X).

        Raises:
            GridshiftError: x is of another width.
        """
        if self.last_layer is None:
            return self.transform.inverse(self.predict_transformed(x))
        weight, bias = self.last_layer
        y = np.empty((len(x), len(bias)))
        for rows, h in self._run(self.backbone.features, x):
            np.add(h @ weight.T, bias, out=y[rows])
        return y

    def predict_transformed(self, x: Real) -> Real:
        """(R, Y) z of inputs (R, X): the backbone's own output."""
        return np.concatenate([z for _, z in self._run(self.backbone, x)]).astype(np.float64)

    @cached_property
    def last_layer(self) -> tuple[NDArray[np.float32], Real] | None:
        """Weight (Y, H) and bias (Y,) from the last hidden layer to y; None: it isn't affine."""
        from torch import nn

        head = getattr(self.backbone, "head", None)
        if not (isinstance(self.transform, Affine) and isinstance(head, nn.Linear)):
            return None
        weight, bias = (p.detach().numpy().astype(np.float64) for p in (head.weight, head.bias))
        weight, bias = self.transform.fold_into_linear(weight, bias)
        weight = weight.astype(np.float32)
        if self.constants is not None:
            held = np.isfinite(self.constants)
            weight = np.where(held[:, None], np.float32(0), weight)
            bias = np.where(held, self.constants, bias)
        return weight, bias

    def _run(self, module: Any, x: Real) -> Iterator[tuple[slice, NDArray[np.float32]]]:
        if x.ndim != 2 or x.shape[1] != len(self.input_mean):
            raise GridshiftError(
                f"inputs of shape {x.shape}; (N, {len(self.input_mean)}) is needed"
            )
        return run_blocks(module, x, self.input_mean, self.input_scale)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers, by the names that a file has them under."""
        held = {} if self.constants is None else {"constants": self.constants}
        return {
            **{f"backbone.{k}": v.cpu().numpy() for k, v in self.backbone.state_dict().items()},
            "input_mean": self.input_mean,
            "input_scale": self.input_scale,
            **{f"transform.{name}": values for name, values in self.transform.arrays().items()},
            **held,
        }

    def about(self) -> dict[str, Any]:
        """Everything else that a file has, as JSON values."""
        return {
            "backbone": backbone_fields(self.config),
            "transform": self.transform.numbers(),
        }

    @classmethod
    def restored(cls, stored: Stored) -> "FittedNetwork":
        """The network that was stored.

        Raises:
            GridshiftError: a field or an array is missing, unknown, or can't be.
        """
        arrays, (num_inputs, num_outputs) = stored.arrays, stored.shape
        config = parse_backbone(field_of(stored.about, "backbone", dict))
        mean = array(arrays, "input_mean", (num_inputs,))
        scale = array(arrays, "input_scale", (num_inputs,))
        if not (scale > 0).all():
            raise StorageError("array input_scale is not positive")
        return cls(
            config=config,
            input_mean=mean,
            input_scale=scale,
            backbone=_with_weights(
                lambda: _built(config, num_outputs, mean, scale, stored.make_graph),
                config.num_layers, arrays,
            ),
            transform=restored_transform(stored),
            constants=restored_constants(stored),
        )  # fmt: skip

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the layers, in float32 between float64 ends, and return the name of y.

        Raises:
            GridshiftError: the network, or a layer of it, has no ONNX form.
        """
        if self.last_layer is None:
            raise GridshiftError(
                f"a surrogate of backbone {self.config.name} with this transform has no ONNX form; "
                "backbone mlp has one with every affine transform"
            )
        weight, bias = self.last_layer
        shifted = graph.add("Sub", "x", graph.constant(self.input_mean))
        scaled = graph.add("Div", shifted, graph.constant(self.input_scale))
        value = graph.add("Cast", scaled, to=graph.float32)
        value = graph.layers(value, self.backbone.features)  # type: ignore[arg-type]
        value = graph.add("MatMul", value, graph.constant(weight.T))
        return graph.add("Add", graph.add("Cast", value, to=graph.float64), graph.constant(bias))

    def round_off(self, x: Real) -> Real:
        """(Y,) how far apart two orders of the same sums may be on rows (R, X)."""
        assert self.last_layer is not None
        weight, bias = self.last_layer
        num_terms = sum(weight.shape) + len(self.input_mean)
        blocks = self._run(self.backbone.features, x)
        size = np.max([(np.abs(h) @ np.abs(weight.T)).max(0, initial=0.0) for _, h in blocks], 0)
        return DOUBLE * np.abs(bias) + num_terms * np.finfo(np.float32).eps * size


def _built(
    config: BackboneConfig, num_outputs: int, mean: Real, scale: Real, make_graph: MakeGraph | None
) -> "nn.Module":
    graph = make_graph(mean, scale) if make_graph is not None and config.needs_graph else None
    return config.build(len(mean), num_outputs, graph)


def _with_weights(build: Callable[[], "nn.Module"], num_layers: int, arrays: Arrays) -> "nn.Module":
    """The network with the stored weights, built once their names and shapes are known to fit.

    Raises:
        StorageError: others are needed, or some are not finite.
    """
    import torch

    prefix = "backbone."
    stored = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    if num_layers > len(stored):
        raise StorageError(f"{num_layers} layers, but {len(stored)} arrays of weights")
    with torch.device("meta"):  # shapes without memory
        wanted = {name: tuple(t.shape) for name, t in build().state_dict().items()}
    if wrong := wanted.keys() ^ stored.keys():
        raise StorageError(f"arrays of weights that are missing or unknown: {', '.join(wrong)}")
    weights = {
        name: torch.from_numpy(array(stored, name, shape, kind=np.float32))
        for name, shape in wanted.items()
    }
    network = build()
    network.load_state_dict(weights)
    return network.eval()
