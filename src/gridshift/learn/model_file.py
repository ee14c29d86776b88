"""Folders of trained models: numbers in NAME.safetensors, the rest in NAME.json.

Whatever the files hold, reading them ends in a model or in a `StorageError`, soon and without much
memory: sizes are held against the numbers that are there before anything is built.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load as tensors_from_bytes
from torch import Tensor, nn

from gridshift.errors import StorageError

T = TypeVar("T")
BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""What fields and numbers that don't belong together end in."""


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The two files of one kind of model."""

    name: str
    """Their name without the ending."""
    noun: str
    """What is in them, for messages."""
    remedy: str
    """What to do if they can't be read, for messages."""
    format: int

    def read(self, folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Fields and numbers, which are finite unless a NaN stands for none.

        Raises:
            StorageError: there are none in the folder, or they are damaged.
        """
        path, numbers = folder / f"{self.name}.json", folder / f"{self.name}.safetensors"
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            content = numbers.read_bytes()
        except OSError as error:
            raise StorageError(f"no {self.noun} in {folder}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise StorageError(f"{path} is damaged: {error}") from error
        if not isinstance(state, dict) or state.get("format") != self.format:
            raise StorageError(f"{path} has a format that this version cannot read")
        if hashlib.sha256(content).hexdigest() != state.get("tensors_sha256"):
            raise StorageError(f"the two files in {folder} do not belong together; {self.remedy}")
        try:
            return state, tensors_from_bytes(content)
        except (SafetensorError, *BROKEN) as error:
            raise StorageError(f"{numbers} is damaged: {error}; {self.remedy}") from error

    @contextmanager
    def checked(self, folder: Path) -> Iterator[None]:
        """Whatever goes wrong while a model is put together is a `StorageError` with the folder."""
        try:
            yield
        except (SafetensorError, *BROKEN) as error:
            said = f"no {error}" if isinstance(error, KeyError) else str(error).splitlines()[0]
            raise StorageError(
                f"the {self.noun} in {folder} is damaged or of another version of gridshift "
                f"({said}); {self.remedy}"
            ) from error


def field(fields_: Any, name: str, kind: type[T]) -> T:
    """The field of a JSON object, if it is of this type; whole numbers are reals too.

    Raises:
        StorageError: it is missing, of another type, or a number that is not finite.
    """
    if not isinstance(fields_, dict) or name not in fields_:
        raise StorageError(f"no field {name}")
    value = fields_[name]
    kinds = (int, float) if kind is float else (kind,)
    wrong = not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool)
    if wrong or (isinstance(value, float) and not isfinite(value)):
        raise StorageError(f"field {name} is {str(value)[:40]!r}, not a {kind.__name__}")
    return value  # type: ignore[return-value]


def config_of(kind: type[T], plain: Any, **made: Any) -> T:
    """The configuration, a dataclass of numbers and texts, whose fields these are, all of them.

    Args:
        kind: the class.
        plain: its fields as JSON has them.
        made: fields that are configurations themselves.

    Raises:
        GridshiftError: a field is missing, unknown, of another type, or refused by the class.
    """
    hints = get_type_hints(kind)
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(plain, dict) or plain.keys() - names:
        raise StorageError(f"{str(plain)[:40]} is no {kind.__name__}")
    values = dict(made)
    for name in sorted(names - made.keys()):
        options = get_args(hints[name]) if isinstance(hints[name], UnionType) else ()
        none = NoneType in options and plain.get(name, 0) is None
        values[name] = None if none else field(plain, name, (*options, hints[name])[0])
    return kind(**values)


def array(
    tensors: Mapping[str, Tensor], name: str, *shapes: tuple[int, ...], kind: type = np.float64,
    may_be_nan: bool = False,
) -> NDArray[Any]:  # fmt: skip
    """The array of that name, if it has one of the shapes and this type.

    Raises:
        StorageError: it is missing, of another shape or type, or not finite.
    """
    if name not in tensors:
        raise StorageError(f"no array {name}")
    found = tensors[name].numpy()
    if found.dtype != kind or found.shape not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise StorageError(
            f"array {name} is of {found.dtype} and shape {found.shape}, not of {kind.__name__} and "
            f"{wanted}"
        )
    if np.isinf(found).any() or (np.isnan(found).any() and not may_be_nan):
        raise StorageError(f"array {name} holds NaN or infinity")
    return found


def with_weights(
    build: Callable[[], nn.Module], num_layers: int, tensors: Mapping[str, Tensor], prefix: str
) -> nn.Module:
    """The network with the stored weights, built once their names and shapes are known to fit.

    Args:
        build: makes the network.
        num_layers: its number of layers, each of which has weights.
        tensors: of the file.
        prefix: of the names of the network's own.

    Raises:
        StorageError: others are needed, or some are not finite.
    """
    stored = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    if num_layers > len(stored):
        raise StorageError(f"{num_layers} layers, but {len(stored)} arrays of weights")
    with torch.device("meta"):  # shapes without memory
        wanted = {name: t.shape for name, t in build().state_dict().items()}
    if wrong := wanted.keys() ^ stored.keys():
        raise StorageError(f"arrays of weights that are missing or unknown: {', '.join(wrong)}")
    for name, shape in wanted.items():
        if stored[name].dtype != torch.float32 or stored[name].shape != shape:
            raise StorageError(f"weights {name} aren't of float32 and shape {tuple(shape)}")
        if not stored[name].isfinite().all():
            raise StorageError(f"weights {name} hold NaN or infinity")
    network = build()
    network.load_state_dict(stored)
    return network.eval()


def require_finite(prediction: NDArray[Any]) -> None:
    """Pass if a model's prediction for a row that it was made for is finite.

    Raises:
        StorageError: it isn't.
    """
    if not np.isfinite(prediction).all():
        raise StorageError("its numbers give predictions that are not finite")
