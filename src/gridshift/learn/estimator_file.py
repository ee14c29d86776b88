"""Files of an `ICWRegressor`: numbers in `estimator.safetensors`, the rest in `estimator.json`."""

from pathlib import Path
from typing import Any

from gridshift.errors import StorageError
from gridshift.learn import models
from gridshift.learn.compensated_model import CompensatedModel
from gridshift.learn.estimator import BASES, MOMENTS, ICWRegressor, backbone_config, measures
from gridshift.learn.fitted_network import FittedNetwork
from gridshift.learn.model_file import Arrays, ModelFiles, Stored, field
from gridshift.learn.regression import Regression
from gridshift.learn.transform_file import restored_constants, restored_transform
from gridshift.learn.whitened_model import WhitenedModel

FILES = ModelFiles(name="estimator", noun="model", remedy="fit it anew")
ADAPTED = "adapted."
"""Before the names of arrays that adaptation has put in the place of others."""
ATTRIBUTES = {
    "n_features_in_": int, "n_outputs_": int, "single_output_": bool, "num_context_": int,
}  # fmt: skip
"""What `fit` and `adapt` set besides models."""


def save(estimator: ICWRegressor, folder: str | Path, *, about: dict[str, Any]) -> None:
    """Write a fitted or adapted estimator, with JSON values about it.

    Raises:
        StorageError: the folder cannot be written.
    """
    parameters = estimator.get_params()
    if not isinstance(parameters["random_state"], int):
        parameters["random_state"] = None  # a generator has moved on and couldn't repeat the fit
    compensated = estimator.compensation_ is not None
    stored = estimator.model_ if compensated else estimator.base_model_
    state = {
        "parameters": parameters,
        "model": models.model_fields(stored),
        "adapted": None,
        "loss_": estimator.loss_,
        **{name: getattr(estimator, name) for name in ATTRIBUTES},
        "about": about,
    }
    arrays = stored.arrays()
    if estimator.num_context_ and not compensated:
        adapted = estimator.model_
        assert isinstance(adapted, models.RefoldableModel)
        state["adapted"] = {"transform": adapted.transform.numbers()}
        own = {f"transform.{name}": values for name, values in adapted.transform.arrays().items()}
        own |= {} if adapted.constants is None else {"constants": adapted.constants}
        arrays |= {ADAPTED + name: values for name, values in own.items()}
    FILES.write(Path(folder), state, arrays)


def load(folder: str | Path) -> tuple[ICWRegressor, dict[str, Any]]:
    """An estimator written by `save`, and what was told about it.

    Raises:
        StorageError: there is none in the folder, or it is damaged.
    """
    folder = Path(folder)
    state, arrays = FILES.read(folder)
    with FILES.checked(folder):
        return _assembled(state, arrays), field(state, "about", dict)


def _assembled(state: dict[str, Any], arrays: Arrays) -> ICWRegressor:
    estimator = ICWRegressor(**_parameters(field(state, "parameters", dict)))
    for name, kind in ATTRIBUTES.items():
        setattr(estimator, name, field(state, name, kind))
    shape = state["n_features_in_"], state["n_outputs_"]
    if estimator.single_output_ and shape[1] != 1:
        raise StorageError(f"a single output, but {shape[1]} of them")
    own = {name: values for name, values in arrays.items() if not name.startswith(ADAPTED)}
    model = base = models.restored_model(
        Stored(about=field(state, "model", dict), arrays=own, shape=shape)
    )
    estimator.compensation_ = None
    if isinstance(model, CompensatedModel):
        base, estimator.compensation_ = model.base, model.compensation
    _check_model(estimator, base)
    estimator.base_model_, estimator.model_ = base, model
    estimator.held_out_mae_, _ = measures(base)
    estimator.loss_ = field(state, "loss_", float) if estimator.base == "mlp" else None
    matched = state.get("adapted") is not None
    if (matched or model is not base) != (estimator.num_context_ > 0):
        raise StorageError(f"adapted to {estimator.num_context_} rows, but not as described")
    if matched:
        if model is not base or not isinstance(base, models.RefoldableModel):
            raise StorageError(f"a model {model.kind} that was adapted, which can't be")
        adapted = Stored(about=state, arrays=arrays, shape=shape).inner("adapted", ADAPTED)
        estimator.model_ = base.refolded(restored_transform(adapted), restored_constants(adapted))
        models.require_finite(estimator.model_)
    return estimator


def _check_model(estimator: ICWRegressor, model: models.FittedModel) -> None:
    """Pass if the model is what `fit` would make with these parameters.

    Raises:
        StorageError: it isn't.
    """
    match model:
        case FittedNetwork():
            sound = estimator.base == "mlp" and model.config == backbone_config(estimator)
            sound, name = sound and model.constants is not None, model.transform.name
        case WhitenedModel(model=Regression()):
            sound = model.model.config.name == estimator.base and model.transform is model.before
            sound, name = sound and model.constants is None, model.before.name
        case _:
            sound, name = False, ""
    if not sound:
        raise StorageError(f"a model {model.kind} of another kind than asked for")
    if name != estimator.whitening:
        raise StorageError(f"a transform {name} where it is {estimator.whitening}")


def _parameters(found: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the estimator, each of the type of its default."""
    defaults = ICWRegressor().get_params()
    seed = found.get("random_state")
    if found.keys() != defaults.keys() or not (seed is None or isinstance(seed, int)):
        raise StorageError("parameters are missing or unknown")
    checked = {
        name: field(found, name, type(default))
        for name, default in defaults.items()
        if name != "random_state"
    }
    if checked["base"] not in BASES:
        raise StorageError(f"no base {checked['base']}")
    if checked["moments"] not in MOMENTS or not checked["eps"] >= 0:
        raise StorageError(f"no moments {checked['moments']} with eps {checked['eps']}")
    return checked | {"random_state": seed}
