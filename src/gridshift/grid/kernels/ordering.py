"""Elimination order and fill of a sparse symmetric pattern, and where its blocks lie.

A pattern is a graph: nodes are buses, rows of neighbours one after the other with `ptr` telling
where each begins. Eliminating a bus joins its neighbours to each other, and what is joined anew is
fill; so the fill is found on the graph, before there are numbers (Rose, 1972).
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import heapq

import numpy as np

from gridshift.grid.kernels import compiled

MOST_COUNTED = 40
"""Neighbours of a bus up to which its fill is counted; beyond, it goes by their number."""
UNCOUNTED = 10**6
BUS_BITS, DEGREE_BITS = 24, 18
"""Of a key (fill, degree, bus) in one integer."""


@compiled
def eliminate(ptr, neighbours, size):
    """Order of least weighted fill, ties by degree, then by number (Tinney's schemes 2 and 3).

    Args:
        ptr, neighbours: symmetric graph of the buses that have unknowns.
        size: (B,) unknowns of each bus; those without any aren't eliminated.

    Returns:
        Buses in the order in which they go, and for each, one row after the other, the neighbours
        that it has then: pointers (n + 1,) and buses.
    """
    n = len(size)
    start, length = ptr[:-1].astype(np.int64), np.diff(ptr).astype(np.int64)
    room, pool, used = length.copy(), neighbours.astype(np.int64), len(neighbours)
    seen, stamp = np.zeros(n, np.int64), 0
    current = np.full(n, -1, np.int64)
    heap = [np.int64(0) for _ in range(0)]
    for bus in range(n):
        if size[bus]:
            current[bus], stamp = priority(bus, start, length, pool, size, seen, stamp)
            heap.append(current[bus])
    heapq.heapify(heap)
    order, upper_ptr = np.empty(len(heap), np.int64), np.zeros(len(heap) + 1, np.int64)
    upper, num_upper, done = np.empty(2 * used + 16, np.int64), 0, 0
    merged = np.empty(n, np.int64)
    while len(heap):
        key = heapq.heappop(heap)
        bus = key & ((1 << BUS_BITS) - 1)
        if current[bus] != key:
            continue
        current[bus] = -1
        around = pool[start[bus] : start[bus] + length[bus]].copy()
        order[done] = bus
        done += 1
        upper = with_room(upper, num_upper + len(around))
        upper[num_upper : num_upper + len(around)] = around
        num_upper += len(around)
        upper_ptr[done] = num_upper
        for a in around:
            stamp += 1
            seen[a] = seen[bus] = stamp
            count = 0
            for b in pool[start[a] : start[a] + length[a]]:
                if seen[b] != stamp:
                    seen[b] = stamp
                    merged[count] = b
                    count += 1
            for b in around:
                if seen[b] != stamp:
                    seen[b] = stamp
                    merged[count] = b
                    count += 1
            if count > room[a]:
                room[a] = 2 * count
                pool = with_room(pool, used + room[a])
                start[a] = used
                used += room[a]
            pool[start[a] : start[a] + count] = merged[:count]
            length[a] = count
        for a in around:
            renewed, stamp = priority(a, start, length, pool, size, seen, stamp)
            if renewed != current[a]:
                current[a] = renewed
                heapq.heappush(heap, renewed)
    return order, upper_ptr, upper[:num_upper]


@compiled
def priority(bus, start, length, pool, size, seen, stamp):
    """Fill, degree and number of a bus in one integer, and the last stamp in `seen`."""
    degree = length[bus]
    fill = 0
    if degree > MOST_COUNTED:
        fill = UNCOUNTED + degree
    else:
        ring = pool[start[bus] : start[bus] + degree]
        for k in range(degree):
            a = ring[k]
            stamp += 1
            for b in pool[start[a] : start[a] + length[a]]:
                seen[b] = stamp
            missing = 0
            for b in ring[k + 1 :]:
                if seen[b] != stamp:
                    missing += size[b]
            fill += size[a] * missing
    return (np.int64(fill) << (BUS_BITS + DEGREE_BITS)) | (degree << BUS_BITS) | bus, stamp


@compiled
def with_room(values, needed):
    """The values in an array that holds so many; a new one is twice as long as needed."""
    if needed <= len(values):
        return values
    longer = np.empty(2 * needed, values.dtype)
    longer[: len(values)] = values
    return longer


@compiled
def levels(order, upper_ptr, upper, num_buses):
    """(n,) for each bus of the order how many others must go before it, one after the other."""
    level = np.zeros(num_buses, np.int64)
    for k in range(len(order)):
        for later in upper[upper_ptr[k] : upper_ptr[k + 1]]:
            level[later] = max(level[later], level[order[k]] + 1)
    return level[order]


@compiled
def update_targets(blocks, size):
    """For each update of row i by node k: places of the columns of its blocks (i, j).

    Returns:
        Pointers (updates + 1,) and places, j as in the upper row of k.
    """
    n = len(size)
    at = np.full(n, -1, np.int64)
    width = np.zeros(n, np.int64)
    for k in range(n):
        for e in range(blocks.upper_ptr[k], blocks.upper_ptr[k + 1]):
            width[k] += size[blocks.upper[e]]
    ptr = np.zeros(len(blocks.upper) + 1, np.int64)
    for k in range(n):
        for e in range(blocks.upper_ptr[k], blocks.upper_ptr[k + 1]):
            ptr[e + 1] = ptr[e] + width[k]
    target = np.empty(ptr[-1], np.int64)
    for k in range(n):
        row = blocks.upper[blocks.upper_ptr[k] : blocks.upper_ptr[k + 1]]
        for e in range(blocks.upper_ptr[k], blocks.upper_ptr[k + 1]):
            i = blocks.upper[e]
            lay_out(blocks, i, at)
            to = ptr[e]
            for j in row:
                for c in range(size[j]):
                    target[to] = at[j] + c * size[i]
                    to += 1
    return ptr, target


@compiled
def entry_blocks(blocks, row_node, row_ptr, entry_node):
    """(entries,) place of the block of each entry of a matrix with these rows, -1 without one."""
    at = np.full(len(blocks.diagonal_at), -1, np.int64)
    out = np.full(len(entry_node), -1, np.int64)
    for r in range(len(row_node)):
        lay_out(blocks, row_node[r], at)
        for e in range(row_ptr[r], row_ptr[r + 1]):
            if entry_node[e] >= 0:
                out[e] = at[entry_node[e]]
    return out


@compiled
def lay_out(blocks, i, at):
    """at[j] := place of block (i, j), for all j that row i has."""
    for e in range(blocks.lower_ptr[i], blocks.lower_ptr[i + 1]):
        at[blocks.lower[e]] = blocks.lower_at[e]
    at[i] = blocks.diagonal_at[i]
    for e in range(blocks.upper_ptr[i], blocks.upper_ptr[i + 1]):
        at[blocks.upper[e]] = blocks.upper_at[e]
