"""Symbolic factorisation, once per grid: elimination order, fill, index arrays for the kernels.

The Jacobian of power flow has one block per pair of neighbouring buses: one unknown at a PV bus
(angle), two at a PQ bus (angle and relative magnitude), none at a slack bus. Its pattern is
symmetric and follows the bus graph, so the order and the fill are found on the graph. An outage
changes values only; the arrays of the intact grid serve every outage.

Factors are stored in three runs, each in the order in which substitution reads it: the lower
blocks row by row, the inverted diagonal blocks, and the upper blocks from the last row to the
first. Inside a block, numbers go column by column.
"""

import heapq
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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


def analyse(network: Network) -> Symbolic:
    """The symbolic factorisation of a grid as read; valid for every outage of it."""
    pattern = network.admittance
    size = np.choose(network.bus_kind - 1, [2, 1, 0]).tolist()
    assert (BusKind.PQ, BusKind.PV, BusKind.SLACK) == (1, 2, 3)
    neighbours = _symmetric_neighbours(pattern, size)
    order, upper_of_bus = _eliminate(neighbours, size)
    nodes = _by_level(order, upper_of_bus, size)
    node_of = {bus: k for k, bus in enumerate(nodes)}
    upper = [sorted(node_of[b] for b in upper_of_bus[bus]) for bus in nodes]
    lower: list[list[int]] = [[] for _ in nodes]
    for k, row in enumerate(upper):
        for i in row:
            lower[i].append(k)
    s = [size[bus] for bus in nodes]
    first = np.concatenate([[0], np.cumsum(s)]).astype(int)

    place, (num_lower, num_diagonal, num_upper) = _places(lower, upper, s)
    substitution = _substitution(lower, upper, s, first)
    elimination = _elimination(upper, s, place)
    rows = sorted(range(len(nodes)), key=lambda i: (s[i], nodes[i]))
    entries, entry_of = _entries(pattern, rows, nodes, node_of, place)
    return Symbolic(
        node_bus=_index(nodes),
        node_size=_index(s),
        node_first=_index(first),
        row_node=_index(rows),
        diagonal_at=_index([place[k][k] for k in range(len(nodes))]),
        upper_at=_index([place[k][upper[k][0]] if upper[k] else 0 for k in range(len(nodes))]),
        **substitution,
        **elimination,
        **entries,
        **_contributions(network, entry_of),
        dependent_bus=_index(dependent := dependent_buses(network).tolist()),
        dependent_node=_index([node_of[bus] for bus in dependent]),
        num_unknowns=int(first[-1]),
        num_pv=s.count(1),
        num_entries=len(entry_of),
        num_lower=num_lower,
        num_diagonal=num_diagonal,
        num_upper=num_upper,
    )


def _index(values) -> Index:
    return np.array(values, dtype=np.int32)


def _symmetric_neighbours(pattern, size: list[int]) -> list[set[int]]:
    neighbours: list[set[int]] = [set() for _ in size]
    coo = pattern.tocoo()
    for i, j in zip(coo.row.tolist(), coo.col.tolist(), strict=True):
        if i != j and size[i] and size[j]:
            neighbours[i].add(j)
            neighbours[j].add(i)
    return neighbours


def _eliminate(
    neighbours: list[set[int]], size: list[int]
) -> tuple[list[int], dict[int, list[int]]]:
    """Order by least weighted fill, ties by degree; and each bus's neighbours when it goes.

    Fill is exact up to 40 neighbours and by degree beyond (Tinney's schemes 2 and 3).
    """
    near = [set(n) for n in neighbours]

    def cost(bus: int) -> tuple[int, int]:
        around = near[bus]
        if len(around) > 40:
            return 10**6 + len(around), len(around)
        ring, fill = list(around), 0
        for k, a in enumerate(ring):
            known = near[a]
            fill += size[a] * sum(size[b] for b in ring[k + 1 :] if b not in known)
        return fill, len(around)

    current = {bus: cost(bus) for bus, s in enumerate(size) if s}
    heap = [(c, bus) for bus, c in current.items()]
    heapq.heapify(heap)
    order: list[int] = []
    upper: dict[int, list[int]] = {}
    while heap:
        c, bus = heapq.heappop(heap)
        if current.get(bus) != c:
            continue
        del current[bus]
        around = near[bus]
        order.append(bus)
        upper[bus] = list(around)
        for a in around:
            near[a] |= around
            near[a] -= {a, bus}
        for a in around:
            if (renewed := cost(a)) != current[a]:
                current[a] = renewed
                heapq.heappush(heap, (renewed, a))
    return order, upper


