"""Elimination order of random graphs, of stars and of complete ones, against sets."""

from itertools import pairwise

import numpy as np
import pytest

from gridshift.grid.kernels.ordering import eliminate
from tests.reference import ordering


def random_edges(rng, size, count):
    return {tuple(sorted(pair)) for pair in rng.integers(0, size, (count, 2)) if pair[0] != pair[1]}


GRAPHS = {
    **{f"random {n}": random_edges(np.random.default_rng(n), n, 3 * n) for n in (2, 5, 30, 90)},
    "star": {(0, leaf) for leaf in range(1, 60)},
    "two stars": {(hub, leaf) for hub in (0, 1) for leaf in range(2, 70)},
    "complete": {(a, b) for a in range(50) for b in range(a)},
    "no edge": set(),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_order_and_fill_are_those_of_sets(name):
    edges = GRAPHS[name]
    num_buses = max((max(edge) for edge in edges), default=3) + 1
    size = np.random.default_rng(1).integers(0, 3, num_buses)
    neighbours = [set() for _ in range(num_buses)]
    for a, b in edges:
        if size[a] and size[b]:
            neighbours[a].add(b)
            neighbours[b].add(a)
    ptr = np.cumsum([0, *map(len, neighbours)])
    flat = np.array([b for near in neighbours for b in sorted(near)], np.int64)
    order, upper_ptr, upper = eliminate(ptr, flat, size)
    rows = [sorted(upper[first:last].tolist()) for first, last in pairwise(upper_ptr)]
    assert (order.tolist(), rows) == ordering.eliminate(neighbours, size.tolist())
