"""What solved cases say in the units of other programs: powers and voltages of every element."""

import weakref
from functools import partial
from typing import NamedTuple

import numpy as np

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.kernels.quantities import quantities as kernel
from gridshift.grid.network import BusKind, Network
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.voltage_dependence import dependent_loads, drawn


class Quantities(NamedTuple):
    """R solved cases. Powers in MW and Mvar, magnitudes p.u., angles in degrees."""

    demand_p: Real
    """(R, B) drawn at its voltage, less what others than `Network.gen_labels` give there."""
    demand_q: Real
    bus_p: Real
    """(R, B) given by the generators that hold the voltage of a bus; 0 at the others."""
    bus_q: Real
    magnitude: Real
    """(R, B)"""
    angle: Real
    """(R, B) from -180 to 180."""
    gen_p: Real
    """(R, G); generators at a slack bus share its active power in equal parts."""
    gen_q: Real
    """(R, G); generators at one bus share its reactive power by their ranges: each is at the same
    part of its own. In equal parts where one has no limit; without any range, equally far off."""
    from_p: Real
    """(R, E) into each branch at its from end, 0 where it is out of service."""
    from_q: Real
    to_p: Real
    to_q: Real
    worst_loading: Real
    """(R,) of the branches with a real rating, as a fraction of it."""
    num_overloads: Int
    """(R,) branches above their rating."""
    num_low: Int
    """(R,) buses below their lower voltage limit."""
    num_high: Int

    @classmethod
    def empty(cls, network: Network, num_rows: int) -> "Quantities":
        """Room for so many cases of a grid; making it takes longer than filling it."""
        by_bus, by_gen = (num_rows, network.num_buses), (num_rows, len(network.gen_bus))
        by_branch = (num_rows, network.num_branches)
        shapes = [by_bus] * 6 + [by_gen] * 2 + [by_branch] * 4
        counts = [np.empty(num_rows, np.int64) for _ in range(3)]
        return cls._make([*(np.empty(shape) for shape in shapes), np.empty(num_rows), *counts])

    def rows(self, which: slice) -> "Quantities":
        """The same of some cases, nothing copied."""
        return Quantities._make(values[which] for values in self)


class _Grid(NamedTuple):
    """A grid as the kernel reads it."""

    base_mva: float
    kind: Int
    shunt: Real
    fixed: Real
    v_min: Real
    v_max: Real
    load_bus: Int
    gen_of_load: Int
    gen_bus: Int
    gen_p: Real
    share_p: Real
    share_q: Real
    offset_q: Real
    """(G,) reactive power besides the share, p.u."""
    branch_from: Int
    branch_to: Int
    inverse_square: Real
    by_power: bool


class _Rows(NamedTuple):
    load_p: Real
    load_q: Real
    voltage: Real
    two_ports: Real
    """(T, E, 8) admittances, real and imaginary parts."""
    topology: Int


def quantities(
    network: Network,
    loads: LoadScenarios,
    voltage: Complex,
    *,
    two_ports: Complex | None = None,
    topology: Int | None = None,
    out: Quantities | None = None,
) -> Quantities:
    """Powers and voltages of solved cases of one grid and its outages.

    A demand that bears the label of a generator is that generator with the other sign, as a study
    has those whose power varies.

    Args:
        voltage: (R, B) that solve them.
        two_ports: (T, E, 4) admittances of the branches of each topology, 0 for those out of
            service; by default those of the grid.
        topology: (R,) topology of each row; by default all 0.
        out: room for at least R cases, to be filled and returned.

    Raises:
        ScenarioError: arrays whose shape does not fit the network.
    """
    load_p, load_q = demands(network, loads)
    if len(dependent_loads(network)):
        power = drawn(network, load_p + 1j * load_q, np.asarray(voltage))
        load_p, load_q = power.real.copy(), power.imag.copy()
    count = len(load_p)
    rows = _Rows(
        load_p, load_q, np.ascontiguousarray(voltage, complex).view(float),
        np.ascontiguousarray(in_service(network)[None] if two_ports is None else two_ports)
        .view(float).reshape(-1, network.num_branches, 8),
        np.zeros(count, np.int64) if topology is None else topology,
    )  # fmt: skip
    filled = Quantities.empty(network, count) if out is None else out.rows(slice(count))
    kernel(_grid(network), rows, filled)
    state = np.asarray(voltage)
    np.arctan2(state.imag, state.real, out=filled.angle)  # numpy's has vectors, a kernel's hasn't
    np.rad2deg(filled.angle, out=filled.angle)
    return filled


def in_service(network: Network) -> Complex:
    """(E, 4) admittances of the branches, 0 for those out of service."""
    return np.where(network.branch_in_service[:, None], network.branch_y, 0)


def _grid(network: Network) -> _Grid:
    if network not in _GRIDS:
        _GRIDS[network] = _made(network)
    return _GRIDS[network]


def _made(network: Network) -> _Grid:
    row_of = {label: row for row, label in enumerate(network.gen_labels)}
    rating = np.where(network.branch_rated[:, None], network.branch_rating, np.inf)
    number = np.bincount(network.gen_bus, minlength=network.num_buses)
    share_q, offset_q = reactive_shares(network)
    flat = partial(np.ascontiguousarray, dtype=float)
    return _Grid(
        base_mva=float(network.base_mva),
        kind=network.bus_kind.astype(np.int64),
        shunt=network.bus_shunt.copy().view(float),
        fixed=network.bus_fixed.copy().view(float),
        v_min=flat(network.bus_v_min), v_max=flat(network.bus_v_max),
        load_bus=network.load_bus.astype(np.int64),
        gen_of_load=np.array([row_of.get(label, -1) for label in network.load_labels], np.int64),
        gen_bus=network.gen_bus.astype(np.int64), gen_p=network.gen_p.copy(),
        share_p=1.0 / number[network.gen_bus], share_q=share_q, offset_q=offset_q,
        branch_from=network.branch_from.astype(np.int64),
        branch_to=network.branch_to.astype(np.int64),
        inverse_square=1.0 / np.square(rating.ravel()),
        by_power=network.rating_kind == "power",
    )  # fmt: skip


def reactive_shares(network: Network) -> tuple[Real, Real]:
    """(G,) shares of the reactive power of a bus, and what each generator gives besides, p.u.

    Source: MATPOWER, `pfsoln`; a generator at the same part of its range as the others at the bus.
    """
    low, high, bus = network.gen_q_min, network.gen_q_max, network.gen_bus

    def summed(values: Real) -> Real:
        found = np.zeros(network.num_buses)
        np.add.at(found, bus, values)
        return found[bus]

    number = summed(np.ones(len(bus)))
    ranged = np.isfinite(high - low) & (low <= high)
    limited = summed(ranged.astype(float)) == number
    least = np.where(limited, low, 0.0)
    extent = np.where(limited, high - least, 0.0)
    whole = summed(extent)
    share = np.where(whole > 0, extent / np.where(whole > 0, whole, 1.0), 1.0 / number)
    return share, least - share * summed(least)


_GRIDS: "weakref.WeakKeyDictionary[Network, _Grid]" = weakref.WeakKeyDictionary()

assert BusKind.SLACK == 3, "the kernel writes it as a number"
