"""Chord iteration over blocks of W scenarios of one topology.

A thread takes a range of blocks and writes its rows in place. Lanes that have converged are frozen
bit for bit, so that a row's numbers don't depend on its neighbours.

Kernels share a few named tuples (`gridshift.grid.workspace`): `batch` is what is to be solved,
`stopping` until when, `work` one block's workspace, `out` room for all rows' results.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import larger, muladd, mulsub, peak, reactive_power
from gridshift.grid.kernels.dependent import specify_at_voltage, subtract_parts
from gridshift.grid.kernels.flows import branch_loading, branch_powers, retained
from gridshift.grid.kernels.lanes import convert, element, fill, load, store, width
from gridshift.grid.kernels.rows import columns_to_lanes, scatter
from gridshift.grid.kernels.steps import apply_step, at_bus, power_balance, substitute

HOPELESS = 1e16
"""Multiple of the tolerance from which on a mismatch isn't worth another step."""


@compiled
def chord(
    lanes, solving, batch, branches, stopping, work, out, first_block, last_block,
):  # fmt: skip
    """Chord iteration of all rows of some blocks from one topology's solved nominal point.

    Writes every row of `out.voltage`, whether converged or not, and `out.mismatch` tells. Branch
    powers and loading are written where `out` has room for them.
    """
    w = width(lanes)
    rows = len(batch.load_p)
    for block in range(first_block, last_block):
        start = block * w
        count = min(w, rows - start)
        begin_at_nominal(lanes, solving, batch, start, work)
        solve_block(lanes, solving, batch, stopping, work, out, start, count)
        if len(out.powers):
            branch_powers(lanes, branches, work.voltage, work.tile)
            scatter(lanes, work.tile, out.powers, start, count)
        if len(out.loading):
            branch_loading(lanes, branches, work.voltage, work.tile)
            scatter(lanes, work.tile, out.loading, start, count)


@compiled
def solve_block(lanes, solving, batch, stopping, work, out, start, count):
    """Solve the rows of one block from where it begins and write what came of them."""
    chord_steps(lanes, solving, batch, stopping, work)
    write_state(lanes, batch, work, out, start, count)
    write_excess(lanes, batch, work, out, start, count)


@compiled
def chord_steps(lanes, solving, batch, stopping, work):
    """Newton's iteration with one Jacobian for all steps and all lanes, that of the nominal point.

    J0 s = f(v) for the step s of angles and relative magnitudes, v moved by s, and again. The
    mismatch f is computed in double precision and the step in single: a step that is wrong by 1e-7
    of itself costs convergence no more than J0 being wrong for v does. The distance to the solution
    falls by a constant factor, about |1 - J0^-1 J|, which Anderson's acceleration makes smaller.
    Starts from voltages and residuals in the workspace; leaves voltage, mismatch and steps there.
    """
    w = width(lanes)
    begin_lanes(w, work)
    for step in range(stopping.max_steps + 1):
        if not freeze(w, stopping.tolerance, step, work) or step == stopping.max_steps:
            break
        take_step(lanes, solving, batch, stopping, step, work)


@compiled
def begin_lanes(w, work):
    """All lanes are active and have taken no step."""
    for k in range(w):
        work.active[k] = 1.0
        work.steps[k] = 0


@compiled
def take_step(lanes, solving, batch, stopping, step, work):
    """One chord step of the active lanes from the residual there is, and the residual after it."""
    symbolic, point = batch.symbolic, batch.point
    substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
    if step >= stopping.accelerate_from:
        accelerate(solving, symbolic, step == stopping.accelerate_from, work)
    apply_step(lanes, solving, symbolic, batch.set_point, False, work)
    power_balance(lanes, solving, symbolic, point.admittance, work)


@compiled
def freeze(w, tolerance, step, work):
    """Mark converged and hopeless lanes inactive; whether any is left."""
    left = False
    for k in range(w):
        if work.active[k] == 1.0:
            work.steps[k] = step
            if work.mismatch[k] <= tolerance or not work.mismatch[k] < HOPELESS * tolerance:
                work.active[k] = 0.0
            else:
                left = True
    return left


@compiled
def begin_at_nominal(lanes, solving, batch, start, work):
    """Voltages of the nominal point, powers of the rows' loads, and the residual of both."""
    specify_power(lanes, batch, start, work)
    at_nominal(lanes, solving, batch, work)


@compiled
def at_nominal(lanes, solving, batch, work):
    """Voltages of the nominal point, and the residual there; powers are given.

    At the nominal point the computed powers are known: no need to walk the network.
    """
    w = width(lanes)
    symbolic, point = batch.symbolic, batch.point
    for q in range(len(point.voltage)):
        store(work.voltage, q * w, fill(lanes, element(point.voltage, q)))
    specify_at_voltage(lanes, symbolic, work.voltage, work.power)
    largest = fill(lanes, 0.0)
    for i in range(len(symbolic.node_bus)):
        q = 2 * element(symbolic.node_bus, i)
        to = element(symbolic.node_first, i) * w
        for part in range(element(symbolic.node_size, i)):
            computed = fill(lanes, element(point.power, q + part))
            off = load(lanes, work.power, (q + part) * w) - computed
            largest = peak(off, largest)
            store(work.residual, to + part * w, convert(solving, off))
    store(work.mismatch, 0, largest)


