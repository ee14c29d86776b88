"""Newton's method in lanes with buses that change kind where a reactive limit is reached.

Every bus whose generators have a limit has two unknowns here, angle and magnitude. Lane by lane its
second equation is one of two: the magnitude is the set-point (held), or the reactive power is at a
limit. Which one, is decided anew whenever the mismatch is small; so the method is Newton's on the
complementarity problem (a semismooth one; Qi, Sun, A nonsmooth version of Newton's method, 1993).
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import larger, muladd, mulsub, peak
from gridshift.grid.kernels.chord import HOPELESS, begin_lanes
from gridshift.grid.kernels.lanes import element, fill, load, store, width
from gridshift.grid.kernels.newton import fill_admittance, orientation
from gridshift.grid.kernels.rows import columns_to_lanes, scatter
from gridshift.grid.kernels.steps import (
    apply_step,
    factorise,
    fill_jacobian,
    power_balance,
    substitute,
)

STALLS = 6
"""Steps that don't halve a mismatch after which a row is given up."""


@compiled
def limited_states(lanes, batch, limits, rule, work, held, out, first_block, last_block):
    """Solve many states of one topology, W at a time, each with its own powers, limits and start.

    As `newton_states`; `limits` says which buses have limits and how kinds change, `held` has room
    for what is known of them lane by lane.
    """
    w = width(lanes)
    symbolic = batch.symbolic
    states = len(out.mismatch)
    for block in range(first_block, last_block):
        first = block * w
        count = min(w, states - first)
        if block == first_block:
            fill_admittance(lanes, batch, first, count, work.admittance)
        last = len(batch.power) - 1
        columns_to_lanes(w, batch.power, min(first, last), last, work.power)
        last = len(batch.start) - 1
        columns_to_lanes(w, batch.start, min(first, last), last, work.voltage)
        for q in range(2 * len(limits.bus)):
            store(held.range, q * w, fill(lanes, element(limits.range, q)))
        newton(lanes, batch, limits, rule, work, held)
        fill_jacobian(lanes, symbolic, work)
        hold_rows(lanes, symbolic, limits, held, work.factors)
        factorise(lanes, symbolic, work.factors, work.growth)
        orientation(w, symbolic, work.diagonal, work.active)
        write_rows(lanes, work, held, out, first, count)
        for k in range(count):
            out.growth[first + k] = work.growth[k]
            out.orientation[first + k] = work.active[k]


@compiled
def write_rows(lanes, work, held, out, first, count):
    """Voltages and sides of the first `count` lanes, and how they ended."""
    scatter(lanes, work.voltage, out.voltage, first, count)
    scatter(lanes, held.side, out.side, first, count)
    for k in range(count):
        out.mismatch[first + k] = work.mismatch[k]
        out.steps[first + k] = work.steps[k]
        out.settled[first + k] = held.settled[k]


@compiled
def newton(lanes, batch, limits, rule, work, held):
    """Iterate all lanes until each is balanced with every bus on the right side of its limits."""
    w = width(lanes)
    symbolic = batch.symbolic
    begin_lanes(w, work)
    for k in range(w):
        held.rounds[k] = 0
    sides(w, limits.bus, limits.apart, batch.set_point, work.voltage, held.range, held.side,
          held.fixed, held.limit)  # fmt: skip
    power_balance(lanes, lanes, symbolic, work.admittance, work)
    take_given(lanes, symbolic, limits, work, held)
    hold(lanes, symbolic, limits, batch.set_point, work, held)
    for step in range(rule.max_steps + 1):
        if change_kinds(lanes, limits, rule.tolerance, batch.set_point, work, held):
            hold(lanes, symbolic, limits, batch.set_point, work, held)
        end_stalled(w, step, work, held)
        left = still_active(w, rule.tolerance, step, work, held)
        if not left or step == rule.max_steps:
            break
        fill_jacobian(lanes, symbolic, work)
        hold_rows(lanes, symbolic, limits, held, work.factors)
        factorise(lanes, symbolic, work.factors, work.growth)
        substitute(lanes, symbolic, work.lower, work.diagonal, work.upper, work.residual)
        apply_step(lanes, lanes, symbolic, batch.set_point, True, work)
        power_balance(lanes, lanes, symbolic, work.admittance, work)
        take_given(lanes, symbolic, limits, work, held)
        hold(lanes, symbolic, limits, batch.set_point, work, held)


