"""Branch flows, loading and retained voltage of a block while its voltages are in cache."""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels.lanes import (
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
from gridshift.grid.kernels.steps import compiled


@compiled
def retained(lanes, p, nominal, voltage, out):
    """out := smallest |v|^2 as a share of the nominal point's, over buses that don't fix it."""
    w = width(lanes)
    zero = fill(lanes, 0.0)
    least = fill(lanes, -1e300)
    for i in range(len(p.node_bus)):
        if element(p.node_size, i) == 2:
            bus = element(p.node_bus, i)
            re, im = load(lanes, voltage, bus * (2 * w)), load(lanes, voltage, bus * (2 * w) + w)
            re0, im0 = element(nominal, 2 * bus), element(nominal, 2 * bus + 1)
            share = fill(lanes, 1.0 / (re0 * re0 + im0 * im0)) * muladd(re, re, im * im)
            least = larger(zero - share, least)
    store(out, 0, zero - least)


@compiled
def branch_powers(lanes, branches, voltage, out):
    """out (4 E, W) := active and reactive power into the branch at its from and its to end."""
    w = width(lanes)
    for e in range(len(branches.bus) // 2):
        f = element(branches.bus, 2 * e) * (2 * w)
        t = element(branches.bus, 2 * e + 1) * (2 * w)
        f_re, f_im = load(lanes, voltage, f), load(lanes, voltage, f + w)
        t_re, t_im = load(lanes, voltage, t), load(lanes, voltage, t + w)
        re, im = current(lanes, branches.admittance, 8 * e, f_re, f_im, t_re, t_im)
        store(out, 4 * e * w, muladd(f_re, re, f_im * im))
        store(out, (4 * e + 1) * w, mulsub(f_re, im, f_im * re))
        re, im = current(lanes, branches.admittance, 8 * e + 4, f_re, f_im, t_re, t_im)
        store(out, (4 * e + 2) * w, muladd(t_re, re, t_im * im))
        store(out, (4 * e + 3) * w, mulsub(t_re, im, t_im * re))


@compiled
def branch_loading(lanes, branches, voltage, out):
    """out (E, W) := the larger loading of the two ends, as a fraction of the rating.

    `by_power` says that ratings limit apparent power rather than current.
    """
    w = width(lanes)
    for e in range(len(branches.bus) // 2):
        f = element(branches.bus, 2 * e) * (2 * w)
        t = element(branches.bus, 2 * e + 1) * (2 * w)
        f_re, f_im = load(lanes, voltage, f), load(lanes, voltage, f + w)
        t_re, t_im = load(lanes, voltage, t), load(lanes, voltage, t + w)
        re, im = current(lanes, branches.admittance, 8 * e, f_re, f_im, t_re, t_im)
        at_from = muladd(re, re, im * im) * fill(lanes, element(branches.inverse_square, 2 * e))
        re, im = current(lanes, branches.admittance, 8 * e + 4, f_re, f_im, t_re, t_im)
        at_to = muladd(re, re, im * im) * fill(lanes, element(branches.inverse_square, 2 * e + 1))
        if branches.by_power[0]:
            at_from = at_from * muladd(f_re, f_re, f_im * f_im)
            at_to = at_to * muladd(t_re, t_re, t_im * t_im)
        store(out, e * w, square_root(larger(at_from, at_to)))


@compiled
def current(lanes, admittance, at, f_re, f_im, t_re, t_im):
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