def _by_level(order: list[int], upper: dict[int, list[int]], size: list[int]) -> list[int]:
    """The same elimination, but with independent buses side by side, so that work overlaps."""
    level = dict.fromkeys(order, 0)
    for bus in order:
        for later in upper[bus]:
            level[later] = max(level[later], level[bus] + 1)
    position = {bus: k for k, bus in enumerate(order)}
    return sorted(order, key=lambda b: (level[b], size[b], len(upper[b]), position[b]))


def _places(lower, upper, s) -> tuple[list[dict[int, int]], tuple[int, int, int]]:
    """Place of every block (i, j) in the factors, and the length of the three runs."""
    place: list[dict[int, int]] = [{} for _ in s]
    at = 0
    for i, row in enumerate(lower):
        for k in row:
            place[i][k] = at
            at += s[i] * s[k]
    num_lower = at
    for i in range(len(s)):
        place[i][i] = at
        at += s[i] * s[i]
    num_diagonal = at - num_lower
    for i in range(len(s) - 1, -1, -1):
        for j in upper[i]:
            place[i][j] = at
            at += s[i] * s[j]
    return place, (num_lower, num_diagonal, at - num_lower - num_diagonal)


def _substitution(lower, upper, s, first) -> dict[str, Index]:
    def walk(rows):
        ptr, unknown = [0], []
        for row in rows:
            for j in row:
                unknown.extend(range(first[j], first[j] + s[j]))
            ptr.append(len(unknown))
        return _index(ptr), _index(unknown)

    lower_ptr, lower_unknown = walk(lower)
    upper_ptr, upper_unknown = walk(reversed(upper))
    return {
        "lower_ptr": lower_ptr,
        "lower_unknown": lower_unknown,
        "upper_ptr": upper_ptr,
        "upper_unknown": upper_unknown,
    }


def _elimination(upper, s, place) -> dict[str, Index]:
    ptr, node, block, target_ptr, target = [0], [], [], [0], []
    for k, row in enumerate(upper):
        for i in row:
            node.append(i)
            block.append(place[i][k])
            for j in row:
                start = place[i][j]
                target.extend(range(start, start + s[i] * s[j], s[i]))
            target_ptr.append(len(target))
        ptr.append(len(node))
    return {
        "update_ptr": _index(ptr),
        "update_node": _index(node),
        "update_lower": _index(block),
        "update_target_ptr": _index(target_ptr),
        "update_target": _index(target),
    }


def _entries(pattern, rows, nodes, node_of, place) -> tuple[dict[str, Index], dict]:
    ptr, bus, node, block, entry_of = [0], [], [], [], {}
    indptr, indices = pattern.indptr.tolist(), pattern.indices.tolist()
    for i in rows:
        home = nodes[i]
        for column in indices[indptr[home] : indptr[home + 1]]:
            entry_of[home, column] = len(bus)
            bus.append(column)
            node.append(node_of.get(column, -1))
            block.append(place[i].get(node[-1], -1))
        ptr.append(len(bus))
    return {
        "row_ptr": _index(ptr),
        "entry_bus": _index(bus),
        "entry_node": _index(node),
        "entry_block": _index(block),
    }, entry_of


def _contributions(network: Network, entry_of: dict[tuple[int, int], int]) -> dict:
    f, t = network.branch_from.tolist(), network.branch_to.tolist()
    corners = [[(a, a), (a, b), (b, a), (b, b)] for a, b in zip(f, t, strict=True)]
    stamps = np.array([[entry_of.get(c, -1) for c in four] for four in corners]).reshape(-1, 4)
    live = (stamps >= 0) & network.branch_in_service[:, None]
    branch, corner = np.nonzero(live)
    shunted = [b for b in range(network.num_buses) if (b, b) in entry_of]
    entry = np.concatenate([stamps[live], [entry_of[b, b] for b in shunted]]).astype(int)
    value = np.concatenate([network.branch_y[branch, corner], network.bus_shunt[shunted]])
    owner = np.concatenate([branch, np.full(len(shunted), -1)])
    order = np.argsort(entry, kind="stable")
    ptr = np.searchsorted(entry[order], np.arange(len(entry_of) + 1))
    return {
        "part_ptr": _index(ptr),
        "part_branch": _index(owner[order]),
        "part_value": np.ascontiguousarray(value[order]).view(np.float64).copy(),
        "branch_entry": _index(stamps),
    }
