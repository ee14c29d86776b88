"""The steps of a power flow iteration, for W lanes at once over one sparsity pattern.

Shapes, flat with the lanes last: voltage and power (B, 2, W), real then imaginary; residual and
step (N, W) in the order of unknowns of `symbolic`; admittance (entries, 2[, W]) and factors
(places[, W]) are shared by all lanes when one-dimensional, and per lane when they have two.
Unknowns are the angle and, at PQ buses, the magnitude relative to itself.
Each function has its textbook twin in `tests/reference`.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import active_power, muladd, mulsub, peak, reactive_power
from gridshift.grid.kernels.dependent import specify_at_voltage, subtract_slopes
from gridshift.grid.kernels.lanes import coefficient, convert, element, fill, load, store, width
from gridshift.grid.kernels.whole import if_zero


@compiled
def power_balance(lanes, solving, symbolic, admittance, work):
    """residual := scheduled minus computed power; mismatch := its largest absolute entry per lane.

    Computed is S = v conj(Y v) in rectangular coordinates, bus by bus; active power at PV and PQ
    buses, reactive power at PQ buses. It is computed in the precision of the voltages and the
    residual kept in that of the step.
    """
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
        largest = peak(active, largest)
        store(work.residual, to, convert(solving, active))
        if r >= symbolic.num_pv:
            reactive = load(lanes, work.power, at + w) - reactive_power(v_re, v_im, re, im)
            largest = peak(reactive, largest)
            store(work.residual, to + w, convert(solving, reactive))
    store(work.mismatch, 0, largest)


@compiled
def at_bus(lanes, symbolic, admittance, r, voltage):
    """Place of row r's bus in `voltage`, its voltage and the current out of it, as two parts.

    For loops that run once: called in each step, its five values cost a fifth of all time.
    """
    w = width(lanes)
    first, last = element(symbolic.row_ptr, r), element(symbolic.row_ptr, r + 1)
    re, im = current(lanes, first, last, symbolic.entry_bus, admittance, voltage)
    at = element(symbolic.node_bus, element(symbolic.row_node, r)) * (2 * w)
    return at, load(lanes, voltage, at), load(lanes, voltage, at + w), re, im


@compiled
def current(lanes, first, last, entry_bus, admittance, voltage):
    """Real and imaginary part of the sum of y v over entries of an admittance matrix's row."""
    w = width(lanes)
    re, im = fill(lanes, 0.0), fill(lanes, 0.0)
    for e in range(first, last):
        at = element(entry_bus, e) * (2 * w)
        g = coefficient(lanes, admittance, 2 * e)
        b = coefficient(lanes, admittance, 2 * e + 1)
        v_re = load(lanes, voltage, at)
        v_im = load(lanes, voltage, at + w)
        re = mulsub(b, v_im, muladd(g, v_re, re))
        im = muladd(b, v_re, muladd(g, v_im, im))
    return re, im


