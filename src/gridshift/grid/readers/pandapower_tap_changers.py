"""Tap changers of pandapower's transformers that hold a voltage, as its controllers move them."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from gridshift.arrays import Complex, Int
from gridshift.grid.controls import Continuous, Control
from gridshift.grid.readers.pandapower_arrays import Assembled
from gridshift.grid.readers.pandapower_controllers import Controller

MOST_POSITIONS = 1000
TAP_CONTROLS = ("DiscreteTapControl", "ContinuousTapControl")
WINDINGS = {"trafo": 1, "trafo3w": 3}
"""Branches of a transformer of each table."""
UNTOLD = "what its tap changer does to the admittance follows no known rule, so it is not moved"
SAME = 1e-9
"""Relative difference of admittances from pandapower's that is rounding."""


class Changer(NamedTuple):
    """A tap changer that is followed."""

    table: str
    row: int
    """In that table."""
    side: str
    low: float
    high: float
    positions: tuple[float, ...]
    """Those whose admittances are needed: all, or of a continuous one start, lowest, highest."""
    at: float
    raises: int
    level: int
    continuous: Continuous | None = None


def tap_changer(grid: Assembled, one: Controller, index: int, level: int) -> Changer | str:
    """A tap changer, or why it isn't followed; empty where it has nothing to do."""
    kind, _ = one.elements
    table, side = grid.net[kind], str(one.values.get("side"))
    if index not in table.index:
        return "the controller's transformer is not in the network"
    trafo = table.loc[index]
    sides = ("hv", "mv", "lv") if kind == "trafo3w" else ("hv", "lv")
    if not trafo.in_service or side not in sides:
        return ""
    step, degree = _cell(trafo, "tap_step_percent"), _cell(trafo, "tap_step_degree")
    least, most = _cell(trafo, "tap_min"), _cell(trafo, "tap_max")
    at = _cell(trafo, "tap_pos")
    at = _cell(trafo, "tap_neutral") if np.isnan(at) else at
    if least > most:
        return "tap_min is above tap_max, so that no position is allowed; swap them"
    if trafo.get("tap_dependency_table", False) or most - least >= MOST_POSITIONS:
        return "a tap changer with its positions in a table is not moved"
    # the sign is pandapower's: `tap_side_coeff` and `tap_sign`
    sign = (1 if trafo.get("tap_side") == "hv" else -1) * (-1 if side == "hv" else 1)
    sign *= -1 if step < 0 else 1
    turned = np.cos(np.deg2rad(degree)) if np.isfinite(degree) else 1.0
    sign *= -1 if turned < -1e-12 else 1
    row = int(table.index.get_loc(index))
    if one.kind == "ContinuousTapControl":
        return _continuous(grid, one, kind, row, sign, level)
    low, high = one.number("vm_lower_pu"), one.number("vm_upper_pu")
    if (target := one.number("_vm_set_pu")) == target:  # pandapower makes the band anew
        half = abs(step) / 200 + one.number("tol")
        low, high = target - half, target + half
    if not np.isfinite((low, high, least, most, at, step)).all() or not low < high:
        return "the controller lacks its band, or the transformer tap_min, tap_max or a step"
    if any(value != round(value) for value in (least, most, at)) or not least <= at <= most:
        return "a tap_pos that is no whole number between tap_min and tap_max can't be moved"
    positions = tuple(map(float, range(int(least), int(most) + 1)))
    return Changer(kind, row, side, low, high, positions, at, -sign, level)


def _continuous(
    grid: Assembled, one: Controller, kind: str, row: int, sign: int, level: int
) -> Changer | str:
    """As pandapower's `ContinuousTapControl`: by the deviation over the step, until it is small."""
    trafo, side = grid.net[kind].iloc[row], str(one.values.get("side"))
    target, tol, step = one.number("vm_set_pu"), one.number("tol"), _cell(trafo, "tap_step_percent")
    at, neutral = _cell(trafo, "tap_pos"), _cell(trafo, "tap_neutral")
    at = neutral if np.isnan(at) else at
    least, most = _cell(trafo, "tap_min"), _cell(trafo, "tap_max")
    if not one.values.get("check_tap_bounds", True):
        least, most = -np.inf, np.inf
    if not np.isfinite((target, tol, step, at, neutral)).all() or not 0 < tol < 1:
        return "the controller lacks its voltage or tolerance, or the transformer a step"
    if np.isnan(least + most) and least != -most:
        return "the transformer lacks tap_min or tap_max"
    if step < 0:
        return "a ContinuousTapControl of a negative step is not followed: it moves the wrong way"
    other = "mv" if kind == "trafo3w" and side == "mv" else "lv"
    kv = grid.net.bus.vn_kv
    nominal = trafo[f"vn_{other}_kv"] / trafo.vn_hv_kv
    nominal *= kv[trafo.hv_bus] / kv[trafo[f"{other}_bus"]]
    degree = _cell(trafo, "tap_step_degree")
    turn = step / 100 * np.exp(1j * np.deg2rad(degree if np.isfinite(degree) else 0.0))
    rule = Continuous(
        least, most, 0, neutral, float(turn.real), float(turn.imag), aim=target,
        gain=float(100 * sign / step / nominal),
    )  # fmt: skip
    seen = (at, max(least, at - 2), min(most, at + 2))
    band = target / (1 + tol), target / (1 - tol)
    return Changer(kind, row, side, *band, seen, at, -sign, level, rule)


