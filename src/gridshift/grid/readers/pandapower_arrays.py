"""pandapower's own assembled arrays of a network: one home for every private name of pandapower."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridFileError
from gridshift.grid.readers.pandapower_checks import problems_of
from gridshift.grid.readers.pandapower_source import quiet_pandapower

_OPTIONS: dict[str, Any] = {
    "algorithm": "nr", "calculate_voltage_angles": True, "init": "auto", "init_vm_pu": None,
    "init_va_degree": None, "max_iteration": "auto", "tolerance_mva": 1e-8, "trafo_model": "t",
    "trafo_loading": "current", "enforce_q_lims": False, "enforce_p_lims": False,
    "check_connectivity": True, "numba": False, "lightsim2grid": False,
}  # fmt: skip
"""Of `runpp`, before those that a network asks for itself in `user_pf_options`."""
_LOOKUPS = ("bus", "bus_dc", "ext_grid", "gen", "branch", "branch_dc")


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What pandapower would solve, in its own numbering, in per unit.

    Rows of `bus` are energised buses. Branches are all of them, in service or not; an end at a
    bus that is not energised is -1.
    """

    net: Any
    """The network itself, with a generator pair for each dcline."""
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
    branch_range: dict[str, tuple[int, int]]
    """First and last-plus-one branch of each table."""
    branch_from: Int
    branch_to: Int
    branch_y: Complex
    """(E, 4), zero where a branch has no impedance at all."""
    branch_on: Bool


def assemble(net, source: str) -> Assembled:
    """pandapower's arrays for `runpp` with angles, T-model transformers and no reactive limits.

    Raises:
        GridFileError: everything that `problems_of` finds, else what pandapower itself refuses.
    """
    problems = problems_of(net)
    if problems:
        raise GridFileError(source, problems)
    with quiet_pandapower():
        from pandapower.auxiliary import _add_auxiliary_elements, _init_runpp_options
        from pandapower.pd2ppc import _pd2ppc
        from pandapower.results import init_results

        net = copy.deepcopy(net)
        try:
            _init_runpp_options(
                net, voltage_depend_loads=True, passed_parameters=_OPTIONS, **_OPTIONS
            )
            num_gens = len(net.gen)
            _add_auxiliary_elements(net)
            init_results(net)
            net._pd2ppc_lookups = dict.fromkeys(_LOOKUPS, np.array([], np.int64))
            ppc, ppci = _pd2ppc(net)
        except (AttributeError, LookupError, NotImplementedError, TypeError, UserWarning,
                ValueError) as error:  # fmt: skip
            raise GridFileError(source, [f"pandapower refuses it: {error}"]) from None
        return _arrays(net, num_gens, ppc, ppci)


def _arrays(net, num_gens: int, ppc: dict, ppci: dict) -> Assembled:
    from pandapower.pypower import idx_brch, idx_bus, idx_gen

    bus, gen, branch = ppci["bus"], ppci["gen"], ppc["branch"].real
    base, count = float(ppci["baseMVA"]), len(bus)
    lookup = net._pd2ppc_lookups["bus"]
    bus_of = np.where((lookup >= 0) & (lookup < count), lookup, -1)
    inner = {kind: bus_of[numbers] for kind, numbers in net._pd2ppc_lookups["aux"].items()}
    ends = branch[:, [idx_brch.F_BUS, idx_brch.T_BUS]].astype(np.int64)
    ends = np.where(ends < count, ends, -1)
    return Assembled(
        net=net,
        base_mva=base,
        kind=bus[:, idx_bus.BUS_TYPE].astype(np.int64),
        kv=bus[:, idx_bus.BASE_KV].copy(),
        shunt=(bus[:, idx_bus.GS] + 1j * bus[:, idx_bus.BS]) / base,
        demand=(bus[:, idx_bus.PD] + 1j * bus[:, idx_bus.QD]) / base,
        bus_of=bus_of,
        inner_bus=inner,
        gen_label=_generator_labels(net, num_gens, ppci["internal"]["gen_is"]),
        gen_bus=gen[:, idx_gen.GEN_BUS].astype(np.int64),
        gen_p=gen[:, idx_gen.PG] / base,
        gen_v=gen[:, idx_gen.VG].copy(),
        branch_range=dict(net._pd2ppc_lookups["branch"]),
        branch_from=ends[:, 0],
        branch_to=ends[:, 1],
        branch_y=_two_ports(branch),
        branch_on=ppci["internal"]["branch_is"].astype(bool),
        v_start=_start(ppci),
    )


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
