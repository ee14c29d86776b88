"""Where the buses of a grid are drawn: as its file says, or laid out by how they are joined."""

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Int, Real
from gridshift.grid.network import Network

NUM_PIVOTS = 60
NUM_STEPS = 80
NEIGHBOURS = 8
"""Nearest buses that push each other apart in a layout."""
FAR = 0.05
"""How strongly regions push, as a share of what their buses would."""
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
    push from the nearest buses and from the middle of each pivot's region. The same grid always
    gives the same drawing.

    Sources: Brandes and Pich, "Eigensolver methods for progressive multidimensional scaling of
    large data", 2006; Fruchterman and Reingold, "Graph drawing by force-directed placement", 1991.
    """
    num = network.num_buses
    distances = _to_pivots(network)
    xy = _projected(distances)
    ends = np.stack([network.branch_from, network.branch_to])
    ends = ends[:, ends[0] != ends[1]]
    if not ends.size or num < 3:
        return xy
    xy = xy * (np.sqrt(num) / np.ptp(xy, axis=0).max())
    xy = xy + np.random.default_rng(0).normal(size=xy.shape) * 0.1  # apart, where distances agree
    region = distances.argmin(axis=1)
    mass = np.maximum(1, np.bincount(region, minlength=distances.shape[1]))
    near = min(NEIGHBOURS, num - 1)
    pulls = sp.csr_array(
        (np.repeat([1.0, -1.0], ends.shape[1]), (ends.ravel(), np.tile(range(ends.shape[1]), 2))),
        shape=(num, ends.shape[1]),
    )
    from scipy.spatial import KDTree  # a twentieth of a second, of use without positions alone

    for step in range(NUM_STEPS):
        gap = xy[ends[1]] - xy[ends[0]]
        move = pulls @ (gap * np.linalg.norm(gap, axis=1, keepdims=True))
        away = xy[:, None] - xy[np.asarray(KDTree(xy).query(xy, near + 1)[1])[:, 1:]]
        square = np.square(away).sum(axis=2, keepdims=True)
        move += (away / (square + 0.01)).sum(axis=1)
        centre = np.zeros((len(mass), 2))
        np.add.at(centre, region, xy)
        centre /= mass[:, None]
        square = (xy * xy).sum(axis=1)[:, None] + (centre * centre).sum(axis=1) - 2 * xy @ centre.T
        push = FAR * mass / (square + mass)
        move += xy * push.sum(axis=1, keepdims=True) - push @ centre
        size = np.linalg.norm(move, axis=1, keepdims=True) + 1e-9
        most = 0.03 * np.sqrt(num) * (1 - step / NUM_STEPS) ** 2 + 0.02
        xy = xy + move / size * np.minimum(size, most)
    return xy


def _to_pivots(network: Network) -> Real:
    """(B, P) branches between each bus and some buses that are far from each other."""
    from scipy.sparse.csgraph import dijkstra  # a tenth of a second, of use without positions alone

    graph = _graph(network)
    pivot = int(np.diff(graph.indptr).argmax())
    distances: list[Real] = []
    for _ in range(min(NUM_PIVOTS, network.num_buses)):
        found = dijkstra(graph, indices=pivot, unweighted=True)
        reach = found[np.isfinite(found)].max()
        distances.append(np.where(np.isfinite(found), found, reach + 2))
        pivot = int(np.min(distances, axis=0).argmax())
    return np.array(distances).T


def _projected(distances: Real) -> Real:
    """(B, 2) coordinates of largest variance that reproduce the distances to the pivots."""
    square = np.square(distances)
    centred = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = centred @ vectors[:, -2:][:, ::-1]
    if axes.shape[1] < 2:
        return np.zeros((len(distances), 2))
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
