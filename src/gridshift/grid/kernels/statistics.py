"""Statistics of the voltages of some rows while they are in cache.

A sum is kept as a whole number of quanta (`whole`), in two words, so that its parts can be put
together in any order to the same bits: each term is rounded once, by half a quantum at most.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import numpy as np

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import muladd, square_root
from gridshift.grid.kernels.chord import begin_at_nominal, begin_from_intact, solve_block
from gridshift.grid.kernels.flows import branch_current
from gridshift.grid.kernels.lanes import element, fill, load, store, width
from gridshift.grid.kernels.rows import columns_to_lanes
from gridshift.grid.kernels.whole import (
    FRACTION,
    MAGIC,
    MAGIC_BITS,
    QUANTUM,
    bits_set,
    if_above,
    lanes_above,
    least_bits,
    most_bits,
    store_shifted,
    sum_of_bits,
)

LARGEST = 2000.0
"""Voltages, p.u., and loadings beyond it count as it."""
MARGIN = 1e-9
"""A limit counts as exceeded from this distance on; set-points sit on limits exactly."""
MOST_ROWS = 4096
"""Rows at a time: so many of `LARGEST` fit into one word of a sum."""

NUM_OF_SCENARIO = 7
NUM_BINS = 128
VOLTAGE_BINS = (0.75, 8)
"""Where the first bin of voltage magnitudes begins, p.u., and the binary logarithm of the number
of bins in 1 p.u.; what is below or above all bins is counted in the first or the last."""
LOADING_BINS = (0.0, 6)
"""The same for loadings."""


@compiled
def solve_and_tally(
    lanes, solving, batch, intact, stopping, least_retained, limits, scenarios, work, out,
    first_block, last_block,
):  # fmt: skip
    """Rows of some blocks by chord steps, added to `counts` where they stand if they are solved.

    Solved are rows within the tolerance that retain enough of the nominal voltages and, where `out`
    has room for excess, exceed no generator's limit by more than the tolerance. `scenarios` (7, R)
    gets what each of them was, see `tally`; the others must be NaN there beforehand. They start
    from the nominal point, or from their solutions on the intact grid where these are given: then
    rows are in the order of these.
    """
    chord, own, counts = work
    w = width(lanes)
    rows, uncarried = len(batch.load_p), 0
    for block in range(first_block, last_block):
        start = block * w
        count = min(w, rows - start)
        if len(intact.turn):
            begin_from_intact(lanes, solving, batch, intact, block, chord)
        else:
            begin_at_nominal(lanes, solving, batch, start, chord)
        solve_block(lanes, solving, batch, stopping, chord, out, start, count)
        good = 0
        for k in range(count):
            row = start + k
            if (
                out.mismatch[row] <= stopping.tolerance
                and out.retained[row] >= least_retained
                and (not len(out.excess) or out.excess[row] <= stopping.tolerance)
            ):
                own.row[good] = row
                copy_lane(w, chord.voltage, k, good)
                good += 1
        if good == 0:
            continue
        for k in range(good, w):
            copy_lane(w, chord.voltage, good - 1, k)
        tally_lanes(lanes, limits, chord.voltage, good, own, counts, scenarios)
        uncarried += w
        if uncarried > MOST_ROWS - w:
            carry(counts.bus_sums)
            carry(counts.branch_sums)
            uncarried = 0
    carry(counts.bus_sums)
    carry(counts.branch_sums)


@compiled
def copy_lane(w, voltage, source, target):
    """Give one lane the voltages of another."""
    if source != target:
        for q in range(0, len(voltage), w):
            voltage[q + target] = voltage[q + source]


@compiled
def tally(lanes, limits, voltage, work, counts, scenarios):
    """Add rows (n, 2 B) of finite voltages to `counts`; write what each was to `scenarios` (7, n).

    A scenario's numbers: the worst voltage, as `tally_buses` measures it, and its bus, the sum of
    violations in half widths of the band, the worst loading, its branch among those rated, the sum
    of loadings beyond 1, and how many are beyond their emergency rating. Bus and branch are -1
    where nothing is limited.
    """
    w = width(lanes)
    rows = len(voltage)
    for start in range(0, rows, w):
        count = min(w, rows - start)
        columns_to_lanes(w, voltage, start, rows - 1, work.tile)
        for k in range(count):
            work.row[k] = start + k
        tally_lanes(lanes, limits, work.tile, count, work, counts, scenarios)
    carry(counts.bus_sums)
    carry(counts.branch_sums)


@compiled
def tally_lanes(lanes, limits, voltage, count, work, counts, scenarios):
    """Add the first `count` lanes of voltages (B, 2, W), which the others repeat, to `counts`.

    Lane k is row `work.row[k]` of the scenarios.
    """
    w = width(lanes)
    for k in range(w):
        work.live[k] = -1 if k < count else 0
    tally_buses(lanes, limits, voltage, count, work, counts)
    tally_branches(lanes, limits, voltage, count, work, counts)
    for q in range(NUM_OF_SCENARIO):
        for k in range(count):
            scenarios[q, work.row[k]] = work.scenario[q * w + k]


@compiled
def tally_buses(lanes, limits, voltage, count, work, counts):
    """Voltages of a block, bus by bus, from its first `count` lanes.

    How bad a voltage is, is told by its distance from the middle of the band in half widths: 1 at
    a limit. The square of a magnitude is rounded, and the magnitude is that of the rounded square:
    a bus that keeps its magnitude then has one number, and is done with quickly.
    """
    w = width(lanes)
    all_lanes = (1 << count) - 1
    zero, one, margin = fill(lanes, 0.0), fill(lanes, 1.0), fill(lanes, MARGIN)
    magic, live = fill(lanes, MAGIC), load(lanes, work.live, 0)
    worst, at, excess = fill(lanes, -LARGEST), fill(lanes, -1.0), zero
    for b in range(len(limits.low)):
        re = load(lanes, voltage, b * (2 * w))
        im = load(lanes, voltage, b * (2 * w) + w)
        square = bounded(lanes, muladd(re, re, im * im)) + magic
        real = sum_of_bits(bounded(lanes, re) + magic, live)
        imaginary = sum_of_bits(bounded(lanes, im) + magic, live)
        counts.bus_sums[b, 2, 1] += real - count * MAGIC_BITS
        counts.bus_sums[b, 3, 1] += imaginary - count * MAGIC_BITS
        magnitude = square - magic
        if most_bits(square) == least_bits(square):
            store(work.column, 0, magnitude)
            magnitude = fill(lanes, np.sqrt(work.column[0]))
        else:
            magnitude = square_root(magnitude)
        summarise(magnitude + magic, count, VOLTAGE_BINS, live, work, b, counts.bus_sums,
                  counts.bus_extremes, counts.bus_bins)  # fmt: skip
        if element(limits.per_half_width, b) > 0.0:
            share = fill(lanes, element(limits.per_half_width, b))
            below = fill(lanes, element(limits.low, b)) - magnitude
            above = magnitude - fill(lanes, element(limits.high, b))
            out = if_above(below, above, below, above)
            bad = muladd(out, share, one)
            at = if_above(bad, worst, fill(lanes, float(b)), at)
            worst = if_above(bad, worst, bad, worst)
            if lanes_above(out, margin) & all_lanes:
                counts.under[b] += bits_set(lanes_above(below, margin) & all_lanes)
                counts.over[b] += bits_set(lanes_above(above, margin) & all_lanes)
                out = if_above(out, margin, out, zero)
                excess = muladd(out, share, excess)
                quanta = sum_of_bits(bounded(lanes, out) + magic, live)
                counts.bus_sums[b, 1, 1] += quanta - count * MAGIC_BITS
    store(work.scenario, 0, worst)
    store(work.scenario, w, at)
    store(work.scenario, 2 * w, excess)


@compiled
def tally_branches(lanes, limits, voltage, count, work, counts):
    """Loadings of a block, branch by branch of those that have a rating, as `branch_loading`."""
    w = width(lanes)
    all_lanes = (1 << count) - 1
    zero, full, over = fill(lanes, 0.0), fill(lanes, 1.0), fill(lanes, 1.0 + MARGIN)
    magic, live = fill(lanes, MAGIC), load(lanes, work.live, 0)
    worst, at, excess, emergencies = fill(lanes, -LARGEST), fill(lanes, -1.0), zero, zero
    for e in range(len(limits.branch_bus) // 2):
        f = element(limits.branch_bus, 2 * e) * (2 * w)
        t = element(limits.branch_bus, 2 * e + 1) * (2 * w)
        f_re, f_im = load(lanes, voltage, f), load(lanes, voltage, f + w)
        t_re, t_im = load(lanes, voltage, t), load(lanes, voltage, t + w)
        re, im = branch_current(lanes, limits.admittance, 8 * e, f_re, f_im, t_re, t_im)
        at_from = muladd(re, re, im * im) * fill(lanes, element(limits.inverse_square, 2 * e))
        re, im = branch_current(lanes, limits.admittance, 8 * e + 4, f_re, f_im, t_re, t_im)
        at_to = muladd(re, re, im * im) * fill(lanes, element(limits.inverse_square, 2 * e + 1))
        if limits.by_power:
            at_from = at_from * muladd(f_re, f_re, f_im * f_im)
            at_to = at_to * muladd(t_re, t_re, t_im * t_im)
        loading = bounded(lanes, square_root(if_above(at_from, at_to, at_from, at_to)))
        summarise(loading + magic, count, LOADING_BINS, live, work, e, counts.branch_sums,
                  counts.branch_extremes, counts.branch_bins)  # fmt: skip
        at = if_above(loading, worst, fill(lanes, float(e)), at)
        worst = if_above(loading, worst, loading, worst)
        overloaded = lanes_above(loading, over) & all_lanes
        if overloaded:
            counts.overloaded[e] += bits_set(overloaded)
            beyond = if_above(loading, over, loading - full, zero)
            excess = excess + beyond
            quanta = sum_of_bits(beyond + magic, live)
            counts.branch_sums[e, 1, 1] += quanta - count * MAGIC_BITS
            most = fill(lanes, element(limits.emergency, e) + MARGIN)
            counts.emergency[e] += bits_set(lanes_above(loading, most) & all_lanes)
            emergencies = if_above(loading, most, emergencies + full, emergencies)
    store(work.scenario, 3 * w, worst)
    store(work.scenario, 4 * w, at)
    store(work.scenario, 5 * w, excess)
    store(work.scenario, 6 * w, emergencies)


@compiled
def bounded(lanes, x):
    """x, from -`LARGEST` to `LARGEST`."""
    most, least = fill(lanes, LARGEST), fill(lanes, -LARGEST)
    x = if_above(x, most, most, x)
    return if_above(least, x, least, x)


@compiled
def summarise(x, count, binning, live, work, entry, sums, extremes, bins):
    """Add the lanes of x, which has the magic number in it, to sum, extremes and histogram.

    Lanes beyond `count` repeat the last row, so that extremes need not leave them out.
    """
    top, bottom = most_bits(x), least_bits(x)
    sums[entry, 0, 1] += sum_of_bits(x, live) - count * MAGIC_BITS
    extremes[entry, 0] = min(extremes[entry, 0], bottom - MAGIC_BITS)
    extremes[entry, 1] = max(extremes[entry, 1], top - MAGIC_BITS)
    first = MAGIC_BITS + np.int64(binning[0] / QUANTUM)
    shift = FRACTION - binning[1]
    lowest, highest = (bottom - first) >> shift, (top - first) >> shift
    if lowest == highest:
        bins[entry, min(max(lowest, 0), NUM_BINS - 1)] += count
        return
    store_shifted(work.place, x, first, shift, NUM_BINS - 1)
    for k in range(count):
        bins[entry, np.uint64(work.place[k])] += 1


@compiled
def carry(sums):
    """Move whole ones of the second words of all sums (entries, kinds, 2) to the first ones."""
    for entry in range(sums.shape[0]):
        for kind in range(sums.shape[1]):
            low = sums[entry, kind, 1]
            sums[entry, kind, 0] += low >> FRACTION
            sums[entry, kind, 1] = low & ((1 << FRACTION) - 1)


@compiled
def shares_below(lanes, bins, extremes, binning, count, shares, out):
    """out (entries, shares) := values that these shares of `count` numbers don't exceed.

    A number of a histogram is taken to lie evenly within its bin, and never beyond the extremes.
    """
    span = 2.0 ** -binning[1]
    for entry in range(len(bins)):
        least, most = extremes[entry, 0] * QUANTUM, extremes[entry, 1] * QUANTUM
        seen, at = 0, 0
        for s in range(len(shares)):
            wanted = shares[s] * count
            while at < NUM_BINS - 1 and seen + bins[entry, at] < wanted:
                seen += bins[entry, at]
                at += 1
            start = binning[0] + at * span
            low = max(least, start) if at > 0 else least
            high = min(most, start + span) if at < NUM_BINS - 1 else most
            inside = (wanted - seen) / max(bins[entry, at], 1)
            out[entry, s] = low + min(max(inside, 0.0), 1.0) * (high - low)
