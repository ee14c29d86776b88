"""How moved quantities and what they are moved for go together, at one point of a topology.

The Schur complement M = D - C inv(J) B of the Jacobian, bordered by K buses with limits; see
`limited_chord`.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.lanes import fill, store, width
from gridshift.grid.kernels.steps import substitute


@compiled
def sensitivities(lanes, solving, symbolic, point, limits, place, slope, work, out):
    """Fill `out` (`Sensitivity`) at a point, W columns of the matrix at a time.

    `place` (B,) is the number of each bus with limits that the point holds, -1 for others, and
    `slope` (2 B,) how specified powers grow with the relative magnitudes.
    """
    w = width(lanes)
    derivatives(symbolic, point, limits, slope, out)
    for first in range(0, len(limits.bus), w):
        count = min(w, len(limits.bus) - first)
        for q in range(symbolic.num_unknowns):
            store(work.residual, q * w, fill(solving, 0.0))
        fill_columns(w, symbolic, point, place, slope, first, work.residual)
        for k in range(count):
            node = limits.node[first + k]
            if symbolic.node_size[node] == 2:
                work.residual[(symbolic.node_first[node] + 1) * w + k] = -1.0
        substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
        for j in range(len(limits.bus)):
            for k in range(count):
                out.matrix[j, first + k] = entry(w, k, j, first + k, symbolic, limits, place, work,
                                                 out)  # fmt: skip


@compiled
def entry(w, k, j, column, symbolic, limits, place, work, out):
    """One number of the matrix, from a column of inv(J) B in lane k."""
    node = limits.node[j]
    if symbolic.node_size[node] == 2:
        return -work.residual[(symbolic.node_first[node] + 1) * w + k]
    r, total = limits.row[j], 0.0
    for e in range(symbolic.row_ptr[r], symbolic.row_ptr[r + 1]):
        if place[symbolic.entry_bus[e]] == column:
            total += out.magnitude[e]
        node = symbolic.entry_node[e]
        if node >= 0:
            at = symbolic.node_first[node] * w + k
            total -= out.angle[e] * work.residual[at]
            if symbolic.node_size[node] == 2:
                total -= out.magnitude[e] * work.residual[at + w]
    return total


@compiled
def share(symbolic, point, home, e):
    """Active and reactive part of v_i conj(y_ik v_k), one entry's share of bus i's power."""
    v_re, v_im = point.voltage[2 * home], point.voltage[2 * home + 1]
    bus = symbolic.entry_bus[e]
    u_re, u_im = point.voltage[2 * bus], point.voltage[2 * bus + 1]
    g, b = point.admittance[2 * e], point.admittance[2 * e + 1]
    i_re, i_im = g * u_re - b * u_im, g * u_im + b * u_re
    return v_re * i_re + v_im * i_im, v_im * i_re - v_re * i_im


@compiled
def derivatives(symbolic, point, limits, slope, out):
    """Derivatives of the reactive power at PV rows, and by the magnitudes there.

    As in `steps.jacobian`, own ones included.
    """
    for r in range(symbolic.num_pv):
        home = symbolic.node_bus[symbolic.row_node[r]]
        p_sum, q_sum, own = 0.0, 0.0, -1
        for e in range(symbolic.row_ptr[r], symbolic.row_ptr[r + 1]):
            p, q = share(symbolic, point, home, e)
            p_sum, q_sum = p_sum + p, q_sum + q
            out.angle[e], out.magnitude[e] = -p, q
            out.active[e], out.reactive[e] = transposed(symbolic, point, limits, home, e)
            if symbolic.entry_bus[e] == home:
                own = e
        if own >= 0:
            out.angle[own] += p_sum
            out.magnitude[own] += q_sum - slope[2 * home + 1]
            out.active[own] += p_sum - slope[2 * home]


@compiled
def transposed(symbolic, point, limits, home, e):
    """The share of `home` in the power of the entry's bus: 0 where that is a slack bus."""
    node = symbolic.entry_node[e]
    if node < 0:
        return 0.0, 0.0
    bus = symbolic.node_bus[node]
    r = limits.row_of[node]
    for other in range(symbolic.row_ptr[r], symbolic.row_ptr[r + 1]):
        if symbolic.entry_bus[other] == home:
            return share(symbolic, point, bus, other)
    return 0.0, 0.0


@compiled
def fill_columns(w, symbolic, point, place, slope, first, residual):
    """Derivatives of all specified power by the magnitudes of W held buses from `first` on."""
    for r in range(len(symbolic.row_node)):
        node = symbolic.row_node[r]
        home, at = symbolic.node_bus[node], symbolic.node_first[node] * w
        p_sum, own = 0.0, -1
        for e in range(symbolic.row_ptr[r], symbolic.row_ptr[r + 1]):
            p, q = share(symbolic, point, home, e)
            p_sum += p
            k = place[symbolic.entry_bus[e]] - first
            if 0 <= k < w and place[symbolic.entry_bus[e]] >= 0:
                residual[at + k] += p
                if symbolic.node_size[node] == 2:
                    residual[at + w + k] += q
                if symbolic.entry_bus[e] == home:
                    own = k
        if own >= 0:
            residual[at + own] += p_sum - slope[2 * home]
