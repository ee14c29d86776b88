"""Connectivity of the bus graph."""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import numpy as np

from gridshift.grid.kernels import compiled


@compiled
def unreachable(branch_from, branch_to, in_service, source):
    """Buses, ascending, that no path of branches in service joins to a source bus (B,).

    Union-find: each bus points to another one of its component, in the end to the smallest, and
    paths are halved as they are walked (Tarjan and van Leeuwen, 1984), so that a search costs
    little more than one look at each branch.
    """
    parent = np.arange(len(source))
    for e in range(len(branch_from)):
        if in_service[e]:
            a, b = smallest(parent, branch_from[e]), smallest(parent, branch_to[e])
            parent[max(a, b)] = min(a, b)
    fed = np.zeros(len(source), np.bool_)
    for b in range(len(source)):
        if source[b]:
            fed[smallest(parent, b)] = True
    out = np.zeros(len(source), np.bool_)
    for b in range(len(source)):
        out[b] = not fed[smallest(parent, b)]
    return np.flatnonzero(out)


@compiled
def smallest(parent, b):
    """The bus that stands for the component of bus `b`."""
    while parent[b] != b:
        parent[b] = parent[parent[b]]
        b = parent[b]
    return b
