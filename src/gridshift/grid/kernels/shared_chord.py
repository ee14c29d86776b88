"""Chord steps of rows whose imbalance is shared by generators, W rows at a time.

The Jacobian has one row and one column more: the active balance of the slack bus, and the
imbalance. Before each step the imbalance is moved so far that the step, which takes care of all
other buses, will leave the slack bus in balance too; that costs one product with a vector that
belongs to the topology, `Sharing.border`, and nothing else has to be solved for.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import active_power, larger, muladd, peak
from gridshift.grid.kernels.chord import (
    at_nominal,
    begin_lanes,
    freeze,
    specify_power,
    take_step,
    write_excess,
    write_state,
)
from gridshift.grid.kernels.lanes import convert, element, fill, load, store, width
from gridshift.grid.kernels.steps import current


@compiled
def shared_chord(
    lanes, solving, batch, sharing, stopping, work, shared, out, first_block, last_block
):
    """As `chord`, from the imbalances in `out`, which are replaced by those found."""
    w = width(lanes)
    rows = len(batch.load_p)
    for block in range(first_block, last_block):
        start = block * w
        count = min(w, rows - start)
        specify_power(lanes, batch, start, work)
        begin_sharing(lanes, solving, sharing, start, out.imbalance, work, shared)
        at_nominal(lanes, solving, batch, work)
        shared_steps(lanes, solving, batch, sharing, stopping, work, shared)
        write_state(lanes, batch, work, out, start, count)
        for k in range(count):
            out.imbalance[start + k] = shared.imbalance[k]
        write_excess(lanes, batch, work, out, start, count)


@compiled
def begin_sharing(lanes, solving, sharing, start, imbalance, work, shared):
    """Imbalances (R,) of the rows from `start` on, shared by the generators."""
    w = width(lanes)
    for k in range(w):
        shared.imbalance[k] = imbalance[min(start + k, len(imbalance) - 1)]
    for j in range(len(sharing.bus) + 1):
        store(shared.given, j * w, fill(lanes, 0.0))
    share(lanes, solving, sharing, work, shared)


@compiled
def shared_steps(lanes, solving, batch, sharing, stopping, work, shared):
    """As `chord_steps`; the mismatch is that of the slack bus as well."""
    w = width(lanes)
    begin_lanes(w, work)
    for step in range(stopping.max_steps + 1):
        slack_balance(lanes, sharing, work, shared)
        if not freeze(w, stopping.tolerance, step, work) or step == stopping.max_steps:
            break
        move_imbalance(lanes, solving, batch.symbolic, sharing, work, shared)
        share(lanes, solving, sharing, work, shared)
        take_step(lanes, solving, batch, stopping, step, work)


@compiled
def slack_balance(lanes, sharing, work, shared):
    """off := scheduled minus computed active power of the slack bus; mismatch := the larger one."""
    w = width(lanes)
    re, im = current(
        lanes, 0, len(sharing.entry_bus), sharing.entry_bus, sharing.admittance, work.voltage
    )
    at = sharing.slack * (2 * w)
    v_re, v_im = load(lanes, work.voltage, at), load(lanes, work.voltage, at + w)
    off = load(lanes, work.power, at) - active_power(v_re, v_im, re, im)
    store(shared.off, 0, off)
    store(work.mismatch, 0, peak(off, load(lanes, work.mismatch, 0)))


@compiled
def move_imbalance(lanes, solving, symbolic, sharing, work, shared):
    """imbalance := that with which the coming step balances the slack bus; frozen lanes stay."""
    w = width(lanes)
    along = fill(solving, 0.0)
    for q in range(element(symbolic.node_first, len(symbolic.node_bus))):
        border = fill(solving, element(sharing.border, q))
        along = muladd(border, load(solving, work.residual, q * w), along)
    missing = load(lanes, shared.off, 0) - convert(lanes, along)
    step = load(lanes, work.active, 0) * missing * fill(lanes, sharing.step)
    store(shared.imbalance, 0, load(lanes, shared.imbalance, 0) - step)


@compiled
def share(lanes, solving, sharing, work, shared):
    """given := each generator's share of the imbalance; power and residual follow."""
    w = width(lanes)
    zero, number = fill(lanes, 0.0), len(sharing.bus)
    imbalance = load(lanes, shared.imbalance, 0)
    up = factor(lanes, sharing.up_lines, larger(imbalance, zero))
    down = factor(lanes, sharing.down_lines, larger(zero - imbalance, zero))
    rest = imbalance
    for j in range(number):
        more = smaller(
            lanes, fill(lanes, element(sharing.up_weight, j)) * up,
            fill(lanes, element(sharing.up_room, j)),
        )  # fmt: skip
        less = smaller(
            lanes, fill(lanes, element(sharing.down_weight, j)) * down,
            fill(lanes, element(sharing.down_room, j)),
        )  # fmt: skip
        given = more - less
        rest = rest - given
        change = given - load(lanes, shared.given, j * w)
        store(shared.given, j * w, given)
        add_power(lanes, element(sharing.bus, j), element(sharing.constant, j), change, work)
        unknown = element(sharing.unknown, j)
        if unknown >= 0:
            to = unknown * w
            store(work.residual, to, load(solving, work.residual, to) + convert(solving, change))
    change = rest - load(lanes, shared.given, number * w)
    store(shared.given, number * w, rest)
    add_power(lanes, sharing.slack, element(sharing.constant, number), change, work)


