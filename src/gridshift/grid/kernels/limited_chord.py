"""Chord steps with buses that change kind where a reactive limit is reached, W rows at a time.

The factors are those of the topology's nominal point, where every PV bus is held. A bus at a limit
is held all the same, but at a set-point of its lane's own, which is moved until its generators give
what the limit says. How set-points and reactive powers go together is one small dense matrix for
each topology, the Schur complement S = D - C inv(J) B of the Jacobian with a magnitude at every bus
with limits; a lane needs the part of it that belongs to its buses at limits.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels.chord import specify_power
from gridshift.grid.kernels.flows import retained
from gridshift.grid.kernels.lanes import (
    element,
    fill,
    load,
    muladd,
    peak,
    square_root,
    store,
    width,
)
from gridshift.grid.kernels.reactive import change_kinds, second_residual, sides, still_active
from gridshift.grid.kernels.rows import columns_to_lanes, scatter
from gridshift.grid.kernels.steps import (
    apply_step,
    compiled,
    current,
    power_balance,
    reactive_power,
    substitute,
)

LARGEST_MOVE = 0.1
"""Largest relative change of a set-point in one step."""


@compiled
def limited_chord(
    lanes, solving, batch, start, limits, sensitivity, stopping, work, held, moved, out,
    first_block, last_block,
):  # fmt: skip
    """Chord steps of rows from voltages `start`, (R, 2 B) or (1, 2 B), which tell sides as well.

    Rows whose `settled` is false or whose mismatch is above the tolerance at the end are left over.
    """
    w = width(lanes)
    states = len(out.mismatch)
    for block in range(first_block, last_block):
        first = block * w
        count = min(w, states - first)
        last = len(start) - 1
        columns_to_lanes(w, start, min(first, last), last, work.voltage)
        for q in range(2 * len(limits.bus)):
            store(held.range, q * w, fill(lanes, element(limits.range, q)))
        specify_power(lanes, batch, first, work)
        begin(lanes, batch, limits, sensitivity, work, held, moved)
        steps(lanes, solving, batch, limits, sensitivity, stopping, work, held, moved)
        scatter(lanes, work.voltage, out.voltage, first, count)
        scatter(lanes, held.side, out.side, first, count)
        for k in range(count):
            out.mismatch[first + k] = work.mismatch[k]
            out.steps[first + k] = work.steps[k]
            out.settled[first + k] = held.settled[k]
        retained(lanes, batch.symbolic, batch.point.voltage, work.voltage, work.mismatch)
        for k in range(count):
            out.retained[first + k] = work.mismatch[k]


@compiled
def begin(lanes, batch, limits, sensitivity, work, held, moved):
    """Sides from voltages; set-points of buses at limits are as they stand."""
    w = width(lanes)
    sides(w, limits.bus, limits.apart, batch.set_point, work.voltage, held.range, held.side,
          held.fixed, held.limit)  # fmt: skip
    for bus in range(len(batch.set_point)):
        store(moved.set_point, bus * w, fill(lanes, element(batch.set_point, bus)))
    for j in range(len(limits.bus)):
        bus = element(limits.bus, j)
        v_re = load(lanes, work.voltage, bus * (2 * w))
        v_im = load(lanes, work.voltage, bus * (2 * w) + w)
        fixed, own = load(lanes, held.fixed, j * w), load(lanes, moved.set_point, bus * w)
        off = square_root(muladd(v_re, v_re, v_im * v_im)) - own
        store(moved.set_point, bus * w, muladd(fixed, off, own))
    for k in range(w):
        work.active[k] = 1.0
        held.changed[k] = True
    take_parts(w, batch.set_point, limits.bus, sensitivity.matrix, held.side, held.changed,
               work.active, moved)  # fmt: skip


@compiled
def steps(lanes, solving, batch, limits, sensitivity, stopping, work, held, moved):
    """Iterate all lanes until each is balanced with every bus on the right side of its limits."""
    w = width(lanes)
    symbolic, point = batch.symbolic, batch.point
    for k in range(w):
        work.steps[k] = 0
        held.rounds[k] = 0
    for step in range(stopping.max_steps + 1):
        power_balance(lanes, solving, symbolic, point.admittance, work)
        store(moved.balance, 0, load(lanes, work.mismatch, 0))
        take_given(lanes, symbolic, point.admittance, limits, work, held)
        balance_limits(lanes, limits, batch.set_point, work, held, moved)
        if change_kinds(lanes, limits, stopping.tolerance, batch.set_point, work, held):
            take_parts(
                w,
                batch.set_point,
                limits.bus,
                sensitivity.matrix,
                held.side,
                held.changed,
                work.active,
                moved,
            )
            balance_limits(lanes, limits, batch.set_point, work, held, moved)
        if not still_active(w, stopping.tolerance, step, work, held) or step == stopping.max_steps:
            break
        substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
        for q in range(symbolic.num_unknowns):
            store(work.chord_step, q * w, fill(solving, 0.0))
        move(w, symbolic, limits, sensitivity, work, moved)
        substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.chord_step)
        for q in range(symbolic.num_unknowns):
            x = load(solving, work.residual, q * w) - load(solving, work.chord_step, q * w)
            store(work.residual, q * w, x)
        apply_step(lanes, solving, symbolic, moved.set_point, False, work)


@compiled
def take_given(lanes, symbolic, admittance, limits, work, held):
    """given := reactive power of the generators at each bus with limits."""
    w = width(lanes)
    for j in range(len(limits.bus)):
        r, at = element(limits.row, j), element(limits.bus, j) * (2 * w)
        first, last = element(symbolic.row_ptr, r), element(symbolic.row_ptr, r + 1)
        re, im = current(lanes, first, last, symbolic.entry_bus, admittance, work.voltage)
        v_re, v_im = load(lanes, work.voltage, at), load(lanes, work.voltage, at + w)
        given = reactive_power(v_re, v_im, re, im) - load(lanes, work.power, at + w)
        store(held.given, j * w, given)


@compiled
def balance_limits(lanes, limits, set_point, work, held, moved):
    """short := the second residual of each bus with limits; mismatch := the largest of all."""
    w = width(lanes)
    largest = load(lanes, moved.balance, 0)
    for j in range(len(limits.bus)):
        off = second_residual(lanes, j, limits, set_point, work, held)
        largest = peak(off, largest)
        store(moved.short, j * w, off)
    store(work.mismatch, 0, largest)


@compiled
def take_parts(w, set_point, buses, matrix, side, changed, active, moved):
    """Factors of the changed lanes' parts of the sensitivities; a lane without them ends.

    A bus that is held again has its set-point back. Elimination needs no pivots where raising any
    set-points raises what is given there, as on the operating branch.
    """
    most = moved.at.shape[1]
    for k in range(w):
        if not changed[k]:
            continue
        a = 0
        for j in range(len(buses)):
            if side[j * w + k] == 0.0:
                moved.set_point[buses[j], k] = set_point[buses[j]]
            else:
                if a < most:
                    moved.at[k, a] = j
                a += 1
        moved.count[k] = min(a, most)
        if a > most or not factors_of(moved.count[k], moved.at[k], matrix, moved.factors[k]):
            active[k] = 0.0


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
def move(w, symbolic, limits, sensitivity, work, moved):
    """Move the set-points of the lanes' buses at limits, for the step in `residual`.

    Adds to `chord_step` by how much this changes the power at other buses.
    """
    row, bus, step = limits.row, limits.bus, moved.step
    row_ptr, entry_node = symbolic.row_ptr, symbolic.entry_node
    node_first, node_size = symbolic.node_first, symbolic.node_size
    residual, change = work.residual, work.chord_step
    for k in range(w):
        count = moved.count[k] if work.active[k] == 1.0 else 0
        part, numbers = moved.factors[k], moved.at[k]
        for a in range(count):
            j = numbers[a]
            off = moved.short[j * w + k]
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
            by = min(max(step[a], -LARGEST_MOVE), LARGEST_MOVE)
            moved.set_point[bus[j], k] *= 1.0 + by
            for e in range(row_ptr[row[j]], row_ptr[row[j] + 1]):
                node = entry_node[e]
                if node >= 0:
                    at = node_first[node] * w + k
                    change[at] += sensitivity.active[e] * by
                    if node_size[node] == 2:
                        change[at + w] += sensitivity.reactive[e] * by


@compiled
def sensitivities(lanes, solving, symbolic, point, limits, place, work, out):
    """Fill `out` (`Sensitivity`) at a topology's nominal point, W columns of the matrix at a time.

    `place` (B,) is the number of each bus with limits, -1 for others.
    """
    w = width(lanes)
    derivatives(symbolic, point, limits, out)
    for first in range(0, len(limits.bus), w):
        for q in range(symbolic.num_unknowns):
            store(work.residual, q * w, fill(solving, 0.0))
        fill_columns(w, symbolic, point, place, first, work.residual)
        substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
        for j in range(len(limits.bus)):
            r = limits.row[j]
            for k in range(min(w, len(limits.bus) - first)):
                total = 0.0
                for e in range(symbolic.row_ptr[r], symbolic.row_ptr[r + 1]):
                    if place[symbolic.entry_bus[e]] == first + k:
                        total += out.magnitude[e]
                    node = symbolic.entry_node[e]
                    if node >= 0:
                        at = symbolic.node_first[node] * w + k
                        total -= out.angle[e] * work.residual[at]
                        if symbolic.node_size[node] == 2:
                            total -= out.magnitude[e] * work.residual[at + w]
                out.matrix[j, first + k] = total


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
def derivatives(symbolic, point, limits, out):
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
            out.magnitude[own] += q_sum
            out.active[own] += p_sum


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
def fill_columns(w, symbolic, point, place, first, residual):
    """Derivatives of all specified power by the magnitudes of W buses with limits from `first`."""
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
            residual[at + own] += p_sum
