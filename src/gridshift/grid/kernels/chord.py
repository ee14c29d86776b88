"""Chord iteration over blocks of W scenarios of one topology.

A thread takes a range of blocks and writes its rows in place. Lanes that have converged are frozen
bit for bit, so that a row's numbers don't depend on its neighbours.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels.flows import branch_loading, branch_powers, retained
from gridshift.grid.kernels.lanes import (
    convert,
    element,
    fill,
    load,
    muladd,
    mulsub,
    peak,
    store,
    transpose_tile,
    width,
)
from gridshift.grid.kernels.steps import compiled, mismatch, substitute, turn

HOPELESS = 1e16
"""Multiple of the tolerance from which on a mismatch isn't worth another step."""


@compiled
def chord(
    lanes, solving, p, num_pv, point, load_bus, scheduled, set_point, branches, load_p, load_q,
    tol, max_steps, accelerate_from, work, out, first_block, last_block,
):  # fmt: skip
    """Chord iteration of all rows of some blocks from one topology's solved nominal point.

    Writes every row of `out.voltage`, whether converged or not, and `out.worst` tells. Branch
    powers and loading are written where `out` has room for them.
    """
    w = width(lanes)
    rows = len(load_p)
    for block in range(first_block, last_block):
        start = block * w
        count = min(w, rows - start)
        gather(lanes, load_bus, scheduled, point.voltage, load_p, load_q, start, work)
        first_residual(lanes, solving, p, point.power, work)
        for k in range(w):
            work.active[k] = 1.0
            work.steps[k] = 0
        for step in range(max_steps + 1):
            if not freeze(w, tol, step, work) or step == max_steps:
                break
            substitute(solving, p, point.lower, point.diagonal, point.upper, work.residual)
            if step >= accelerate_from:
                remember(lanes, solving, p, step == accelerate_from, work)
            turn(lanes, solving, p, work.residual, work.active, set_point, False, work.voltage)
            mismatch(
                lanes, solving, p, num_pv, point.admittance, work.voltage, work.power,
                work.residual, work.worst,
            )  # fmt: skip
        for k in range(count):
            out.worst[start + k] = work.worst[k]
            out.steps[start + k] = work.steps[k]
        retained(lanes, p, point.voltage, work.voltage, work.worst)
        for k in range(count):
            out.retained[start + k] = work.worst[k]
        scatter(lanes, work.voltage, out.voltage, start, count)
        if len(out.powers):
            branch_powers(lanes, branches, work.voltage, work.tile)
            scatter(lanes, work.tile, out.powers, start, count)
        if len(out.loading):
            branch_loading(lanes, branches, work.voltage, work.tile)
            scatter(lanes, work.tile, out.loading, start, count)


@compiled
def freeze(w, tol, step, work):
    """Mark converged and hopeless lanes inactive; whether any is left."""
    left = False
    for k in range(w):
        if work.active[k] == 1.0:
            work.steps[k] = step
            if work.worst[k] <= tol or not work.worst[k] < HOPELESS * tol:
                work.active[k] = 0.0
            else:
                left = True
    return left


@compiled
def gather(lanes, load_bus, scheduled, nominal, load_p, load_q, start, work):
    """Set voltages to the nominal point and powers to what is scheduled minus the rows' loads."""
    w = width(lanes)
    for q in range(len(scheduled)):
        store(work.power, q * w, fill(lanes, element(scheduled, q)))
        store(work.voltage, q * w, fill(lanes, element(nominal, q)))
    last = len(load_p) - 1
    subtract(lanes, load_bus, load_p, start, last, 0, work)
    subtract(lanes, load_bus, load_q, start, last, w, work)


@compiled
def subtract(lanes, load_bus, demand, start, last, part, work):
    w = width(lanes)
    loads = demand.shape[1]
    whole = loads // 8 * 8 if start + w <= last + 1 else 0
    for k in range(0, w, 8):
        for j in range(0, whole, 8):
            transpose_tile(demand, (start + k) * loads + j, loads, work.tile, j * w + k, w)
    for k in range(w):
        row = min(start + k, last)
        for j in range(whole, loads):
            work.tile[j * w + k] = demand[row, j]
    for j in range(loads):
        at = element(load_bus, j) * (2 * w) + part
        store(work.power, at, load(lanes, work.power, at) - load(lanes, work.tile, j * w))


@compiled
def columns_to_lanes(w, rows, start, last, tile):
    """tile (columns, W) := W rows from `start` on; the last row again where there are fewer."""
    columns = rows.shape[1]
    whole = columns // 8 * 8 if start + w <= last + 1 else 0
    for k in range(0, w, 8):
        for j in range(0, whole, 8):
            transpose_tile(rows, (start + k) * columns + j, columns, tile, j * w + k, w)
    for k in range(w):
        row = min(start + k, last)
        for j in range(whole, columns):
            tile[j * w + k] = rows[row, j]


@compiled
def first_residual(lanes, solving, p, nominal_power, work):
    """At the nominal point the computed powers are known: no need to walk the network."""
    w = width(lanes)
    largest = fill(lanes, 0.0)
    for i in range(len(p.node_bus)):
        q = 2 * element(p.node_bus, i)
        to = element(p.node_first, i) * w
        for part in range(element(p.node_size, i)):
            off = load(lanes, work.power, (q + part) * w) - fill(
                lanes, element(nominal_power, q + part)
            )
            largest = peak(off, largest)
            store(work.residual, to + part * w, convert(solving, off))
    store(work.worst, 0, largest)


@compiled
def remember(lanes, solving, p, first, work):
    """Anderson acceleration with a memory of one step (Walker and Ni, 2011), lane by lane.

    With d the plain step, h the step taken before and D the plain step before: take
    d - c (h + d - D), where c minimises |d - c (d - D)|.
    """
    w = width(lanes)
    n = element(p.node_first, len(p.node_bus))
    if first:
        for q in range(n):
            d = load(solving, work.residual, q * w)
            store(work.plain, q * w, d)
            store(work.taken, q * w, d)
        return
    along, length = fill(solving, 0.0), fill(solving, 1e-30)
    for q in range(n):
        d = load(solving, work.residual, q * w)
        change = d - load(solving, work.plain, q * w)
        along = muladd(change, d, along)
        length = muladd(change, change, length)
    share = along / length
    for q in range(n):
        d = load(solving, work.residual, q * w)
        h = load(solving, work.taken, q * w) + (d - load(solving, work.plain, q * w))
        step = mulsub(share, h, d)
        store(work.plain, q * w, d)
        store(work.taken, q * w, step)
        store(work.residual, q * w, step)


@compiled
def scatter(lanes, columnwise, out, start, count):
    """Write the first `count` lanes of an array (columns, W) as rows of `out`."""
    w = width(lanes)
    columns = out.shape[1]
    whole = columns // 8 * 8
    for k in range(0, count // 8 * 8, 8):
        for q in range(0, whole, 8):
            transpose_tile(columnwise, q * w + k, w, out, (start + k) * columns + q, columns)
        for q in range(whole, columns):
            for j in range(8):
                out[start + k + j, q] = columnwise[q * w + k + j]
    for k in range(count // 8 * 8, count):
        for q in range(columns):
            out[start + k, q] = columnwise[q * w + k]
