"""Newton's method in lanes that each carry their own topology, loads and factors."""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels.chord import freeze
from gridshift.grid.kernels.flows import lowest
from gridshift.grid.kernels.lanes import element, fill, load, muladd, store, width
from gridshift.grid.kernels.steps import (
    compiled,
    factorise,
    jacobian,
    mismatch,
    substitute,
    turn,
)

MAX_HALVINGS = 7
STANDSTILL = 0.99
"""A damped step that leaves more than this share of the sum of squares ends a lane: rows without a
solution come to rest where no step helps, and would spend all their halvings there again and again.
"""


@compiled
def newton(lanes, p, num_pv, set_point, damped, renewals, tol, max_steps, work):
    """Iterate all lanes of the workspace, whose admittance, power and voltage are filled.

    With `damped`, a step is halved in the lanes where it would not lower the sum of squared
    mismatches, and a lane ends where halving no longer helps. Leaves voltage, worst, steps, and the
    growth of the last factorisation. Factors are made anew in the first `renewals` steps.
    """
    w = width(lanes)
    for k in range(w):
        work.active[k] = 1.0
        work.steps[k] = 0
    look(lanes, p, num_pv, work)
    for step in range(max_steps + 1):
        if not freeze(w, tol, step, work) or step == max_steps:
            break
        copy(lanes, work.active, work.share)
        if damped:
            squares(lanes, work.residual, work.before)
            copy(lanes, work.voltage, work.start)
        if step < renewals:
            jacobian(lanes, p, work.admittance, work.voltage, work.factors)
            factorise(lanes, p, work.factors, work.growth)
        substitute(lanes, p, work.lower, work.diagonal, work.upper, work.residual)
        if damped:
            copy(lanes, work.residual, work.step)
            for _ in range(MAX_HALVINGS + 1):
                copy(lanes, work.start, work.voltage)
                turn(lanes, lanes, p, work.step, work.share, set_point, True, work.voltage)
                look(lanes, p, num_pv, work)
                if not shorten(lanes, work):
                    break
            rest(lanes, work)
        else:
            turn(lanes, lanes, p, work.residual, work.share, set_point, True, work.voltage)
            look(lanes, p, num_pv, work)


