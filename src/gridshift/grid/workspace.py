"""Arrays that the kernels read and write, as named tuples, and how they are laid out in memory."""

from typing import NamedTuple

import numpy as np

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.program import Plan


class NominalPoint(NamedTuple):
    """A topology's nominal point as the chord kernel reads it."""

    admittance: Real
    voltage: Real
    power: Real
    lower: np.ndarray
    diagonal: np.ndarray
    upper: np.ndarray


class Branches(NamedTuple):
    """Branches of one topology as the flow kernels read them."""

    bus: Int
    admittance: Real
    inverse_square: Real
    by_power: np.ndarray


class States(NamedTuple):
    """What Newton's method made of T states, each of a topology, powers and a start of its own."""

    voltage: Real
    worst: Real
    steps: Int
    growth: Real
    """Largest multiplier of the last factorisation."""
    orientation: Real
    """Sign of the determinant of the Jacobian, 0 where it is singular or not a number."""
    factors: Real
    admittance: Real
    power: Real

    @classmethod
    def empty(cls, count: int, num_buses: int, plan: Plan, *, keep: bool) -> "States":
        """Room for `count` states, for their factors and admittances only with `keep`."""
        kept = count if keep else 0
        return cls(
            voltage=np.empty((count, 2 * num_buses)),
            worst=np.full(count, np.inf),
            steps=np.zeros(count, np.int64),
            growth=np.zeros(count),
            orientation=np.zeros(count),
            factors=np.empty((kept, plan.num_factors)),
            admittance=np.empty((kept, 2 * plan.num_entries)),
            power=np.empty((kept, 2 * num_buses)),
        )

    def replace(self, which: Int, other: "States", rows: Bool) -> None:
        """Put the chosen rows of `other`, which has one for each of `which`, into their places."""
        for whole, part in zip(self, other, strict=True):
            if len(whole):
                whole[which[rows]] = part[rows]


class Rows(NamedTuple):
    """Results of R rows: voltages as (R, 2 B) real and imaginary parts, and how they came about."""

    voltage: Real
    worst: Real
    steps: Int
    retained: Real
    """Smallest squared voltage magnitude over PQ buses as a share of the nominal point's."""
    growth: Real
    """Largest multiplier of the last full factorisation, 0 where none was needed."""
    operating: Bool
    """Whether the root is the operating one, if there is a root."""
    powers: Real
    """(R, 4 E) or empty."""
    loading: Real
    """(R, E) or empty."""

    @classmethod
    def empty(
        cls, rows: int, num_buses: int, num_branches: int, *, powers: bool, loading: bool
    ) -> "Rows":
        """Room for `rows` rows, none of them solved."""
        return cls(
            voltage=np.empty((rows, 2 * num_buses)),
            worst=np.full(rows, np.inf),
            steps=np.zeros(rows, np.int64),
            retained=np.zeros(rows),
            growth=np.zeros(rows),
            operating=np.ones(rows, bool),
            powers=np.empty((rows if powers else 0, 4 * num_branches)),
            loading=np.empty((rows if loading else 0, num_branches)),
        )


class ChordWork(NamedTuple):
    """Workspace of one block of chord lanes."""

    voltage: Real
    power: Real
    residual: np.ndarray
    plain: np.ndarray
    taken: np.ndarray
    worst: Real
    active: Real
    steps: Int
    tile: Real

    @classmethod
    def new(
        cls, width: int, single: np.dtype, plan: Plan, num_buses: int, widest: int
    ) -> "ChordWork":
        """A workspace; `single` is the type of the correction, `widest` the longest row written."""
        state, unknowns = 2 * num_buses * width, plan.num_unknowns * width
        return cls(
            voltage=_aligned(state),
            power=_aligned(state),
            residual=_aligned(unknowns, single),
            plain=_aligned(unknowns, single),
            taken=_aligned(unknowns, single),
            worst=_aligned(width),
            active=_aligned(width),
            steps=np.zeros(width, np.int64),
            tile=_aligned(widest * width),
        )


class NewtonWork(NamedTuple):
    """Workspace of one block of Newton lanes."""

    voltage: Real
    power: Real
    residual: Real
    admittance: Real
    factors: Real
    lower: Real
    diagonal: Real
    upper: Real
    worst: Real
    before: Real
    active: Real
    growth: Real
    steps: Int

    @classmethod
    def new(cls, width: int, plan: Plan, num_buses: int) -> "NewtonWork":
        """A workspace of `width` lanes."""
        state, unknowns = 2 * num_buses * width, plan.num_unknowns * width
        factors = _aligned((plan.num_factors, width))
        a, b = plan.num_lower, plan.num_lower + plan.num_diagonal
        return cls(
            voltage=_aligned(state),
            power=_aligned(state),
            residual=_aligned(unknowns),
            admittance=_aligned((2 * plan.num_entries, width)),
            factors=factors,
            lower=factors[:a],
            diagonal=factors[a:b],
            upper=factors[b:],
            worst=_aligned(width),
            before=_aligned(width),
            active=_aligned(width),
            growth=_aligned(width),
            steps=np.zeros(width, np.int64),
        )


def interleaved(values: np.ndarray) -> Real:
    """Complex numbers as a flat array of real and imaginary parts, a copy."""
    return np.ascontiguousarray(values).view(np.float64).ravel().copy()


def _aligned(shape: int | tuple[int, ...], dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Zeros that start on a cache line, so that a vector never straddles two."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size].view(dtype).reshape(shape)
