"""Files of an `ICWRegressor`: numbers in `estimator.safetensors`, the rest in `estimator.json`."""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save as bytes_of_tensors

from gridshift.errors import StorageError
from gridshift.learn.backbones.mlp import MlpConfig
from gridshift.learn.estimator import MOMENTS, ICWRegressor
from gridshift.learn.folding import FoldedNetwork
from gridshift.learn.model_file import ModelFiles, array, field, require_finite, with_weights
from gridshift.learn.whitening import TRANSFORMS, Affine
from gridshift.storage import write_bytes, write_text

FORMAT = 1
"""Raised whenever a reader of the old files would misread the new ones."""

FILES = ModelFiles(name="estimator", noun="model", remedy="fit it anew", format=FORMAT)
ATTRIBUTES = {
    "n_features_in_": int, "n_outputs_": int, "single_output_": bool, "loss_": float,
    "num_context_": int,
}  # fmt: skip
"""What `fit` and `adapt` set besides arrays."""

_ARRAYS = ("shift", "whitener", "unwhitener")


def save(estimator: ICWRegressor, folder: str | Path, *, about: dict[str, Any]) -> None:
    """Write a fitted or adapted estimator, with plain JSON values about it.

    Raises:
        StorageError: the folder cannot be written.
    """
    folder, transform = Path(folder), asdict(estimator.transform_)
    arrays = {f"transform.{name}": transform.pop(name) for name in _ARRAYS}
    arrays |= {
        "input_mean": estimator.input_mean_,
        "input_scale": estimator.input_scale_,
        "constants": estimator.constants_,
        "network.weight": estimator.network_.weight,
        "network.bias": estimator.network_.bias,
    }
    numbers = {f"backbone.{k}": v for k, v in estimator.backbone_.state_dict().items()}
    numbers |= {
        name: torch.from_numpy(np.array(array, order="C")) for name, array in arrays.items()
    }
    tensors = bytes_of_tensors(numbers)
    parameters = estimator.get_params()
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None  # a generator has moved on and couldn't repeat the fit
    state = {
        "format": FORMAT,
        "parameters": parameters,
        "transform": transform,
        "n_features_in_": len(estimator.input_mean_),
        "n_outputs_": estimator.n_outputs_,
        "single_output_": estimator.single_output_,
        "loss_": estimator.loss_,
        "num_context_": estimator.num_context_,
        "about": about,
        "versions": {name: importlib.metadata.version(name) for name in ("gridshift", "torch")},
        "tensors_sha256": hashlib.sha256(tensors).hexdigest(),
    }
    text = json.dumps(state, indent=2, ensure_ascii=False) + "\n"
    write_bytes(folder / "estimator.safetensors", tensors)
    write_text(folder / "estimator.json", text)


def load(folder: str | Path) -> tuple[ICWRegressor, dict[str, Any]]:
    """An estimator written by `save`, and what was told about it.

    Raises:
        StorageError: there is none in the folder, or it is damaged.
    """
    folder = Path(folder)
    state, tensors = FILES.read(folder)
    with FILES.checked(folder):
        return _assembled(state, tensors), field(state, "about", dict)


def _assembled(state: dict[str, Any], tensors: dict[str, torch.Tensor]) -> ICWRegressor:
    estimator = ICWRegressor(**_parameters(field(state, "parameters", dict)))
    for name, kind in ATTRIBUTES.items():
        setattr(estimator, name, field(state, name, kind))
    config = MlpConfig(
        hidden=estimator.hidden, num_layers=estimator.num_layers, dropout=estimator.dropout
    )
    num_inputs, width = state["n_features_in_"], state["n_outputs_"]
    if estimator.single_output_ and width != 1:
        raise StorageError(f"a single output, but {width} of them")
    backbone = with_weights(
        lambda: config.build(num_inputs, width), config.num_layers, tensors, "backbone."
    )
    estimator.backbone_ = backbone
    estimator.transform_ = _transform(field(state, "transform", dict), tensors, width)
    if estimator.transform_.name != estimator.whitening:
        raise StorageError(f"transform {estimator.transform_.name} where it is another")
    estimator.input_mean_ = array(tensors, "input_mean", (num_inputs,))
    estimator.input_scale_ = array(tensors, "input_scale", (num_inputs,))
    if not (estimator.input_scale_ > 0).all():
        raise StorageError("array input_scale is not positive")
    estimator.constants_ = array(tensors, "constants", (width,), may_be_nan=True)
    estimator.network_ = FoldedNetwork(
        input_mean=estimator.input_mean_,
        input_scale=estimator.input_scale_,
        hidden=backbone.features,  # type: ignore[arg-type]
        weight=array(tensors, "network.weight", (width, config.hidden), kind=np.float32),
        bias=array(tensors, "network.bias", (width,)),
    )
    require_finite(estimator.network_.predict(estimator.input_mean_[None]))
    return estimator


def _parameters(plain: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, each of the type of its default."""
    defaults = ICWRegressor().get_params()
    seed = plain.get("random_state")
    if plain.keys() != defaults.keys() or not (seed is None or isinstance(seed, int)):
        raise StorageError("parameters are missing or unknown")
    found = {
        name: field(plain, name, type(default))
        for name, default in defaults.items()
        if name != "random_state"
    }
    if found["moments"] not in MOMENTS or not found["eps"] >= 0:
        raise StorageError(f"no moments {found['moments']} with eps {found['eps']}")
    return found | {"random_state": seed}


def _transform(plain: dict[str, Any], tensors: dict[str, torch.Tensor], width: int) -> Affine:
    either = (width,), (width, width)
    transform = Affine(
        name=field(plain, "name", str),
        eps=field(plain, "eps", float),
        num_rows=field(plain, "num_rows", int),
        rank=field(plain, "rank", int),
        effective_rank=field(plain, "effective_rank", int),
        shift=array(tensors, "transform.shift", (width,)),
        whitener=array(tensors, "transform.whitener", *either),
        unwhitener=array(tensors, "transform.unwhitener", *either),
    )
    if transform.name not in TRANSFORMS or transform.eps < 0:
        raise StorageError(f"no transform {transform.name} with eps {transform.eps}")
    return transform
