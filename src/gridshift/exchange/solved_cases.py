"""Data sets of solved cases read back, whoever wrote them: as scenarios and as tables of cases."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.errors import TableError
from gridshift.grid.network import Network

LEAST = 1e-6
"""Power, MW or Mvar, that is taken for none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SolvedCases:
    """N solved cases, buses, generators and branches as the source numbers them, from 0.

    Powers in MW and Mvar, magnitudes p.u., angles in degrees.
    """

    source: str
    scenario: Int
    """(N,) numbers of the cases in the source."""
    demand_p: Real
    """(N, B)"""
    demand_q: Real
    bus_p: Real
    """(N, B) generated at each bus."""
    bus_q: Real
    magnitude: Real
    """(N, B)"""
    angle: Real
    gen_bus: Int
    """(G,)"""
    gen_p: Real
    """(N, G)"""
    gen_q: Real
    in_service: Real
    """(N, E) 1 for branches in service, 0 for the others."""

    @property
    def num_cases(self) -> int:
        """N"""
        return len(self.scenario)

    def columns(self) -> dict[str, Real]:
        """A table of cases: `pd_4`, `qd_4`, `pg_4`, `qg_4`, `vm_4` and `va_4` of each bus.

        `scenario` numbers the cases; `br_status_7` is there for branches that are ever out.
        """
        tables = {
            "pd": self.demand_p, "qd": self.demand_q, "pg": self.bus_p, "qg": self.bus_q,
            "vm": self.magnitude, "va": self.angle,
        }  # fmt: skip
        found = {"scenario": self.scenario.astype(float)}
        for name, values in tables.items():
            found |= {f"{name}_{bus}": column for bus, column in enumerate(values.T)}
        varying = np.flatnonzero((self.in_service == 0).any(axis=0))
        return found | {f"br_status_{e}": self.in_service[:, e] for e in varying.tolist()}

    def scenario_columns(self, network: Network) -> dict[str, Real]:
        """The scenarios behind the cases, for a grid with the same buses in the same order.

        `load:3` and `load:3:q`, MW and Mvar: the demand of a bus is shared among its loads as it is
        at nominal demand. `gen:2` for generators whose power isn't the schedule's in all cases.

        Raises:
            TableError: another number of buses; demand at a bus where the grid has no load.
        """
        if self.demand_p.shape[1] != network.num_buses:
            raise TableError(
                f"{self.source} has {self.demand_p.shape[1]} buses and {network.name} has "
                f"{network.num_buses}"
            )
        return self._loads(network) | self._generators(network)

    def _loads(self, network: Network) -> dict[str, Real]:
        base, found = network.base_mva, dict[str, Real]()
        p = self.demand_p + base * network.bus_fixed.real
        q = self.demand_q + base * network.bus_fixed.imag
        without = np.ones(network.num_buses, bool)
        without[network.load_bus] = False
        left = np.maximum(np.abs(p), np.abs(q)).max(axis=0, initial=0)
        odd = np.flatnonzero(without & (left > LEAST))
        if len(odd):
            raise TableError(
                f"{self.source} has {left[odd[0]]:g} MW or Mvar at {network.bus_labels[odd[0]]}, "
                f"where {network.name} has no load"
            )
        for values, ending, part in ((p, "", "real"), (q, ":q", "imag")):
            shares = _shares(network.load_bus, getattr(network.load_power, part))
            for load, label in enumerate(network.load_labels):
                found[label + ending] = values[:, network.load_bus[load]] * shares[load]
        return found

    def _generators(self, network: Network) -> dict[str, Real]:
        mine = np.array_equal(self.gen_bus, network.gen_bus)
        shares = _shares(network.gen_bus, network.gen_p)
        found: dict[str, Real] = {}
        for gen in network.scheduled_gen.tolist():
            label, bus = network.gen_labels[gen], network.gen_bus[gen]
            power = self.gen_p[:, gen] if mine else self.bus_p[:, bus] * shares[gen]
            moved = np.abs(power - network.base_mva * network.gen_p[gen]).max(initial=0)
            if label.startswith("gen:") and moved > LEAST:
                found[label] = power
        return found


def _shares(bus: Int, nominal: Real) -> Real:
    """Share of each element in its bus: by nominal power, in equal parts where that tells none."""
    size = np.abs(nominal)
    total, number = np.bincount(bus, size, 1), np.bincount(bus, minlength=1)
    return np.divide(size, total[bus], out=1.0 / number[bus], where=total[bus] > 0)


def read_cases(path: str | Path) -> SolvedCases:
    """The cases of a folder in gridfm's or PFΔ's form.

    Args:
        path: of the tables, or a folder above them that holds no other data set.

    Raises:
        TableError: no data set, more than one, or one that is damaged.
    """
    from gridshift.exchange.gridfm_reader import find_tables, read_gridfm
    from gridshift.exchange.pfdelta_reader import find_samples, read_pfdelta

    folder = Path(path)
    tables, samples = find_tables(folder), find_samples(folder)
    if len(tables) > 1:
        told = ", ".join(str(one) for one in tables[:3])
        raise TableError(f"{folder} holds {len(tables)} data sets, {told}; name one of them")
    if tables:
        return read_gridfm(tables[0])
    if samples:
        return read_pfdelta(folder, samples)
    raise TableError(f"{folder} holds neither gridfm's bus_data.parquet nor PFΔ's sample_1.json")
