"""Files of an `ICWRegressor`: numbers in `estimator.safetensors`, the rest in `estimator.json`."""

import hashlib
import importlib.metadata
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as tensors_from_bytes
from safetensors.torch import save as bytes_of_tensors

from gridshift.errors import StorageError
from gridshift.learn.backbones.mlp import MlpConfig
from gridshift.learn.estimator import ICWRegressor
from gridshift.learn.folding import FoldedNetwork
from gridshift.learn.whitening import Affine
from gridshift.storage import write_bytes, write_text

FORMAT = 1
"""Raised whenever a reader of the old files would misread the new ones."""

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
    state, tensors = _read(Path(folder))
    try:
        estimator = ICWRegressor(**state["parameters"])
        for name in ("n_features_in_", "n_outputs_", "single_output_", "loss_", "num_context_"):
            setattr(estimator, name, state[name])
        config = MlpConfig(
            hidden=estimator.hidden, num_layers=estimator.num_layers, dropout=estimator.dropout
        )
        backbone = config.build(state["n_features_in_"], state["n_outputs_"])
        prefix = "backbone."
        backbone.load_state_dict(
            {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        )
        arrays = {name: tensors[f"transform.{name}"].numpy() for name in _ARRAYS}
        estimator.backbone_ = backbone.eval()
        estimator.transform_ = Affine(**arrays, **state["transform"])
        estimator.input_mean_ = tensors["input_mean"].numpy()
        estimator.input_scale_ = tensors["input_scale"].numpy()
        estimator.constants_ = tensors["constants"].numpy()
        estimator.network_ = FoldedNetwork(
            input_mean=estimator.input_mean_,
            input_scale=estimator.input_scale_,
            hidden=backbone.features,
            weight=tensors["network.weight"].numpy(),
            bias=tensors["network.bias"].numpy(),
        )
        return estimator, state["about"]
    except (KeyError, TypeError, RuntimeError) as error:
        raise StorageError(
            f"the model in {folder} was written by another version of gridshift; fit it anew"
        ) from error


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        state = json.loads((folder / "estimator.json").read_text(encoding="utf-8"))
        tensors = (folder / "estimator.safetensors").read_bytes()
    except OSError as error:
        raise StorageError(f"no model in {folder}: {error.strerror}") from error
    except ValueError as error:
        raise StorageError(f"{folder / 'estimator.json'} is damaged: {error}") from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise StorageError(
            f"{folder / 'estimator.json'} has a format that this version cannot read"
        )
    if hashlib.sha256(tensors).hexdigest() != state.get("tensors_sha256"):
        raise StorageError(f"the two files in {folder} do not belong together; fit it anew")
    return state, tensors_from_bytes(tensors)
