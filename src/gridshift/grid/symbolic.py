"""Symbolic factorisation, once per grid: elimination order, fill, index arrays for the kernels.

The Jacobian of power flow has one block per pair of neighbouring buses: one unknown at a PV bus
(angle), two at a PQ bus (angle and relative magnitude), none at a slack bus. Its pattern is
symmetric and follows the bus graph, so the order and the fill are found on the graph. An outage
changes values only; the arrays of the intact grid serve every outage.

Factors are stored in three runs, each in the order in which substitution reads it: the lower
blocks row by row, the inverted diagonal blocks, and the upper blocks from the last row to the
first. Inside a block, numbers go column by column.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gridshift.arrays import Int, Real
from gridshift.grid.kernels.ordering import eliminate, entry_blocks, levels, update_targets
from gridshift.grid.network import BusKind, Network
from gridshift.grid.voltage_dependence import dependent_buses

Index = NDArray[np.int32]


class Symbolic(NamedTuple):
    """Symbolic factorisation: index arrays that the kernels walk, and their sizes.

    A named tuple, because numba reads those natively. Nodes are the buses with unknowns, in
    elimination order; 'unknown' counts their scalars.
    """

    # nodes
    node_bus: Index
    node_size: Index
    """1 at a PV bus, 2 at a PQ bus."""
    node_first: Index
    """First unknown of each node; one more entry than nodes."""

    # mismatch: rows sorted by kind (PV first) and length, entries as in the admittance pattern
    row_node: Index
    row_ptr: Index
    entry_bus: Index
    entry_node: Index
    """Node of each entry's bus, -1 for a slack bus."""
    entry_block: Index
    """Place of the Jacobian block of each entry in the factors, -1 in a slack column."""

    # substitution
    lower_ptr: Index
    lower_unknown: Index
    upper_ptr: Index
    """For node n-1, n-2, ...: its range in `upper_unknown`."""
    upper_unknown: Index
    diagonal_at: Index
    """Place of each node's diagonal block in the factors."""

    # elimination: for node k, the rows it updates and the places they touch
    update_ptr: Index
    update_node: Index
    update_lower: Index
    """Place of the block (row, k)."""
    update_target_ptr: Index
    update_target: Index
    """For each update: place of the target block's column for each upper scalar of node k."""
    upper_at: Index
    """Place of the first upper block of each node."""

    # admittance values: contributions of branches (and shunts, -1) to each entry
    part_ptr: Index
    part_branch: Index
    part_value: NDArray[np.float64]
    """Real and imaginary part of each contribution, alternating."""
    branch_entry: Index
    """(E, 4) entry of each stamp, -1 in a slack row."""

    # loads
    dependent_bus: Index
    """(K,) buses with loads that depend on the voltage."""
    dependent_node: Index

    # sizes
    num_unknowns: int
    num_pv: int
    """Rows of the mismatch that belong to PV buses: the first ones."""
    num_entries: int
    """Entries of the admittance matrix in rows of nodes."""
    num_lower: int
    """Numbers in the lower blocks, as the next two of the others."""
    num_diagonal: int
    num_upper: int

    @property
    def num_factors(self) -> int:
        """Numbers in the factors."""
        return self.num_lower + self.num_diagonal + self.num_upper


class Blocks(NamedTuple):
    """The blocks of the factors, row by row, and their places; columns ascend."""

    lower_ptr: NDArray[np.int64]
    lower: NDArray[np.int64]
    lower_at: NDArray[np.int64]
    diagonal_at: NDArray[np.int64]
    upper_ptr: NDArray[np.int64]
    upper: NDArray[np.int64]
    upper_at: NDArray[np.int64]
    transposed_at: NDArray[np.int64]
    """Place of the lower block that mirrors each upper one."""
    lengths: tuple[int, int, int]
    """Numbers in the lower, the diagonal and the upper blocks."""


