"""The part of a pandapower network that its power flow needs, every column of the right kind."""

import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from gridshift.arguments import some_of
from gridshift.arrays import Bool, Real

NAN = float("nan")
HIGHEST_BUS = 10**7
"""pandapower's look-up tables grow with the highest number, and it warns from here on."""


@dataclass(frozen=True)
class Table:
    """Columns of one table; those named nowhere here have no influence on the power flow."""

    numbers: tuple[str, ...] = ()
    """Finite numbers."""
    ends: tuple[str, ...] = ("bus",)
    """Numbers of buses."""
    whole: tuple[str, ...] = ()
    flags: tuple[str, ...] = ("in_service",)
    """True or false, never missing."""
    filled: Mapping[str, float | bool] = field(default_factory=lambda: MappingProxyType({}))
    """Columns that may be missing, and what that means: as in pandapower's own conversion."""
    optional: tuple[str, ...] = ()
    """Numbers, NaN where none is given; stay away where they are missing."""
    switches: tuple[str, ...] = ()
    """True or false, false where none is given; stay away where they are missing."""
    texts: tuple[str, ...] = ()


_PHASES = ("p_a_mw", "p_b_mw", "p_c_mw", "q_a_mvar", "q_b_mvar", "q_c_mvar", "scaling")
_TAP = ("tap_pos", "tap_neutral", "tap_step_percent", "tap_step_degree")
_TAP2 = tuple(name.replace("tap_", "tap2_") for name in _TAP)
_VK = ("vk_percent", "vkr_percent")
_VK3 = tuple(f"{name}_{side}_percent" for side in ("hv", "mv", "lv") for name in ("vk", "vkr"))
SHARES = ("const_z_p_percent", "const_i_p_percent", "const_z_q_percent", "const_i_q_percent")
_LIMITS = ("max_p_mw", "min_q_from_mvar", "min_q_to_mvar", "max_q_from_mvar", "max_q_to_mvar")

TABLES = {
    "bus": Table(("vn_kv",), ends=(), optional=("min_vm_pu", "max_vm_pu")),
    "ext_grid": Table(("vm_pu", "va_degree"), filled={"slack_weight": 1.0},
                      optional=("min_p_mw", "max_p_mw")),
    "gen": Table(("p_mw", "vm_pu", "scaling"),
                 filled={"slack": False, "slack_weight": 0.0, "sn_mva": NAN},
                 optional=("min_q_mvar", "max_q_mvar", "min_p_mw", "max_p_mw"),
                 switches=("reactive_capability_curve",)),
    "load": Table(("p_mw", "q_mvar", "scaling"), filled=dict.fromkeys(SHARES, 0.0)),
    "sgen": Table(("p_mw", "q_mvar", "scaling")),
    "storage": Table(("p_mw", "q_mvar", "scaling")),
    "asymmetric_load": Table(_PHASES),
    "asymmetric_sgen": Table(_PHASES),
    "motor": Table(("pn_mech_mw", "loading_percent", "cos_phi", "efficiency_percent", "scaling")),
    "shunt": Table(("p_mw", "q_mvar"), filled={"step": 1.0, "vn_kv": NAN},
                   optional=("id_characteristic_table",), switches=("step_dependency_table",)),
    "ward": Table(("ps_mw", "qs_mvar", "pz_mw", "qz_mvar")),
    "xward": Table(("ps_mw", "qs_mvar", "pz_mw", "qz_mvar", "r_ohm", "x_ohm", "vm_pu"),
                   filled={"slack_weight": 0.0}),
    "line": Table(("r_ohm_per_km", "x_ohm_per_km", "c_nf_per_km", "g_us_per_km", "length_km",
                   "parallel"), ends=("from_bus", "to_bus"),
                  filled={"g_us_per_km": 0.0, "df": 1.0, "max_i_ka": NAN},
                  optional=("max_loading_percent", "temperature_degree_celsius", "alpha")),
    "trafo": Table(("sn_mva", "vn_hv_kv", "vn_lv_kv", *_VK, "pfe_kw", "i0_percent",
                    "shift_degree", "parallel", "df"), ends=("hv_bus", "lv_bus"),
                   filled={"df": 1.0},
                   optional=(*_TAP, *_TAP2, "max_loading_percent", "id_characteristic_table",
                             "tap_min", "tap_max",
                             "leakage_resistance_ratio_hv", "leakage_reactance_ratio_hv",
                             *(f"{name}_characteristic" for name in _VK)),
                   switches=("tap_dependency_table", "tap2_dependency_table",
                             "tap_dependent_impedance", "tap_phase_shifter", "tap2_phase_shifter"),
                   texts=("tap_side", "tap2_side", "tap_changer_type", "tap2_changer_type")),
    "trafo3w": Table(("sn_hv_mva", "sn_mv_mva", "sn_lv_mva", "vn_hv_kv", "vn_mv_kv", "vn_lv_kv",
                      *_VK3, "pfe_kw", "i0_percent", "shift_mv_degree", "shift_lv_degree"),
                     ends=("hv_bus", "mv_bus", "lv_bus"), filled={"tap_at_star_point": False},
                     optional=(*_TAP, *_TAP2, "max_loading_percent", "id_characteristic_table",
                               "tap_min", "tap_max",
                               *(f"{name}_characteristic" for name in _VK3)),
                     switches=("tap_dependency_table", "tap_dependent_impedance",
                               "tap_phase_shifter"),
                     texts=("tap_side", "tap_changer_type", "loss_side")),
    "impedance": Table(("rft_pu", "xft_pu", "rtf_pu", "xtf_pu", "gf_pu", "bf_pu", "gt_pu", "bt_pu",
                        "sn_mva"), ends=("from_bus", "to_bus"),
                       filled=dict.fromkeys(("gf_pu", "bf_pu", "gt_pu", "bt_pu"), 0.0)),
    "dcline": Table(("p_mw", "loss_percent", "loss_mw", "vm_from_pu", "vm_to_pu"),
                    ends=("from_bus", "to_bus"), filled=dict.fromkeys(_LIMITS, NAN)),
    "switch": Table(whole=("element",), flags=("closed",), texts=("et",),
                    filled={"z_ohm": 0.0, "in_ka": NAN}),
}  # fmt: skip

