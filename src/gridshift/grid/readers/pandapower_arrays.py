"""pandapower's own assembled arrays of a network: one home for every private name of pandapower."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridFileError
from gridshift.grid.readers.pandapower_checks import (
    capability_curves,
    gaining_dclines,
    line_temperatures,
    not_represented,
    problems_of,
    voltage_dependence,
    zero_ratings,
)
from gridshift.grid.readers.pandapower_options import (
    followed_options,
    option_notes,
    option_problems,
)
from gridshift.grid.readers.pandapower_refusals import why_refused
from gridshift.grid.readers.pandapower_source import (
    PANDAPOWER_ERRORS,
    one_line,
    other_format,
    quiet_pandapower,
)
from gridshift.grid.readers.pandapower_tables import power_flow_part
from gridshift.grid.readers.pandapower_taps import enter_tabulated_steps, idle_taps, tap_problems

_OPTIONS: dict[str, Any] = {
    "algorithm": "nr", "calculate_voltage_angles": True, "init": "auto", "init_vm_pu": None,
    "init_va_degree": None, "max_iteration": "auto", "tolerance_mva": 1e-8, "trafo_model": "t",
    "trafo_loading": "current", "enforce_q_lims": False, "enforce_p_lims": False,
    "check_connectivity": True, "voltage_depend_loads": True, "numba": False,
    "lightsim2grid": False,
}  # fmt: skip
"""Of `runpp`; those that a network asks for itself in `user_pf_options` come before them."""
_LOOKUPS = ("bus", "bus_dc", "ext_grid", "gen", "branch", "branch_dc")


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What pandapower would solve, in its own numbering, in per unit.

    Rows of `bus` are energised buses. Branches are all of them, in service or not; an end at a
    bus that is not energised is -1.
    """

    net: Any
    """The part that the power flow needs, with a generator pair for each dcline."""
    notes: list[str]
    """What a user should know although it keeps nothing from being read."""
    base_mva: float
    kind: Int
    """(B,) 1 PQ, 2 PV, 3 reference, as in `BusKind`."""
    kv: Real
    shunt: Complex
    demand: Complex
    """(B,) everything but generators, positive when consumed."""
    v_start: Complex
    """(B,) set-points and mean magnitude, angles of the DC power flow: pandapower's own start."""
    bus_of: Int
    """Row of `bus` for each pandapower bus number; -1 if not energised or not there."""
    inner_bus: dict[str, Int]
    """Row of the bus inside each `xward` and `trafo3w`, in the order of the tables; -1 if none."""
    gen_label: list[str]
    gen_bus: Int
    gen_p: Real
    gen_v: Real
    gen_q: Real
    """(G, 2) least and most reactive power, infinite where there is no limit."""
    gen_p_range: Real
    """(G, 2) least and most active power, infinite where there is no limit."""
    gen_weight: Real
    """(G,) slack_weight."""
    branch_range: dict[str, tuple[int, int]]
    """First and last-plus-one branch of each table."""
    branch_from: Int
    branch_to: Int
    branch_y: Complex
    """(E, 4), zero where a branch has no impedance at all."""
    branch_on: Bool


def assemble(net, source: str) -> Assembled:
    """pandapower's arrays for `runpp` with the options of the network, and without reactive limits.

    Raises:
        GridFileError: whatever is wrong with the network, else what pandapower itself refuses.
    """
    with quiet_pandapower() as heard:
        part, notes = _checked(net, source)
        from pandapower.auxiliary import _add_auxiliary_elements, _init_runpp_options
        from pandapower.pd2ppc import _pd2ppc
        from pandapower.results import init_results

        try:
            _init_runpp_options(part, passed_parameters={}, **_OPTIONS)
            num_gens = len(part.gen)
            _add_auxiliary_elements(part)
            init_results(part)
            part._pd2ppc_lookups = dict.fromkeys(_LOOKUPS, np.array([], np.int64))
            ppc, ppci = _pd2ppc(part)
        except PANDAPOWER_ERRORS as error:
            problems = why_refused(part) or [f"pandapower refuses it: {one_line(error)}"]
            raise GridFileError(source, problems) from None
        assembled = _arrays(part, num_gens, ppc, ppci)
    return replace(assembled, notes=[*notes, *heard])


def two_ports_again(grid: Assembled) -> Complex:
    """(E, 4) as `Assembled.branch_y`, after taps of `Assembled.net` have moved."""
    from pandapower.pd2ppc import _pd2ppc

    with quiet_pandapower():
        grid.net._pd2ppc_lookups = dict.fromkeys(_LOOKUPS, np.array([], np.int64))
        ppc, _ = _pd2ppc(grid.net)
    return _two_ports(ppc["branch"].real)


def _checked(net, source: str) -> tuple[Any, list[str]]:
    """The part of the network that is needed, free of problems, and notes on it."""
    part, problems = power_flow_part(net)
    problems = [*other_format(net), *problems]
    if problems:
        raise GridFileError(source, problems)
    problems = list(enter_tabulated_steps(part))
    problems += problems_of(part)
    problems += tap_problems(part)
    problems += not_represented(net)
    options = net.get("user_pf_options", {})
    wrong_options = list(option_problems(options))
    problems += wrong_options
    if not wrong_options:
        part.user_pf_options = followed_options(options)
        problems += voltage_dependence(part, options)
        problems += line_temperatures(part, options)
    if problems:
        raise GridFileError(source, problems)
    return part, [
        *option_notes(options), *idle_taps(part), *gaining_dclines(part), *zero_ratings(part),
        *capability_curves(part),
    ]  # fmt: skip


