"""pandapower networks to `Network`."""

import warnings
from dataclasses import dataclass, replace

import numpy as np

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridFileError, GridshiftWarning
from gridshift.grid.network import BusKind, Network
from gridshift.grid.readers.element_powers import consumed, warn_of_left_out
from gridshift.grid.readers.pandapower_arrays import Assembled, assemble, two_ports_again
from gridshift.grid.readers.pandapower_controls import step_controls
from gridshift.grid.readers.pandapower_names import bus_positions, bus_zones, element_names
from gridshift.grid.readers.pandapower_powers import (
    averaged_shares,
    fixed_powers,
    left_out,
    load_powers,
    load_shares,
)
from gridshift.grid.readers.pandapower_ratings import branch_ratings, is_real_rating


def network_from_pandapower(net, *, name: str, origin: str, source: str = "") -> Network:
    """The grid that `pandapower.runpp(net, calculate_voltage_angles=True)` would solve.

    Buses without a path to an external grid are left out, as pandapower does, with a warning that
    names what draws or gives power there. A line or transformer open at one end becomes a branch
    from its closed end to itself, with the admittance seen from there.

    Args:
        net: a pandapower network; it is left as it is.
        source: what messages call it; the name, if empty.

    Raises:
        GridFileError: parts that cannot be represented or solved, all in one message.
    """
    source = source or name
    grid = assemble(net, source)
    problems = _no_impedance(grid) + _not_finite(grid)
    if problems:
        raise GridFileError(source, problems)
    labels, is_open = _bus_labels(grid)
    keep = np.flatnonzero(~is_open)
    number = np.where(is_open, -1, np.cumsum(~is_open) - 1)

    def two_ports() -> Complex:
        moved = replace(grid, branch_y=two_ports_again(grid))
        return _with_star_ties(moved, _branches(moved, is_open), _branches(grid, is_open).y).y

    controls, told = step_controls(net, grid, number, two_ports)
    for note in (*grid.notes, *averaged_shares(grid), *told):
        warnings.warn(f"{name}: {note}", GridshiftWarning, stacklevel=3)
    warn_of_left_out(
        left_out(grid), name, "their buses are out of service or have no path to an external grid"
    )
    branch = _with_star_ties(grid, _branches(grid, is_open))
    load = load_powers(grid)
    load = load.only(load.bus >= 0)
    current, impedance = load_shares(grid, load.labels)
    fixed = -grid.demand
    np.subtract.at(fixed, load.bus, load.power / grid.base_mva)
    # What is left of a cancelled sum is rounding, not an injection.
    fixed[np.abs(fixed) < 1e-12 * (1 + np.abs(grid.demand))] = 0
    v_set = np.full(len(grid.kind), np.nan)
    v_set[grid.gen_bus] = grid.gen_v
    v_min, v_max = _voltage_limits(grid)
    num_ties = len(branch.start) - len(grid.branch_from)
    rating = np.concatenate([branch_ratings(grid), np.full((num_ties, 2), np.inf)])
    bus_labels = tuple(labels[b] for b in keep)
    return Network(
        name=name,
        origin=origin,
        base_mva=grid.base_mva,
        bus_labels=bus_labels,
        bus_kind=grid.kind[keep],
        bus_kv=grid.kv[keep],
        bus_v_min=v_min[keep],
        bus_v_max=v_max[keep],
        bus_shunt=grid.shunt[keep],
        bus_fixed=fixed[keep],
        bus_consumed=consumed(fixed_powers(grid), len(fixed))[keep] / grid.base_mva,
        bus_v_set=v_set[keep],
        v_start=grid.v_start[keep],
        load_labels=tuple(load.labels),
        load_bus=number[load.bus],
        load_power=-load.power / grid.base_mva,
        load_current=current,
        load_impedance=impedance,
        gen_labels=tuple(grid.gen_label),
        gen_bus=number[grid.gen_bus],
        gen_p=grid.gen_p,
        gen_q_min=grid.gen_q[:, 0].copy(),
        gen_q_max=grid.gen_q[:, 1].copy(),
        gen_p_min=grid.gen_p_range[:, 0].copy(),
        gen_p_max=grid.gen_p_range[:, 1].copy(),
        gen_weight=grid.gen_weight,
        branch_labels=(*_switchable(branch_labels(grid)), *[""] * num_ties),
        branch_from=number[branch.start],
        branch_to=number[branch.end],
        branch_y=branch.y,
        branch_in_service=branch.on,
        branch_rating=rating,
        branch_rated=np.concatenate([is_real_rating(grid), np.zeros(num_ties, bool)]),
        rating_kind="current",
        controls=tuple(controls),
        names=element_names(net, bus_labels),
        areas=bus_zones(net, bus_labels),
        bus_xy=bus_positions(net, grid)[keep],
    )


