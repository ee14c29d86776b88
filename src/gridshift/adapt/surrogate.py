"""`Surrogate`: a fitted model of one grid's power flow, trained on one topology of it.

The model is a network or a regression in closed form, and gives y; a network may also be trained on
what a *leading part* leaves of y: the tangent of the topology, or a regression fitted to the same
rows, which is kept with the surrogate, as no network model gives it back.
"""

import hashlib
import time
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.adapt.base import Base, check_grid
from gridshift.adapt.context import Predictor, SummedPredictor
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.expansion import ExpansionPredictor, expansion_of
from gridshift.adapt.graph import graph_of
from gridshift.adapt.surrogate_config import (
    REGRESSION,
    SurrogateConfig,
    describe_config,
    fit_output_transform,
    num_training_rows,
    parse_config,
)
from gridshift.adapt.training_rows import draw_rows, regression_of, training_seed, validation_rows
from gridshift.arrays import Real
from gridshift.errors import GridshiftError, StorageError, SurrogateMismatchError
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.fitted_network import FittedNetwork, input_scaling
from gridshift.learn.model_file import ModelFiles, Stored
from gridshift.learn.model_file import field as field_of
from gridshift.learn.models import FittedModel, RefoldableModel, model_fields, restored_model
from gridshift.learn.regression import Regression, RegressionConfig
from gridshift.learn.training import Progress
from gridshift.learn.whitening import Transform, fit_identity

