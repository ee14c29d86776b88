"""Specified powers at buses with loads that depend on the voltage, for W lanes at once.

Such a bus k has six numbers behind the powers of all buses: c, i and z of P and Q by turns, of the
injection c + i v + z v^2 at the magnitude v. A grid without such loads has none.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import muladd, mulsub, square_root
from gridshift.grid.kernels.lanes import element, fill, load, store, width


@compiled
def magnitude_at(lanes, symbolic, k, voltage):
    """Place of the k-th such bus in `voltage`, its magnitude and the square of that."""
    w = width(lanes)
    at = element(symbolic.dependent_bus, k) * (2 * w)
    v_re, v_im = load(lanes, voltage, at), load(lanes, voltage, at + w)
    square = muladd(v_re, v_re, v_im * v_im)
    return at, square_root(square), square


@compiled
def specify_at_voltage(lanes, symbolic, voltage, power):
    """power := c + i v + z v^2 at these buses, for the magnitudes v of `voltage`."""
    w = width(lanes)
    parts = len(power) - 6 * w * len(symbolic.dependent_bus)
    for k in range(len(symbolic.dependent_bus)):
        at, v, square = magnitude_at(lanes, symbolic, k, voltage)
        for side in range(2):
            own = parts + (6 * k + side) * w
            linear = muladd(load(lanes, power, own + 2 * w), v, load(lanes, power, own))
            store(power, at + side * w, muladd(load(lanes, power, own + 4 * w), square, linear))


@compiled
def subtract_slopes(lanes, symbolic, voltage, power, factors):
    """factors := factors - v (i + 2 z v), how specified power grows with the relative magnitude."""
    w = width(lanes)
    two = fill(lanes, 2.0)
    parts = len(power) - 6 * w * len(symbolic.dependent_bus)
    for k in range(len(symbolic.dependent_bus)):
        node = element(symbolic.dependent_node, k)
        if node < 0 or element(symbolic.node_size, node) == 1:
            continue
        _, v, square = magnitude_at(lanes, symbolic, k, voltage)
        for side in range(2):
            own = parts + (6 * k + side) * w
            to = (element(symbolic.diagonal_at, node) + 2 + side) * w
            slope = two * load(lanes, power, own + 4 * w)
            off = mulsub(v, load(lanes, power, own + 2 * w), load(lanes, factors, to))
            store(factors, to, mulsub(slope, square, off))


@compiled
def subtract_parts(lanes, dependence, shares, side, tile, power):
    """Specified parts of these buses less the demands (L, W) in `tile`; side 0 is P, 1 is Q."""
    w = width(lanes)
    for m in range(len(dependence.load)):
        demand = load(lanes, tile, element(dependence.load, m) * w)
        for part in range(3):
            at = (element(dependence.entry, m) + 2 * part + side) * w
            share = fill(lanes, element(shares, 3 * m + part))
            store(power, at, mulsub(share, demand, load(lanes, power, at)))
