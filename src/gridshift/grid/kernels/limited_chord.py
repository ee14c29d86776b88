"""Chord steps with buses that change kind where a reactive limit is reached, W rows at a time.

The factors are those of one point of the topology, where every bus with limits is either held at
its set-point or gives a limit. A row that differs at some of them keeps the factors and moves what
is specified there: the set-point of a bus that the point holds until its generators give the limit,
and the reactive power of a bus that the point has at a limit until its voltage is the set-point.
How moved quantities and their targets go together is one small dense matrix for each point, the
Schur complement M = D - C inv(J) B; a lane needs the part of it that belongs to its moved buses.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import active_power, peak, reactive_power
from gridshift.grid.kernels.chord import at_nominal, mix, mixture, specify_power
from gridshift.grid.kernels.dependent import specify_at_voltage
from gridshift.grid.kernels.flows import retained
from gridshift.grid.kernels.lanes import convert, element, fill, load, store, width
from gridshift.grid.kernels.limited_moves import chord_moves, shorts, take_moves, take_parts
from gridshift.grid.kernels.reactive import change_kinds, sides, still_active, write_rows
from gridshift.grid.kernels.rows import columns_to_lanes
from gridshift.grid.kernels.shared_chord import (
    begin_sharing,
    move_imbalance,
    share,
    slack_balance,
)
from gridshift.grid.kernels.steps import apply_step, current, substitute


@compiled
def limited_chord(
    lanes, solving, batch, start, limits, sensitivity, sharing, stopping, work, held, moved,
    shared, out, first_block, last_block,
):  # fmt: skip
    """Chord steps of rows from voltages `start`, (R, 2 B), which tell sides as well, or from the
    point itself (0, 2 B).

    With `sharing` and `shared`, which may be None, generators share the imbalances in `out`, which
    are replaced by those found: as `shared_chord` they are moved before each step, which takes what
    moved quantities make of the slack bus's balance into account with the next one.
    Rows whose `settled` is false or whose mismatch is above the tolerance at the end are left over.
    """
    w = width(lanes)
    states = len(out.mismatch)
    for q in range(2 * len(limits.bus)):
        store(held.range, q * w, fill(lanes, element(limits.range, q)))
    for block in range(first_block, last_block):
        first = block * w
        count = min(w, states - first)
        specify_power(lanes, batch, first, work)
        if sharing is not None:
            begin_sharing(lanes, solving, sharing, first, out.imbalance, work, shared)
        if len(start):
            last = len(start) - 1
            columns_to_lanes(w, start, min(first, last), last, work.voltage)
            sides(w, limits.bus, limits.apart, batch.set_point, work.voltage, held.range, held.side,
                  held.fixed, held.limit)  # fmt: skip
        else:
            at_nominal(lanes, solving, batch, work)
            point_sides(lanes, batch, limits, held)
        begin(lanes, solving, batch, limits, work, held, moved)
        if len(start):
            balance(lanes, solving, batch.symbolic, batch.point.admittance, limits, work, held)
        for k in range(w):
            work.active[k] = 1.0
            held.changed[k] = True
            held.rounds[k] = 0
            held.settled[k] = False
        take_parts(w, batch, limits, sensitivity.matrix, held, work, moved)
        steps(lanes, solving, batch, limits, sensitivity, sharing, stopping, len(start) == 0, work,
              held, moved, shared)  # fmt: skip
        write_rows(lanes, sharing, work, held, shared, out, first, count)
        retained(lanes, batch.symbolic, batch.point.voltage, work.voltage, work.mismatch)
        for k in range(count):
            out.retained[first + k] = work.mismatch[k]


@compiled
def point_sides(lanes, batch, limits, held):
    """Sides of all lanes at the point."""
    w = width(lanes)
    voltage = batch.point.voltage
    for j in range(len(limits.bus)):
        bus = element(limits.bus, j)
        re, im = element(voltage, 2 * bus), element(voltage, 2 * bus + 1)
        own = element(batch.set_point, bus)
        off = (re * re + im * im) / (own * own) - 1.0
        side, fixed, limit = 0.0, 0.0, 0.0
        if off < -limits.apart:
            side, fixed, limit = 1.0, 1.0, element(limits.range, 2 * j + 1)
        elif off > limits.apart:
            side, fixed, limit = -1.0, 1.0, element(limits.range, 2 * j)
        store(held.side, j * w, fill(lanes, side))
        store(held.fixed, j * w, fill(lanes, fixed))
        store(held.limit, j * w, fill(lanes, limit))
        store(held.given, j * w, fill(lanes, limit))  # until it is computed


@compiled
def begin(lanes, solving, batch, limits, work, held, moved):
    """Moved quantities as they stand: set-points of buses at limits, power of held ones."""
    w = width(lanes)
    for q in range(batch.symbolic.num_unknowns):  # another row's may be no numbers
        store(work.chord_step, q * w, fill(solving, 0.0))
        store(work.taken_step, q * w, fill(solving, 0.0))
    for bus in range(len(batch.set_point)):
        store(moved.set_point, bus * w, fill(lanes, element(batch.set_point, bus)))
    for j in range(len(limits.bus)):
        bus = element(limits.bus, j)
        store(moved.power, j * w, fill(lanes, element(limits.at_point, j)))
        if element(batch.symbolic.node_size, element(limits.node, j)) == 2:
            continue
        for k in range(w):
            if held.side[j * w + k] != 0.0:
                re, im = work.voltage[2 * bus * w + k], work.voltage[(2 * bus + 1) * w + k]
                moved.set_point[bus, k] = (re * re + im * im) ** 0.5


@compiled
def steps(
    lanes, solving, batch, limits, sensitivity, sharing, stopping, at_point, work, held, moved,
    shared,
):  # fmt: skip
    """Iterate all lanes until each is balanced with every bus on the right side of its limits.

    Those that start `at_point` keep its sides in the first step.
    """
    w = width(lanes)
    symbolic, point = batch.symbolic, batch.point
    for k in range(w):
        work.steps[k] = 0
    for step in range(stopping.max_steps + 1):
        if step:
            balance(lanes, solving, symbolic, point.admittance, limits, work, held)
        if sharing is not None:
            slack_balance(lanes, sharing, work, shared)
        shorts(w, batch.set_point, symbolic, limits, work, held, moved)
        given_at_pq(lanes, solving, symbolic, limits, work, held, moved)
        known = not (at_point and step == 0)
        if known and change_kinds(lanes, limits, stopping.tolerance, batch.set_point, work, held):
            take_parts(w, batch, limits, sensitivity.matrix, held, work, moved)
            shorts(w, batch.set_point, symbolic, limits, work, held, moved)
        if not still_active(w, stopping.tolerance, step, work, held) or step == stopping.max_steps:
            break
        if sharing is not None:
            move_imbalance(lanes, solving, symbolic, sharing, work, shared)
            share(lanes, solving, sharing, work, shared)
        substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
        if any_moved(w, work, moved):
            for q in range(symbolic.num_unknowns):
                store(moved.change, q * w, fill(solving, 0.0))
            chord_moves(w, symbolic, limits, sensitivity, work, moved)
            substitute(solving, symbolic, point.lower, point.diagonal, point.upper, moved.change)
            for q in range(symbolic.num_unknowns):
                x = load(solving, work.residual, q * w) - load(solving, moved.change, q * w)
                store(work.residual, q * w, x)
        accelerate(solving, symbolic, stopping.accelerate_from, work, moved)
        take_moves(w, symbolic, limits, work, moved)
        apply_step(lanes, solving, symbolic, moved.set_point, False, work)


@compiled
def balance(lanes, solving, symbolic, admittance, limits, work, held):
    """As `steps.power_balance`; given := reactive power of the generators at PV buses."""
    w = width(lanes)
    largest = fill(lanes, 0.0)
    specify_at_voltage(lanes, symbolic, work.voltage, work.power)
    for r in range(len(symbolic.row_node)):
        node = element(symbolic.row_node, r)
        first, last = element(symbolic.row_ptr, r), element(symbolic.row_ptr, r + 1)
        re, im = current(lanes, first, last, symbolic.entry_bus, admittance, work.voltage)
        at = element(symbolic.node_bus, node) * (2 * w)
        to = element(symbolic.node_first, node) * w
        v_re = load(lanes, work.voltage, at)
        v_im = load(lanes, work.voltage, at + w)
        active = load(lanes, work.power, at) - active_power(v_re, v_im, re, im)
        reactive = load(lanes, work.power, at + w) - reactive_power(v_re, v_im, re, im)
        largest = peak(active, largest)
        store(work.residual, to, convert(solving, active))
        if r >= symbolic.num_pv:
            largest = peak(reactive, largest)
            store(work.residual, to + w, convert(solving, reactive))
        elif element(limits.number, r) >= 0:
            store(held.given, element(limits.number, r) * w, fill(lanes, 0.0) - reactive)
    store(work.mismatch, 0, largest)


@compiled
def given_at_pq(lanes, solving, symbolic, limits, work, held, moved):
    """given := reactive power of the generators at buses that the point has at a limit."""
    w = width(lanes)
    for j in range(len(limits.bus)):
        node = element(limits.node, j)
        if element(symbolic.node_size, node) == 2:
            at = element(symbolic.node_first, node) * w + w
            short = convert(lanes, load(solving, work.residual, at))
            store(held.given, j * w, load(lanes, moved.power, j * w) - short)


@compiled
def any_moved(w, work, moved):
    """Whether an active lane has moved buses."""
    found = False
    for k in range(w):
        found = found or (work.active[k] == 1.0 and moved.count[k] > 0)
    return found


@compiled
def accelerate(solving, symbolic, begin, work, moved):
    """As `chord.accelerate`; a lane starts anew when its kinds change, and `begin` steps later."""
    w = width(solving)
    n = symbolic.num_unknowns
    store(moved.mix, 0, mixture(solving, n, work))
    for k in range(w):
        if moved.age[k] < begin:
            moved.mix[k] = 0.0
        moved.age[k] += 1
    mix(solving, n, load(solving, moved.mix, 0), work)