@compiled
def substitute(lanes, symbolic, lower, diagonal, upper, x):
    """x := the solution of L D U s = x, where `diagonal` holds inverted blocks and U has ones.

    Forward through the rows of L, each result times its inverted block of D, then back through the
    rows of U. Blocks are 1 by 1 at PV and 2 by 2 at PQ buses, read one after the other as stored.
    """
    w = width(lanes)
    n = len(symbolic.node_bus)
    q = 0
    d = 0
    for i in range(n):
        at = element(symbolic.node_first, i) * w
        first, last = element(symbolic.lower_ptr, i), element(symbolic.lower_ptr, i + 1)
        if element(symbolic.node_size, i) == 1:
            a = load(lanes, x, at)
            for c in range(first, last):
                known = load(lanes, x, element(symbolic.lower_unknown, c) * w)
                a = mulsub(coefficient(lanes, lower, q), known, a)
                q += 1
            store(x, at, a * coefficient(lanes, diagonal, d))
            d += 1
        else:
            a = load(lanes, x, at)
            b = load(lanes, x, at + w)
            for c in range(first, last):
                known = load(lanes, x, element(symbolic.lower_unknown, c) * w)
                a = mulsub(coefficient(lanes, lower, q), known, a)
                b = mulsub(coefficient(lanes, lower, q + 1), known, b)
                q += 2
            d00, d10 = coefficient(lanes, diagonal, d), coefficient(lanes, diagonal, d + 1)
            d01, d11 = coefficient(lanes, diagonal, d + 2), coefficient(lanes, diagonal, d + 3)
            d += 4
            store(x, at, muladd(d00, a, d01 * b))
            store(x, at + w, muladd(d10, a, d11 * b))
    q = 0
    for r in range(n):
        i = n - 1 - r
        at = element(symbolic.node_first, i) * w
        first, last = element(symbolic.upper_ptr, r), element(symbolic.upper_ptr, r + 1)
        if element(symbolic.node_size, i) == 1:
            a = load(lanes, x, at)
            for c in range(first, last):
                known = load(lanes, x, element(symbolic.upper_unknown, c) * w)
                a = mulsub(coefficient(lanes, upper, q), known, a)
                q += 1
            store(x, at, a)
        else:
            a = load(lanes, x, at)
            b = load(lanes, x, at + w)
            for c in range(first, last):
                known = load(lanes, x, element(symbolic.upper_unknown, c) * w)
                a = mulsub(coefficient(lanes, upper, q), known, a)
                b = mulsub(coefficient(lanes, upper, q + 1), known, b)
                q += 2
            store(x, at, a)
            store(x, at + w, b)


@compiled
def apply_step(lanes, solving, symbolic, set_point, far, work):
    """Move every voltage by the step in `residual`: v := v (1 + dm) exp(j da), for the changes da
    of its angle and dm of its relative magnitude.

    The iteration removes what a cheap rotation gets wrong. Near steps use two terms of sine and
    cosine (off by 1e-3 at 0.4 rad), far ones Cayley's rotation, which turns a little less but never
    changes a length. What is added to a voltage is computed in the precision of the step, and
    added in that of the voltage. PV buses are pulled back to their magnitude by one Newton step of
    |v| = set-point, which all lanes share or each has of its own. Lanes with `active` 0 stay bit
    for bit; values between shorten the step.
    """
    w = width(lanes)
    one, half = fill(lanes, 1.0), fill(lanes, 0.5)
    unit, quarter = fill(solving, 1.0), fill(solving, 0.25)
    c2, s3 = fill(solving, -0.5), fill(solving, -1.0 / 6.0)
    on = load(lanes, work.active, 0)
    fraction = convert(solving, on)
    for i in range(len(symbolic.node_bus)):
        at = element(symbolic.node_first, i) * w
        angle = fraction * load(solving, work.residual, at)
        square = angle * angle
        # along, across: what the new voltage adds to the old one, as multiples of it
        if far:
            inverse = unit / muladd(square, quarter, unit)
            along = c2 * square * inverse
            across = angle * inverse
        else:
            along = c2 * square
            across = angle * muladd(square, s3, unit)
        if element(symbolic.node_size, i) == 2:
            stretch = fraction * load(solving, work.residual, at + w)
            along = muladd(stretch, along, along + stretch)
            across = muladd(stretch, across, across)
        c, s = convert(lanes, along), convert(lanes, across)
        bus = element(symbolic.node_bus, i)
        v_re = load(lanes, work.voltage, bus * (2 * w))
        v_im = load(lanes, work.voltage, bus * (2 * w) + w)
        re = mulsub(v_im, s, muladd(v_re, c, v_re))
        im = muladd(v_re, s, muladd(v_im, c, v_im))
        if element(symbolic.node_size, i) == 1:
            own = coefficient(lanes, set_point, bus)
            length = muladd(re, re, im * im) * (one / (own * own))
            back = muladd(on, mulsub(half, length, half), one)
            re, im = re * back, im * back
        store(work.voltage, bus * (2 * w), re)
        store(work.voltage, bus * (2 * w) + w, im)