@compiled
def copy(lanes, source, target):
    w = width(lanes)
    for q in range(len(source) // w):
        store(target, q * w, load(lanes, source, q * w))


@compiled
def look(lanes, p, num_pv, work):
    mismatch(
        lanes,
        lanes,
        p,
        num_pv,
        work.admittance,
        work.voltage,
        work.power,
        work.residual,
        work.worst,
    )


@compiled
def shorten(lanes, work):
    """Halve the share of the step where it did not help; whether any lane was."""
    squares(lanes, work.residual, work.after)
    again = False
    for k in range(width(lanes)):
        if work.share[k] > 0.0 and not work.after[k] < work.before[k]:
            work.share[k] *= 0.5
            again = True
    return again


@compiled
def rest(lanes, work):
    """End the lanes that came no nearer; what `shorten` measured last is still there."""
    for k in range(width(lanes)):
        if work.active[k] == 1.0 and not work.after[k] < STANDSTILL * work.before[k]:
            work.active[k] = 0.0
            work.steps[k] += 1


@compiled
def squares(lanes, residual, out):
    total = fill(lanes, 0.0)
    w = width(lanes)
    for q in range(len(residual) // w):
        r = load(lanes, residual, q * w)
        total = muladd(r, r, total)
    store(out, 0, total)


@compiled
def newton_topologies(
    lanes, p, num_pv, removed_ptr, removed, power, start, set_point, damped, renewals, tol,
    max_steps, keep, work, out, first_block, last_block,
):  # fmt: skip
    """The nominal point of many topologies, W at a time; `keep` their factors as well."""
    w = width(lanes)
    topologies = len(removed_ptr) - 1
    for block in range(first_block, last_block):
        first = block * w
        count = min(w, topologies - first)
        for e in range(len(p.part_ptr) - 1):
            add_parts(lanes, p, e, work.admittance)
        for k in range(w):
            t = first + min(k, count - 1)
            remove(p, removed_ptr[t], removed_ptr[t + 1], removed, k, work.admittance)
        for q in range(len(power)):
            store(work.power, q * w, fill(lanes, element(power, q)))
            store(work.voltage, q * w, fill(lanes, element(start, q)))
        newton(lanes, p, num_pv, set_point, damped, renewals, tol, max_steps, work)
        for k in range(count):
            out.worst[first + k] = work.worst[k]
            out.steps[first + k] = work.steps[k]
            out.growth[first + k] = work.growth[k]
            for q in range(len(power)):
                out.voltage[first + k, q] = work.voltage[q * w + k]
        lowest(lanes, p, work.voltage, work.before)
        for k in range(count):
            out.lowest[first + k] = work.before[k]
        if keep:
            jacobian(lanes, p, work.admittance, work.voltage, work.factors)
            factorise(lanes, p, work.factors, work.growth)
            for k in range(count):
                export(p, w, k, first + k, work, out)


@compiled
def add_parts(lanes, p, e, admittance):
    """The entry as the intact grid has it, in all lanes."""
    w = width(lanes)
    re, im = 0.0, 0.0
    for c in range(p.part_ptr[e], p.part_ptr[e + 1]):
        re += p.part_value[2 * c]
        im += p.part_value[2 * c + 1]
    store(admittance, 2 * e * w, fill(lanes, re))
    store(admittance, (2 * e + 1) * w, fill(lanes, im))


@compiled
def remove(p, begin, end, removed, lane, admittance):
    """Sum the touched entries anew without the removed branches: no rounding is left behind."""
    for r in range(begin, end):
        for corner in range(4):
            e = p.branch_entry[removed[r], corner]
            if e < 0:
                continue
            re, im = 0.0, 0.0
            for c in range(p.part_ptr[e], p.part_ptr[e + 1]):
                gone = False
                for other in range(begin, end):
                    gone = gone or p.part_branch[c] == removed[other]
                if not gone:
                    re += p.part_value[2 * c]
                    im += p.part_value[2 * c + 1]
            admittance[2 * e, lane] = re
            admittance[2 * e + 1, lane] = im


@compiled
def export(p, w, lane, t, work, out):
    """Copy one lane's factors, admittances and computed powers to topology t."""
    for q in range(len(work.factors)):
        out.factors[t, q] = work.factors[q, lane]
    for q in range(len(work.admittance)):
        out.admittance[t, q] = work.admittance[q, lane]
    for q in range(out.power.shape[1]):
        out.power[t, q] = 0.0
    for i in range(len(p.node_bus)):
        q, u = 2 * p.node_bus[i], p.node_first[i]
        for part in range(p.node_size[i]):
            out.power[t, q + part] = (
                work.power[(q + part) * w + lane] - work.residual[(u + part) * w + lane]
            )
    out.growth[t] = work.growth[lane]


@compiled
def newton_rows(
    lanes, p, num_pv, point, load_bus, scheduled, set_point, load_p, load_q, rows, near, damped,
    tol, max_steps, work, out, first_block, last_block,
):  # fmt: skip
    """Full Newton for chosen rows of one topology.

    A row starts from the voltage it has in `out.voltage` if that is near a solution (worst mismatch
    below `near`), from the topology's nominal point otherwise.
    """
    w = width(lanes)
    for block in range(first_block, last_block):
        first = block * w
        count = min(w, len(rows) - first)
        for q in range(len(point.admittance)):
            store(work.admittance, q * w, fill(lanes, element(point.admittance, q)))
        for q in range(len(scheduled)):
            store(work.power, q * w, fill(lanes, element(scheduled, q)))
            store(work.voltage, q * w, fill(lanes, element(point.voltage, q)))
        for k in range(w):
            row = rows[first + min(k, count - 1)]
            if out.worst[row] < near:
                for q in range(len(scheduled)):
                    work.voltage[q * w + k] = out.voltage[row, q]
            for j in range(len(load_bus)):
                at = load_bus[j] * 2 * w + k
                work.power[at] -= load_p[row, j]
                work.power[at + w] -= load_q[row, j]
        newton(lanes, p, num_pv, set_point, damped, max_steps, tol, max_steps, work)
        for k in range(count):
            row = rows[first + k]
            out.worst[row] = work.worst[k]
            out.steps[row] += work.steps[k]
            out.growth[row] = work.growth[k]
            for q in range(len(scheduled)):
                out.voltage[row, q] = work.voltage[q * w + k]
        lowest(lanes, p, work.voltage, work.worst)
        for k in range(count):
            out.lowest[rows[first + k]] = work.worst[k]
