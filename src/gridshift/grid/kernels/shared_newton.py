"""The imbalance that generators share as an unknown of Newton's method, W states at a time.

The Jacobian has one row and one column more, the active balance of the slack bus and the imbalance.
The column is taken through the factors beside the residual, and what is left is one number for each
lane: how the slack bus's balance goes with the imbalance, all else in balance.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.arithmetic import muladd, mulsub
from gridshift.grid.kernels.lanes import element, fill, load, store, width
from gridshift.grid.kernels.shared_chord import slack_balance
from gridshift.grid.kernels.steps import substitute


@compiled
def first_imbalance(lanes, symbolic, sharing, work, shared):
    """imbalance := what all buses together need beyond what is specified; nothing is shared yet.

    That is the imbalance itself where the voltages are those of a solution.
    """
    w = width(lanes)
    slack_balance(lanes, sharing, work, shared)
    missing = load(lanes, shared.off, 0)
    for i in range(len(symbolic.node_bus)):
        missing = missing + load(lanes, work.residual, element(symbolic.node_first, i) * w)
    store(shared.imbalance, 0, fill(lanes, 0.0) - missing)
    for j in range(len(sharing.bus) + 1):
        store(shared.given, j * w, fill(lanes, 0.0))


@compiled
def take_imbalance(lanes, symbolic, sharing, work, shared):
    """residual := the step with that of the imbalance, from the step with none; imbalance moves."""
    w = width(lanes)
    by_slack = through_factors(lanes, symbolic, sharing, work, shared)
    missing = at_slack(lanes, symbolic, sharing, work.voltage, work.residual)
    step = (missing - load(lanes, shared.off, 0)) / by_slack
    moved = load(lanes, work.active, 0) * step
    store(shared.imbalance, 0, load(lanes, shared.imbalance, 0) + moved)
    for q in range(symbolic.num_unknowns):
        x = muladd(step, load(lanes, shared.along, q * w), load(lanes, work.residual, q * w))
        store(work.residual, q * w, x)


@compiled
def turn(lanes, symbolic, sharing, work, shared):
    """active, the orientation without the imbalance, := that with it."""
    w = width(lanes)
    store(shared.off, 0, through_factors(lanes, symbolic, sharing, work, shared))
    for k in range(w):
        if not shared.off[k] > 0.0:
            work.active[k] = -work.active[k] if shared.off[k] < 0.0 else 0.0


@compiled
def through_factors(lanes, symbolic, sharing, work, shared):
    """along := how all unknowns move with the imbalance; returned is the balance of the slack bus
    by it."""
    w = width(lanes)
    slopes(w, sharing, shared.imbalance, shared.slope)
    for q in range(symbolic.num_unknowns):
        store(shared.along, q * w, fill(lanes, 0.0))
    own = load(lanes, shared.slope, len(sharing.bus) * w)
    for j in range(len(sharing.bus)):
        slope, unknown = load(lanes, shared.slope, j * w), element(sharing.unknown, j)
        if unknown >= 0:
            store(shared.along, unknown * w, load(lanes, shared.along, unknown * w) + slope)
        else:
            own = own + slope
    substitute(lanes, symbolic, work.lower, work.diagonal, work.upper, shared.along)
    return own - at_slack(lanes, symbolic, sharing, work.voltage, shared.along)


@compiled
def at_slack(lanes, symbolic, sharing, voltage, step):
    """By how much the active power into the grid at the slack bus grows with a step.

    Derivatives as in `steps.fill_jacobian`.
    """
    w = width(lanes)
    grown = fill(lanes, 0.0)
    home = sharing.slack * (2 * w)
    v_re, v_im = load(lanes, voltage, home), load(lanes, voltage, home + w)
    for e in range(len(sharing.entry_bus)):
        unknown = element(sharing.entry_unknown, e)
        if unknown < 0:
            continue
        at = element(sharing.entry_bus, e) * (2 * w)
        u_re, u_im = load(lanes, voltage, at), load(lanes, voltage, at + w)
        g = fill(lanes, element(sharing.admittance, 2 * e))
        b = fill(lanes, element(sharing.admittance, 2 * e + 1))
        i_re, i_im = mulsub(b, u_im, g * u_re), muladd(b, u_re, g * u_im)
        reactive = mulsub(v_re, i_im, v_im * i_re)
        grown = muladd(reactive, load(lanes, step, unknown * w), grown)
        if element(sharing.entry_size, e) == 2:
            active = muladd(v_re, i_re, v_im * i_im)
            grown = muladd(active, load(lanes, step, unknown * w + w), grown)
    return grown


@compiled
def slopes(w, sharing, imbalance, slope):
    """slope (K + 1, W) := how what each generator gives grows with the imbalance, then what is left
    to the slack bus. As `shared_chord.share`."""
    number = len(sharing.bus)
    for k in range(w):
        up = imbalance[k] >= 0.0
        lines = sharing.up_lines if up else sharing.down_lines
        weight = sharing.up_weight if up else sharing.down_weight
        room = sharing.up_room if up else sharing.down_room
        amount, best, steep = abs(imbalance[k]), 0.0, 0.0
        for j in range(len(lines) // 2):
            value = lines[2 * j] + lines[2 * j + 1] * amount
            if value >= best:
                best, steep = value, lines[2 * j + 1]
        rest = 1.0
        for j in range(number):
            own = weight[j] * steep if weight[j] * best < room[j] else 0.0
            slope[j * w + k] = own
            rest -= own
        slope[number * w + k] = rest