@compiled
def begin_from_intact(lanes, solving, batch, intact, block, work):
    """Voltages of the same scenarios on the intact grid, moved as the outage moves the nominal
    point; powers of the rows' loads, and the residual of both.

    What the loads do and what the outage does add up but for their interaction, which is all that
    is left for the steps.
    """
    w = width(lanes)
    for q in range(0, len(work.power), w):
        store(work.power, q, load(lanes, intact.power, block * len(work.power) + q))
    for r in range(len(intact.apart)):
        q = 2 * element(intact.apart, r) * w
        store(work.power, q, fill(lanes, 0.0))
        store(work.power, q + w, fill(lanes, 0.0))
    for bus in range(len(batch.set_point)):
        q = 2 * bus
        turn_re = fill(lanes, element(intact.turn, q))
        turn_im = fill(lanes, element(intact.turn, q + 1))
        at = (block * len(intact.turn) + q) * w
        v_re, v_im = load(lanes, intact.voltage, at), load(lanes, intact.voltage, at + w)
        store(work.voltage, q * w, mulsub(turn_im, v_im, turn_re * v_re))
        store(work.voltage, q * w + w, muladd(turn_im, v_re, turn_re * v_im))
    power_balance(lanes, solving, batch.symbolic, batch.point.admittance, work)


@compiled
def specify_power(lanes, batch, start, work):
    """power := what is scheduled at each bus minus the rows' loads, at 1 p.u. and in parts."""
    w = width(lanes)
    for q in range(len(batch.scheduled)):
        store(work.power, q * w, fill(lanes, element(batch.scheduled, q)))
    more = batch.dependence
    subtract(lanes, batch.load_bus, batch.load_p, start, 0, work)
    subtract_parts(lanes, more, more.active, 0, work.tile, work.power)
    subtract(lanes, batch.load_bus, batch.load_q, start, w, work)
    subtract_parts(lanes, more, more.reactive, 1, work.tile, work.power)


@compiled
def subtract(lanes, load_bus, demand, start, part, work):
    """power := power - demand, of the rows from `start` on; `part` is 0 or W, active or not."""
    w = width(lanes)
    columns_to_lanes(w, demand, start, len(demand) - 1, work.tile)
    for j in range(demand.shape[1]):
        at = element(load_bus, j) * (2 * w) + part
        store(work.power, at, load(lanes, work.power, at) - load(lanes, work.tile, j * w))


@compiled
def accelerate(solving, symbolic, first, work):
    """Anderson acceleration with a memory of one step (Walker and Ni, 2011), lane by lane.

    With d the chord step, h the step taken before and D the chord step before: take
    d - c (h + d - D), where c minimises |d - c (d - D)|. Both are kept for the next time.
    """
    w = width(solving)
    n = element(symbolic.node_first, len(symbolic.node_bus))
    if first:
        for q in range(n):
            d = load(solving, work.residual, q * w)
            store(work.chord_step, q * w, d)
            store(work.taken_step, q * w, d)
        return
    mix(solving, n, mixture(solving, n, work), work)


@compiled
def mixture(solving, n, work):
    """The c of `accelerate`, lane by lane."""
    w = width(solving)
    along, length = fill(solving, 0.0), fill(solving, 1e-30)
    for q in range(n):
        d = load(solving, work.residual, q * w)
        change = d - load(solving, work.chord_step, q * w)
        along = muladd(change, d, along)
        length = muladd(change, change, length)
    return along / length


@compiled
def mix(solving, n, c, work):
    """residual := the step of `accelerate` with this c; both steps are kept."""
    w = width(solving)
    for q in range(n):
        d = load(solving, work.residual, q * w)
        h = load(solving, work.taken_step, q * w) + (d - load(solving, work.chord_step, q * w))
        step = mulsub(c, h, d)
        store(work.chord_step, q * w, d)
        store(work.taken_step, q * w, step)
        store(work.residual, q * w, step)


@compiled
def write_state(lanes, batch, work, out, start, count):
    """Mismatch, steps and retained voltage of the first `count` lanes, and voltages if asked."""
    for k in range(count):
        out.mismatch[start + k] = work.mismatch[k]
        out.steps[start + k] = work.steps[k]
    retained(lanes, batch.symbolic, batch.point.voltage, work.voltage, work.mismatch)
    for k in range(count):
        out.retained[start + k] = work.mismatch[k]
    if len(out.voltage):
        scatter(lanes, work.voltage, out.voltage, start, count)


@compiled
def write_excess(lanes, batch, work, out, start, count):
    """`excess` of the first `count` lanes, if asked."""
    if len(out.excess):
        excess(lanes, batch, work)
        for k in range(count):
            out.excess[start + k] = work.mismatch[k]


@compiled
def excess(lanes, batch, work):
    """mismatch := by how much the reactive power at the worst PV bus exceeds its limits, p.u.

    Negative where none does. `work.power` holds what everything but the generators injects there.
    """
    w = width(lanes)
    symbolic, admittance = batch.symbolic, batch.point.admittance
    worst = fill(lanes, -1e300)
    for r in range(symbolic.num_pv):
        at, v_re, v_im, re, im = at_bus(lanes, symbolic, admittance, r, work.voltage)
        given = reactive_power(v_re, v_im, re, im) - load(lanes, work.power, at + w)
        worst = larger(given - fill(lanes, element(batch.limits, 2 * r + 1)), worst)
        worst = larger(fill(lanes, element(batch.limits, 2 * r)) - given, worst)
    store(work.mismatch, 0, worst)
