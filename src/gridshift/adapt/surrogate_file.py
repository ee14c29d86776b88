"""Files of a surrogate: numbers in `surrogate.safetensors`, everything else in `surrogate.json`."""

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_of_tensors

from gridshift.adapt.base import check_grid
from gridshift.adapt.layout import Layout
from gridshift.adapt.surrogate import Surrogate, build_backbone
from gridshift.adapt.surrogate_config import describe_config, parse_config
from gridshift.adapt.tangent import plane_of
from gridshift.errors import StorageError, SurrogateMismatchError
from gridshift.grid.network import Network
from gridshift.learn.third_moment import SkewCorrected
from gridshift.learn.whitening import Affine, Transform
from gridshift.storage import write_bytes, write_text

FORMAT = 1
"""Raised whenever a reader of the old files would misread the new ones."""

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
    about, tensors = _read(Path(folder))
    check_grid(network, about["grid"], about["num_buses"], about["grid_digest"])
    layout = Layout.of(network)
    if about["layout_digest"] != layout.digest:
        raise SurrogateMismatchError(
            f"the surrogate in {folder} has another order of inputs and outputs than this version "
            f"gives {network.name}; train it anew"
        )
    try:
        return _assemble(about, tensors, network)
    except (KeyError, TypeError, RuntimeError) as error:
        raise StorageError(
            f"the surrogate in {folder} was written by another version of gridshift; train it anew"
        ) from error


def _assemble(
    about: dict[str, Any], tensors: dict[str, torch.Tensor], network: Network
) -> Surrogate:
    layout, outaged = Layout.of(network), about["record"]["outaged"]
    trained_on = network.root.without(outaged) if outaged else network.root
    config = parse_config(about["config"])
    mean, scale = tensors["input_mean"].numpy(), tensors["input_scale"].numpy()
    backbone = build_backbone(config, trained_on, layout, mean, scale)
    backbone.load_state_dict(_named("backbone.", tensors))
    arrays = {name: t.numpy() for name, t in _named("transform.", tensors).items()}
    return Surrogate(
        grid=about["grid"],
        grid_digest=about["grid_digest"],
        layout=layout,
        config=config,
        input_mean=mean,
        input_scale=scale,
        backbone=backbone.eval(),
        transform=_transform(arrays, dict(about["transform"])),
        record=about["record"],
        plane=plane_of(config.transform, trained_on),
    )


def _transform(arrays: dict[str, np.ndarray], numbers: dict[str, Any]) -> Transform:
    skew, kind = arrays.pop("skew", None), numbers.pop("name")
    affine = Affine(name=kind if skew is None else "zca", **arrays, **numbers)
    if skew is None:
        return affine
    return SkewCorrected(whitening=affine, skew=skew)


def _named(prefix: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        about = json.loads((folder / "surrogate.json").read_text())
        tensors = (folder / "surrogate.safetensors").read_bytes()
    except OSError as error:
        raise StorageError(f"no surrogate in {folder}: {error.strerror}") from error
    except ValueError as error:
        raise StorageError(f"{folder / 'surrogate.json'} is damaged: {error}") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise StorageError(
            f"{folder / 'surrogate.json'} has a format that this version cannot read"
        )
    if hashlib.sha256(tensors).hexdigest() != about.get("tensors_sha256"):
        raise StorageError(f"the two files in {folder} do not belong together; train it anew")
    return about, tensors_from_bytes(tensors)
