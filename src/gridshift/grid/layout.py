"""Which entry of x and y is which quantity of which bus, and the way there and back.

x = [p_load, q_load, v_set, p_gen, theta_slack] and y = [p_slack, q_gen, v, theta], as in section II
of the paper. Every topology of a grid has the same layout, so rows of different outages line up.
"""

import hashlib
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.voltage_dependence import require_constant_power

UNITS = {
    "p_load": "p.u.", "q_load": "p.u.", "v_set": "p.u.", "p_gen": "p.u.", "theta_slack": "rad",
    "p_slack": "p.u.", "q_gen": "p.u.", "v": "p.u.", "theta": "rad",
}  # fmt: skip
"""Unit of each quantity; per unit on the grid's `base_mva`, or of the bus's base voltage."""

INPUTS = ("p_load", "q_load", "v_set", "p_gen", "theta_slack")
OUTPUTS = ("p_slack", "q_gen", "v", "theta")


@dataclass(frozen=True)
class Entry:
    """One entry of x or y: `v bus:7` is the voltage magnitude of bus 7 in per unit."""

    quantity: str
    element: str
    """What it belongs to: a load, a generator, or the bus itself."""
    bus: str
    """Label of the bus that it sits at."""

    @property
    def name(self) -> str:
        """Quantity and element, 'v bus:7' for instance."""
        return f"{self.quantity} {self.element}"

    @property
    def unit(self) -> str:
        """Unit of the quantity: 'p.u.' or 'rad'."""
        return UNITS[self.quantity]