def analyse(network: Network) -> Symbolic:
    """The symbolic factorisation of a grid as read; valid for every outage of it."""
    pattern = network.admittance
    size_of_bus = np.choose(network.bus_kind - 1, [2, 1, 0])
    assert (BusKind.PQ, BusKind.PV, BusKind.SLACK) == (1, 2, 3)
    bus, upper_ptr, upper = _ordered(pattern, size_of_bus)
    node_of = np.full(network.num_buses, -1)
    node_of[bus] = np.arange(len(bus))
    size = size_of_bus[bus]
    first = _starts(size)
    blocks = _blocks(upper_ptr, node_of[upper], size)
    target_ptr, target = update_targets(blocks, size)
    row_node = np.lexsort((bus, size))
    row_ptr, entry_bus = _rows_of(pattern, bus[row_node])
    entry_block = entry_blocks(blocks, row_node, row_ptr, node_of[entry_bus])
    has_upper = np.diff(blocks.upper_ptr) > 0
    upper_at = np.zeros(len(bus), int)
    upper_at[has_upper] = blocks.upper_at[blocks.upper_ptr[:-1][has_upper]]
    backwards_ptr, backwards = _backwards(blocks.upper_ptr, blocks.upper)
    lower_ptr, lower_unknown = _unknowns(blocks.lower_ptr, blocks.lower, size, first)
    upper_ptr, upper_unknown = _unknowns(backwards_ptr, backwards, size, first)
    dependent = dependent_buses(network)
    arrays = {
        "node_bus": bus,
        "node_size": size,
        "node_first": first,
        "row_node": row_node,
        "row_ptr": row_ptr,
        "entry_bus": entry_bus,
        "entry_node": node_of[entry_bus],
        "entry_block": entry_block,
        "lower_ptr": lower_ptr,
        "lower_unknown": lower_unknown,
        "upper_ptr": upper_ptr,
        "upper_unknown": upper_unknown,
        "diagonal_at": blocks.diagonal_at,
        "update_ptr": blocks.upper_ptr,
        "update_node": blocks.upper,
        "update_lower": blocks.transposed_at,
        "update_target_ptr": target_ptr,
        "update_target": target,
        "upper_at": upper_at,
        "dependent_bus": dependent,
        "dependent_node": node_of[dependent],
    }
    part_value, parts = _contributions(
        network, np.repeat(bus[row_node], np.diff(row_ptr)), entry_bus
    )
    num_lower, num_diagonal, num_upper = blocks.lengths
    return Symbolic(
        **{name: values.astype(np.int32) for name, values in (arrays | parts).items()},
        part_value=part_value,
        num_unknowns=int(first[-1]),
        num_pv=int((size == 1).sum()),
        num_entries=len(entry_bus),
        num_lower=num_lower,
        num_diagonal=num_diagonal,
        num_upper=num_upper,
    )


def revalued(symbolic: Symbolic, network: Network) -> Symbolic:
    """The same for a grid with other admittances at the same places."""
    row = np.repeat(symbolic.node_bus[symbolic.row_node], np.diff(symbolic.row_ptr)).astype(int)
    part_value, _ = _contributions(network, row, symbolic.entry_bus.astype(int))
    return symbolic._replace(part_value=part_value)


def _ordered(pattern: sp.csr_array, size: Int) -> tuple[Int, Int, Int]:
    """Buses in elimination order, and the later neighbours of each when it goes, row by row.

    Of the order with least fill, buses that don't depend on each other are put side by side, so
    that work overlaps.
    """
    coo = pattern.tocoo()
    inner = (coo.row != coo.col) & (size[coo.row] > 0) & (size[coo.col] > 0)
    i, j = coo.row[inner].astype(int), coo.col[inner].astype(int)
    edges = np.unique(np.concatenate([i * len(size) + j, j * len(size) + i]))
    row, neighbour = np.divmod(edges, len(size))
    ptr = np.searchsorted(row, np.arange(len(size) + 1))
    order, upper_ptr, upper = eliminate(ptr, neighbour, size)
    level = levels(order, upper_ptr, upper, len(size))
    later = np.diff(upper_ptr)
    by_level = np.lexsort((np.arange(len(order)), later, size[order], level))
    behind = upper.astype(int)[_ranges(upper_ptr[:-1][by_level], later[by_level])]
    return order[by_level], _starts(later[by_level]), behind


