"""Connectivity of the bus graph."""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import numpy as np

from gridshift.grid.kernels.steps import compiled


@compiled
def unreachable(branch_from, branch_to, in_service, source):
    """(B,) buses that no path of branches in service joins to a source bus; union-find."""
    parent = np.arange(len(source))
    for e in range(len(branch_from)):
        if in_service[e]:
            a, b = root(parent, branch_from[e]), root(parent, branch_to[e])
            parent[max(a, b)] = min(a, b)
    fed = np.zeros(len(source), np.bool_)
    for b in range(len(source)):
        if source[b]:
            fed[root(parent, b)] = True
    out = np.zeros(len(source), np.bool_)
    for b in range(len(source)):
        out[b] = not fed[root(parent, b)]
    return out


@compiled
def root(parent, b):
    while parent[b] != b:
        parent[b] = parent[parent[b]]
        b = parent[b]
    return b
