"""A grid as every program of the comparison reads it."""

import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gridshift.arrays import Complex, Int
from gridshift.errors import GridFileError
from gridshift.grid.contingency import cut_off_buses
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import builtin_names, read_grid
from gridshift.grid.readers.pandapower_source import builtin_net, json_net, quiet_pandapower
from gridshift.grid.voltage_dependence import dependent_loads


@dataclass(frozen=True, kw_only=True)
class Case:
    """One topology, as a network and as the pandapower network that other programs read."""

    network: Network
    net: Any
    """None where the source is no pandapower network."""

    @classmethod
    def of(cls, source: str, outage: tuple[str, ...] = ()) -> "Case":
        """A grid that the readers know, without the outaged elements.

        Raises:
            GridFileError: nothing that can be read.
            OutageError: an element that it doesn't have.
        """
        network = read_grid(source)
        network = network.without(outage) if outage else network
        net = None
        if source in builtin_names():
            net = builtin_net(source)
        elif source.endswith(".json"):
            net = json_net(Path(source))
        for label in outage if net is not None else ():
            kind, _, index = label.partition(":")
            net[kind].loc[int(index), "in_service"] = False  # type: ignore[index]
        return cls(network=network, net=net)

    @cached_property
    def nominal(self) -> Complex:
        """(B,) solution at nominal demand, where every program starts."""
        return prepare(self.network).voltage

    @cached_property
    def solved_net(self) -> Any:
        """The pandapower network with pandapower's own results in it, as other readers expect."""
        from pandapower import LoadflowNotConverged

        net = copy.deepcopy(self.net)
        for init in ("flat", "dc"):
            try:
                run_pandapower(net, init=init, tol=1e-8)
            except LoadflowNotConverged:
                continue
            return net
        raise GridFileError(self.network.name, ["pandapower finds no nominal solution"])

    @property
    def why_not_pandapower(self) -> str:
        """Why rows of the network can't be given to a program that reads `net`; empty if they can.

        Buses and loads have to be the same ones: nothing fused, left out or scaled.
        """
        if self.net is None:
            return "reads pandapower networks, not this file"
        if len(self.bus_rows) != len(self.net.bus) or len(self.bus_rows) == 0:
            return "its buses are not those of the network one to one"
        if self.network.load_labels != tuple(f"load:{i}" for i in self.net.load.index):
            return "its loads are not those of the network one to one"
        return self.why_not_constant

    @property
    def why_not_constant(self) -> str:
        """Why rows can't be given to a program that knows demands of constant power alone."""
        return "has loads that depend on the voltage" if len(dependent_loads(self.network)) else ""

    @cached_property
    def bus_rows(self) -> Int:
        """(B,) row in `net.bus` of each bus of the network; empty if they don't match."""
        row = {f"bus:{number}": k for k, number in enumerate(self.net.bus.index)}
        labels = self.network.bus_labels
        return np.array([row[a] for a in labels] if all(a in row for a in labels) else [], np.int64)

    @cached_property
    def start(self) -> Complex:
        """The nominal solution in the order of `net.bus`."""
        out = np.empty_like(self.nominal)
        out[self.bus_rows] = self.nominal
        return out


def connected_branches(network: Network) -> list[int]:
    """Branches in service whose loss cuts nothing off, one for each element of one branch."""
    single = {label: rows[0] for label, rows in network.elements.items() if len(rows) == 1}
    on = [(label,) for label, branch in single.items() if network.branch_in_service[branch]]
    cut_off = cut_off_buses(network, on)
    return [single[label] for (label,), cut in zip(on, cut_off, strict=True) if not len(cut)]


def run_pandapower(net: Any, *, tol: float, max_steps: int = 30, **start: Any) -> None:
    """`runpp` with the options that networks are read with.

    Its `tolerance_mva` is compared with a mismatch in per unit.
    """
    from pandapower import runpp

    with quiet_pandapower():
        runpp(
            net, tolerance_mva=tol, trafo_model="t",
            max_iteration=max_steps,  # pyright: ignore[reportArgumentType]
            calculate_voltage_angles=True, enforce_q_lims=False, **start,
        )  # fmt: skip