@compiled
def still_active(w, tolerance, step, work, held):
    """End lanes that are settled and balanced, and hopeless ones; whether any is left."""
    left = False
    for k in range(w):
        if work.active[k] == 1.0:
            work.steps[k] = step
            good = held.settled[k] and work.mismatch[k] <= tolerance
            if good or not work.mismatch[k] < HOPELESS * tolerance:
                work.active[k] = 0.0
            else:
                left = True
    return left


@compiled
def end_stalled(w, step, work, held):
    """End lanes whose mismatch steps no longer halve, `STALLS` of them with the same kinds."""
    for k in range(w):
        if step == 0 or held.changed[k]:
            held.stalls[k] = 0
        elif not work.mismatch[k] <= 0.5 * work.previous_mismatch[k]:
            held.stalls[k] += 1
        work.previous_mismatch[k] = work.mismatch[k]
        if held.stalls[k] == STALLS and not held.settled[k]:
            work.active[k] = 0.0


@compiled
def sides(w, buses, apart, set_point, voltage, limits, side, fixed, limit):
    """Sides at the start: a bus below its set-point is at its upper limit, one above at its lower.

    Source: complementarity; with voltages of a solution these are its sides.
    """
    for j in range(len(buses)):
        bus = buses[j]
        target = set_point[bus] * set_point[bus]
        for k in range(w):
            re, im = voltage[2 * bus * w + k], voltage[(2 * bus + 1) * w + k]
            off, at = (re * re + im * im) / target - 1.0, j * w + k
            side[at], fixed[at], limit[at] = 0.0, 0.0, 0.0
            if off < -apart:
                side[at], fixed[at], limit[at] = 1.0, 1.0, limits[(2 * j + 1) * w + k]
            elif off > apart:
                side[at], fixed[at], limit[at] = -1.0, 1.0, limits[2 * j * w + k]


@compiled
def take_given(lanes, symbolic, limits, work, held):
    """given := reactive power of the generators at each bus with limits, from its residual."""
    w = width(lanes)
    for j in range(len(limits.bus)):
        at = element(symbolic.node_first, element(limits.node, j)) * w + w
        store(held.given, j * w, fill(lanes, 0.0) - load(lanes, work.residual, at))


@compiled
def hold(lanes, symbolic, limits, set_point, work, held):
    """The second residual of each bus with limits, by its side; mismatch := the largest of all."""
    w = width(lanes)
    for j in range(len(limits.bus)):
        at = element(symbolic.node_first, element(limits.node, j)) * w + w
        store(work.residual, at, second_residual(lanes, j, limits, set_point, work, held))
    largest = fill(lanes, 0.0)
    for q in range(element(symbolic.node_first, len(symbolic.node_bus))):
        largest = peak(load(lanes, work.residual, q * w), largest)
    store(work.mismatch, 0, largest)


@compiled
def second_residual(lanes, j, limits, set_point, work, held):
    """At a limit what is missing to it; held, the stretch that brings the magnitude to the
    set-point, by one step of Newton's method on its square."""
    w = width(lanes)
    one, half = fill(lanes, 1.0), fill(lanes, 0.5)
    bus = element(limits.bus, j)
    v_re = load(lanes, work.voltage, bus * (2 * w))
    v_im = load(lanes, work.voltage, bus * (2 * w) + w)
    target = fill(lanes, element(set_point, bus) * element(set_point, bus))
    stretch = half * (target / muladd(v_re, v_re, v_im * v_im)) - half
    fixed = load(lanes, held.fixed, j * w)
    short = load(lanes, held.limit, j * w) - load(lanes, held.given, j * w)
    return muladd(fixed, short, (one - fixed) * stretch)


