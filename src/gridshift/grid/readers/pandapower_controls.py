"""Controllers of a pandapower network: read as data, never run.

Those of a network in memory are objects of pandapower's classes, those of a file what
`pandapower.to_json` wrote of them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gridshift.arrays import Complex, Int
from gridshift.grid.controls import Control
from gridshift.grid.readers.pandapower_arrays import Assembled
from gridshift.grid.readers.pandapower_safety import CONTROLLERS

MOST_POSITIONS = 1000
WITHOUT_EFFECT = ("TapDependentImpedance",)
"""Of the form before pandapower 3; what it would do is part of the network by now."""


class Controller(NamedTuple):
    """What a controller says of itself."""

    kind: str
    values: Mapping[str, Any]
    level: float

    @property
    def elements(self) -> tuple[str, list[int]]:
        """Table and numbers of what it moves; none where it doesn't say."""
        given = self.values.get("element_index", self.values.get("shunt_index"))
        table = "shunt" if "shunt_index" in self.values else str(self.values.get("element", ""))
        try:
            return table, [int(one) for one in np.atleast_1d(_plain(given))]
        except (TypeError, ValueError):
            return table, []

    def number(self, name: str) -> float:
        """A value as a number; NaN if it is none."""
        try:
            return float(_plain(self.values.get(name)))
        except (TypeError, ValueError):
            return np.nan


def controllers(net: Any) -> list[Controller]:
    """The controllers in service, in the order of the table."""
    table = net.get(CONTROLLERS)
    if not hasattr(table, "columns") or "object" not in table:
        return []
    found = []
    for row in table.to_dict("records"):
        if row.get("in_service", True):
            kind, values = _described(row["object"])
            found.append(Controller(kind, values, _level(row.get("level"))))
    return found


def _described(one: Any) -> tuple[str, Mapping[str, Any]]:
    """Class and values of a controller, of which a file holds the text that `to_json` wrote."""
    if not isinstance(one, Mapping):
        return type(one).__name__, getattr(one, "__dict__", {})
    try:
        values = json.loads(one["_object"])
    except (KeyError, TypeError, ValueError):
        values = {}
    return str(one.get("_class")), values if isinstance(values, dict) else {}


def _level(given: Any) -> float:
    """The first of its levels."""
    try:
        return float(np.ravel(given)[0])
    except (IndexError, TypeError, ValueError):
        return 0.0


def _plain(value: Any) -> Any:
    """A number or a list of them out of what `to_json` makes of numpy's."""
    return value["_object"] if isinstance(value, Mapping) and "_object" in value else value


class Changer(NamedTuple):
    """A tap changer that is followed."""

    row: int
    """In the table of transformers."""
    side: str
    low: float
    high: float
    positions: range
    at: int
    raises: int
    level: int


def step_controls(
    net: Any, grid: Assembled, number: Int, two_ports: Callable[[], Complex]
) -> tuple[list[Control], list[str]]:
    """What is followed, and sentences on the controllers.

    Args:
        net: the network as the user has it.
        grid: its power flow part, assembled.
        number: of each assembled bus in the grid that is read, -1 for none.
        two_ports: (E, 4) admittances of all branches as taps are in `grid.net`.
    """
    changers: list[Changer] = []
    shunts: list[Control] = []
    refused: dict[str, list[str]] = {}
    taken: set[str] = set()
    tabulated = _tabulated(net)
    levels = sorted({one.level for one in controllers(net)})
    for one in controllers(net):
        table, elements = one.elements
        level, name = levels.index(one.level), ", ".join(f"{table}:{i}" for i in elements[:5])
        if one.kind in WITHOUT_EFFECT:
            continue
        why, before = f"a {one.kind} is not followed", len(taken)
        taken |= (own := {f"{table}:{i}" for i in elements})
        if len(taken) < before + len(own):
            why = "a second controller is not followed"
        elif not own.isdisjoint(tabulated):
            why = "a shunt with its steps in a table is not moved"
        elif one.kind == "DiscreteTapControl" and table == "trafo" and elements:
            made = [_changer(grid, one, index, level) for index in elements]
            changers += [c for c in made if isinstance(c, Changer)]
            why = next((c for c in made if isinstance(c, str) and c), "")
        elif one.kind == "DiscreteShuntController" and elements:
            shunt = _shunt(grid, one, elements[0], level, number)
            shunts += [shunt] if isinstance(shunt, Control) else []
            why = shunt if isinstance(shunt, str) else ""
        if why:
            refused.setdefault(why, []).append(name or "an element that it doesn't name")
    found = _tap_controls(grid, changers, number, two_ports) + shunts
    notes = [f"{', '.join(names[:5])}{_more(names)}: {why}" for why, names in refused.items()]
    if found:
        notes.append(
            f"{', '.join(one.label for one in found[:5])}{_more(found)} can move to hold a "
            "voltage; they move where controls are asked for (solve, --controls)"
        )
    return found, notes


def _tabulated(net: Any) -> set[str]:
    """Shunts with their steps in a table."""
    if "step_dependency_table" not in getattr(net.get("shunt"), "columns", ()):
        return set()
    return {f"shunt:{i}" for i, own in net.shunt.step_dependency_table.items() if own == 1}


def _more(names: Sequence) -> str:
    return f" and {len(names) - 5} more" if len(names) > 5 else ""