def _blocks(ptr: Int, upper: Int, size: Int) -> Blocks:
    """Blocks and their places, from the columns behind the diagonal of each row."""
    row = _row_of(ptr)
    upper = upper[np.lexsort((upper, row))]
    back = np.lexsort((row, upper))  # the same blocks transposed, row by row
    lower = row[back]
    lower_ptr = np.searchsorted(upper[back], np.arange(len(size) + 1))
    numbers = size[row] * size[upper]
    lower_at = _starts(numbers[back])
    diagonal_at = lower_at[-1] + _starts(size**2)
    transposed_at = np.empty(len(upper), int)
    transposed_at[back] = lower_at[:-1]
    last_first = np.lexsort((upper, -row))
    at = diagonal_at[-1] + _starts(numbers[last_first])
    upper_at = np.empty(len(upper), int)
    upper_at[last_first] = at[:-1]
    lengths = int(lower_at[-1]), int(diagonal_at[-1] - lower_at[-1]), int(at[-1] - at[0])
    return Blocks(
        lower_ptr, lower, lower_at[:-1], diagonal_at[:-1], ptr, upper, upper_at, transposed_at,
        lengths,
    )  # fmt: skip


def _starts(lengths: Int) -> Int:
    """Where parts of these lengths begin, one after the other, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(int)


def _row_of(ptr: Int) -> Int:
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def _ranges(start: Int, length: Int) -> Int:
    """Numbers from each start on, as many as its length says, one after the other."""
    return np.repeat(start - _starts(length)[:-1], length) + np.arange(length.sum())


def _backwards(ptr: Int, values: Int) -> tuple[Int, Int]:
    """The same rows from the last one to the first."""
    length = np.diff(ptr)[::-1]
    return _starts(length), values[_ranges(ptr[:-1][::-1], length)]


def _unknowns(ptr: Int, node: Int, size: Int, first: Int) -> tuple[Int, Int]:
    """Unknowns of the nodes of each row."""
    return _starts(size[node])[ptr], _ranges(first[node], size[node])


def _rows_of(pattern: sp.csr_array, bus: Int) -> tuple[Int, Int]:
    """Columns of these rows of the admittance matrix."""
    length = np.diff(pattern.indptr)[bus]
    start = pattern.indptr[bus].astype(int)
    return _starts(length), pattern.indices[_ranges(start, length)].astype(int)


def _contributions(network: Network, row: Int, column: Int) -> tuple[Real, dict[str, Int]]:
    """What branches and shunts add to the entries, which lie in these rows and columns."""
    wide = network.num_buses
    keys = row * wide + column
    sorting = np.argsort(keys)

    def entry_of(row: Int, column: Int) -> Int:
        """Entries at these places, -1 without one."""
        wanted = row.astype(int) * wide + column
        found = np.searchsorted(keys, wanted, sorter=sorting)
        entry = sorting[np.minimum(found, len(keys) - 1)] if len(keys) else np.full_like(found, -1)
        return np.where(keys[entry] == wanted, entry, -1) if len(keys) else entry

    f, t = network.branch_from, network.branch_to
    stamps = np.stack([entry_of(f, f), entry_of(f, t), entry_of(t, f), entry_of(t, t)], axis=1)
    live = (stamps >= 0) & network.branch_in_service[:, None]
    branch, corner = np.nonzero(live)
    buses = np.arange(network.num_buses)
    at_bus = entry_of(buses, buses)
    shunted = np.flatnonzero(at_bus >= 0)
    entry = np.concatenate([stamps[live], at_bus[shunted]])
    value = np.concatenate([network.branch_y[branch, corner], network.bus_shunt[shunted]])
    owner = np.concatenate([branch, np.full(len(shunted), -1)])
    order = np.argsort(entry, kind="stable")
    part_value = np.ascontiguousarray(value[order]).view(np.float64).copy()
    return part_value, {
        "part_ptr": np.searchsorted(entry[order], np.arange(len(keys) + 1)),
        "part_branch": owner[order],
        "branch_entry": stamps,
    }
