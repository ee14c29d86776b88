"""Which controllers of a pandapower network are followed, and why others are not."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gridshift.arguments import some_of
from gridshift.arrays import Complex, Int
from gridshift.grid.controls import MOVE_ON_REQUEST, Control
from gridshift.grid.readers.pandapower_arrays import Assembled
from gridshift.grid.readers.pandapower_controllers import Controller, controllers
from gridshift.grid.readers.pandapower_tap_changers import (
    MOST_POSITIONS,
    TAP_CONTROLS,
    UNTOLD,
    WINDINGS,
    Changer,
    tap_changer,
    tap_controls,
)

WITHOUT_EFFECT = ("TapDependentImpedance",)
"""Of the form before pandapower 3; what it would do is part of the network by now."""


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
        elif one.kind in TAP_CONTROLS and table in WINDINGS and elements:
            made = [tap_changer(grid, one, index, level) for index in elements]
            changers += [c for c in made if isinstance(c, Changer)]
            why = next((c for c in made if isinstance(c, str) and c), "")
        elif one.kind == "DiscreteShuntController" and elements:
            shunt = _shunt(grid, one, elements[0], level, number)
            shunts += [shunt] if isinstance(shunt, Control) else []
            why = shunt if isinstance(shunt, str) else ""
        if why:
            refused.setdefault(why, []).append(name or "an element that it doesn't name")
    taps, untold = tap_controls(grid, changers, number, two_ports)
    if untold:
        refused[UNTOLD] = untold
    found = taps + shunts
    notes = [f"{some_of(names)}: {why}" for why, names in refused.items()]
    if found:
        notes.append(f"{some_of([one.label for one in found])}: {MOVE_ON_REQUEST}")
    return found, notes


def _tabulated(net: Any) -> set[str]:
    """Shunts with their steps in a table."""
    if "step_dependency_table" not in getattr(net.get("shunt"), "columns", ()):
        return set()
    return {f"shunt:{i}" for i, own in net.shunt.step_dependency_table.items() if own == 1}


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
