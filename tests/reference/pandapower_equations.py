"""pandapower's own solution and own equations of a network, for comparison with ours."""

import copy
import logging
import random
import warnings
from functools import cache

import numpy as np
import scipy.sparse.linalg as sla

logging.getLogger("pandapower").setLevel(logging.CRITICAL)


def built(name: str):
    """`pandapower.networks.<name>()`, at the random state that gridshift uses too."""
    return copy.deepcopy(_built(name))


@cache
def _built(name: str):
    import pandapower.networks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state = random.getstate()
        random.seed(0)
        net = getattr(pandapower.networks, name)()
        random.setstate(state)
    return net


def switched_off(net, element: str):
    """The same network object with one element out of service."""
    kind, _, index = element.partition(":")
    if kind == "switch":
        net.switch.loc[int(index), "closed"] = False
    else:
        net[kind].loc[int(index), "in_service"] = False
    return net


def run(net, *, lightsim2grid: bool = False, **options):
    """Runs pandapower's power flow; tolerance 1e-10 of a large grid's 100 MVA, or of 1 MVA."""
    import pandapower

    tolerance = 1e-8 if len(net.gen) else 1e-10

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pandapower.runpp(net, calculate_voltage_angles=True, tolerance_mva=tolerance, numba=False,
                         max_iteration=20, lightsim2grid=lightsim2grid, **options)  # fmt: skip
    return net


def row_of(net, label: str) -> int:
    """Row of pandapower's internal bus arrays for one of our bus labels."""
    text = label.removeprefix("bus:")
    kind, _, index = text.partition(":")
    if index:
        place = net[kind].index.get_loc(int(index))
        return int(net._pd2ppc_lookups["bus"][net._pd2ppc_lookups["aux"][kind][place]])
    rows = {int(net._pd2ppc_lookups["bus"][int(number)]) for number in text.split("+")}
    assert len(rows) == 1, f"{label} names buses that pandapower does not fuse"
    return rows.pop()


def voltages(net, labels) -> np.ndarray:
    """pandapower's solution at our buses, in our order."""
    internal = net._ppc["internal"]["V"]
    return np.array([internal[row_of(net, label)] for label in labels])


def residual(net, labels, voltage) -> float:
    """Worst violation of pandapower's equations by our voltages, p.u.

    Buses that pandapower makes at the open end of a line, and we do not have, take the voltage
    at which no current flows.
    """
    internal = net._ppc["internal"]
    y = internal["Ybus"].tocsr()
    rows = np.array([row_of(net, label) for label in labels])
    v = np.full(y.shape[0], np.nan, complex)
    v[rows] = voltage
    new = np.setdiff1d(np.arange(y.shape[0]), rows)
    if len(new):
        current = y[new][:, rows] @ v[rows]
        v[new] = -sla.spsolve(y[new][:, new].tocsc(), current)
    from pandapower.pypower.makeSbus import makeSbus

    off = v * np.conj(y @ v) - makeSbus(internal["baseMVA"], internal["bus"], internal["gen"])
    ref, pv = internal["ref"], internal["pv"]
    held = np.r_[ref, pv]
    solved = internal["V"]
    return max(
        np.abs(np.delete(off.real, ref)).max(initial=0),
        np.abs(np.delete(off.imag, held)).max(initial=0),
        np.abs(np.abs(v[held]) - np.abs(solved[held])).max(initial=0),
        np.abs(v[ref] - solved[ref]).max(initial=0),
    )
