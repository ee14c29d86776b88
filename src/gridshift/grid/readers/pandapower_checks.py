"""What keeps a pandapower network from being read, every problem named, none left out."""

from collections.abc import Iterator

import numpy as np

_PHASES = ["p_a_mw", "p_b_mw", "p_c_mw", "q_a_mvar", "q_b_mvar", "q_c_mvar", "scaling"]
NUMBERS = {
    "bus": ["vn_kv"],
    "ext_grid": ["vm_pu", "va_degree"],
    "gen": ["p_mw", "vm_pu", "scaling"],
    "load": ["p_mw", "q_mvar", "scaling"],
    "sgen": ["p_mw", "q_mvar", "scaling"],
    "storage": ["p_mw", "q_mvar", "scaling"],
    "asymmetric_load": _PHASES,
    "asymmetric_sgen": _PHASES,
    "motor": ["pn_mech_mw", "loading_percent", "cos_phi", "efficiency_percent", "scaling"],
    "shunt": ["p_mw", "q_mvar", "step"],
    "ward": ["ps_mw", "qs_mvar", "pz_mw", "qz_mvar"],
    "xward": ["ps_mw", "qs_mvar", "pz_mw", "qz_mvar", "r_ohm", "x_ohm", "vm_pu"],
    "line": ["r_ohm_per_km", "x_ohm_per_km", "c_nf_per_km", "g_us_per_km", "length_km", "parallel"],
    "trafo": ["sn_mva", "vn_hv_kv", "vn_lv_kv", "vk_percent", "vkr_percent", "pfe_kw",
              "i0_percent", "shift_degree", "parallel", "df"],
    "trafo3w": ["sn_hv_mva", "sn_mv_mva", "sn_lv_mva", "vn_hv_kv", "vn_mv_kv", "vn_lv_kv",
                "vk_hv_percent", "vk_mv_percent", "vk_lv_percent", "vkr_hv_percent",
                "vkr_mv_percent", "vkr_lv_percent", "pfe_kw", "i0_percent"],
    "impedance": ["rft_pu", "xft_pu", "rtf_pu", "xtf_pu", "gf_pu", "bf_pu", "gt_pu", "bt_pu",
                  "sn_mva"],
    "dcline": ["p_mw", "loss_percent", "loss_mw", "vm_from_pu", "vm_to_pu"],
}  # fmt: skip
"""Columns that must hold finite numbers for elements in service."""

POSITIVE = {"vn_kv", "vn_hv_kv", "vn_mv_kv", "vn_lv_kv", "sn_mva", "sn_hv_mva", "sn_mv_mva",
            "sn_lv_mva", "vm_pu", "vm_from_pu", "vm_to_pu", "parallel", "df", "cos_phi",
            "efficiency_percent"}  # fmt: skip

LARGEST_BUS = 50_000_000
"""Largest bus number: pandapower makes arrays as long, 17 bytes for each number up to it."""

BUS_COLUMNS = ("bus", "from_bus", "to_bus", "hv_bus", "mv_bus", "lv_bus")

NOT_REPRESENTED = ("svc", "tcsc", "ssc", "vsc", "vsc_stacked", "vsc_bipolar", "line_dc")
"""Tables whose elements in service are part of the power flow, but not of a `Network`."""

OPTIONS_THAT_CHANGE_THE_EQUATIONS = (
    "distributed_slack",
    "tdpf",
    "enforce_q_lims",
    "enforce_p_lims",
)

SHARES = ("const_z_p_percent", "const_i_p_percent", "const_z_q_percent", "const_i_q_percent")


def problems_of(net) -> list[str]:
    """Everything that keeps this pandapower network from being read, one line each."""
    if len(net.bus) == 0:
        return ["has no buses"]
    found = []
    if not (np.isfinite(net.sn_mva) and net.sn_mva > 0):
        found.append(f"base power sn_mva is {net.sn_mva}; it must be a positive number")
    found += _bus_numbers(net)
    found += _repeated_labels(net)
    found += _unknown_buses(net)
    found += _bad_numbers(net)
    found += _not_represented(net)
    if not (net.ext_grid.in_service.any() or (net.gen.in_service & net.gen.slack).any()):
        found.append("has no slack: no ext_grid and no gen with slack=True is in service")
    return found


def _labels(kind: str, index) -> str:
    shown = [f"{kind}:{i}" for i in index[:5]]
    return ", ".join(shown) + (f" and {len(index) - 5} more" if len(index) > 5 else "")


def _in_service(table):
    return table[table.in_service.astype(bool)] if "in_service" in table else table


def _bus_numbers(net) -> Iterator[str]:
    """pandapower makes arrays with a place for every number up to the largest one."""
    number = net.bus.index.to_numpy()
    if number.dtype.kind not in "iu":
        yield f"bus numbers must be whole, and the bus table's index is of type {number.dtype}"
        return
    odd = number[(number < 0) | (number > LARGEST_BUS)]
    if len(odd):
        yield (
            f"{_labels('bus', odd)}: bus numbers go from 0 to {LARGEST_BUS:,}; renumber them with "
            "pandapower.toolbox.create_continuous_bus_index(net)"
        )


def _repeated_labels(net) -> Iterator[str]:
    for kind in NUMBERS:
        index = net[kind].index
        if index.has_duplicates:
            yield f"{_labels(kind, index[index.duplicated()])}: number used more than once"


def _unknown_buses(net) -> Iterator[str]:
    for kind in NUMBERS:
        table = net[kind]
        for column in BUS_COLUMNS:
            if column in table:
                unknown = table.index[~table[column].isin(net.bus.index)]
                if len(unknown):
                    yield f"{_labels(kind, unknown)}: {column} is not in the bus table"


def _bad_numbers(net) -> Iterator[str]:
    for kind, columns in NUMBERS.items():
        table = _in_service(net[kind])
        for column in columns:
            if column not in table:
                if len(table):
                    yield f"table {kind} has no column {column}"
                continue
            value = table[column].astype(float)
            bad = table.index[~np.isfinite(value)]
            if len(bad):
                yield f"{_labels(kind, bad)}: {column} is not a finite number"
            if column in POSITIVE:
                bad = table.index[value <= 0]
                if len(bad):
                    yield f"{_labels(kind, bad)}: {column} must be positive"


def _not_represented(net) -> Iterator[str]:
    for kind in NOT_REPRESENTED:
        table = _in_service(net[kind]) if kind in net else ()
        if len(table):
            yield f"{_labels(kind, table.index)}: {kind} elements are not supported"
    options = net.user_pf_options
    for name in OPTIONS_THAT_CHANGE_THE_EQUATIONS:
        if options.get(name):
            yield f"user_pf_options asks for {name}, which is not supported"
    if options.get("voltage_depend_loads", True):
        load = _in_service(net.load)
        shares = load[[column for column in SHARES if column in load]]
        dependent = load.index[(shares != 0).any(axis=1)]
        if len(dependent):
            yield (
                f"{_labels('load', dependent)}: constant-current and constant-impedance shares "
                "are not supported"
            )
