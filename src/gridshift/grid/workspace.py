"""Arrays that the kernels read and write, as named tuples, and how they are laid out in memory."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.symbolic import Symbolic
from gridshift.grid.voltage_dependence import PARTS, Dependence


class NominalPoint(NamedTuple):
    """A topology's nominal point, p.u., and the factors of its Jacobian."""

    admittance: Real
    """(2 entries,) real and imaginary parts, in the order of `Symbolic`."""
    voltage: Real
    """(2 B,)"""
    power: Real
    """(2 B,) computed injections at the nodes, 0 elsewhere."""
    lower: np.ndarray
    diagonal: np.ndarray
    upper: np.ndarray


class Batch(NamedTuple):
    """R rows of loads on one topology: what solving, repairing and expanding them share."""

    symbolic: Symbolic
    point: NominalPoint
    load_bus: NDArray[np.int32]
    """(L,)"""
    scheduled: Real
    """(2 B + 6 K,) power injected by everything but the loads, p.u."""
    set_point: Real
    """(B,) voltage magnitude at PV and slack buses, 1 elsewhere."""
    load_p: Real
    """(R, L) p.u."""
    load_q: Real
    """(R, L) p.u."""
    limits: Real
    """(2 PV,) least and most reactive power of the generators at PV buses, p.u., in the order of
    `Symbolic.row_node`; not read where `Rows.excess` is empty."""
    dependence: Dependence


class Stopping(NamedTuple):
    """When chord steps end, and how they are taken."""

    tolerance: float
    """Largest mismatch, p.u."""
    max_steps: int
    accelerate_from: int
    """Step from which Anderson's acceleration is on."""


class NewtonBatch(NamedTuple):
    """T states, each with powers, a start and a topology, or one for all."""

    symbolic: Symbolic
    set_point: Real
    """(B,) voltage magnitude at PV and slack buses, 1 elsewhere."""
    removed_ptr: Int
    """Where the branches that each topology lacks begin in `removed`, and where the last end."""
    removed: Int
    power: Real
    """(T, 2 B + 6 K) or (1, 2 B + 6 K), p.u."""
    start: Real
    """(T, 2 B) or (1, 2 B)"""


class NewtonRule(NamedTuple):
    """When Newton's steps end, and what is written of the states that they reach."""

    tolerance: float
    """Largest mismatch, p.u."""
    max_steps: int
    renewals: int
    """Steps that make new factors."""
    brisk: bool
    """End a state where a step no longer halves its mismatch."""
    finish: bool
    """Factors at the voltage reached, for its orientation."""
    keep: bool
    """Write factors and admittances."""


class FromIntact(NamedTuple):
    """Solutions of rows on the intact grid, to start from; empty arrays: from the nominal point."""

    voltage: Real
    """(blocks * 2 B * W,) in blocks of lanes, the last of them filled up with its last row."""
    power: Real
    """(blocks * (2 B + 6 K) * W,) specified injections, in the same order."""
    turn: Real
    """(2 B,) nominal voltages after the outage over those before, real and imaginary parts."""
    order: Int
    """(R,) which row is where: rows that take as many steps are neighbours."""
    apart: Int
    """Buses that stand apart after the outage, where nothing is injected."""


class Branches(NamedTuple):
    """Branches of one topology as the flow kernels read them."""

    bus: Int
    """(2 E,) from and to bus, alternating."""
    admittance: Real
    """(8 E,) real and imaginary parts of the two-ports, 0 where out of service."""
    inverse_square: Real
    """(2 E,) one over the squared rating of each end, p.u.; 0 where there is none."""
    by_power: np.ndarray
    """(1,) whether ratings limit apparent power rather than current."""


def room_for_states(count: int, num_buses: int) -> dict[str, Any]:
    """What `States` and `LimitedStates` have in common, for so many of them."""
    return {
        "voltage": np.empty((count, 2 * num_buses)),
        "mismatch": np.full(count, np.inf),
        "steps": np.zeros(count, np.int64),
        "growth": np.zeros(count),
        "orientation": np.zeros(count),
    }


