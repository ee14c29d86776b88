"""Output transforms and constant outputs, read back from the fields and arrays of a file."""

from gridshift.arrays import Real
from gridshift.errors import StorageError
from gridshift.learn.model_file import Stored, array, field
from gridshift.learn.third_moment import ZCA_SAS, SkewCorrected
from gridshift.learn.whitening import Affine, Transform


def restored_transform(stored: Stored) -> Transform:
    """The transform whose numbers are a field of a file.

    Raises:
        StorageError: a number or an array is missing or can't be.
    """
    arrays, (_, width) = stored.arrays, stored.shape
    numbers = field(stored.about, "transform", dict)
    name, eps = field(numbers, "name", str), field(numbers, "eps", float)
    if eps < 0:
        raise StorageError(f"a transform {name} with eps {eps}")
    counts = {n: field(numbers, n, int) for n in ("num_rows", "rank", "effective_rank")}
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


def restored_constants(stored: Stored) -> Real | None:
    """(Y,) the constants of a file, if it has them.

    Raises:
        StorageError: they can't be.
    """
    if "constants" not in stored.arrays:
        return None
    return array(stored.arrays, "constants", stored.shape[1:], may_be_nan=True)
