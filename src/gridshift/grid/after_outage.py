"""A grid after an outage of any elements: branches, generators, supply, loads, shunts, buses."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.errors import OutageError
from gridshift.grid.names import end_buses
from gridshift.grid.network import GENERATOR_LIMITS, BusKind, Network

STATIC = "static:"
"""Prefix of what a bus is fed beside the generators of the table, `static:7` at `bus:7`."""
SHUNT = "shunt:"
"""Prefix of all that is connected to ground at a bus, `shunt:7` at `bus:7`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AfterOutage:
    """A grid without some elements; labels, buses and branches are those of the grid before."""

    network: Network
    lost_loads: Int = field(default_factory=lambda: np.empty(0, np.int64))
    """Loads that are out themselves, or stand at a bus that is; the network still has them."""
    lost_buses: Int = field(default_factory=lambda: np.empty(0, np.int64))
    """Buses that are out themselves."""
    branches_alone: bool = False

    @cached_property
    def cut_off(self) -> Int:
        """Buses without a path to any slack bus, ascending."""
        return self.network.cut_off_buses()

    @property
    def whole(self) -> bool:
        """Whether nothing but branches is out and every bus is still supplied."""
        return self.branches_alone and not len(self.cut_off)


def other_elements(network: Network, kind: str) -> list[str]:
    """Elements of a kind other than branches: `generators`, `static`, `buses`, `loads`, `shunts`.

    Generators are those whose power is scheduled, not what holds a slack bus.
    """
    if kind == "buses":
        return [*network.bus_labels]
    if kind == "loads":
        return [label for label in network.load_labels if label.startswith("load:")]
    if kind == "shunts":
        return [_shunt(network.bus_labels[b]) for b in np.flatnonzero(network.bus_shunt)]
    if kind == "static":
        drawn = (label for label in network.load_labels if label.startswith(STATIC))
        return [*static_supply(network), *drawn]
    movable = [network.gen_labels[row] for row in network.scheduled_gen]
    return list(dict.fromkeys(label for label in movable if label.startswith("gen:")))


def static_supply(network: Network) -> dict[str, tuple[int, complex]]:
    """Bus, and nominal power given, p.u., of all supply beside the generators: `static:7` of bus 7.

    A network knows its static generators (pandapower's `sgen`, MATPOWER's generators at PQ buses)
    as one injection per bus. Its reactive power goes with the active one, unless something draws
    power there that is summed up with it.
    """
    fixed, drawn = network.bus_fixed, np.maximum(network.bus_consumed, -network.bus_fixed.real)
    given = fixed.real + drawn
    found = {}
    for bus in np.flatnonzero(given > 1e-12 * (1 + drawn)).tolist():
        reactive = 0.0 if network.bus_consumed[bus] else fixed[bus].imag
        label = STATIC + network.bus_labels[bus].removeprefix("bus:")
        found[label] = bus, complex(given[bus], reactive)
    return found


def knows(network: Network, label: str) -> bool:
    """Whether the grid has this element, of whatever kind, in service or not."""
    kinds = ("buses", "loads", "shunts", "generators", "static")
    return label in network.elements or any(label in other_elements(network, k) for k in kinds)


def buses_of(network: Network, label: str) -> tuple[int, ...]:
    """The buses that an element stands at, of whatever kind; none if it is unknown."""
    if label in network.elements:
        return end_buses(network, label)
    if label in network.bus_rows:
        return (network.bus_rows[label],)
    rows = dict(zip(network.load_labels, network.load_bus.tolist(), strict=True))
    rows |= dict(zip(network.gen_labels, network.gen_bus.tolist(), strict=True))
    if label in rows:
        return (rows[label],)
    bus = network.bus_rows.get("bus:" + label.partition(":")[2])
    return () if bus is None else (bus,)


