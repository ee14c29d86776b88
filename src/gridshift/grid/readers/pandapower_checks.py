"""Values of a pandapower network that cannot be meant, every problem named, none left out."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from gridshift.grid.readers.pandapower_tables import (
    NOT_REPRESENTED,
    TABLES,
    labels_of,
)

POSITIVE = {"vn_kv", "vn_hv_kv", "vn_mv_kv", "vn_lv_kv", "sn_mva", "sn_hv_mva", "sn_mv_mva",
            "sn_lv_mva", "vm_pu", "vm_from_pu", "vm_to_pu", "parallel", "df", "cos_phi",
            "efficiency_percent", "max_loading_percent", "max_vm_pu"}  # fmt: skip
NOT_NEGATIVE = {"length_km", "max_i_ka", "z_ohm", "in_ka", "min_vm_pu"}

LARGEST = 1e15
"""Numbers beyond it overflow inside pandapower, whose error names no element."""

FILTERED = ("ext_grid", "gen", "line", "impedance", "dcline", "switch")
"""Tables of which pandapower computes with the rows in service alone."""

SWITCHED = {"b": "bus", "l": "line", "t": "trafo", "t3": "trafo3w"}
"""What a switch connects its bus to."""


def problems_of(part) -> list[str]:
    """What keeps the values of a `power_flow_part` from being a network, one line each."""
    if len(part.bus) == 0:
        return ["has no buses"]
    found = [*_repeated_labels(part)]
    if found:
        return found
    found += _unknown_buses(part)
    found += _bad_numbers(part)
    found += _both_ends_at_one_bus(part)
    found += _crossed_limits(part)
    found += _switches(part)
    found += _transformers(part)
    if not (part.ext_grid.in_service.any() or (part.gen.in_service & part.gen.slack).any()):
        found.append("has no slack: no ext_grid and no gen with slack=True is in service")
    return found


def not_represented(net) -> Iterator[str]:
    """Elements in service that a `Network` cannot hold."""
    for kind in NOT_REPRESENTED:
        table: Any = net[kind] if kind in net and hasattr(net[kind], "columns") else ()
        if "in_service" in getattr(table, "columns", ()):
            table = table[table.in_service.astype(bool)]
        if len(table):
            yield f"{labels_of(kind, table.index)}: {kind} elements are not supported"


def voltage_dependence(part, options) -> Iterator[str]:
    """Loads whose shares of constant current and impedance make more than the whole."""
    if options.get("voltage_depend_loads", True):
        for power in "pq":
            of_load = part.load[[f"const_z_{power}_percent", f"const_i_{power}_percent"]]
            wrong = part.load.index[((of_load < 0).any(axis=1)) | (of_load.sum(axis=1) > 100)]
            if len(wrong):
                names = f"const_z_{power}_percent and const_i_{power}_percent"
                yield f"{labels_of('load', wrong)}: {names} must be 0 to 100 and 100 at most in all"


def line_temperatures(part, options) -> Iterator[str]:
    """Lines without a temperature or its coefficient where resistances are to follow it."""
    if options.get("consider_line_temperature"):
        for column in ("temperature_degree_celsius", "alpha"):
            if column in part.line:
                missing = part.line.index[part.line.in_service & part.line[column].isna()]
                if len(missing):
                    yield f"{labels_of('line', missing)}: {column} is not a finite number"
            elif column != "alpha" and len(part.line):  # 0.004 is pandapower's documented default
                yield f"consider_line_temperature asks for a column {column} in table line"


def gaining_dclines(part) -> Iterator[str]:
    """Sentences on DC lines that feed in more than they take."""
    line = part.dcline
    gain = -(line.p_mw.abs() * line.loss_percent / 100 + line.loss_mw)
    gaining = line.in_service & (gain > 0)
    if gaining.any():
        yield (
            f"{labels_of('dcline', line.index[gaining])}: the losses are negative; "
            f"{gain[gaining].sum():g} MW come from nowhere"
        )


def capability_curves(part) -> Iterator[str]:
    """Sentences on generators whose reactive limits follow a curve."""
    gen = part.gen
    if "reactive_capability_curve" in gen:
        curved = gen.index[gen.in_service & gen.reactive_capability_curve]
        if len(curved):
            yield (
                f"{labels_of('gen', curved)}: the curve of reactive limits is not read; "
                "min_q_mvar and max_q_mvar count, where limits are asked for"
            )


def zero_ratings(part) -> Iterator[str]:
    """Sentences on branches whose rated current is 0, which can only mean that none is known."""
    for kind, column, on in (("line", "max_i_ka", "in_service"), ("switch", "in_ka", "closed")):
        table = part[kind]
        if column in table:
            zero = table.index[table[on] & (table[column] == 0)]
            if len(zero):
                yield f"{labels_of(kind, zero)}: {column} is 0, which is taken as no rating"


def _in_service(table):
    return table[table.in_service] if "in_service" in table else table


def _repeated_labels(part) -> Iterator[str]:
    for kind in TABLES:
        index = part[kind].index
        if index.has_duplicates:
            yield f"{labels_of(kind, index[index.duplicated()])}: number used more than once"


def _unknown_buses(part) -> Iterator[str]:
    for kind, form in TABLES.items():
        table = part[kind]
        for column in form.ends:
            unknown = table.index[~table[column].isin(part.bus.index)]
            if len(unknown):
                yield f"{labels_of(kind, unknown)}: {column} is not in the bus table"


def _bad_numbers(part) -> Iterator[str]:
    for kind, form in TABLES.items():
        table = _in_service(part[kind]) if kind in FILTERED else part[kind]
        for column in table.columns:
            if table[column].dtype.kind != "f":
                continue
            value = table[column].to_numpy()
            needed = column in form.numbers or (column, kind) == ("step", "shunt")
            bad = table.index[~np.isfinite(value)] if needed else table.index[np.isinf(value)]
            if len(bad) and not _may_be_infinite(column):
                yield f"{labels_of(kind, bad)}: {column} is not a finite number"
            beyond = np.isfinite(value) & (np.abs(value) > LARGEST)
            if needed and beyond.any():
                yield (
                    f"{labels_of(kind, table.index[beyond])}: {column} is {value[beyond][0]:g}; "
                    f"nothing in a grid is beyond {LARGEST:g}"
                )
            if column in POSITIVE:
                bad = table.index[value <= 0]
                if len(bad):
                    yield f"{labels_of(kind, bad)}: {column} must be positive"
            elif column in NOT_NEGATIVE:
                bad = table.index[value < 0]
                if len(bad):
                    yield f"{labels_of(kind, bad)}: {column} must not be negative"
    motor = part.motor
    bad = motor.index[motor.cos_phi > 1]
    if len(bad):
        yield f"{labels_of('motor', bad)}: cos_phi must not be above 1"


def _may_be_infinite(column: str) -> bool:
    """Limits: an infinite one is none."""
    return column.startswith(("max_", "min_")) or column == "in_ka"


def _both_ends_at_one_bus(part) -> Iterator[str]:
    for kind, form in TABLES.items():
        table = part[kind]
        ends = table[list(form.ends)].to_numpy()
        if kind == "switch":
            table = table[table.et == "b"]
            ends = table[["bus", "element"]].to_numpy()
        for one in range(ends.shape[1]):
            for other in range(one):
                same = ends[:, one] == ends[:, other]
                if same.any():
                    buses = ", ".join(f"bus:{b}" for b in dict.fromkeys(ends[same, one][:5]))
                    yield f"{labels_of(kind, table.index[same])}: both ends are at {buses}"


def _crossed_limits(part) -> Iterator[str]:
    bus = part.bus
    if "min_vm_pu" in bus and "max_vm_pu" in bus:
        crossed = bus.index[bus.min_vm_pu > bus.max_vm_pu]
        if len(crossed):
            yield f"{labels_of('bus', crossed)}: min_vm_pu is above max_vm_pu"


def _switches(part) -> Iterator[str]:
    switch = part.switch
    unknown = switch.index[~switch.et.isin(SWITCHED)]
    if len(unknown):
        yield f"{labels_of('switch', unknown)}: et must be one of {', '.join(SWITCHED)}"
    for et, kind in SWITCHED.items():
        one_kind = switch[switch.et == et]
        missing = ~one_kind.element.isin(part[kind].index)
        if missing.any():
            which = labels_of("switch", one_kind.index[missing])
            yield f"{which}: element is not in the {kind} table"
        if kind == "bus":
            bad = one_kind.index[one_kind.closed & one_kind.z_ohm.isna()]
            if len(bad):
                yield f"{labels_of('switch', bad)}: z_ohm is not a finite number"
            continue
        there = one_kind[~missing]
        ends = part[kind].loc[there.element, list(TABLES[kind].ends)].to_numpy()
        astray = there.index[~(ends == there.bus.to_numpy()[:, None]).any(axis=1)]
        if len(astray):
            yield f"{labels_of('switch', astray)}: bus is at no end of its {kind}"


def _transformers(part) -> Iterator[str]:
    for kind, sides in (("trafo", ("",)), ("trafo3w", ("hv_", "mv_", "lv_"))):
        table = part[kind]
        for side in sides:
            vk, vkr = table[f"vk_{side}percent"], table[f"vkr_{side}percent"]
            for i in table.index[vkr.abs() > vk.abs()]:
                yield (
                    f"{kind}:{i}: vkr_{side}percent {vkr[i]:g} exceeds vk_{side}percent {vk[i]:g}; "
                    "the real part of the impedance cannot be larger than the whole"
                )
            if kind == "trafo":
                none = table.index[vk == 0]
                if len(none):
                    yield f"{labels_of(kind, none)}: vk_percent is 0; a transformer needs one"
    trafo = part.trafo
    for column in ("leakage_resistance_ratio_hv", "leakage_reactance_ratio_hv"):
        if column in trafo:
            bad = trafo.index[~((trafo[column] > 0) & (trafo[column] < 1))]
            if len(bad):
                yield f"{labels_of('trafo', bad)}: {column} must lie between 0 and 1"
    losses = part.trafo3w
    if "loss_side" in losses:
        lossy = (losses.pfe_kw != 0) | (losses.i0_percent != 0)
        bad = losses.index[lossy & ~losses.loss_side.isin(("hv", "mv", "lv"))]
        if len(bad):
            yield f"{labels_of('trafo3w', bad)}: loss_side must be hv, mv or lv"