FILES = ModelFiles(name="surrogate", noun="surrogate", remedy="train it anew")
LEADING = "leading."
"""What the names of a stored leading part's arrays begin with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Surrogate(Base):
    """Maps x to y for the topology it was trained on: a model, and a part of y that it corrects.

    Nothing here changes after training: adaptation builds on a surrogate and leaves it alone.
    """

    model: FittedModel = field(repr=False)
    """Gives y, or what the leading part leaves of it."""
    leading: ExpansionPredictor | Regression | None = field(default=None, repr=False)
    """What the topology's own equations give, or what a regression does, if the transform says so.
    """

    @property
    def digest(self) -> str:
        """Hexadecimal digest of the grid and of all numbers of the model."""
        state = hashlib.sha256(self.grid_digest.encode())
        for name, array in sorted(self._arrays.items()):
            state.update(name.encode() + array.tobytes())
        return state.hexdigest()

    @property
    def refoldable(self) -> RefoldableModel:
        """The model, if its outputs have a transform that adaptation can replace.

        Raises:
            SurrogateMismatchError: they have none.
        """
        if not isinstance(self.model, RefoldableModel):
            raise SurrogateMismatchError(
                f"base {self.config.backbone.name} has no transform of its outputs that could be "
                "replaced; take base mlp, or a method that works with any base, as compensation"
            )
        return self.model

    @property
    def transform(self) -> Transform:
        """Of the outputs, or of what the leading part leaves; with training statistics."""
        return self.refoldable.transform

    def on(self, network: Network) -> "Surrogate":
        """The same weights with this topology's graph; itself, if the backbone takes no graph."""
        if not (isinstance(self.model, FittedNetwork) and self.model.config.needs_graph):
            return self
        graph = graph_of(network, self.layout, self.model.input_mean, self.model.input_scale)
        return replace(self, model=self.model.on(graph))

    def predict_whitened(self, x: Real) -> Real:
        """(R, Y) z of inputs (R, X): the backbone's own output."""
        return self.refoldable.predict_transformed(x)

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X) on the topology that it was trained on.

        Raises:
            GridshiftError: x is of another width.
        """
        if x.ndim != 2 or x.shape[1] != self.layout.num_inputs:
            raise GridshiftError(
                f"inputs of shape {x.shape}; {self.grid} needs (N, {self.layout.num_inputs})"
            )
        return self.predictor.predict(x)

    @property
    def predictor(self) -> Predictor:
        """The model, and the leading part that is added if there is one."""
        return _with_leading(self.model, self.leading)

    @property
    def _arrays(self) -> dict[str, np.ndarray]:
        """All numbers that were fitted."""
        kept = self.leading.arrays() if isinstance(self.leading, Regression) else {}
        return self.model.arrays() | {LEADING + name: array for name, array in kept.items()}

    def with_transform(
        self, transform: Transform, expansion: ExpansionPredictor | None = None
    ) -> Predictor:
        """The same backbone with another way back to y; the expansion, if any, is added."""
        return _with_leading(self.refoldable.refolded(transform), expansion)

    def save(self, folder: str | Path) -> None:
        """Write numbers to `surrogate.safetensors`, everything else to `surrogate.json`.

        Raises:
            StorageError: the folder cannot be written.
        """
        about = {
            "grid": self.grid,
            "grid_digest": self.grid_digest,
            "layout_digest": self.layout.digest,
            "num_buses": self.layout.num_buses,
            "num_inputs": self.layout.num_inputs,
            "num_outputs": self.layout.num_outputs,
            "config": describe_config(self.config),
            "model": model_fields(self.model),
            "record": self.record,
        }
        if isinstance(self.leading, Regression):
            about["leading"] = model_fields(self.leading)
        FILES.write(Path(folder), about, self._arrays)

    @staticmethod
    def load(folder: str | Path, network: Network) -> "Surrogate":
        """Read a surrogate that was trained for this network's grid.

        Raises:
            StorageError: there is no surrogate in the folder, or it is damaged.
            SurrogateMismatchError: it was trained for another grid or another layout.
        """
        folder = Path(folder)
        about, arrays = FILES.read(folder)
        with FILES.checked(folder):
            grid, digest = field_of(about, "grid", str), field_of(about, "grid_digest", str)
            layout_digest = field_of(about, "layout_digest", str)
            num_buses = field_of(about, "num_buses", int)
        check_grid(network, grid, num_buses, digest)
        layout = Layout.of(network)
        if layout_digest != layout.digest:
            raise SurrogateMismatchError(
                f"the surrogate in {folder} has another order of inputs and outputs than this "
                f"version gives {network.name}; train it anew"
            )
        with FILES.checked(folder):
            config = parse_config(field_of(about, "config", dict))
            record = _checked_record(field_of(about, "record", dict))
            outaged = record["outaged"]
            trained_on = network.intact.without(outaged) if outaged else network.intact
            stored = Stored(
                about=about, arrays=arrays, shape=(layout.num_inputs, layout.num_outputs),
                make_graph=partial(graph_of, trained_on, layout),
            )  # fmt: skip
            model = restored_model(stored.inner("model", ""))
            _check_model(model, config)
            leading = expansion_of(config.transform, trained_on)
            if config.transform == REGRESSION:
                leading = _restored_leading(stored)
            return Surrogate(
                grid=grid, grid_digest=digest, layout=layout, config=config, record=record,
                model=model, leading=leading,
            )  # fmt: skip


def _with_leading(model: Predictor, leading: Predictor | None) -> Predictor:
    return model if leading is None else SummedPredictor(parts=(leading, model))


def _restored_leading(stored: Stored) -> Regression:
    found = restored_model(stored.inner("leading", LEADING))
    if not isinstance(found, Regression):
        raise StorageError(f"a leading part of kind {found.kind}")
    return found


def _check_model(model: FittedModel, config: SurrogateConfig) -> None:
    known = isinstance(model, FittedNetwork | Regression)
    if not known or model.config != config.backbone:
        raise StorageError(f"a model {model.kind} of another architecture than it was made with")
    if isinstance(model, FittedNetwork) and model.transform.name != config.transform:
        raise StorageError(f"a transform {model.transform.name} where it is {config.transform}")


def _checked_record(record: dict[str, Any]) -> dict[str, Any]:
    for kind, names in ((int, ("num_rows", "num_solves")), (float, ("data_s", "train_s", "mae"))):
        for name in names:
            field_of(record, name, kind)
    if not all(isinstance(element, str) for element in field_of(record, "outaged", list)):
        raise StorageError("field outaged is not a list of elements")
    return record


def train(
    network: Network,
    config: SurrogateConfig | None = None,
    *,
    data: Dataset | None = None,
    progress: Progress | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 2_000,
    device: str = "cpu",
    **solver: Any,
) -> Surrogate:
    """Draw and solve scenarios of this topology, and train a surrogate on them.

    Args:
        network: the topology, as a rule the intact grid.
        config: what to build; by default the product's `SurrogateConfig()`.
        progress: called with (step, number of steps, loss); never for a regression.
        checkpoint: file from which an interrupted training goes on.
        device: where gradient steps are taken, 'cpu' or 'cuda'.
        solver: keyword arguments of `solve`.

    Raises:
        ScenarioError: half of the scenarios or more have no solution.
        GridshiftError: the training diverged.
    """
    config = config or SurrogateConfig()
    began = time.perf_counter()
    if data is None:
        num_rows = num_training_rows(network, config)
        data = draw_rows(network, config, num_rows, role="training", **solver)
    data_s, began = time.perf_counter() - began, time.perf_counter()
    if isinstance(config.backbone, RegressionConfig):
        device, leading, model = "cpu", None, regression_of(data, config.backbone)
        told = {"left_out_mae": model.left_out_mae}
    else:
        regression = config.transform == REGRESSION
        leading = regression_of(data) if regression else expansion_of(config.transform, network)
        model = _trained_network(
            network, config, data, leading, device=device, progress=progress,
            checkpoint=checkpoint, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        told = {"loss": model.loss}
    record = {
        "device": device,
        "num_rows": len(data),
        "num_solves": data.num_solves,
        "data_s": data_s,
        "train_s": time.perf_counter() - began,
        **told,
        "outaged": list(network.outaged),
    }
    surrogate = Surrogate(
        grid=network.name, grid_digest=network.intact.digest, layout=data.layout, config=config,
        record=record, model=model, leading=leading,
    )  # fmt: skip
    return validated(surrogate, network, **solver)


def _trained_network(
    network: Network, config: SurrogateConfig, data: Dataset, leading: Predictor | None,
    **options: Any,
) -> FittedNetwork:  # fmt: skip
    remainder = data.y if leading is None else data.y - leading.predict(data.x)
    transform = fit_output_transform(config.transform, remainder, config.eps)
    model = random_network(config, network, data.layout, input_scaling(data.x), transform)
    return model.trained(
        data.x, remainder, config.training, seed=training_seed(network, config), **options
    )


def validated(surrogate: Surrogate, network: Network, **solver: Any) -> Surrogate:
    """The surrogate with its error on fresh rows of the topology in its record.

    Raises:
        GridshiftError: the training diverged.
    """
    fresh = validation_rows(network, surrogate.config, **solver)
    mae = float(np.abs(surrogate.predict(fresh.x) - fresh.y).mean())
    if not np.isfinite(mae):
        raise GridshiftError(
            f"training for {network.name} diverged at learning rate "
            f"{surrogate.config.training.learning_rate:g}; take a smaller one"
        )
    return replace(surrogate, record=surrogate.record | {"mae": mae})


def random_network(
    config: SurrogateConfig,
    network: Network,
    layout: Layout,
    scaling: tuple[Real, Real],
    transform: Transform,
    *,
    seed: int | None = None,
) -> FittedNetwork:
    """The configuration's backbone with random weights, over this topology if it takes a graph.

    Args:
        scaling: mean and scale (X,) of the inputs.
        seed: of the weights; by default the configuration's.
    """
    assert not isinstance(config.backbone, RegressionConfig), "a regression is no network"
    return FittedNetwork.untrained(
        config.backbone, scaling, transform, num_outputs=layout.num_outputs,
        seed=training_seed(network, config) if seed is None else seed,
        make_graph=partial(graph_of, network, layout),
    )  # fmt: skip


def seconds_per_step(network: Network, config: SurrogateConfig, *, num_steps: int = 30) -> float:
    """Time of a gradient step of this configuration's training here and now, s.

    The fastest of three tries on rows of zeros, on which a step takes as long as on others.
    """
    layout, num_rows = Layout.of(network), config.training.batch_size
    x, y = np.zeros((num_rows, layout.num_inputs)), np.zeros((num_rows, layout.num_outputs))
    model = random_network(config, network.intact, layout, input_scaling(x), fit_identity(y))
    few, times = replace(config.training, num_steps=num_steps), []
    for _ in range(3):
        began = time.perf_counter()
        model.trained(x, y, few, seed=0)
        times.append(time.perf_counter() - began)
    return min(times) / num_steps