@compiled
def hold_rows(lanes, symbolic, limits, held, factors):
    """The second row of each bus with limits, in lanes where it is held: magnitude by itself."""
    w = width(lanes)
    one = fill(lanes, 1.0)
    for j in range(len(limits.bus)):
        fixed = load(lanes, held.fixed, j * w)
        home, r = element(limits.bus, j), element(limits.row, j)
        for e in range(element(symbolic.row_ptr, r), element(symbolic.row_ptr, r + 1)):
            place = element(symbolic.entry_block, e)
            if element(symbolic.entry_bus, e) == home or place < 0:
                continue
            at = place * w + w
            store(factors, at, fixed * load(lanes, factors, at))
            if element(symbolic.node_size, element(symbolic.entry_node, e)) == 2:
                store(factors, at + 2 * w, fixed * load(lanes, factors, at + 2 * w))
        at = element(symbolic.diagonal_at, element(limits.node, j)) * w + w
        store(factors, at, fixed * load(lanes, factors, at))
        at += 2 * w
        store(factors, at, muladd(fixed, load(lanes, factors, at), one - fixed))


@compiled
def change_kinds(lanes, limits, tolerance, set_point, work, held):
    """Sides of the lanes that are near enough to a balance; whether any has changed, and
    `held.changed` says which lanes.

    A held bus beyond a limit goes to it; one at a limit whose voltage is on the wrong side of its
    set-point is held again. All at once in the first rounds, as that is fast; then one in a round,
    the furthest off, as that can't go in circles for long; and none after the last round.
    """
    w = width(lanes)
    wanted = False
    for k in range(w):
        held.changed[k] = False
        near = tolerance if held.rounds[k] >= limits.together else limits.near
        if work.active[k] == 1.0:
            held.settled[k] = work.mismatch[k] <= near  # for now: one to be looked at
            wanted = wanted or held.settled[k]
    if not wanted:
        return False
    wrong_side(lanes, limits, set_point, held, work)
    changed = False
    for k in range(w):
        if work.active[k] != 1.0 or not held.settled[k] or not held.worst[k] > tolerance:
            continue
        held.settled[k] = False
        if held.rounds[k] == limits.most_rounds:
            work.active[k] = 0.0
            continue
        least = held.worst[k] if held.rounds[k] >= limits.together else tolerance
        change(w, k, len(limits.bus), least, tolerance, held.wrong, held.given, held.range,
               held.side, held.fixed, held.limit)  # fmt: skip
        held.rounds[k] += 1
        held.changed[k] = changed = True
    return changed


@compiled
def wrong_side(lanes, limits, set_point, held, work):
    """wrong := how far each bus is off its side, negative where it isn't; worst := the largest.

    In p.u. of reactive power where it is held, of voltage at a limit.
    """
    w = width(lanes)
    one, half = fill(lanes, 1.0), fill(lanes, 0.5)
    worst = fill(lanes, -1.0)
    for j in range(len(limits.bus)):
        bus = element(limits.bus, j)
        v_re = load(lanes, work.voltage, bus * (2 * w))
        v_im = load(lanes, work.voltage, bus * (2 * w) + w)
        inverse = fill(lanes, 1.0 / (element(set_point, bus) * element(set_point, bus)))
        above = half * mulsub(one, one, muladd(v_re, v_re, v_im * v_im) * inverse)
        given = load(lanes, held.given, j * w)
        low, high = load(lanes, held.range, 2 * j * w), load(lanes, held.range, (2 * j + 1) * w)
        beyond = larger(given - high, low - given)
        fixed = load(lanes, held.fixed, j * w)
        off = muladd(load(lanes, held.side, j * w), above, (one - fixed) * beyond)
        store(held.wrong, j * w, off)
        worst = larger(off, worst)
    store(held.worst, 0, worst)


@compiled
def change(w, k, number, least, tolerance, wrong, given, limits, side, fixed, limit):
    """Buses of lane k that are off their side by more than the tolerance, and at least so much."""
    for j in range(number):
        at = j * w + k
        if not (wrong[at] > tolerance and wrong[at] >= least):
            continue
        if side[at] != 0.0:
            side[at], fixed[at], limit[at] = 0.0, 0.0, 0.0
        else:
            high = limits[(2 * j + 1) * w + k]
            above = given[at] > high
            side[at], fixed[at] = 1.0 if above else -1.0, 1.0
            limit[at] = high if above else limits[2 * j * w + k]