@compiled
def add_power(lanes, bus, constant, change, work):
    """Specify so much more active power at a bus, in its constant part where it has parts."""
    w = width(lanes)
    at = bus * (2 * w)
    store(work.power, at, load(lanes, work.power, at) + change)
    if constant != 2 * bus:
        at = constant * w
        store(work.power, at, load(lanes, work.power, at) + change)


@compiled
def factor(lanes, lines, amount):
    """The largest of the lines at this amount, at least 0."""
    found = fill(lanes, 0.0)
    for j in range(len(lines) // 2):
        slope = fill(lanes, element(lines, 2 * j + 1))
        found = larger(muladd(slope, amount, fill(lanes, element(lines, 2 * j))), found)
    return found


@compiled
def smaller(lanes, a, b):
    """Per lane the smaller of the two."""
    zero = fill(lanes, 0.0)
    return zero - larger(zero - a, zero - b)


@compiled
def border(symbolic, lower, diagonal, upper, x):
    """x (N,) := the solution of transposed(J) s = x: `substitute` with everything reversed.

    J = (L + D) U, where U has ones and `diagonal` holds inverted blocks of D.
    """
    n = len(symbolic.node_bus)
    q = len(upper)
    for i in range(n):
        r = n - 1 - i
        at, size = symbolic.node_first[i], symbolic.node_size[i]
        first, last = symbolic.upper_ptr[r], symbolic.upper_ptr[r + 1]
        q -= (last - first) * size
        for c in range(first, last):
            for part in range(size):
                x[symbolic.upper_unknown[c]] -= upper[q + (c - first) * size + part] * x[at + part]
    d, q = len(diagonal), len(lower)
    for r in range(n):
        i = n - 1 - r
        at, size = symbolic.node_first[i], symbolic.node_size[i]
        d -= size * size
        a = x[at]
        if size == 1:
            x[at] = diagonal[d] * a
        else:
            b = x[at + 1]
            x[at] = diagonal[d] * a + diagonal[d + 1] * b
            x[at + 1] = diagonal[d + 2] * a + diagonal[d + 3] * b
        first, last = symbolic.lower_ptr[i], symbolic.lower_ptr[i + 1]
        q -= (last - first) * size
        for c in range(first, last):
            for part in range(size):
                x[symbolic.lower_unknown[c]] -= lower[q + (c - first) * size + part] * x[at + part]
