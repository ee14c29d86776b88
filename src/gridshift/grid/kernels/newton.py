"""Newton's method in lanes that each carry their own topology, loads and factors.

All lanes share the sparsity pattern: a branch that a topology lacks is a zero in it, so that one
elimination order, and one sequence of instructions, serves all lanes.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.chord import begin_lanes, freeze
from gridshift.grid.kernels.lanes import fill, store, width
from gridshift.grid.kernels.rows import columns_to_lanes, scatter
from gridshift.grid.kernels.steps import (
    apply_step,
    factorise,
    fill_jacobian,
    power_balance,
    substitute,
)


@compiled
def newton(lanes, symbolic, set_point, rule, work):
    """Iterate all lanes of the workspace, whose admittance, power and voltage are filled.

    Solves J s = f for the step s of angles and relative magnitudes and moves every voltage by it,
    until each lane's mismatch f is below the tolerance. Factors are made anew in the first
    `renewals` steps and kept after that. With `brisk` a lane ends where its mismatch no longer
    halves. Leaves voltage, mismatch and steps; returns whether factors were made.
    """
    w = width(lanes)
    begin_lanes(w, work)
    factored = False
    power_balance(lanes, lanes, symbolic, work.admittance, work)
    for step in range(rule.max_steps + 1):
        left = freeze(w, rule.tolerance, step, work)
        if rule.brisk and left:
            left = falling(w, step, work)
        if not left or step == rule.max_steps:
            break
        if step < rule.renewals:
            fill_jacobian(lanes, symbolic, work)
            factorise(lanes, symbolic, work.factors, work.growth)
            factored = True
        substitute(lanes, symbolic, work.lower, work.diagonal, work.upper, work.residual)
        apply_step(lanes, lanes, symbolic, set_point, True, work)
        power_balance(lanes, lanes, symbolic, work.admittance, work)
    return factored


@compiled
def falling(w, step, work):
    """End lanes whose mismatch has not halved in a step after the second; whether any is left.

    Where two roots meet, Newton's method still divides it by four; where there is none, it wanders.
    """
    left = False
    for k in range(w):
        if step > 2 and not work.mismatch[k] < 0.5 * work.previous_mismatch[k]:
            work.active[k] = 0.0
        work.previous_mismatch[k] = work.mismatch[k]
        left = left or work.active[k] == 1.0
    return left


@compiled
def orientation(w, symbolic, diagonal, out):
    """out (W,) := sign of the Jacobian's determinant, which is that of the product of its pivots.

    It changes where the operating root and a low-voltage root meet, at the nose of the voltage
    curve. The inverses of the pivots, which `diagonal` holds, have their signs.
    """
    for k in range(w):
        out[k] = 1.0
    d = 0
    for i in range(len(symbolic.node_bus)):
        for k in range(w):
            pivot = diagonal[d, k]
            if symbolic.node_size[i] == 2:
                pivot = pivot * diagonal[d + 3, k] - diagonal[d + 1, k] * diagonal[d + 2, k]
            if not pivot > 0.0:
                out[k] = -out[k] if pivot < 0.0 else 0.0
        d += 4 if symbolic.node_size[i] == 2 else 1


@compiled
def newton_states(lanes, batch, rule, work, out, first_block, last_block):
    """Solve many states, W at a time, each with its own topology, powers and starting voltage.

    State t lacks the branches `removed[removed_ptr[t]:removed_ptr[t + 1]]`. Topologies, powers and
    starts are one for each state, or one for all. With `finish` the last factors, and so the
    orientation, are those of the voltage reached; with `keep` they are written as well.
    """
    w = width(lanes)
    symbolic, power, start = batch.symbolic, batch.power, batch.start
    states = len(out.mismatch)
    for block in range(first_block, last_block):
        first = block * w
        count = min(w, states - first)
        if block == first_block or len(batch.removed_ptr) > 2:
            fill_admittance(lanes, batch, first, count, work.admittance)
        columns_to_lanes(w, power, min(first, len(power) - 1), len(power) - 1, work.power)
        columns_to_lanes(w, start, min(first, len(start) - 1), len(start) - 1, work.voltage)
        factored = newton(lanes, symbolic, batch.set_point, rule, work)
        solved = False
        for k in range(count):
            out.mismatch[first + k] = work.mismatch[k]
            out.steps[first + k] = work.steps[k]
            solved = solved or work.mismatch[k] <= rule.tolerance
        scatter(lanes, work.voltage, out.voltage, first, count)
        if rule.keep or (rule.finish and solved) or not factored:
            fill_jacobian(lanes, symbolic, work)
            factorise(lanes, symbolic, work.factors, work.growth)
        orientation(w, symbolic, work.diagonal, work.active)
        for k in range(count):
            out.growth[first + k] = work.growth[k]
            out.orientation[first + k] = work.active[k]
            if rule.keep:
                export(symbolic, w, k, first + k, work, out)


@compiled
def fill_admittance(lanes, batch, first, count, admittance):
    """Admittances of the topologies of a block's states, lane by lane."""
    w = width(lanes)
    for e in range(len(batch.symbolic.part_ptr) - 1):
        add_parts(lanes, batch.symbolic, e, admittance)
    for k in range(w):
        t = min(first + min(k, count - 1), len(batch.removed_ptr) - 2)
        begin, end = batch.removed_ptr[t], batch.removed_ptr[t + 1]
        remove(batch.symbolic, begin, end, batch.removed, k, admittance)


@compiled
def add_parts(lanes, symbolic, e, admittance):
    """The entry as the intact grid has it, in all lanes."""
    w = width(lanes)
    re, im = 0.0, 0.0
    for c in range(symbolic.part_ptr[e], symbolic.part_ptr[e + 1]):
        re += symbolic.part_value[2 * c]
        im += symbolic.part_value[2 * c + 1]
    store(admittance, 2 * e * w, fill(lanes, re))
    store(admittance, (2 * e + 1) * w, fill(lanes, im))


@compiled
def remove(symbolic, begin, end, removed, lane, admittance):
    """Sum the touched entries anew without the removed branches: no rounding is left behind.

    Where no branch is left the shunt goes as well: nothing leads to that bus.
    """
    for r in range(begin, end):
        for corner in range(4):
            e = symbolic.branch_entry[removed[r], corner]
            if e < 0:
                continue
            re, im, left = 0.0, 0.0, False
            for c in range(symbolic.part_ptr[e], symbolic.part_ptr[e + 1]):
                gone = False
                for other in range(begin, end):
                    gone = gone or symbolic.part_branch[c] == removed[other]
                if not gone:
                    left = left or symbolic.part_branch[c] >= 0
                    re += symbolic.part_value[2 * c]
                    im += symbolic.part_value[2 * c + 1]
            admittance[2 * e, lane] = re if left else 0.0
            admittance[2 * e + 1, lane] = im if left else 0.0


@compiled
def export(symbolic, w, lane, t, work, out):
    """Copy one lane's factors, admittances and computed powers to topology t."""
    for q in range(len(work.factors)):
        out.factors[t, q] = work.factors[q, lane]
    for q in range(len(work.admittance)):
        out.admittance[t, q] = work.admittance[q, lane]
    for q in range(out.power.shape[1]):
        out.power[t, q] = 0.0
    for i in range(len(symbolic.node_bus)):
        q, u = 2 * symbolic.node_bus[i], symbolic.node_first[i]
        for part in range(symbolic.node_size[i]):
            out.power[t, q + part] = (
                work.power[(q + part) * w + lane] - work.residual[(u + part) * w + lane]
            )
