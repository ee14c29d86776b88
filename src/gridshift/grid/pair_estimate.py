"""Which pairs of lines are worst together, estimated from the intact grid for all of them at once.

Flows after two outages follow from those before by distribution factors of the linearised (DC)
grid: with `f` the flows and `D` the factors, `D[l, k]` being what line l takes over of one unit of
line k, the two lines would carry `x = f + D x` on each other's account, and any line l then carries
`f[l] + D[l, i] x[i] + D[l, j] x[j]` (Guo, Fu, Li, Shahidehpour, IEEE Trans. Power Systems, 2009).
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gridshift.arrays import Real
from gridshift.grid.contingency import Outage, candidate_elements, make_outage
from gridshift.grid.equations import branch_loading
from gridshift.grid.network import Network
from gridshift.grid.powerflow import nominal

SPLITS = 1e-6
"""Determinant below which two outages part the grid."""
ROOM = 1 << 24
"""Loadings that are looked at together."""


@dataclass(frozen=True, kw_only=True)
class WorstPairs:
    """The pairs that an estimate ranks first."""

    outages: list[Outage]
    told: str
    """How they were found, and how many pairs are left, in a sentence."""


def worst_pairs(network: Network, number: int) -> WorstPairs:
    """Pairs of lines that keep the grid together one by one, the worst by estimate.

    First come pairs that part the grid together, by the flows that are lost; then those with the
    largest sum of loadings beyond 1, then those with the largest loading. Loadings are the intact
    grid's at nominal demand, changed by the linearised grid's shares; where no branch has a rating
    it is the flows that are compared.

    Args:
        network: the intact grid, with the limits that count.
    """
    labels = candidate_elements(network, "lines")
    branches = np.array([network.elements[label][0] for label in labels])
    shares, own = _shares(network, branches)
    alone = own > SPLITS
    labels = [label for label, good in zip(labels, alone, strict=True) if good]
    branches, shares = branches[alone], shares[:, alone] / own[alone]
    flow, limit = _flows(network)
    score = _scores(flow, limit, shares, branches)
    first, second = np.triu_indices(len(branches), 1)
    order = np.argsort(-score, kind="stable")[:number]
    num_bridges, total = int((~alone).sum()), len(score)
    told = (
        f"of {total:,} pairs of lines the {len(order):,} that are worst by an estimate from the "
        f"linearised grid are studied, and {total - len(order):,} are not"
    )
    if num_bridges:
        told += (
            f"; nor are pairs with one of the {num_bridges:,} lines that cut buses off on their own"
        )
    pairs = [make_outage((labels[first[k]], labels[second[k]])) for k in order]
    return WorstPairs(outages=pairs, told=told)


def _shares(network: Network, branches: np.ndarray) -> tuple[Real, Real]:
    """(E, M) change of flows for a unit put in at one end of each line and out at the other, and
    (M,) what is left of each line's own factor: 0 for a line that parts the grid."""
    on = network.branch_in_service
    weight = np.where(on, np.abs(network.branch_y[:, 1]), 0.0)
    rows = np.arange(network.num_branches)
    incidence = sp.csr_array(
        (
            np.concatenate([np.ones(len(rows)), -np.ones(len(rows))]),
            (np.tile(rows, 2), np.concatenate([network.branch_from, network.branch_to])),
        ),
        shape=(len(rows), network.num_buses),
    )  # fmt: skip
    flows = sp.diags_array(weight) @ incidence
    keep = np.setdiff1d(np.arange(network.num_buses), network.slack)
    solver = splu((incidence.T @ flows)[keep][:, keep].tocsc())
    angles = np.zeros((network.num_buses, len(branches)))
    angles[keep] = solver.solve(incidence[branches].toarray().T[keep])
    factors = flows @ angles
    own = 1 - factors[branches, np.arange(len(branches))]
    return factors, own


def _flows(network: Network) -> tuple[Real, Real]:
    """(E,) active flows at nominal demand, and limits in the same unit; a loading stays itself."""
    voltage = nominal(network).voltage[0]
    start, end = voltage[network.branch_from], voltage[network.branch_to]
    y = np.where(network.branch_in_service[:, None], network.branch_y, 0)
    flow = (start * np.conj(y[:, 0] * start + y[:, 1] * end)).real
    if not network.branch_rated.any():
        return flow, np.full(len(flow), np.abs(flow).max())
    loading = branch_loading(network, voltage[None])[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        limit = np.abs(flow) / loading
    sound = network.branch_rated & np.isfinite(limit) & (limit > 0)
    return flow, np.where(sound, limit, np.where(network.branch_rated, _rating(network), np.inf))


def _rating(network: Network) -> Real:
    return network.branch_rating.min(1)


def _scores(flow: Real, limit: Real, shares: Real, branches: np.ndarray) -> Real:
    """How bad each pair is, in the order of `triu_indices`."""
    num = len(branches)
    own = shares[branches]  # (M, M) share of line i that line j's outage puts on it
    lost = np.abs(flow[branches])
    carried = np.maximum(0.0, np.abs(flow / limit) - 1)
    scores = []
    size = max(1, ROOM // len(flow))
    for i in range(num):
        for some in (np.arange(k, min(k + size, num)) for k in range(i + 1, num, size)):
            det = 1 - own[i, some] * own[some, i]
            sound = np.abs(det) > SPLITS
            safe = np.where(sound, det, 1.0)
            f_i, f_j = flow[branches[i]], flow[branches[some]]
            x_i = (f_i + own[i, some] * f_j) / safe
            x_j = (f_j + own[some, i] * f_i) / safe
            after = flow[:, None] + shares[:, [i]] * x_i + shares[:, some] * x_j
            loading = np.abs(after) / limit[:, None]
            at = np.arange(len(some))
            loading[branches[i]] = 0
            loading[branches[some], at] = 0
            beyond = np.maximum(0.0, loading - 1).sum(0) - carried.sum()
            # a largest loading orders those that overload nothing, below all others
            score = np.where(beyond > 0, 1 + beyond, loading.max(0) / (1 + loading.max(0)))
            scores.append(np.where(sound, score, 1e6 + lost[i] + lost[some]))
    return np.concatenate([np.empty(0), *scores])
