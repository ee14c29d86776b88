"""Where the buses of a grid are drawn: as its file says, or laid out by how they are joined."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from scipy.spatial import KDTree

from gridshift.arrays import Int, Real
from gridshift.grid.network import Network

NUM_PIVOTS = 60
NUM_STEPS = 150
NEIGHBOURS = 8
"""Nearest buses that push each other apart in a layout."""
FEW = 0.5
"""Share of buses whose positions are known below which all are laid out."""


def positions(network: Network) -> tuple[Real, bool]:
    """(B, 2) positions to the right and upwards in [0, 1], aspect kept; whether the file's.

    Buses without a position lie at the mean of their neighbours. Degrees of longitude are
    narrowed as they are at the grid's latitude.
    """
    xy = network.bus_xy.copy()
    known = np.isfinite(xy).all(axis=1)
    given = bool(known.mean() >= FEW and np.ptp(xy[known], axis=0).max() > 0)
    if given:
        if (np.abs(xy[known]) <= (180, 90)).all():
            xy[:, 0] *= np.cos(np.deg2rad(xy[known, 1].mean()))
        xy = _filled(network, xy, known)
    else:
        xy = laid_out(network)
    low, size = xy.min(axis=0), np.ptp(xy, axis=0).max() if len(xy) > 1 else 0.0
    return (xy - low) / (size or 1.0), given


def laid_out(network: Network) -> Real:
    """(B, 2) positions in which a branch is about as long as any other.

    A projection of the graph's distances to some pivots, then springs along branches against a
    push between close buses. The same grid always gives the same drawing.

    Source: Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling of
    large data", 2006.
    """
    xy = _projected(network)
    ends = np.stack([network.branch_from, network.branch_to])
    ends = ends[:, ends[0] != ends[1]]
    if not ends.size or len(xy) < 3:
        return xy
    length = np.linalg.norm(xy[ends[0]] - xy[ends[1]], axis=1)
    xy = xy / (np.median(length[length > 0]) if (length > 0).any() else 1.0)
    xy = xy + np.random.default_rng(0).normal(size=xy.shape) * 0.1  # apart, where distances agree
    degree = np.maximum(1, np.bincount(ends.ravel(), minlength=len(xy)))[:, None]
    near = min(NEIGHBOURS, len(xy) - 1)
    for step in range(NUM_STEPS):
        pull = np.zeros_like(xy)
        gap = xy[ends[1]] - xy[ends[0]]
        size = np.linalg.norm(gap, axis=1, keepdims=True) + 1e-9
        force = gap * (1 - 1 / size) / 2
        np.add.at(pull, ends[0], force)
        np.add.at(pull, ends[1], -force)
        found = KDTree(xy).query(xy, near + 1)
        distance, other = np.asarray(found[0])[:, 1:, None], np.asarray(found[1])[:, 1:]
        away = xy[:, None] - xy[other]
        room = np.maximum(0, 1.2 / (distance + 0.1) - 1)
        xy = xy + (pull / degree + 0.15 * (away * room).sum(axis=1)) * (1 - 0.8 * step / NUM_STEPS)
    return xy


def _projected(network: Network) -> Real:
    graph = _graph(network)
    pivots: list[int] = [int(np.diff(graph.indptr).argmax())]
    distances: list[Real] = []
    for _ in range(min(NUM_PIVOTS, network.num_buses)):
        found = dijkstra(graph, indices=pivots[-1], unweighted=True)
        reach = found[np.isfinite(found)].max()
        distances.append(np.where(np.isfinite(found), found, reach + 2))
        pivots.append(int(np.min(distances, axis=0).argmax()))
    square = np.square(np.array(distances).T)
    centred = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = centred @ vectors[:, -2:][:, ::-1]
    if axes.shape[1] < 2:
        return np.zeros((network.num_buses, 2))
    turned = np.where(np.abs(axes).max(axis=0) == axes.max(axis=0), 1, -1)
    return axes * turned


def _filled(network: Network, xy: Real, known) -> Real:
    """Positions with those unknown at the mean of their neighbours, again and again."""
    centre = xy[known].mean(axis=0)
    xy = np.where(known[:, None], xy, centre)
    missing: Int = np.flatnonzero(~known)
    if not len(missing):
        return xy
    graph = _graph(network)[missing]
    degree = np.maximum(1, np.diff(graph.indptr))[:, None]
    for _ in range(50):
        xy[missing] = (graph @ xy) / degree
    return xy


def _graph(network: Network) -> sp.csr_array:
    """(B, B) ones where a branch joins two buses, in service or not."""
    start, end = network.branch_from, network.branch_to
    rows, columns = np.concatenate([start, end]), np.concatenate([end, start])
    apart = rows != columns
    graph = sp.csr_array(
        (np.ones(int(apart.sum())), (rows[apart], columns[apart])),
        shape=(network.num_buses, network.num_buses),
    )
    graph.sum_duplicates()
    graph.data[:] = 1
    return graph