NOT_REPRESENTED = ("svc", "tcsc", "ssc", "vsc", "vsc_stacked", "vsc_bipolar", "line_dc")
"""Tables whose elements in service are part of the power flow, but not of a `Network`."""

CHARACTERISTICS = ("trafo_characteristic_table", "shunt_characteristic_table", "characteristic")

KEPT = (*TABLES, *NOT_REPRESENTED, *CHARACTERISTICS, "user_pf_options", "name", "f_hz", "sn_mva",
        "sn_kva", "version", "format_version")  # fmt: skip
"""All that is read of a network."""


def labels_of(kind: str, index) -> str:
    """The first elements of a list, `load:1, load:3`, and how many more there are."""
    return some_of([f"{kind}:{i}" for i in index])


def power_flow_part(net) -> tuple[Any, list[str]]:
    """A new network with what the power flow of `net` needs, and what is wrong with its form.

    Tables have the columns of `TABLES` alone: bus numbers as whole numbers, flags as booleans,
    other numbers as floats with NaN where none is given, whatever kind of column held them.
    """
    from pandapower import create_empty_network

    part: Any = create_empty_network(add_stdtypes=False)
    found: list[str] = []
    for name in ("f_hz", "sn_mva"):
        value = net.get(name, part[name])
        number = float(value) if isinstance(value, numbers.Real) else NAN
        if np.isfinite(number) and number > 0:
            part[name] = number
        else:
            found.append(f"{name} is {value!r}; it must be a positive number")
    for kind, form in TABLES.items():
        if kind in net:
            if not hasattr(net[kind], "columns"):
                found.append(f"{kind} is no table")
            else:
                part[kind] = _brought_into_form(kind, net[kind], form, found, empty=part[kind])
    for kind in CHARACTERISTICS:
        if kind in net:
            part[kind] = net[kind]
    return part, found