def after_outage(
    network: Network, outage: Sequence[str], *, redistribute: bool = True
) -> AfterOutage:
    """The grid without these elements.

    A bus takes its branches, loads, generators and shunts with it. What a generator or other supply
    was scheduled to give is shared by the generators left in proportion to what they are scheduled
    to give, the slack's included; without `redistribute` the slack takes all of it. A bus that no
    generator holds any longer has no voltage set-point.

    Raises:
        OutageError: an element that the grid doesn't have, or that is out of service already.
    """
    switched = tuple(label for label in outage if label in network.elements)
    others = [label for label in outage if label not in network.elements]
    if unknown := [label for label in others if not knows(network, label)]:
        raise OutageError(f"no element {', '.join(unknown)} in {network.name}")
    if not others:
        left = network.without(switched) if switched else network
        return AfterOutage(network=left, branches_alone=True)
    bus_of = {label: b for b, label in enumerate(network.bus_labels)}
    buses = np.array([bus_of[label] for label in others if label in bus_of], np.int64)
    gone = {*others}
    gens = np.isin(network.gen_bus, buses) | np.isin(network.gen_labels, others)
    loads = np.isin(network.load_bus, buses) | np.isin(network.load_labels, others)
    lost = network.gen_p[gens & ~np.isin(network.gen_bus, network.slack)].sum()
    # a generator whose power a study draws is a demand of the other sign
    drawn = loads & ~np.char.startswith(np.array(network.load_labels, dtype=str), "load:")
    lost -= network.load_power.real[drawn].sum()
    fixed = network.bus_fixed.copy()
    for label, (bus, power) in static_supply(network).items():
        if label in gone:
            fixed[bus] -= power
            lost += power.real
    gen_p = np.where(gens, 0.0, network.gen_p)
    shunt = network.bus_shunt.copy()
    without = [b for b, label in enumerate(network.bus_labels) if _shunt(label) in gone]
    shunt[without] = 0
    kind, v_set = network.bus_kind.copy(), network.bus_v_set.copy()
    free = np.setdiff1d(network.gen_bus[gens], network.gen_bus[~gens])
    free = np.union1d(free, buses)
    kind[free], v_set[free] = BusKind.PQ, np.nan
    if redistribute:
        gen_p += _shares(network, gens) * lost
    left = replace(
        network, gen_p=gen_p[~gens], gen_bus=network.gen_bus[~gens], bus_fixed=fixed,
        bus_shunt=shunt, bus_kind=kind, bus_v_set=v_set,
        branch_in_service=_in_service(network, switched, buses), outage_of=None,
        gen_labels=tuple(network.gen_labels[row] for row in np.flatnonzero(~gens)),
        **{name: getattr(network, name)[~gens] for name in GENERATOR_LIMITS},
        outaged=tuple(sorted({*network.outaged, *outage})),
        controls=tuple(one for one in network.controls if one.shunt_bus not in {*without, *buses}),
    )  # fmt: skip
    return AfterOutage(network=left, lost_loads=np.flatnonzero(loads), lost_buses=buses)


def _shares(network: Network, out: np.ndarray) -> Real:
    """(G,) shares of lost power; what is missing to 1 is the slack's."""
    drawn = dict(zip(network.load_labels, -network.load_power.real, strict=True))
    size = network.gen_p + np.array([drawn.get(label, 0.0) for label in network.gen_labels])
    size = np.where(out, 0.0, np.maximum(0.0, size))
    total = size.sum()
    shares = size / total if total > 0 else np.zeros_like(size)
    return np.where(np.isin(network.gen_bus, network.slack), 0.0, shares)


def _in_service(network: Network, switched: tuple[str, ...], buses: Int) -> np.ndarray:
    """Branches left; an element goes whole where one of its branches is at a bus that is out."""
    on = (network.without(switched) if switched else network).branch_in_service.copy()
    at = np.isin(network.branch_from, buses) | np.isin(network.branch_to, buses)
    labels = {network.branch_labels[b] for b in np.flatnonzero(at)} - {""}
    at |= np.isin(network.branch_labels, sorted(labels))
    on[at] = False
    return on


def _shunt(bus_label: str) -> str:
    return SHUNT + bus_label.removeprefix("bus:")
