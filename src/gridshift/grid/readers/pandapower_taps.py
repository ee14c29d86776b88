"""Taps and steps that stand in tables: looked up here, since pandapower makes up what is missing.

pandapower takes a ratio of 1, an angle of 1 degree and a short-circuit voltage of 1 % for a step
that a table lacks, and mixes up transformers that share a table but not the step.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gridshift.grid.readers.pandapower_tables import labels_of

EFFECTIVE = ("Ratio", "Symmetrical", "Ideal")
"""Kinds of tap changers that work without a table, as pandapower writes them."""
SIDES = {"trafo": ("hv", "lv"), "trafo3w": ("hv", "mv", "lv")}
VK = {
    "trafo": ("vk_percent", "vkr_percent"),
    "trafo3w": tuple(f"{v}_{s}_percent" for s in ("hv", "mv", "lv") for v in ("vk", "vkr")),
}


def enter_tabulated_steps(part) -> Iterator[str]:
    """Puts the values of tabulated steps into the network; yields what a table does not have.

    Each transformer gets a table of its own with the one step that it is at; each shunt gets its
    power.
    """
    import pandas as pd

    for _, suffix, table in _tap_changers(part):
        if f"tap{suffix}_neutral" not in table:
            table[f"tap{suffix}_neutral"] = np.nan  # without the column pandapower breaks off
    if "tap_side" not in part.trafo3w:
        part.trafo3w["tap_side"] = None
    steps: list[Any] = []
    for kind in SIDES:
        transformers = part[kind]
        if "tap_dependency_table" in transformers:
            tabulated = transformers.tap_dependency_table & transformers.in_service
            transformers["tap_dependency_table"] = tabulated
            numbers = np.full(len(transformers), np.nan)
            wanted = ("voltage_ratio", "angle_deg", *VK[kind])
            for row in np.flatnonzero(tabulated).tolist():
                label = f"{kind}:{transformers.index[row]}"
                position = _cell(transformers, row, "tap_pos")
                step = _step(part, "trafo", _id(transformers, row), position, wanted)
                if isinstance(step, str):
                    yield f"{label}: {step}"
                    continue
                numbers[row] = len(steps)
                for name in VK[kind]:
                    transformers.loc[transformers.index[row], name] = float(step[name])
                own = {name: float(step[name]) for name in wanted}
                steps.append({"id_characteristic": len(steps), "step": position, **own})
            transformers["id_characteristic_table"] = pd.array(
                [pd.NA if np.isnan(n) else int(n) for n in numbers], dtype="Int64"
            )
        yield from _outside_splines(part, kind)
    if steps:
        part["trafo_characteristic_table"] = pd.DataFrame(steps)
    yield from _shunt_steps(part)


def _shunt_steps(part) -> Iterator[str]:
    shunt = part.shunt
    if "step_dependency_table" not in shunt:
        return
    for row in np.flatnonzero(shunt.step_dependency_table & shunt.in_service).tolist():
        at = _cell(shunt, row, "step")
        step = _step(part, "shunt", _id(shunt, row), at, ("p_mw", "q_mvar"))
        if isinstance(step, str):
            yield f"shunt:{shunt.index[row]}: {step}"
            continue
        # The table gives the power of the step, not of one of several equal ones.
        shunt.loc[shunt.index[row], ["p_mw", "q_mvar", "step"]] = [step.p_mw, step.q_mvar, 1.0]
    part["shunt"] = shunt.drop(columns=["step_dependency_table", "id_characteristic_table"],
                               errors="ignore")  # fmt: skip


def _cell(table, row: int, column: str) -> float:
    return float(table[column].iloc[row]) if column in table else np.nan


def _id(table, row: int) -> float:
    return _cell(table, row, "id_characteristic_table")


def _step(part, kind: str, number: float, at: float, wanted: tuple[str, ...]) -> Any:
    """The row of a characteristic table, or what is wrong, in words."""
    name = f"{kind}_characteristic_table"
    what = "tap_pos" if kind == "trafo" else "step"
    if np.isnan(number):
        return "stands in a table, but has no id_characteristic_table"
    table = part.get(name)
    if not hasattr(table, "columns"):
        return f"stands in a table, but the network has no {name}"
    missing = [c for c in ("id_characteristic", "step", *wanted) if c not in table]
    if missing:
        return f"{name} has no column {missing[0]}"
    own = table[table.id_characteristic == number]
    rows = own[own.step == at]
    if len(rows) != 1:
        steps = ", ".join(f"{float(s):g}" for s in own.step.tolist()[:15]) or "none"
        count = "no" if len(rows) == 0 else f"{len(rows)} times"
        return f"{what} is {at:g}, but characteristic {number:g} has {count} step {at:g}: {steps}"
    try:
        fine = bool(np.isfinite(rows[list(wanted)].to_numpy(float)).all())
    except (TypeError, ValueError):
        fine = False
    return rows.iloc[0] if fine else f"step {at:g} of characteristic {number:g} lacks a number"


def _outside_splines(part, kind: str) -> Iterator[str]:
    """Positions beyond the ends of an impedance curve, the form before pandapower 3."""
    table = part[kind]
    if "tap_dependent_impedance" not in table or "tap_dependency_table" in table:
        return
    for row in np.flatnonzero(table.tap_dependent_impedance & table.in_service).tolist():
        position = _cell(table, row, "tap_pos")
        for name in VK[kind]:
            number = _cell(table, row, f"{name}_characteristic")
            if np.isnan(number):
                continue
            curves = part.get("characteristic")
            label = f"{kind}:{table.index[row]}"
            if not hasattr(curves, "columns") or number not in curves.index:
                yield f"{label}: {name}_characteristic {number:g} is not in the table"
                continue
            x = np.asarray(curves.object[number].x_vals, float)
            if not x.min() <= position <= x.max():
                yield (
                    f"{label}: tap_pos is {position:g}, but characteristic {number:g} goes from "
                    f"{x.min():g} to {x.max():g}"
                )


def tap_problems(part) -> Iterator[str]:
    """Tap changers of which pandapower makes something else than they say."""
    for kind, suffix, table in _tap_changers(part):
        name = f"tap{suffix}"
        if f"{name}_changer_type" not in table:
            if f"{name}_phase_shifter" in table:
                yield (
                    f"table {kind} has {name}_phase_shifter, but no {name}_changer_type, the form "
                    "before pandapower 3; convert it with pandapower.convert_format"
                )
            continue
        changer = table[f"{name}_changer_type"]
        away = table[f"{name}_pos"].fillna(0.0) - _steps(table, f"{name}_neutral")
        change = away * _steps(table, f"{name}_step_percent")
        for i in table.index[changer.isin(EFFECTIVE) & table.in_service & (change <= -100)]:
            position = table[f"{name}_pos"][i]
            yield (
                f"{kind}:{i}: {name}_pos {position:g} takes {-change[i]:g} % off the winding's "
                f"voltage; check it and {name}_step_percent"
            )
        percent = _steps(table, f"{name}_step_percent") != 0
        degree = _steps(table, f"{name}_step_degree") != 0
        ideal = changer == "Ideal"
        both = table.index[ideal & percent & degree & table.in_service]
        if len(both):
            yield (
                f"{labels_of(kind, both)}: an ideal tap changer has either {name}_step_percent "
                f"or {name}_step_degree, not both"
            )
        if kind == "trafo3w":
            at_star = ideal & table.tap_at_star_point & table.in_service
            star = table.index[at_star & ~_neutral(table, suffix)]
            if len(star):
                yield (
                    f"{labels_of(kind, star)}: an ideal tap changer at the star point is not "
                    "supported; put it at a terminal, with tap_at_star_point=False"
                )
    trafo = part.trafo
    if "tap2_dependency_table" in trafo:
        second = trafo.index[trafo.tap2_dependency_table & trafo.in_service]
        if len(second):
            which = labels_of("trafo", second)
            yield f"{which}: a table of the second tap changer is not supported"


def idle_taps(part) -> Iterator[str]:
    """Sentences on taps that are off neutral and change nothing, as in pandapower."""
    for kind, suffix, table in _tap_changers(part):
        off = ~_neutral(table, suffix) & table.in_service
        alike: dict[str, list[int]] = {}
        for i, row in zip(table.index[off], table[off].to_dict("records"), strict=True):
            alike.setdefault(_why_idle(kind, suffix, row), []).append(i)
        alike.pop("", None)
        for reason, index in alike.items():
            yield (
                f"{labels_of(kind, index)}: the tap is off neutral, but has no effect, as in "
                f"pandapower: {reason}"
            )


def _why_idle(kind: str, suffix: str, row: dict[str, Any]) -> str:
    """What keeps a tap changer off neutral from having an effect; empty if nothing does."""
    name = f"tap{suffix}"
    if kind == "trafo3w" and suffix:
        return f"it knows no {name} there"
    side, changer = row.get(f"{name}_side"), row.get(f"{name}_changer_type")
    if side not in SIDES[kind]:
        return f"{name}_side is {side!r}, not {' or '.join(SIDES[kind])}"
    if not suffix and row.get("tap_dependency_table") and f"{name}_changer_type" in row:
        return ""
    if changer not in EFFECTIVE:
        return f"{name}_changer_type is {changer!r}, not {' or '.join(EFFECTIVE)}"
    if np.isnan(row[f"{name}_neutral"]):
        return f"{name}_neutral is missing"
    percent, degree = row.get(f"{name}_step_percent"), row.get(f"{name}_step_degree")
    # Only an ideal changer turns by degrees alone; the others go along the direction of a step.
    if _is_set(percent) or (changer == "Ideal" and _is_set(degree)):
        return ""
    return f"{name}_step_percent is 0 or missing"


def _is_set(step: float | None) -> bool:
    return step is not None and not np.isnan(step) and step != 0


def _tap_changers(part) -> Iterator[tuple[str, str, Any]]:
    for kind in SIDES:
        for suffix in ("", "2"):
            if len(part[kind]) and f"tap{suffix}_pos" in part[kind]:
                yield kind, suffix, part[kind]


def _neutral(table, suffix: str):
    """Whether a tap is at neutral or has no position; without a neutral one, 0 is it."""
    position = table[f"tap{suffix}_pos"].to_numpy()
    return np.isnan(position) | (position == _steps(table, f"tap{suffix}_neutral"))


def _steps(table, column: str):
    return table[column].fillna(0.0).to_numpy() if column in table else np.zeros(len(table))