def _brought_into_form(kind: str, table, form: Table, found: list[str], *, empty):
    import pandas as pd

    if not len(table.columns):
        return empty
    if table.columns.has_duplicates:
        again = table.columns[table.columns.duplicated()][0]
        found.append(f"table {kind} has two columns {again}")
        return pd.DataFrame()
    index, odd = _numbers(table.index)
    whole = ~odd & _is_whole(index) & (index >= 0)
    if not whole.all():
        first = table.index[np.flatnonzero(~whole)[0]]
        found.append(f"table {kind} has a row numbered '{first}'; use whole numbers from 0 on")
        index = np.arange(len(table))
    elif kind in ("bus", "gen", "ext_grid", "xward") and (index >= HIGHEST_BUS).any():
        found.append(f"{kind}:{int(index.max())}: number above {HIGHEST_BUS}; renumber with "
                     "pandapower.toolbox.create_continuous_bus_index(net) or "
                     "create_continuous_elements_index(net)")  # fmt: skip
    columns: dict[str, Any] = {}
    for name, kind_of_column in _wanted(form):
        if name in table:
            values, bad, wanted = _FORMS[kind_of_column](table[name])
            if bad.any():
                at = np.flatnonzero(bad)
                what = table[name].iloc[at[0]]
                found.append(f"{labels_of(kind, index[at].astype(np.int64))}: "
                             f"{name} is {str(what)[:40]!r}, not {wanted}")  # fmt: skip
            columns[name] = values
        elif name in form.filled:
            columns[name] = np.full(len(table), form.filled[name])
        elif kind_of_column not in ("optional", "switch", "text") or name == "et":
            if len(table):
                found.append(f"table {kind} has no column {name}")
            columns[name] = np.full(0, NAN)
    index = index.astype(np.int64)
    if any(len(values) != len(index) for values in columns.values()):
        return pd.DataFrame()  # a missing column has been reported
    return pd.DataFrame(columns, index=pd.Index(index))


def _wanted(form: Table) -> Iterator[tuple[str, str]]:
    """Every column of a table and its form."""
    for names, kind in (
        ((*form.ends, *form.whole), "whole"),
        (form.flags, "flag"),
        (form.numbers, "number"),
        (form.optional, "optional"),
        (form.switches, "switch"),
        (form.texts, "text"),
    ):
        for name in names:
            yield name, kind
    for name, default in form.filled.items():
        if name not in form.numbers:
            yield name, "flag" if isinstance(default, bool) else "number"


def _is_whole(values: Real) -> Bool:
    return np.isfinite(values) & (values == np.floor(values)) & (np.abs(values) < 2**53)


def _numbers(column) -> tuple[Real, Bool]:
    """(N,) as floats, NaN where none is given, and which are something else than a number."""
    if column.dtype.kind in "iufb" and isinstance(column.dtype, np.dtype):
        return column.to_numpy().astype(float), np.zeros(len(column), bool)
    values, odd = np.full(len(column), NAN), np.zeros(len(column), bool)
    for i, item in enumerate(column):
        if isinstance(item, numbers.Real | np.bool_):
            try:
                values[i] = float(item)
            except OverflowError:
                values[i] = np.inf
        else:
            odd[i] = not _is_nothing(item)
    return values, odd


def _is_nothing(item: object) -> bool:
    nan = isinstance(item, float) and item != item
    return nan or item is None or type(item).__name__ in ("NAType", "NaTType")


def _as_numbers(column) -> tuple[Real, Bool, str]:
    return *_numbers(column), "a number"


def _as_whole(column) -> tuple[Any, Bool, str]:
    values, odd = _numbers(column)
    bad = odd | ~_is_whole(values)
    return np.where(bad, -1, values).astype(np.int64), bad, "a whole number"


def _as_flags(column) -> tuple[Bool, Bool, str]:
    values, odd = _numbers(column)
    return values == 1, odd | ~np.isin(values, (0, 1)), "true or false"


def _as_switches(column) -> tuple[Bool, Bool, str]:
    values, odd = _numbers(column)
    return values == 1, odd | ~(np.isin(values, (0, 1)) | np.isnan(values)), "true or false"


def _as_texts(column) -> tuple[Any, Bool, str]:
    texts = [None if _is_nothing(item) else str(item) for item in column]
    return np.array(texts, object), np.zeros(len(texts), bool), "a text"


_FORMS = {
    "whole": _as_whole,
    "flag": _as_flags,
    "number": _as_numbers,
    "optional": _as_numbers,
    "switch": _as_switches,
    "text": _as_texts,
}