def branch_labels(grid: Assembled) -> list[str]:
    """The element of each branch: table and pandapower index, `line:34`."""
    labels: list[str] = []
    for kind, (first, last) in grid.branch_range.items():
        index = grid.net[kind].index
        if kind == "switch":
            index = index[grid.net._impedance_bb_switches]
        # A three-winding transformer has a row in each of three blocks: high, middle, low side.
        labels += [f"{kind}:{i}" for i in index] * ((last - first) // len(index))
    return labels


def _switchable(labels: list[str]) -> list[str]:
    """Labels of elements that an outage may name, empty for the others.

    An extended ward is a branch, a shunt and injections; switching off its branch alone would be
    another outage than the one that the name promises.
    """
    return ["" if label.startswith("xward:") else label for label in labels]


def _no_impedance(grid: Assembled) -> list[str]:
    none = grid.branch_on & ~grid.branch_y.any(axis=1)
    names = dict.fromkeys(np.array(branch_labels(grid), object)[none])
    advice = "join its buses with a bus-bus switch"
    return [f"{label} has no impedance; {advice}" for label in names]


def _not_finite(grid: Assembled) -> list[str]:
    bad = grid.branch_on & ~np.isfinite(grid.branch_y).all(axis=1)
    names = dict.fromkeys(np.array(branch_labels(grid), object)[bad])
    found = [f"{label} has no finite admittance" for label in names]
    for what in ("shunt", "demand"):
        rows = np.flatnonzero(~np.isfinite(getattr(grid, what)))
        if len(rows):
            buses = ", ".join(f"bus:{i}" for i in np.flatnonzero(np.isin(grid.bus_of, rows))[:5])
            found.append(f"no finite {what} at {buses}")
    return found


def _bus_labels(grid: Assembled) -> tuple[list[str], Bool]:
    """Label of each assembled bus, and which of them are only the open end of a branch."""
    members: dict[int, list[str]] = {}
    for bus in grid.net.bus.index:
        members.setdefault(int(grid.bus_of[bus]), []).append(str(bus))
    labels = ["+".join(members.get(row, ())) for row in range(len(grid.kind))]
    for kind, rows in grid.inner_bus.items():
        for index, row in zip(grid.net[kind].index, rows, strict=True):
            if row >= 0:
                labels[row] = f"{kind}:{index}"
    is_open = np.array([not label for label in labels], bool)
    return [f"bus:{label}" for label in labels], is_open


@dataclass(frozen=True)
class _Branches:
    start: Int
    end: Int
    y: Complex
    on: Bool


def _branches(grid: Assembled, is_open: Bool) -> _Branches:
    """Branches between energised buses that are no open ends."""
    start, end, y = grid.branch_from.copy(), grid.branch_to.copy(), grid.branch_y.copy()
    on = grid.branch_on.copy()
    y[~np.isfinite(y).all(axis=1)] = 0  # out of service: those in service have been refused

    # Open end o, closed end c: no current at o gives v_o = -y_oc/y_oo v_c, hence the current
    # (y_cc - y_co y_oc / y_oo) v_c at c.
    yff, yft, ytf, ytt = y.T.copy()
    open_from, open_to = is_open[start] & on, is_open[end] & on
    with np.errstate(all="ignore"):
        seen_from_end = ytt - ytf * yft / yff
        seen_from_start = yff - yft * ytf / ytt
    y[open_from] = 0
    y[open_from, 3] = seen_from_end[open_from]
    y[open_to] = 0
    y[open_to, 0] = seen_from_start[open_to]
    start[open_from], end[open_to] = end[open_from], start[open_to]

    # Elements that are out and end at a bus that is not energised stay as empty rows.
    energised = int(np.flatnonzero(grid.kind == BusKind.SLACK)[0])
    dead = ~on & ((start < 0) | (end < 0) | is_open[start] | is_open[end])
    y[dead] = 0
    for bus, other in ((start, end), (end, start)):
        lost = (bus < 0) | is_open[bus]
        known = (other >= 0) & ~is_open[other]
        bus[lost] = np.where(known, other, energised)[lost]
    return _Branches(start, end, y, on)


def _with_star_ties(
    grid: Assembled, branches: _Branches, sizes: Complex | None = None
) -> _Branches:
    """With a branch for each three-winding transformer that holds its star point when it is out.

    Without its windings the star point would have no voltage, and an outage would seem to cut
    it off. A tie with yss = t, ysh = -t, yhs = yhh = 0 from the star s to a terminal h makes
    v_s = v_h then and takes nothing from h. While the transformer is in service, that winding
    has t subtracted at its star end, so that nothing changes, the flow at the terminal included.
    It is as large as the admittance in `sizes` (E, 4), so that it stays where taps move; else as
    that of the branch.
    """
    sizes = branches.y if sizes is None else sizes
    start, end, y, on = branches.start, branches.end, branches.y.copy(), branches.on
    ties: list[tuple[int, int, Complex]] = []
    first, last = grid.branch_range.get("trafo3w", (0, 0))
    for star, windings in zip(
        grid.inner_bus.get("trafo3w", ()), np.arange(first, last).reshape(3, -1).T, strict=True
    ):
        # the low side's, if it may be, as taps are mostly at the high side
        row = next((r for r in windings[::-1] if on[r] and start[r] != end[r]), None)
        if star < 0 or row is None:
            continue
        at_start = start[row] == star
        t = -1j * abs(sizes[row, 1])
        tie = np.array([t, -t, 0, 0] if at_start else [0, 0, -t, t])
        y[row] -= tie
        ties.append((int(start[row]), int(end[row]), tie))
    if not ties:
        return branches
    return _Branches(
        np.append(start, [a for a, _, _ in ties]),
        np.append(end, [b for _, b, _ in ties]),
        np.concatenate([y, [tie for _, _, tie in ties]]),
        np.append(on, np.ones(len(ties), bool)),
    )


def _voltage_limits(grid: Assembled) -> tuple[Real, Real]:
    """(B,) limits of the bus table; the tighter one where buses are fused, NaN where none."""
    low, high = np.full(len(grid.kind), -np.inf), np.full(len(grid.kind), np.inf)
    row = grid.bus_of[grid.net.bus.index.to_numpy()]
    for limit, column, tighter in ((low, "min_vm_pu", np.fmax), (high, "max_vm_pu", np.fmin)):
        if column in grid.net.bus:
            value = grid.net.bus[column].to_numpy(float)
            tighter.at(limit, row[row >= 0], value[row >= 0])
    return np.where(np.isfinite(low), low, np.nan), np.where(np.isfinite(high), high, np.nan)