class States(NamedTuple):
    """What Newton's method made of T states, each of a topology, powers and a start of its own."""

    voltage: Real
    """(T, 2 B)"""
    mismatch: Real
    """(T,) largest active or reactive one, p.u."""
    steps: Int
    growth: Real
    """Largest multiplier of the last factorisation."""
    orientation: Real
    """Sign of the determinant of the Jacobian, 0 where it is singular or not a number."""
    factors: Real
    admittance: Real
    power: Real

    @classmethod
    def empty(cls, count: int, num_buses: int, symbolic: Symbolic, *, keep: bool) -> "States":
        """Room for `count` states, for their factors and admittances only with `keep`."""
        kept = count if keep else 0
        return cls(
            **room_for_states(count, num_buses),
            factors=np.empty((kept, symbolic.num_factors)),
            admittance=np.empty((kept, 2 * symbolic.num_entries)),
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
    """Empty where it isn't asked for."""
    mismatch: Real
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
    excess: Real
    """(R,) by how much a generator's reactive power exceeds its limit at most, p.u.; infinite where
    it isn't known, empty where it isn't asked for."""

    @classmethod
    def empty(
        cls, rows: int, num_buses: int, num_branches: int, *, powers: bool, loading: bool,
        excess: bool = False, voltage: bool = True,
    ) -> "Rows":  # fmt: skip
        """Room for `rows` rows, none of them solved."""
        return cls(
            voltage=np.empty((rows if voltage else 0, 2 * num_buses)),
            mismatch=np.full(rows, np.inf),
            steps=np.zeros(rows, np.int64),
            retained=np.zeros(rows),
            growth=np.zeros(rows),
            operating=np.ones(rows, bool),
            powers=np.empty((rows if powers else 0, 4 * num_branches)),
            loading=np.empty((rows if loading else 0, num_branches)),
            excess=np.full(rows if excess else 0, np.inf),
        )


class ChordWork(NamedTuple):
    """Workspace of one block of chord lanes."""

    voltage: Real
    power: Real
    residual: np.ndarray
    chord_step: np.ndarray
    """The last chord step, before acceleration."""
    taken_step: np.ndarray
    """The last step taken, after it."""
    mismatch: Real
    active: Real
    steps: Int
    tile: Real

    @classmethod
    def new(
        cls, width: int, single: np.dtype, symbolic: Symbolic, num_buses: int, widest: int
    ) -> "ChordWork":
        """A workspace; `single` is the type of the correction, `widest` the longest row written."""
        state, unknowns = 2 * num_buses * width, symbolic.num_unknowns * width
        parts = 2 * PARTS * width * len(symbolic.dependent_bus)
        return cls(
            voltage=aligned(state),
            power=aligned(state + parts),
            residual=aligned(unknowns, single),
            chord_step=aligned(unknowns, single),
            taken_step=aligned(unknowns, single),
            mismatch=aligned(width),
            active=aligned(width),
            steps=np.zeros(width, np.int64),
            tile=aligned(widest * width),
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
    mismatch: Real
    previous_mismatch: Real
    active: Real
    growth: Real
    steps: Int

    @classmethod
    def new(cls, width: int, symbolic: Symbolic, num_buses: int) -> "NewtonWork":
        """A workspace of `width` lanes."""
        state, unknowns = 2 * num_buses * width, symbolic.num_unknowns * width
        parts = 2 * PARTS * width * len(symbolic.dependent_bus)
        factors = aligned((symbolic.num_factors, width))
        a, b = symbolic.num_lower, symbolic.num_lower + symbolic.num_diagonal
        return cls(
            voltage=aligned(state),
            power=aligned(state + parts),
            residual=aligned(unknowns),
            admittance=aligned((2 * symbolic.num_entries, width)),
            factors=factors,
            lower=factors[:a],
            diagonal=factors[a:b],
            upper=factors[b:],
            mismatch=aligned(width),
            previous_mismatch=aligned(width),
            active=aligned(width),
            growth=aligned(width),
            steps=np.zeros(width, np.int64),
        )


def interleaved(values: np.ndarray) -> Real:
    """Complex numbers as a flat array of real and imaginary parts, a copy."""
    return np.ascontiguousarray(values).view(np.float64).ravel().copy()


def aligned(shape: int | tuple[int, ...], dtype: np.dtype | type = np.float64) -> np.ndarray:
    """Zeros that start on a cache line, so that a vector never straddles two."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.uint8)
    offset = -raw.ctypes.data % 64
    return raw[offset : offset + size].view(dtype).reshape(shape)