@compiled
def fill_jacobian(lanes, symbolic, work):
    """Fill `factors` with the derivative of computed less specified power, column by column.

    With P + jQ = v_i conj(y_ik v_k), one entry's share of bus i's power: derivatives by the angle
    of bus k are Q and -P, by its relative magnitude P and Q; on the diagonal, by the bus's own,
    Q_own - sum Q, sum P - P_own, sum P + P_own and sum Q + Q_own; the unit matrix for a bus without
    any admittance, which stays as it is.
    Source: MATPOWER Technical Note 2, polar coordinates and power balance.
    """
    w = width(lanes)
    zero, one = fill(lanes, 0.0), fill(lanes, 1.0)
    admittance, voltage, factors = work.admittance, work.voltage, work.factors
    for q in range(len(factors)):
        store(factors, q * w, zero)
    for r in range(len(symbolic.row_node)):
        i = element(symbolic.row_node, r)
        home = element(symbolic.node_bus, i)
        size = element(symbolic.node_size, i)
        v_re = load(lanes, voltage, home * (2 * w))
        v_im = load(lanes, voltage, home * (2 * w) + w)
        p_sum, q_sum, p_own, q_own, largest = zero, zero, zero, zero, zero
        for e in range(element(symbolic.row_ptr, r), element(symbolic.row_ptr, r + 1)):
            bus = element(symbolic.entry_bus, e)
            g = coefficient(lanes, admittance, 2 * e)
            b = coefficient(lanes, admittance, 2 * e + 1)
            largest = peak(g, peak(b, largest))
            u_re = load(lanes, voltage, bus * (2 * w))
            u_im = load(lanes, voltage, bus * (2 * w) + w)
            i_re = mulsub(b, u_im, g * u_re)
            i_im = muladd(b, u_re, g * u_im)
            active = muladd(v_re, i_re, v_im * i_im)
            reactive = mulsub(v_re, i_im, v_im * i_re)
            p_sum = p_sum + active
            q_sum = q_sum + reactive
            place = element(symbolic.entry_block, e)
            if bus == home:
                p_own, q_own = active, reactive
            elif place >= 0:
                # columns of this block: two if the neighbour is a PQ bus
                both = element(symbolic.node_size, element(symbolic.entry_node, e)) == 2
                _store_block(factors, place * w, w, size, both, active, reactive, zero)
        at = element(symbolic.diagonal_at, i) * w
        alone = if_zero(largest, one, zero)
        store(factors, at, q_own - q_sum + alone)
        if size == 2:
            store(factors, at + w, p_sum - p_own)
            store(factors, at + 2 * w, p_sum + p_own)
            store(factors, at + 3 * w, q_sum + q_own + alone)
    subtract_slopes(lanes, symbolic, voltage, work.power, factors)


@compiled
def _store_block(factors, at, w, size, both, active, reactive, zero):
    """One block off the diagonal: `size` rows, two columns if `both`."""
    store(factors, at, reactive)
    if size == 1:
        if both:
            store(factors, at + w, active)
    else:
        store(factors, at + w, zero - active)
        if both:
            store(factors, at + 2 * w, active)
            store(factors, at + 3 * w, reactive)