def _cell(row: Any, name: str) -> float:
    return float(row[name]) if name in row and row[name] is not None else np.nan


def tap_controls(
    grid: Assembled, changers: Sequence[Changer], number: Int,
    two_ports: Callable[[], Complex],
) -> tuple[list[Control], list[str]]:  # fmt: skip
    """Tap changers with the admittances of their positions, and those that follow no known rule.

    pandapower computes the admittances, of all changers at a time.
    """
    seen: list[list[Complex]] = [[] for _ in changers]
    given = {table: grid.net[table].tap_pos.copy() for table in {one.table for one in changers}}
    for table in given:
        grid.net[table]["tap_pos"] = grid.net[table].tap_pos.astype(float)
    for k in range(max((len(one.positions) for one in changers), default=0)):
        for one in changers:
            table, at = grid.net[one.table], one.positions[min(k, len(one.positions) - 1)]
            table.loc[table.index[one.row], "tap_pos"] = at
        y = two_ports()
        for ys, one in zip(seen, changers, strict=True):
            ys += [y[_branches(grid, one)]] if k < len(one.positions) else []
    for table, column in given.items():
        grid.net[table]["tap_pos"] = column
    slack = np.unique(grid.net.ext_grid.bus[grid.net.ext_grid.in_service])
    found, untold = [], []
    for one, ys in zip(changers, seen, strict=True):
        table = grid.net[one.table]
        watched, label = int(table[f"{one.side}_bus"].iloc[one.row]), table.index[one.row]
        bus = int(number[row]) if (row := grid.bus_of[watched]) >= 0 else -1
        if bus < 0 or watched in slack:  # as pandapower: nothing to do there
            continue
        made = _control(grid, one, np.array(ys), bus, f"{one.table}:{label}")
        found += [made] if made else []
        untold += [] if made else [f"{one.table}:{label}"]
    return found, untold


def _branches(grid: Assembled, one: Changer) -> list[int]:
    """Of a transformer; three-winding ones have a block for each side."""
    first, last = grid.branch_range[one.table]
    return list(range(first, last))[one.row :: (last - first) // WINDINGS[one.table]]


def _control(
    grid: Assembled, one: Changer, y: Complex, bus: int, label: str
) -> Control | None:  # fmt: skip
    """The control, with admittances (positions, branches, 4) of all positions or of three."""
    moved = np.flatnonzero((y != y[:1]).any((0, 2)))
    moved = moved if len(moved) else np.arange(1)
    y = y[:, moved]
    branches = tuple(_branches(grid, one)[k] for k in moved.tolist())
    parts = np.ascontiguousarray(y).view(float).reshape(len(y), -1)
    discrete = one.continuous is None
    control = Control(
        label=label, bus=bus, low=one.low, high=one.high,
        start=one.at - one.positions[0] if discrete else one.at, raises=one.raises,
        first=one.positions[0] if discrete else 0.0, by=1.0,
        admittance=tuple(tuple(part) for part in (parts if discrete else parts[:1]).tolist()),
        branches=branches, level=one.level,
    )  # fmt: skip
    if one.continuous is None:
        return control
    if len(branches) > 1:
        return None
    # inverse at the other end where the tap changer is at a star point
    for end, inverse, sign in product((0, 1), (False, True), (1, -1)):
        imag = sign * one.continuous.step_imag
        rule = one.continuous._replace(end=end, inverse=inverse, step_imag=imag)
        control = control._replace(continuous=rule)
        if np.allclose(control.two_ports(np.array(one.positions)), y, rtol=SAME, atol=0):
            return control
    return None
