"""Files of a surrogate: numbers in `surrogate.safetensors`, everything else in `surrogate.json`."""

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as bytes_of_tensors

from gridshift.adapt.base import check_grid
from gridshift.adapt.surrogate import Surrogate, build_backbone
from gridshift.adapt.surrogate_config import (
    ZCA_SAS,
    SurrogateConfig,
    describe_config,
    parse_config,
)
from gridshift.adapt.tangent import plane_of
from gridshift.errors import StorageError, SurrogateMismatchError
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.learn.model_file import ModelFiles, array, field, require_finite, with_weights
from gridshift.learn.third_moment import SkewCorrected
from gridshift.learn.whitening import Affine, Transform
from gridshift.storage import write_bytes, write_text

FORMAT = 1
"""Raised whenever a reader of the old files would misread the new ones."""
FILES = ModelFiles(name="surrogate", noun="surrogate", remedy="train it anew", format=FORMAT)
PACKAGES = ("gridshift", "numpy", "torch", "pandapower")


def save(surrogate: Surrogate, folder: str | Path) -> None:
    """Write both files; the JSON last, with a digest of the other, so that a pair fits together.

    Raises:
        StorageError: the folder cannot be written.
    """
    folder, transform = Path(folder), surrogate.transform
    numbers = {f"backbone.{k}": v for k, v in surrogate.backbone.state_dict().items()}
    arrays = {
        "input_mean": surrogate.input_mean,
        "input_scale": surrogate.input_scale,
        **{f"transform.{name}": array for name, array in transform.arrays().items()},
    }
    numbers |= {name: torch.from_numpy(np.array(a, order="C")) for name, a in arrays.items()}
    tensors = bytes_of_tensors(numbers)
    about = {
        "format": FORMAT,
        "grid": surrogate.grid,
        "grid_digest": surrogate.grid_digest,
        "layout_digest": surrogate.layout.digest,
        "num_buses": surrogate.layout.num_buses,
        "num_inputs": surrogate.layout.num_inputs,
        "num_outputs": surrogate.layout.num_outputs,
        "config": describe_config(surrogate.config),
        "transform": transform.numbers(),
        "record": surrogate.record,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
    }
    write_bytes(folder / "surrogate.safetensors", tensors)
    write_text(folder / "surrogate.json", json.dumps(about, indent=2) + "\n")


def load(folder: str | Path, network: Network) -> Surrogate:
    """Read a surrogate that was trained for this network's grid.

    Raises:
        StorageError: there is no surrogate in the folder, or it is damaged.
        SurrogateMismatchError: it was trained for another grid or another layout.
    """
    folder = Path(folder)
    about, tensors = FILES.read(folder)
    with FILES.checked(folder):
        grid, grid_digest = (field(about, name, str) for name in ("grid", "grid_digest"))
        layout_digest, num_buses = (
            field(about, "layout_digest", str),
            field(about, "num_buses", int),
        )
    check_grid(network, grid, num_buses, grid_digest)
    layout = Layout.of(network)
    if layout_digest != layout.digest:
        raise SurrogateMismatchError(
            f"the surrogate in {folder} has another order of inputs and outputs than this version "
            f"gives {network.name}; train it anew"
        )
    with FILES.checked(folder):
        return _assemble(about, tensors, network, layout)


def _assemble(
    about: dict[str, Any], tensors: dict[str, torch.Tensor], network: Network, layout: Layout
) -> Surrogate:
    config, record = parse_config(field(about, "config", dict)), _record(about)
    outaged = record["outaged"]
    trained_on = network.root.without(outaged) if outaged else network.root
    mean = array(tensors, "input_mean", (layout.num_inputs,))
    scale = array(tensors, "input_scale", (layout.num_inputs,))
    if not (scale > 0).all():
        raise StorageError("array input_scale is not positive")
    surrogate = Surrogate(
        grid=about["grid"],
        grid_digest=about["grid_digest"],
        layout=layout,
        config=config,
        input_mean=mean,
        input_scale=scale,
        backbone=with_weights(
            lambda: build_backbone(config, trained_on, layout, mean, scale),
            config.backbone.num_layers, tensors, "backbone.",
        ),
        transform=_transform(config, field(about, "transform", dict), tensors, layout.num_outputs),
        record=record,
        plane=plane_of(config.transform, trained_on),
    )  # fmt: skip
    require_finite(surrogate.predict(mean[None]))
    return surrogate


def _record(about: dict[str, Any]) -> dict[str, Any]:
    record = field(about, "record", dict)
    for kind, names in ((int, ("num_rows", "num_solves")), (float, ("data_s", "train_s", "mae"))):
        for name in names:
            field(record, name, kind)
    if not all(isinstance(element, str) for element in field(record, "outaged", list)):
        raise StorageError("field outaged is not a list of elements")
    return record


def _transform(
    config: SurrogateConfig, numbers: dict[str, Any], tensors: dict[str, torch.Tensor], width: int
) -> Transform:
    name, eps = field(numbers, "name", str), field(numbers, "eps", float)
    if name != config.transform or eps < 0:
        raise StorageError(f"a transform {name} with eps {eps} where it is {config.transform}")
    counts = {n: field(numbers, n, int) for n in ("num_rows", "rank", "effective_rank")}
    either = (width,), (width, width)
    affine = Affine(
        name="zca" if name == ZCA_SAS else name, eps=eps, **counts,
        shift=array(tensors, "transform.shift", (width,)),
        whitener=array(tensors, "transform.whitener", *either),
        unwhitener=array(tensors, "transform.unwhitener", *either),
    )  # fmt: skip
    if name != ZCA_SAS:
        return affine
    return SkewCorrected(whitening=affine, skew=array(tensors, "transform.skew", (width,)))
