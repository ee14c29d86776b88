"""First- and second-order expansion of the solution around a topology's nominal point, in lanes.

The first order is one pair of triangular solves with the topology's factors; the second adds a
mismatch and another pair: J s1 = dS, J s2 = dS - (S(u + s1) - S(u)), and s1 + s2 is the Taylor
series of the solution up to its third-order terms.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import active_power, muladd, mulsub, reactive_power
from gridshift.grid.kernels.chord import begin_at_nominal
from gridshift.grid.kernels.lanes import convert, element, fill, load, store, width
from gridshift.grid.kernels.rows import scatter
from gridshift.grid.kernels.steps import current, power_balance, substitute


@compiled
def expand(
    lanes, solving, batch, outputs, order, work, out, first_block, last_block,
):  # fmt: skip
    """out (R, Y) := outputs of the rows of some blocks, to first or second order in their loads."""
    w = width(lanes)
    symbolic, point = batch.symbolic, batch.point
    rows = len(batch.load_p)
    for block in range(first_block, last_block):
        start = block * w
        begin_at_nominal(lanes, solving, batch, start, work)
        substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
        if order == 2:
            for q in range(element(symbolic.node_first, len(symbolic.node_bus))):
                store(work.chord_step, q * w, load(solving, work.residual, q * w))
            displace(lanes, solving, symbolic, work.residual, work.voltage)
            power_balance(lanes, solving, symbolic, point.admittance, work)
            substitute(solving, symbolic, point.lower, point.diagonal, point.upper, work.residual)
            generated(lanes, outputs, work.voltage, work.tile)
        observe(lanes, solving, outputs, order, work)
        scatter(lanes, work.tile, out, start, min(w, rows - start))


@compiled
def displace(lanes, solving, symbolic, step, voltage):
    """Move every voltage along its angle and its relative magnitude, in double precision.

    The iteration's own `apply_step` is cheaper and leaves what it gets wrong to the next step; here
    there is none. Series of cosine and sine up to the seventh order: 4e-8 off at 0.5 rad.
    """
    w = width(lanes)
    one = fill(lanes, 1.0)
    c2, c4, c6 = fill(lanes, -1.0 / 2.0), fill(lanes, 1.0 / 24.0), fill(lanes, -1.0 / 720.0)
    s3, s5, s7 = fill(lanes, -1.0 / 6.0), fill(lanes, 1.0 / 120.0), fill(lanes, -1.0 / 5040.0)
    for i in range(len(symbolic.node_bus)):
        at = element(symbolic.node_first, i) * w
        angle = convert(lanes, load(solving, step, at))
        square = angle * angle
        cosine = muladd(square, muladd(square, muladd(square, c6, c4), c2), one)
        sine = angle * muladd(square, muladd(square, muladd(square, s7, s5), s3), one)
        if element(symbolic.node_size, i) == 2:
            stretch = one + convert(lanes, load(solving, step, at + w))
            cosine, sine = cosine * stretch, sine * stretch
        bus = element(symbolic.node_bus, i) * (2 * w)
        re, im = load(lanes, voltage, bus), load(lanes, voltage, bus + w)
        store(voltage, bus, mulsub(im, sine, re * cosine))
        store(voltage, bus + w, muladd(re, sine, im * cosine))


@compiled
def generated(lanes, outputs, voltage, tile):
    """First rows of tile := computed active or reactive power at `outputs.power_at`."""
    w = width(lanes)
    for o in range(len(outputs.power_at)):
        at = (element(outputs.power_at, o) >> 1) * (2 * w)
        first, last = element(outputs.row_ptr, o), element(outputs.row_ptr, o + 1)
        re, im = current(lanes, first, last, outputs.row_bus, outputs.admittance, voltage)
        v_re, v_im = load(lanes, voltage, at), load(lanes, voltage, at + w)
        if element(outputs.power_at, o) & 1:
            store(tile, o * w, reactive_power(v_re, v_im, re, im))
        else:
            store(tile, o * w, active_power(v_re, v_im, re, im))


@compiled
def observe(lanes, solving, outputs, order, work):
    """tile (Y, W) := outputs, powers from the last step, the rest from the sum of all steps."""
    w = width(lanes)
    powers = len(outputs.power_at)
    for o in range(len(outputs.constant)):
        if o < powers:
            total = fill(lanes, element(outputs.constant, o))
            if order == 2:
                total = load(lanes, work.tile, o * w) + fill(lanes, element(outputs.own, o))
            total = total - load(lanes, work.power, element(outputs.power_at, o) * w)
        else:
            total = fill(lanes, element(outputs.constant, o))
        for e in range(element(outputs.ptr, o), element(outputs.ptr, o + 1)):
            at = element(outputs.unknown, e) * w
            step = convert(lanes, load(solving, work.residual, at))
            if order == 2 and o >= powers:
                step = step + convert(lanes, load(solving, work.chord_step, at))
            total = muladd(fill(lanes, element(outputs.value, e)), step, total)
        store(work.tile, o * w, total)