def _arrays(net, num_gens: int, ppc: dict, ppci: dict) -> Assembled:
    from pandapower.pypower import idx_brch, idx_bus, idx_gen

    bus, gen, branch = ppci["bus"], ppci["gen"], ppc["branch"].real
    base, count = float(ppci["baseMVA"]), len(bus)
    lookup = net._pd2ppc_lookups["bus"]
    bus_of = np.where((lookup >= 0) & (lookup < count), lookup, -1)
    inner = {kind: bus_of[numbers] for kind, numbers in net._pd2ppc_lookups["aux"].items()}
    ends = branch[:, [idx_brch.F_BUS, idx_brch.T_BUS]].astype(np.int64)
    ends = np.where(ends < count, ends, -1)
    labels = _generator_labels(net, num_gens, ppci["internal"]["gen_is"])
    return Assembled(
        net=net,
        notes=[],
        base_mva=base,
        kind=bus[:, idx_bus.BUS_TYPE].astype(np.int64),
        kv=bus[:, idx_bus.BASE_KV].copy(),
        shunt=(bus[:, idx_bus.GS] + 1j * bus[:, idx_bus.BS]) / base,
        demand=(bus[:, idx_bus.PD] + 1j * bus[:, idx_bus.QD]) / base,
        bus_of=bus_of,
        inner_bus=inner,
        gen_label=labels,
        gen_bus=gen[:, idx_gen.GEN_BUS].astype(np.int64),
        gen_p=gen[:, idx_gen.PG] / base,
        gen_v=gen[:, idx_gen.VG].copy(),
        gen_q=_reactive_limits(net, gen[:, [idx_gen.QMIN, idx_gen.QMAX]]) / base,
        gen_p_range=np.stack(
            [_given(net, labels, "min_p_mw", -np.inf), _given(net, labels, "max_p_mw", np.inf)], 1
        )
        / base,
        gen_weight=_given(net, labels, "slack_weight", 0.0),
        branch_range=dict(net._pd2ppc_lookups["branch"]),
        branch_from=ends[:, 0],
        branch_to=ends[:, 1],
        branch_y=_two_ports(branch),
        branch_on=ppci["internal"]["branch_is"].astype(bool),
        v_start=_start(ppci),
    )


def _reactive_limits(net, limits: Real) -> Real:
    """(G, 2) Mvar; pandapower's default stands for none, as NaN and what is at a slack bus do."""
    none = np.isnan(limits) | (np.abs(limits) >= net._options["q_lim_default"])
    limits = np.where(none, [-np.inf, np.inf], limits)
    first, last = net._gen_order.get("ext_grid", (0, 0))
    limits[first:last] = -np.inf, np.inf
    return limits


def _given(net, labels: list[str], column: str, none: float) -> Real:
    """(G,) what the tables say of each generator; `none` where they don't, and of dclines."""
    found = np.full(len(labels), none)
    for row, label in enumerate(labels):
        kind, _, index = label.partition(":")
        if kind != "dcline" and column in net[kind]:
            found[row] = net[kind].at[int(index), column]
    return np.where(np.isnan(found), none, found)


def _generator_labels(net, num_gens: int, in_service: Bool) -> list[str]:
    """Labels in the order of the assembled generators; dclines own the pairs added at the end."""
    names = {
        "ext_grid": [f"ext_grid:{i}" for i in net.ext_grid.index],
        "gen": [f"gen:{i}" for i in net.gen.index[:num_gens]]
        + [f"dcline:{i}.{end}" for i in net.dcline.index for end in ("to", "from")],
        "xward": [f"xward:{i}" for i in net.xward.index],
    }
    labels: list[str] = []
    for kind in net._gen_order:
        labels += [n for n, on in zip(names[kind], net._is_elements[kind], strict=True) if on]
    return [name for name, on in zip(labels, in_service, strict=True) if on]


def _two_ports(branch: Real) -> Complex:
    """(E, 4) yff, yft, ytf, ytt as if in service; zero for a branch without impedance."""
    from pandapower.pypower import idx_brch
    from pandapower.pypower.makeYbus import branch_vectors

    y = np.zeros((len(branch), 4), complex)
    forth = branch[:, [idx_brch.BR_R, idx_brch.BR_X]]
    back = forth + branch[:, [idx_brch.BR_R_ASYM, idx_brch.BR_X_ASYM]]
    usable = np.flatnonzero(forth.any(axis=1) & back.any(axis=1) & np.isfinite(forth + back).all(1))
    rows = branch[usable].copy()
    rows[:, idx_brch.BR_STATUS] = 1
    with np.errstate(all="ignore"):  # what isn't finite is refused by name
        ytt, yff, yft, ytf = branch_vectors(rows, len(rows))
    y[usable] = np.stack([yff, yft, ytf, ytt], axis=1)
    return y


def _start(ppci: dict) -> Complex:
    """(B,) what pandapower's Newton starts from; flat angles where its DC flow has no solution."""
    from pandapower.pf.ppci_variables import _get_pf_variables_from_ppci
    from pandapower.pf.run_dc_pf import _run_dc_pf

    scratch = {
        key: value.copy() if isinstance(value, np.ndarray) else value for key, value in ppci.items()
    }
    scratch["internal"] = dict(ppci["internal"])
    flat = _get_pf_variables_from_ppci(scratch)[13].copy()
    try:
        with np.errstate(all="ignore"):
            start = _get_pf_variables_from_ppci(_run_dc_pf(scratch))[13]
    except (FloatingPointError, ValueError):
        return flat
    return start if np.isfinite(start).all() else flat
