"""Folders of trained models: numbers in NAME.safetensors, the rest in NAME.json.

Whatever the files hold, reading them ends in a model or in a `StorageError`, soon and without much
memory: sizes are held against the numbers that are there before anything is built.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_from_bytes
from safetensors.numpy import save as bytes_of_arrays

from gridshift.errors import StorageError
from gridshift.machine import versions
from gridshift.storage import write_bytes, write_text

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]
FORMAT = 2
"""Raised whenever a reader of the old files would misread the new ones."""
PACKAGES = ("gridshift", "numpy", "torch", "pandapower")
"""Whose versions a file notes."""
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

    def write(self, folder: Path, fields: dict[str, Any], arrays: Arrays) -> None:
        """Write both files; the JSON last, with a digest of the other, so that a pair fits.

        Raises:
            StorageError: the folder cannot be written.
        """
        content = bytes_of_arrays({k: np.array(v, order="C") for k, v in arrays.items()})
        state = {
            "format": FORMAT,
            **fields,
            "versions": versions(PACKAGES),
            "tensors_sha256": hashlib.sha256(content).hexdigest(),
        }
        write_bytes(folder / f"{self.name}.safetensors", content)
        text = json.dumps(state, indent=2, ensure_ascii=False) + "\n"
        write_text(folder / f"{self.name}.json", text)

    def read(self, folder: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Fields and arrays as `write` was given them.

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
        found = state.get("format") if isinstance(state, dict) else None
        if found != FORMAT:
            other = f"format {found}" if isinstance(found, int) else "no format number"
            raise StorageError(
                f"{path} has {other}, and this version of gridshift reads format {FORMAT} only; "
                f"{self.remedy}"
            )
        if hashlib.sha256(content).hexdigest() != state.get("tensors_sha256"):
            raise StorageError(f"the two files in {folder} do not belong together; {self.remedy}")
        try:
            # copies, which are aligned and can be written to
            return state, {k: np.array(v) for k, v in arrays_from_bytes(content).items()}
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


def config_of(kind: type[T], values: Any, **made: Any) -> T:
    """The configuration, a dataclass of numbers and texts, whose fields these are, all of them.

    Args:
        made: fields that are configurations themselves.

    Raises:
        GridshiftError: a field is missing, unknown, of another type, or refused by the class.
    """
    hints = get_type_hints(kind)
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(values, dict) or values.keys() - names:
        raise StorageError(f"{str(values)[:40]} is no {kind.__name__}")
    arguments = dict(made)
    for name in sorted(names - made.keys()):
        options = get_args(hints[name]) if isinstance(hints[name], UnionType) else ()
        none = NoneType in options and values.get(name, 0) is None
        arguments[name] = None if none else field(values, name, (*options, hints[name])[0])
    return kind(**arguments)


def array(
    arrays: Arrays, name: str, *shapes: tuple[int, ...], kind: type = np.float64,
    may_be_nan: bool = False,
) -> NDArray[Any]:  # fmt: skip
    """The array of that name, if it has one of the shapes and this type.

    Raises:
        StorageError: it is missing, of another shape or type, or not finite.
    """
    if name not in arrays:
        raise StorageError(f"no array {name}")
    found = arrays[name]
    if found.dtype != kind or found.shape not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise StorageError(
            f"array {name} is of {found.dtype} and shape {found.shape}, not of {kind.__name__} and "
            f"{wanted}"
        )
    if np.isinf(found).any() or (np.isnan(found).any() and not may_be_nan):
        raise StorageError(f"array {name} holds NaN or infinity")
    return found


class AroundModel:
    """What a fitted model around another one has from that: it takes the same inputs."""

    inner: Any
    """A `FittedModel`."""

    @property
    def input_mean(self) -> NDArray[np.float64]:
        """(X,) of the inner model."""
        return self.inner.input_mean

    @property
    def varied(self) -> NDArray[np.int64]:
        """(V,) of the inner model."""
        return self.inner.varied


@dataclass(frozen=True, kw_only=True)
class Stored:
    """What a file has of one model."""

    about: dict[str, Any]
    """Its fields, JSON values."""
    arrays: Arrays
    shape: tuple[int, int]
    """Number of inputs and of outputs."""
    make_graph: Any = None
    """For a backbone that takes a graph: from mean and scale of the inputs to it."""

    def inner(self, name: str, prefix: str) -> "Stored":
        """The model within it: its fields under this name, its arrays with this prefix.

        Raises:
            StorageError: there are no such fields.
        """
        about = field(self.about, name, dict)
        return replace(self, about=about, arrays=part_of(self.arrays, prefix))


def part_of(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """The arrays whose names have this prefix, without it."""
    return {
        name.removeprefix(prefix): values
        for name, values in arrays.items()
        if name.startswith(prefix)
    }
