"""Branch flows, loading and retained voltage of a block while its voltages are in cache.

All are functions of the voltages alone, bus by bus or branch by branch; nothing is solved here.
The textbook versions, for any voltages, are in `gridshift.grid.equations`.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import (
    active_power,
    larger,
    muladd,
    mulsub,
    reactive_power,
    square_root,
)
from gridshift.grid.kernels.lanes import element, fill, load, store, width


@compiled
def retained(lanes, symbolic, nominal, voltage, out):
    """out := smallest |v|^2 as a fraction of the nominal point's, over buses that don't fix it."""
    w = width(lanes)
    zero = fill(lanes, 0.0)
    least = fill(lanes, -1e300)
    for i in range(len(symbolic.node_bus)):
        if element(symbolic.node_size, i) == 2:
            bus = element(symbolic.node_bus, i)
            re, im = load(lanes, voltage, bus * (2 * w)), load(lanes, voltage, bus * (2 * w) + w)
            re0, im0 = element(nominal, 2 * bus), element(nominal, 2 * bus + 1)
            ratio = fill(lanes, 1.0 / (re0 * re0 + im0 * im0)) * muladd(re, re, im * im)
            least = larger(zero - ratio, least)
    store(out, 0, zero - least)


@compiled
def branch_powers(lanes, branches, voltage, out):
    """out (4 E, W) := active and reactive power into the branch at its from and its to end.

    A branch is a two-port, i_f = y_ff v_f + y_ft v_t and i_t = y_tf v_f + y_tt v_t, and the power
    into an end is its v conj(i).
    """
    w = width(lanes)
    for e in range(len(branches.bus) // 2):
        for end in range(2):
            v_re, v_im, re, im = at_end(lanes, branches, e, end, voltage)
            store(out, (4 * e + 2 * end) * w, active_power(v_re, v_im, re, im))
            store(out, (4 * e + 2 * end + 1) * w, reactive_power(v_re, v_im, re, im))


@compiled
def branch_loading(lanes, branches, voltage, out):
    """out (E, W) := the larger loading of the two ends, as a fraction of the rating.

    `by_power` says that ratings limit apparent power |v| |i| rather than current |i|. Squares are
    compared; the root is taken once.
    """
    w = width(lanes)
    for e in range(len(branches.bus) // 2):
        square = fill(lanes, 0.0)
        for end in range(2):
            v_re, v_im, re, im = at_end(lanes, branches, e, end, voltage)
            limit = fill(lanes, element(branches.inverse_square, 2 * e + end))
            loading = muladd(re, re, im * im) * limit
            if branches.by_power[0]:
                loading = loading * muladd(v_re, v_re, v_im * v_im)
            square = larger(square, loading)
        store(out, e * w, square_root(square))


@compiled
def at_end(lanes, branches, e, end, voltage):
    """Voltage at one end of a branch and current into it, real and imaginary parts."""
    w = width(lanes)
    f = element(branches.bus, 2 * e) * (2 * w)
    t = element(branches.bus, 2 * e + 1) * (2 * w)
    f_re, f_im = load(lanes, voltage, f), load(lanes, voltage, f + w)
    t_re, t_im = load(lanes, voltage, t), load(lanes, voltage, t + w)
    re, im = branch_current(lanes, branches.admittance, 8 * e + 4 * end, f_re, f_im, t_re, t_im)
    own = element(branches.bus, 2 * e + end) * (2 * w)
    return load(lanes, voltage, own), load(lanes, voltage, own + w), re, im


@compiled
def branch_current(lanes, admittance, at, f_re, f_im, t_re, t_im):
    """y_f v_f + y_t v_t, with the two admittances at four consecutive places."""
    g = fill(lanes, element(admittance, at))
    b = fill(lanes, element(admittance, at + 1))
    re = mulsub(b, f_im, g * f_re)
    im = muladd(b, f_re, g * f_im)
    g = fill(lanes, element(admittance, at + 2))
    b = fill(lanes, element(admittance, at + 3))
    re = mulsub(b, t_im, muladd(g, t_re, re))
    im = muladd(b, t_re, muladd(g, t_im, im))
    return re, im
