"""Power balance of given states, in lanes, and chord steps that start from them.

A state is a row of polar voltages, as a surrogate predicts them. Sines and cosines are computed in
lanes here, because numpy's alone take longer than an exact solve.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels.chord import columns_to_lanes, freeze, remember, scatter, subtract
from gridshift.grid.kernels.flows import retained
from gridshift.grid.kernels.lanes import (
    absolute,
    coefficient,
    convert,
    element,
    fill,
    larger,
    load,
    muladd,
    mulsub,
    square_root,
    store,
    width,
)
from gridshift.grid.kernels.steps import compiled, mismatch, substitute, turn

ROUND = 6755399441055744.0
"""1.5 * 2**52: adding and subtracting it rounds to the nearest integer."""
TURN_HIGH, TURN_LOW = 6.283185307179586, 2.4492935982947064e-16
"""2 pi in two parts."""


@compiled
def chord_from(
    lanes, solving, p, num_pv, point, load_bus, scheduled, set_point, state, load_p, load_q,
    tol, max_steps, accelerate_from, work, out, first_block, last_block,
):  # fmt: skip
    """Mismatch of every given state, then chord steps with the topology's factors from there.

    Writes of the state as given `out.given` (largest mismatch), `out.bus` (where; -1 if there is no
    number) and `out.norm` (the paper's definition); with steps allowed `out.worst` and `out.steps`;
    of the last state `out.retained`, and voltages where `out` has room for them.
    """
    w = width(lanes)
    rows = len(load_p)
    for block in range(first_block, last_block):
        start = block * w
        count = min(w, rows - start)
        for q in range(len(scheduled)):
            store(work.power, q * w, fill(lanes, element(scheduled, q)))
        subtract(lanes, load_bus, load_p, start, rows - 1, 0, work)
        subtract(lanes, load_bus, load_q, start, rows - 1, w, work)
        columns_to_lanes(w, state.values, start, rows - 1, work.tile)
        place(lanes, set_point, point.voltage, state, work)
        mismatch(
            lanes, solving, p, num_pv, point.admittance, work.voltage, work.power, work.residual,
            work.worst,
        )  # fmt: skip
        for k in range(count):
            out.given[start + k] = work.worst[k]
        reactive_of_generators(lanes, solving, p, num_pv, point.admittance, state, work)
        largest(lanes, solving, p, num_pv, work)
        for k in range(count):
            out.norm[start + k] = work.active[k]
            node = work.taken[k]
            out.bus[start + k] = p.node_bus[int(node)] if node >= 0.0 else -1
        if max_steps > 0:
            for k in range(w):
                work.active[k] = 1.0
                work.steps[k] = 0
            step = 0
            while freeze(w, tol, step, work) and step < max_steps:
                substitute(solving, p, point.lower, point.diagonal, point.upper, work.residual)
                if step >= accelerate_from:
                    remember(lanes, solving, p, step == accelerate_from, work)
                turn(lanes, solving, p, work.residual, work.active, set_point, False, work.voltage)
                mismatch(
                    lanes, solving, p, num_pv, point.admittance, work.voltage, work.power,
                    work.residual, work.worst,
                )  # fmt: skip
                step += 1
            for k in range(count):
                out.worst[start + k] = work.worst[k]
                out.steps[start + k] = work.steps[k]
        retained(lanes, p, point.voltage, work.voltage, work.worst)
        for k in range(count):
            out.retained[start + k] = work.worst[k]
        if len(out.voltage):
            scatter(lanes, work.voltage, out.voltage, start, count)


@compiled
def place(lanes, set_point, nominal, state, work):
    """Voltages of the states in the tile: given magnitudes and angles, the grid's own elsewhere."""
    w = width(lanes)
    for bus in range(len(set_point)):
        at = element(state.angle_at, bus)
        if at < 0:
            store(work.voltage, 2 * bus * w, fill(lanes, element(nominal, 2 * bus)))
            store(work.voltage, (2 * bus + 1) * w, fill(lanes, element(nominal, 2 * bus + 1)))
            continue
        cosine, sine = cosine_and_sine(lanes, load(lanes, work.tile, at * w))
        at = element(state.magnitude_at, bus)
        if at < 0:
            magnitude = fill(lanes, element(set_point, bus))
        else:
            magnitude = load(lanes, work.tile, at * w)
        store(work.voltage, 2 * bus * w, magnitude * cosine)
        store(work.voltage, (2 * bus + 1) * w, magnitude * sine)


@compiled
def cosine_and_sine(lanes, angle):
    """Series at an eighth of the angle (below 0.4 rad), then three doublings: a few last digits."""
    one, big = fill(lanes, 1.0), fill(lanes, ROUND)
    turns = (angle * fill(lanes, 1.0 / TURN_HIGH) + big) - big
    angle = mulsub(turns, fill(lanes, TURN_LOW), mulsub(turns, fill(lanes, TURN_HIGH), angle))
    x = angle * fill(lanes, 0.125)
    s = x * x
    c = muladd(s, fill(lanes, 1.0 / 479001600.0), fill(lanes, -1.0 / 3628800.0))
    c = muladd(s, c, fill(lanes, 1.0 / 40320.0))
    c = muladd(s, c, fill(lanes, -1.0 / 720.0))
    c = muladd(s, c, fill(lanes, 1.0 / 24.0))
    c = muladd(s, c, fill(lanes, -0.5))
    c = muladd(s, c, one)
    d = muladd(s, fill(lanes, 1.0 / 6227020800.0), fill(lanes, -1.0 / 39916800.0))
    d = muladd(s, d, fill(lanes, 1.0 / 362880.0))
    d = muladd(s, d, fill(lanes, -1.0 / 5040.0))
    d = muladd(s, d, fill(lanes, 1.0 / 120.0))
    d = muladd(s, d, fill(lanes, -1.0 / 6.0))
    d = muladd(s, d, one) * x
    for _ in range(3):
        both = c * d
        c = mulsub(d, d, c * c)
        d = both + both
    return c, d


@compiled
def reactive_of_generators(lanes, solving, p, num_pv, admittance, state, work):
    """plain := scheduled minus computed reactive power of PV rows, with the state's generation.

    Zero where the state says nothing of it.
    """
    w = width(lanes)
    for r in range(num_pv):
        bus = element(p.node_bus, element(p.row_node, r))
        at = element(state.reactive_at, bus)
        if at < 0:
            store(work.plain, r * w, fill(solving, 0.0))
            continue
        re, im = fill(lanes, 0.0), fill(lanes, 0.0)
        for e in range(element(p.row_ptr, r), element(p.row_ptr, r + 1)):
            other = element(p.entry_bus, e) * (2 * w)
            g = coefficient(lanes, admittance, 2 * e)
            b = coefficient(lanes, admittance, 2 * e + 1)
            v_re, v_im = load(lanes, work.voltage, other), load(lanes, work.voltage, other + w)
            re = mulsub(b, v_im, muladd(g, v_re, re))
            im = muladd(b, v_re, muladd(g, v_im, im))
        own = 2 * bus * w
        v_re, v_im = load(lanes, work.voltage, own), load(lanes, work.voltage, own + w)
        off = load(lanes, work.power, own + w) + load(lanes, work.tile, at * w)
        store(work.plain, r * w, convert(solving, off - mulsub(v_re, im, v_im * re)))


@compiled
def largest(lanes, solving, p, num_pv, work):
    """active := largest sqrt(dP^2 + dQ^2) over buses; taken[0] := node of the largest mismatch.

    The node is a running maximum too: its number where the mismatch is the largest one, to the
    last digit, and far below zero everywhere else.
    """
    w = width(lanes)
    far = fill(solving, 1e30)
    top = convert(solving, load(lanes, work.worst, 0))
    norm, node = fill(solving, 0.0), fill(solving, -1.0)
    for r in range(len(p.row_node)):
        i = element(p.row_node, r)
        at = element(p.node_first, i) * w
        active = load(solving, work.residual, at)
        other = (
            load(solving, work.residual, at + w)
            if r >= num_pv
            else load(solving, work.plain, r * w)
        )
        norm = larger(muladd(active, active, other * other), norm)
        worst = larger(absolute(active), absolute(other)) if r >= num_pv else absolute(active)
        node = larger(muladd(worst - top, far, fill(solving, float(i))), node)
    store(work.active, 0, convert(lanes, square_root(norm)))
    store(work.taken, 0, node)