@compiled
def factorise(lanes, symbolic, factors, growth):
    """factors := L, inverted D, and U with unit diagonal, in place; growth := largest |U|.

    Right-looking elimination by blocks: node k's row of U is scaled by its inverted pivot block,
    and each later row i loses L_ik U_k. The places that this touches are listed in `symbolic`.
    Without row exchanges: the elimination order is fixed, so a large multiplier is the sign that
    a topology needs a pivoting factorisation.
    """
    w = width(lanes)
    one = fill(lanes, 1.0)
    largest = fill(lanes, 0.0)
    for k in range(len(symbolic.node_bus)):
        at = element(symbolic.diagonal_at, k) * w
        up = element(symbolic.upper_at, k) * w
        r = len(symbolic.node_bus) - 1 - k
        count = element(symbolic.upper_ptr, r + 1) - element(symbolic.upper_ptr, r)
        if element(symbolic.node_size, k) == 1:
            inverse = one / load(lanes, factors, at)
            store(factors, at, inverse)
            for c in range(count):
                u = load(lanes, factors, up + c * w) * inverse
                largest = peak(u, largest)
                store(factors, up + c * w, u)
            for t in range(element(symbolic.update_ptr, k), element(symbolic.update_ptr, k + 1)):
                _eliminate_one(lanes, symbolic, factors, t, up, count)
        else:
            a, b = load(lanes, factors, at), load(lanes, factors, at + w)
            c, d = load(lanes, factors, at + 2 * w), load(lanes, factors, at + 3 * w)
            scale = one / mulsub(b, c, a * d)
            a, b, c, d = (
                d * scale,
                fill(lanes, 0.0) - b * scale,
                fill(lanes, 0.0) - c * scale,
                a * scale,
            )
            store(factors, at, a)
            store(factors, at + w, b)
            store(factors, at + 2 * w, c)
            store(factors, at + 3 * w, d)
            for j in range(count):
                x = load(lanes, factors, up + 2 * j * w)
                y = load(lanes, factors, up + (2 * j + 1) * w)
                u, v = muladd(a, x, c * y), muladd(b, x, d * y)
                largest = peak(u, peak(v, largest))
                store(factors, up + 2 * j * w, u)
                store(factors, up + (2 * j + 1) * w, v)
            for t in range(element(symbolic.update_ptr, k), element(symbolic.update_ptr, k + 1)):
                _eliminate_two(lanes, symbolic, factors, t, up, count)
    store(growth, 0, largest)


@compiled
def _eliminate_one(lanes, symbolic, factors, t, up, count):
    """Update one row by a node with one unknown."""
    w = width(lanes)
    at = element(symbolic.update_lower, t) * w
    target = element(symbolic.update_target_ptr, t)
    l0 = load(lanes, factors, at)
    if element(symbolic.node_size, element(symbolic.update_node, t)) == 1:
        for c in range(count):
            to = element(symbolic.update_target, target + c) * w
            u = load(lanes, factors, up + c * w)
            store(factors, to, mulsub(l0, u, load(lanes, factors, to)))
    else:
        l1 = load(lanes, factors, at + w)
        for c in range(count):
            to = element(symbolic.update_target, target + c) * w
            u = load(lanes, factors, up + c * w)
            store(factors, to, mulsub(l0, u, load(lanes, factors, to)))
            store(factors, to + w, mulsub(l1, u, load(lanes, factors, to + w)))


@compiled
def _eliminate_two(lanes, symbolic, factors, t, up, count):
    """Update one row by a node with two unknowns."""
    w = width(lanes)
    at = element(symbolic.update_lower, t) * w
    target = element(symbolic.update_target_ptr, t)
    if element(symbolic.node_size, element(symbolic.update_node, t)) == 1:
        l0, l1 = load(lanes, factors, at), load(lanes, factors, at + w)
        for c in range(count):
            to = element(symbolic.update_target, target + c) * w
            u = load(lanes, factors, up + 2 * c * w)
            v = load(lanes, factors, up + (2 * c + 1) * w)
            store(factors, to, mulsub(l1, v, mulsub(l0, u, load(lanes, factors, to))))
    else:
        l00, l10 = load(lanes, factors, at), load(lanes, factors, at + w)
        l01, l11 = load(lanes, factors, at + 2 * w), load(lanes, factors, at + 3 * w)
        for c in range(count):
            to = element(symbolic.update_target, target + c) * w
            u = load(lanes, factors, up + 2 * c * w)
            v = load(lanes, factors, up + (2 * c + 1) * w)
            store(factors, to, mulsub(l01, v, mulsub(l00, u, load(lanes, factors, to))))
            store(factors, to + w, mulsub(l11, v, mulsub(l10, u, load(lanes, factors, to + w))))
