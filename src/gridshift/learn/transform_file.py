"""Output transforms and constant outputs, read back from the fields and arrays of a file."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from gridshift.arrays import Real
from gridshift.errors import StorageError
from gridshift.learn import model_file
from gridshift.learn.model_file import array
from gridshift.learn.third_moment import ZCA_SAS, SkewCorrected
from gridshift.learn.whitening import Affine, Transform


def restored_transform(
    about: dict[str, Any], arrays: Mapping[str, NDArray[Any]], width: int
) -> Transform:
    """The transform whose numbers are a field of a file.

    Raises:
        StorageError: a number or an array is missing or can't be.
    """
    numbers = model_file.field(about, "transform", dict)
    name, eps = model_file.field(numbers, "name", str), model_file.field(numbers, "eps", float)
    if eps < 0:
        raise StorageError(f"a transform {name} with eps {eps}")
    counts = {n: model_file.field(numbers, n, int) for n in ("num_rows", "rank", "effective_rank")}
    either = (width,), (width, width)
    affine = Affine(
        name="zca" if name == ZCA_SAS else name, eps=eps, **counts,
        shift=array(arrays, "transform.shift", (width,)),
        whitener=array(arrays, "transform.whitener", *either),
        unwhitener=array(arrays, "transform.unwhitener", *either),
    )  # fmt: skip
    if name != ZCA_SAS:
        return affine
    return SkewCorrected(whitening=affine, skew=array(arrays, "transform.skew", (width,)))


def restored_constants(arrays: Mapping[str, NDArray[Any]], width: int) -> Real | None:
    """The constants of a file, if it has them."""
    if "constants" not in arrays:
        return None
    return array(arrays, "constants", (width,), may_be_nan=True)
