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
    config: SurrogateConfig,
    own: Any,
    *,
    multi: bool,
    draw: Callable[[], TopologyRows],
    train: Callable[[TopologyRows], Arrays],
    build: Callable[[dict[str, Any], Arrays], Model],
    on_intact: Callable[[Model, TopologyRows], Predictor],
) -> Model:
    """The model, trained only if it isn't in the cache yet, with cost and error in its record.

    Args:
        kind: name of the folder of the cache.
        network: the topology to come.
        config: of the training rows, and of those that its error on the intact grid is measured on.
        own: configuration of the model itself.
        multi: whether many topologies teach it.
        build: the model of the fields that it has of a `Base`, with `own`, and of its arrays.
        on_intact: its predictor for the intact grid, whose rows are the first of those given.
    """

    known = grid_fields(network, Layout.of(network), config) | {"own": own}

    def make() -> tuple[Arrays, dict[str, Any]]:
        rows = draw()
        began = time.perf_counter()
        arrays = train(rows)
        record = rows.record() | {"train_s": time.perf_counter() - began}
        fresh = validation_rows(network.intact, config)
        y = on_intact(build(known | {"record": record}, arrays), rows).predict(fresh.x)
        return arrays, record | {"mae": float(np.abs(y - fresh.y).mean())}

    key = cache_key(network, config, own, multi=multi)
    arrays, record = cached_arrays(kind, network, key, make)
    return build(known | {"record": record}, arrays)


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


def with_weights(module: NetworkModule, arrays: Arrays) -> tuple[NetworkModule, dict[str, Any]]:
    """The network with its arrays among these, in evaluation mode, and the other arrays."""
    import torch

    own = {name: values for name, values in arrays.items() if name.startswith(WEIGHTS)}
    module.load_state_dict(
        {name.removeprefix(WEIGHTS): torch.from_numpy(values) for name, values in own.items()}
    )
    return module.eval(), {name: arrays[name] for name in arrays if name not in own}