def _changer(grid: Assembled, one: Controller, index: int, level: int) -> Changer | str:
    """A tap changer, or why it isn't followed; empty where it has nothing to do."""
    table, side = grid.net.trafo, str(one.values.get("side"))
    if index not in table.index:
        return "the controller's transformer is not in the network"
    trafo = table.loc[index]
    if not trafo.in_service or side not in ("hv", "lv"):
        return ""
    low, high = one.number("vm_lower_pu"), one.number("vm_upper_pu")
    if (target := one.number("_vm_set_pu")) == target:  # pandapower makes the band anew
        half = abs(_cell(trafo, "tap_step_percent")) / 200 + one.number("tol")
        low, high = target - half, target + half
    ends = [_cell(trafo, name) for name in ("tap_min", "tap_max")]
    at = _cell(trafo, "tap_pos")
    at = _cell(trafo, "tap_neutral") if np.isnan(at) else at
    wanted = (low, high, *ends, at, _cell(trafo, "tap_step_percent"))
    if not np.isfinite(wanted).all() or not low < high:
        return "the controller lacks its band, or the transformer tap_min, tap_max or a step"
    if any(value != round(value) for value in (*ends, at)) or not ends[0] <= at <= ends[1]:
        return "a tap_pos that is no whole number between tap_min and tap_max can't be moved"
    if trafo.get("tap_dependency_table", False) or ends[1] - ends[0] >= MOST_POSITIONS:
        return "a tap changer with its positions in a table is not moved"
    # the sign is pandapower's: `tap_side_coeff` and `tap_sign`
    sign = (1 if trafo.get("tap_side") == "hv" else -1) * (-1 if side == "hv" else 1)
    sign *= -1 if _cell(trafo, "tap_step_percent") < 0 else 1
    degree = _cell(trafo, "tap_step_degree")
    turned = np.cos(np.deg2rad(degree)) if np.isfinite(degree) else 1.0
    sign *= -1 if turned < -1e-12 else 1
    positions = range(int(ends[0]), int(ends[1]) + 1)
    row = int(table.index.get_loc(index))
    return Changer(row, side, low, high, positions, int(at), -sign, level)


def _cell(row: Any, name: str) -> float:
    return float(row[name]) if name in row and row[name] is not None else np.nan


def _tap_controls(
    grid: Assembled, changers: Sequence[Changer], number: Int,
    two_ports: Callable[[], Complex],
) -> list[Control]:  # fmt: skip
    """Tap changers with the admittances of their positions, which pandapower computes."""
    if not changers:
        return []
    table = grid.net.trafo
    first = grid.branch_range["trafo"][0]
    branches = [first + one.row for one in changers]
    found: list[list[Complex]] = [[] for _ in changers]
    given = table.tap_pos.copy()
    for k in range(max(len(one.positions) for one in changers)):
        for one in changers:
            at = one.positions[min(k, len(one.positions) - 1)]
            table.loc[table.index[one.row], "tap_pos"] = float(at)
        y = two_ports()
        for ys, branch, one in zip(found, branches, changers, strict=True):
            ys += [y[branch]] if k < len(one.positions) else []
    table["tap_pos"] = given
    slack = np.unique(grid.net.ext_grid.bus[grid.net.ext_grid.in_service])
    made = []
    for one, ys, branch in zip(changers, found, branches, strict=True):
        watched = int(table[f"{one.side}_bus"].iloc[one.row])
        bus = int(number[row]) if (row := grid.bus_of[watched]) >= 0 else -1
        if bus >= 0 and watched not in slack:  # as pandapower: nothing to do there
            parts = np.ascontiguousarray(ys, complex).view(float)
            made.append(
                Control(
                    label=f"trafo:{table.index[one.row]}", bus=bus, low=one.low, high=one.high,
                    start=one.at - one.positions[0], raises=one.raises,
                    first=float(one.positions[0]), by=1.0,
                    admittance=tuple(tuple(y) for y in parts.tolist()), branches=(branch,),
                    level=one.level,
                )
            )  # fmt: skip
    return made


def _shunt(grid: Assembled, one: Controller, index: int, level: int, number: Int) -> Control | str:
    """A switched shunt, or why it isn't followed; empty where it has nothing to do."""
    table, watched = grid.net.shunt, one.number("controlled_bus")
    if index not in table.index:
        return "the controller's shunt is not in the network"
    shunt = table.loc[index]
    bus, at = grid.bus_of[int(shunt.bus)], one.number("step_max")
    if not shunt.in_service or bus < 0 or not np.isfinite(watched):
        return ""
    target, tol, stride = (one.number(n) for n in ("vm_set_pu", "tol", "increment"))
    start = 0.0 if one.values.get("reset_at_init") else float(shunt.step)
    known = bool(np.isfinite((start, target, tol, stride, at)).all())
    whole = known and all(value == round(value) for value in (start, stride, at))
    if not (whole and 0 <= start <= at < MOST_POSITIONS and stride >= 1):
        return "a shunt without whole steps from 0 to max_step is not moved"
    if one.values.get("reset_at_init") and float(shunt.step) != 0:
        return "a shunt that starts at step 0 whatever the network says is not moved"
    if not 0 <= int(watched) < len(grid.bus_of) or grid.bus_of[int(watched)] < 0:
        return ""
    kv = shunt.vn_kv if np.isfinite(shunt.vn_kv) else grid.kv[bus]
    each = complex(shunt.p_mw, -shunt.q_mvar) * float((grid.kv[bus] / kv) ** 2) / grid.base_mva
    return Control(
        label=f"shunt:{index}", bus=int(number[grid.bus_of[int(watched)]]), low=target - tol,
        high=target + tol, start=int(start), raises=-int(np.sign(shunt.q_mvar)) or 1, first=0.0,
        by=1.0, shunt_bus=int(number[bus]), level=level, stride=int(stride),
        admittance=tuple((each.real * k, each.imag * k) for k in range(int(at) + 1)),
    )  # fmt: skip
