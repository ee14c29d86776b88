"""Models of a method's own: trained once on one topology or on many, and kept in the cache."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.topologies import TopologyRows, held_out_elements
from gridshift.adapt.cache import cached_arrays
from gridshift.adapt.context import Predictor
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.adapt.training_rows import validation_rows
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network

if TYPE_CHECKING:
    from torch import nn

Arrays = Mapping[str, NDArray[Any]]
Model = TypeVar("Model", bound=Base)
NetworkModule = TypeVar("NetworkModule", bound="nn.Module")
WEIGHTS = "weights."
"""Before the names of a network's own arrays."""


def kept_model(
    kind: str,
    network: Network,
    key: dict[str, Any],
    config: SurrogateConfig,
    *,
    draw: Callable[[], TopologyRows],
    train: Callable[[TopologyRows], Arrays],
    build: Callable[[Arrays, dict[str, Any]], Model],
    on_intact: Callable[[Model, TopologyRows], Predictor],
) -> Model:
    """The model, trained only if it isn't in the cache yet, with cost and error in its record.

    Args:
        kind: name of the folder of the cache.
        network: the topology to come.
        key: what the model depends on besides the grid, `cache_key`.
        config: of the rows that its error on the intact grid is measured on.
        draw: solves the training rows.
        train: gives the model's arrays.
        build: the model of arrays and a record.
        on_intact: its predictor for the intact grid, whose rows are the first of those given.
    """

    def make() -> tuple[Arrays, dict[str, Any]]:
        rows = draw()
        began = time.perf_counter()
        arrays = train(rows)
        record = rows.record() | {"train_s": time.perf_counter() - began}
        fresh = validation_rows(network.intact, config)
        y = on_intact(build(arrays, record), rows).predict(fresh.x)
        return arrays, record | {"mae": float(np.abs(y - fresh.y).mean())}

    return build(*cached_arrays(kind, network, key, make))


def cache_key(
    network: Network, config: SurrogateConfig, own: Any, *, multi: bool
) -> dict[str, Any]:
    """What a trained model depends on besides the grid, as JSON values."""
    return {
        "own": asdict(own),
        "training": asdict(config.training),
        "num_rows": config.num_rows,
        "num_validation": config.num_validation,
        "spread": config.spread,
        "seed": config.seed,
        "multi": multi,
        "held_out": sorted(held_out_elements(network)) if multi else [],
    }


def grid_fields(network: Network, layout: Layout, config: SurrogateConfig) -> dict[str, Any]:
    """The fields by which a `Base` knows its grid."""
    intact = network.intact
    return {"grid": intact.name, "grid_digest": intact.digest, "layout": layout, "config": config}


def weights_of(module: "nn.Module") -> dict[str, NDArray[Any]]:
    """A network's own arrays, under names that tell them from others."""
    return {WEIGHTS + name: tensor.numpy() for name, tensor in module.state_dict().items()}


def with_weights(module: NetworkModule, arrays: Arrays) -> NetworkModule:
    """The network with its arrays among these, in evaluation mode."""
    import torch

    state = {
        name.removeprefix(WEIGHTS): torch.from_numpy(values)
        for name, values in arrays.items()
        if name.startswith(WEIGHTS)
    }
    module.load_state_dict(state)
    return module.eval()


def without_weights(arrays: Arrays) -> dict[str, Any]:
    """The other arrays."""
    return {name: values for name, values in arrays.items() if not name.startswith(WEIGHTS)}