@dataclass(frozen=True, kw_only=True, eq=False)
class Layout:
    """The order of x and y for one grid; equal for all of its topologies.

    Voltage-controlled buses are the slack and PV buses in ascending order, each with one set-point
    and one reactive power, because power flow doesn't say how units at one bus share it.
    """

    inputs: tuple[Entry, ...]
    outputs: tuple[Entry, ...]
    num_buses: int
    slack: Int
    controlled: Int
    """Slack and PV buses, ascending."""
    pq: Int
    non_slack: Int
    load_bus: Int
    scheduled_gen: Int = field(repr=False)
    """Generators whose active power is an input: those that are not at a slack bus."""

    @classmethod
    def of(cls, network: Network) -> "Layout":
        """The layout of a network, the same for it and for each of its outages.

        Raises:
            GridshiftError: loads that depend on the voltage.
        """
        require_constant_power(network, "surrogates and tangents take demands as they are given")
        buses, loads = network.bus_labels, network.load_labels

        def at_loads(quantity: str) -> list[Entry]:
            at = zip(loads, network.load_bus, strict=True)
            return [Entry(quantity, load, buses[b]) for load, b in at]

        def at_buses(quantity: str, which: Int) -> list[Entry]:
            return [Entry(quantity, buses[b], buses[b]) for b in which]

        generators = [
            Entry("p_gen", network.gen_labels[g], buses[network.gen_bus[g]])
            for g in network.scheduled_gen
        ]
        return cls(
            inputs=(
                *at_loads("p_load"),
                *at_loads("q_load"),
                *at_buses("v_set", network.controlled),
                *generators,
                *at_buses("theta_slack", network.slack),
            ),
            outputs=(
                *at_buses("p_slack", network.slack),
                *at_buses("q_gen", network.controlled),
                *at_buses("v", network.pq),
                *at_buses("theta", network.non_slack),
            ),
            num_buses=network.num_buses,
            slack=network.slack,
            controlled=network.controlled,
            pq=network.pq,
            non_slack=network.non_slack,
            load_bus=network.load_bus,
            scheduled_gen=network.scheduled_gen,
        )

    @property
    def num_inputs(self) -> int:
        """X, the width of x."""
        return len(self.inputs)

    @property
    def num_outputs(self) -> int:
        """Y, the width of y."""
        return len(self.outputs)

    @cached_property
    def x_slices(self) -> dict[str, slice]:
        """Where each quantity of x sits, in the order of x."""
        return _slices(INPUTS, self.inputs)

    @cached_property
    def y_slices(self) -> dict[str, slice]:
        """Where each quantity of y sits, in the order of y."""
        return _slices(OUTPUTS, self.outputs)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the names of all entries, in order."""
        text = "\n".join(f"{e.name} @ {e.bus} [{e.unit}]" for e in (*self.inputs, *self.outputs))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _loads_at_controlled(self) -> sp.csr_array:
        """(L, number of controlled buses) 1 where the load sits at the bus."""
        return sp.csr_array((self.load_bus[:, None] == self.controlled) * 1.0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def pack_inputs(self, network: Network, loads: LoadScenarios) -> Real:
        """(R, X) x of each scenario; all but the loads is the network's own and constant."""
        x = np.tile(self.nominal_inputs(network), (loads.num_rows, 1))
        x[:, self.x_slices["p_load"]] = loads.load_p
        x[:, self.x_slices["q_load"]] = loads.load_q
        return x

    def nominal_inputs(self, network: Network) -> Real:
        """(X,) x at nominal demand."""
        x, at = np.empty(self.num_inputs), self.x_slices
        x[at["p_load"]] = network.load_power.real
        x[at["q_load"]] = network.load_power.imag
        x[at["v_set"]] = network.bus_v_set[self.controlled]
        x[at["p_gen"]] = network.gen_p[self.scheduled_gen]
        x[at["theta_slack"]] = np.angle(network.v_start[self.slack])
        return x

    def pack_outputs(self, network: Network, loads: LoadScenarios, voltage: Complex) -> Real:
        """(R, Y) y of solved voltages (R, B); generation is what the bus balance leaves over.

        At a voltage-controlled bus, generation = injection into this network's admittances
        + demand of the loads there - `bus_fixed`.
        """
        own = slice(None), self.controlled
        current = (network.admittance[self.controlled] @ voltage.T).T
        demand = loads.load_power @ self._loads_at_controlled
        generation = voltage[own] * current.conj() + demand - network.bus_fixed[self.controlled]

        y = np.empty((len(voltage), self.num_outputs))
        at = self.y_slices
        y[:, at["p_slack"]] = generation[:, np.isin(self.controlled, self.slack)].real
        y[:, at["q_gen"]] = generation.imag
        y[:, at["v"]] = np.abs(voltage[:, self.pq])
        # within half a turn of the grid's own nominal angle, so that no entry wraps between rows
        intact = prepare(network.intact)
        known = intact.voltage if intact.solved else network.intact.v_start
        around = np.angle(known[self.non_slack])
        y[:, at["theta"]] = around + np.angle(voltage[:, self.non_slack] * np.exp(-1j * around))
        return y

    def unpack_loads(self, x: Real) -> LoadScenarios:
        """Demands of the rows of x (R, X)."""
        at = self.x_slices
        return LoadScenarios(load_p=x[:, at["p_load"]], load_q=x[:, at["q_load"]])

    def unpack_voltage(self, x: Real, y: Real) -> Complex:
        """(R, B) complex bus voltages from set-points in x (R, X) and the rest in y (R, Y)."""
        magnitude = np.empty((len(y), self.num_buses))
        angle = np.empty((len(y), self.num_buses))
        magnitude[:, self.controlled] = x[:, self.x_slices["v_set"]]
        magnitude[:, self.pq] = y[:, self.y_slices["v"]]
        angle[:, self.slack] = x[:, self.x_slices["theta_slack"]]
        angle[:, self.non_slack] = y[:, self.y_slices["theta"]]
        return magnitude * (np.cos(angle) + 1j * np.sin(angle))

    def with_implied_generation(self, network: Network, x: Real, y: Real) -> Real:
        """(R, Y) the voltages of y (R, Y), and the generation that they take on this topology."""
        voltage = self.unpack_voltage(x, y)
        return self.pack_outputs(network, self.unpack_loads(x), voltage)


def _slices(quantities: tuple[str, ...], entries: tuple[Entry, ...]) -> dict[str, slice]:
    slices, start = {}, 0
    for quantity in quantities:
        stop = start + sum(entry.quantity == quantity for entry in entries)
        slices[quantity] = slice(start, stop)
        start = stop
    return slices
