"""Power balance of given states, in lanes, and chord steps that start from them.

A state is a row of polar voltages, as a surrogate predicts them.

Its balance is that of the solver, and the paper's definition beside it. Its repair goes on from
where it is, with the factors of the nominal point. Sines and cosines are computed in lanes here,
because numpy's alone take longer than an exact solve.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import (
    absolute,
    larger,
    muladd,
    mulsub,
    reactive_power,
    square_root,
)
from gridshift.grid.kernels.chord import chord_steps, specify_power, write_state
from gridshift.grid.kernels.lanes import convert, element, fill, load, store, width
from gridshift.grid.kernels.rows import columns_to_lanes
from gridshift.grid.kernels.steps import at_bus, power_balance

ROUND = 6755399441055744.0
"""1.5 * 2**52: adding and subtracting it rounds to the nearest integer."""
TURN_HIGH, TURN_LOW = 6.283185307179586, 2.4492935982947064e-16
"""2 pi in two parts."""


@compiled
def chord_from(
    lanes, solving, batch, state, stopping, work, out, first_block, last_block,
):  # fmt: skip
    """Mismatch of every given state, then chord steps with the topology's factors from there.

    Writes of the state as given `out.bus` (where the largest mismatch is; -1 if there is no number)
    and `out.norm` (the paper's definition); of the last state, the given one where no steps are
    allowed, `out.mismatch`, `out.steps`, `out.retained`, and voltages where `out` has room.
    """
    w = width(lanes)
    symbolic, point = batch.symbolic, batch.point
    rows = len(batch.load_p)
    for block in range(first_block, last_block):
        start = block * w
        count = min(w, rows - start)
        specify_power(lanes, batch, start, work)
        columns_to_lanes(w, state.values, start, rows - 1, work.tile)
        given_voltages(lanes, batch.set_point, point.voltage, state, work)
        power_balance(lanes, solving, symbolic, point.admittance, work)
        reactive_of_generators(lanes, solving, symbolic, point.admittance, state, work)
        largest(lanes, solving, symbolic, work)
        for k in range(count):
            out.norm[start + k] = work.active[k]
            node = work.taken_step[k]
            out.bus[start + k] = symbolic.node_bus[int(node)] if node >= 0.0 else -1
        chord_steps(lanes, solving, batch, stopping, work)
        write_state(lanes, batch, work, out, start, count)


@compiled
def given_voltages(lanes, set_point, nominal, state, work):
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
def reactive_of_generators(lanes, solving, symbolic, admittance, state, work):
    """chord_step := scheduled minus computed reactive power of PV rows.

    Scheduled is what the state says of its own generation there; zero where it says nothing.
    """
    w = width(lanes)
    for r in range(symbolic.num_pv):
        bus = element(symbolic.node_bus, element(symbolic.row_node, r))
        at = element(state.reactive_at, bus)
        if at < 0:
            store(work.chord_step, r * w, fill(solving, 0.0))
            continue
        own, v_re, v_im, re, im = at_bus(lanes, symbolic, admittance, r, work.voltage)
        off = load(lanes, work.power, own + w) + load(lanes, work.tile, at * w)
        store(work.chord_step, r * w, convert(solving, off - reactive_power(v_re, v_im, re, im)))


@compiled
def largest(lanes, solving, symbolic, work):
    """active := largest sqrt(dP^2 + dQ^2) over buses; taken_step := its node, one number a lane.

    The node is a running maximum too: its number where the mismatch is the largest one, to the
    last digit, and far below zero everywhere else.
    """
    w = width(lanes)
    far = fill(solving, 1e30)
    top = convert(solving, load(lanes, work.mismatch, 0))
    norm, node = fill(solving, 0.0), fill(solving, -1.0)
    for r in range(len(symbolic.row_node)):
        i = element(symbolic.row_node, r)
        at = element(symbolic.node_first, i) * w
        active = load(solving, work.residual, at)
        own = absolute(active)
        if r >= symbolic.num_pv:
            other = load(solving, work.residual, at + w)
            own = larger(own, absolute(other))
        else:
            other = load(solving, work.chord_step, r * w)
        norm = larger(muladd(active, active, other * other), norm)
        node = larger(muladd(own - top, far, fill(solving, float(i))), node)
    store(work.active, 0, convert(lanes, square_root(norm)))
    store(work.taken_step, 0, node)
