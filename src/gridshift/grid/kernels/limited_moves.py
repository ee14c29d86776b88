"""Moved buses, lane by lane: which they are, what they miss, by how much they move.

See `limited_chord`. Lanes differ in their moved buses, so these are plain loops.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled

LARGEST_MOVE = 0.1
"""Largest relative change of a set-point in one step."""


@compiled
def shorts(w, set_point, symbolic, limits, work, held, moved):
    """short := what is missing at each moved bus; the mismatch counts it.

    Reactive power to the limit, or the stretch that brings the magnitude to the set-point, by one
    step of Newton's method on its square.
    """
    for k in range(w):
        for a in range(moved.count[k]):
            j = moved.at[k, a]
            if symbolic.node_size[limits.node[j]] == 1:
                off = held.limit[j * w + k] - held.given[j * w + k]
            else:
                bus = limits.bus[j]
                re, im = work.voltage[2 * bus * w + k], work.voltage[(2 * bus + 1) * w + k]
                off = 0.5 * (set_point[bus] * set_point[bus] / (re * re + im * im) - 1.0)
            moved.short[k, a] = off
            if not abs(off) <= work.mismatch[k]:
                work.mismatch[k] = abs(off)


@compiled
def take_parts(w, batch, limits, matrix, held, work, moved):
    """Moved buses of the changed lanes, and factors of their part of the sensitivities.

    Buses that are as at the point have their set-point or limit; a lane without factors ends.
    Elimination needs no pivots where raising any set-points raises what is given there, as on the
    operating branch: then any choice of moved quantities has positive pivots.
    """
    symbolic, most = batch.symbolic, moved.at.shape[1]
    for k in range(w):
        if not held.changed[k]:
            continue
        moved.age[k] = 0
        a = 0
        for j in range(len(limits.bus)):
            bus, node, side = limits.bus[j], limits.node[j], held.side[j * w + k]
            at_limit = symbolic.node_size[node] == 2
            if at_limit == (side == 0.0):
                if a < most:
                    moved.at[k, a] = j
                a += 1
            elif not at_limit:
                moved.set_point[bus, k] = batch.set_point[bus]
            else:
                by = held.limit[j * w + k] - moved.power[j * w + k]
                if by != 0.0:
                    add_power(w, k, j, by, symbolic, limits, work, moved)
                    at = (symbolic.node_first[node] + 1) * w + k
                    work.residual[at] += by
                    if not abs(work.residual[at]) <= work.mismatch[k]:
                        work.mismatch[k] = abs(work.residual[at])
        moved.count[k] = min(a, most)
        if a > most or not factors_of(moved.count[k], moved.at[k], matrix, moved.factors[k]):
            work.active[k] = 0.0


@compiled
def add_power(w, k, j, by, symbolic, limits, work, moved):
    """Specify so much more reactive power at a bus that the point has at a limit, in its constant
    part where it has parts."""
    moved.power[j * w + k] += by
    at = 2 * limits.bus[j] + 1
    work.power[at * w + k] += by
    if limits.constant[j] != at:
        work.power[limits.constant[j] * w + k] += by


@compiled
def factors_of(count, at, matrix, part):
    """part := triangular factors of some rows and columns of a matrix; whether pivots are sound."""
    for i in range(count):
        for j in range(count):
            part[i, j] = matrix[at[i], at[j]]
    for i in range(count):
        if not part[i, i] > 0.0:
            return False
        inverse = 1.0 / part[i, i]
        for r in range(i + 1, count):
            factor = part[r, i] * inverse
            part[r, i] = factor
            for j in range(i + 1, count):
                part[r, j] -= factor * part[i, j]
    return True


@compiled
def chord_moves(w, symbolic, limits, sensitivity, work, moved):
    """step := by how much each lane's quantities move, for the step in `residual`.

    `change` := by how much this changes the power at other buses.
    """
    row, row_ptr, entry_node = limits.row, symbolic.row_ptr, symbolic.entry_node
    node_first, node_size = symbolic.node_first, symbolic.node_size
    residual, change = work.residual, moved.change
    for k in range(w):
        count = moved.count[k] if work.active[k] == 1.0 else 0
        part, numbers, step = moved.factors[k], moved.at[k], moved.step[k]
        for a in range(count):
            j = numbers[a]
            off = moved.short[k, a]
            own = limits.node[j]
            if node_size[own] == 2:
                off -= residual[(node_first[own] + 1) * w + k]
            else:
                for e in range(row_ptr[row[j]], row_ptr[row[j] + 1]):
                    node = entry_node[e]
                    if node >= 0:
                        at = node_first[node] * w + k
                        off -= sensitivity.angle[e] * residual[at]
                        if node_size[node] == 2:
                            off -= sensitivity.magnitude[e] * residual[at + w]
            for b in range(a):
                off -= part[a, b] * step[b]
            step[a] = off
        for a in range(count - 1, -1, -1):
            off = step[a]
            for b in range(a + 1, count):
                off -= part[a, b] * step[b]
            step[a] = off / part[a, a]
        for a in range(count):
            j = numbers[a]
            own = limits.node[j]
            if node_size[own] == 2:
                change[(node_first[own] + 1) * w + k] -= step[a]
                continue
            by = min(max(step[a], -LARGEST_MOVE), LARGEST_MOVE)
            step[a] = by
            for e in range(row_ptr[row[j]], row_ptr[row[j] + 1]):
                node = entry_node[e]
                if node >= 0:
                    at = node_first[node] * w + k
                    change[at] += sensitivity.active[e] * by
                    if node_size[node] == 2:
                        change[at + w] += sensitivity.reactive[e] * by


@compiled
def take_moves(w, symbolic, limits, work, moved):
    """Move the lanes' quantities, accelerated as their steps are."""
    for k in range(w):
        if work.active[k] != 1.0:
            continue
        c = moved.mix[k]
        for a in range(moved.count[k]):
            d = moved.step[k, a]
            by = d
            if c != 0.0:
                by -= c * (moved.taken[k, a] + d - moved.chord[k, a])
            moved.chord[k, a], moved.taken[k, a] = d, by
            j = moved.at[k, a]
            if symbolic.node_size[limits.node[j]] == 2:
                add_power(w, k, j, by, symbolic, limits, work, moved)
            else:
                moved.set_point[limits.bus[j], k] *= 1.0 + by
