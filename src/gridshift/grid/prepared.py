"""`Prepared`: a topology with all that solving it needs besides the loads, made once."""

import weakref
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridshift.arguments import expect, how_many
from gridshift.arrays import Complex, Int
from gridshift.errors import NotConvergedError, ScenarioError
from gridshift.grid.engine import Engine, Topology
from gridshift.grid.network import Network
from gridshift.grid.pivoting import pivoting_newton


@dataclass(frozen=True, eq=False)
class Prepared:
    """A topology that is ready for rows of loads; get it with `prepare`."""

    network: Network
    engine: Engine
    """Of the grid as read; all its outages share it."""
    topology: Topology
    """Nominal point and factors."""

    @property
    def cut_off(self) -> Int:
        """Buses without a path to any slack bus, ascending; with any, no row is solved."""
        return self.topology.cut_off

    @property
    def solved(self) -> bool:
        """Whether nominal demand has an operating root, found to 1e-8 of the tolerance base."""
        return self.topology.solved()

    @property
    def voltage(self) -> Complex:
        """(B,) voltages at nominal demand, p.u.; without meaning where that is not solved."""
        return self.topology.point.voltage.view(np.complex128)

    def require_solved(self) -> "Prepared":
        """This topology, if nominal demand has a solution.

        Raises:
            NotConvergedError: it has none, and why.
        """
        if self.solved:
            return self
        why = f"{how_many(len(self.cut_off), 'bus is', 'buses are')} cut off from every slack bus"
        if not len(self.cut_off):
            why = "it has no solution at nominal demand"
        network = self.network
        without = f" without {','.join(network.outaged)}" if network.outaged else ""
        raise NotConvergedError(f"{network.name}{without} has no nominal point: {why}")


def prepare(network: Network, *, anew: bool = False) -> Prepared:
    """The topology, its nominal point solved and factored: the first time only.

    Args:
        network: the topology.
        anew: even if it has been prepared before, for whoever times it.
    """
    return prepare_all([network], anew=anew)[0]


def prepare_all(networks: Sequence[Network], *, anew: bool = False) -> list[Prepared]:
    """Topologies of one grid, those not prepared before side by side: faster than one by one."""
    for network in networks:
        expect(network, Network, "the grid", ScenarioError)
    new = [n for n in networks if anew or n not in _TOPOLOGIES]
    if new:
        engine = Engine.of(new[0])
        assert all(n.intact is new[0].intact for n in new)
        topologies = engine.prepare([n.removed_branches for n in new], apart=[n.apart for n in new])
        for network, topology in zip(new, topologies, strict=True):
            hopeless = len(topology.cut_off) or len(topology.apart)
            if not (topology.solved() or topology.trusted or hopeless):
                topology = _with_pivoting(network, engine, topology)
            _TOPOLOGIES[network] = topology
    return [Prepared(n, Engine.of(n), _TOPOLOGIES[n]) for n in networks]


def _with_pivoting(network: Network, engine: Engine, failed: Topology) -> Topology:
    """The topology from a nominal point that only a pivoting factorisation reaches, if it does."""
    limit = 1e-10 * network.tolerance_base
    found = pivoting_newton(
        network, engine.nominal_power[None], engine.start[None], tol=limit, max_steps=20
    )
    if not found.mismatch[0] <= limit:
        return failed
    topology = engine.prepare([network.removed_branches], start=found.voltage[0])[0]
    if network.intact is network:
        engine.intact = topology
    return topology


_TOPOLOGIES: "weakref.WeakKeyDictionary[Network, Topology]" = weakref.WeakKeyDictionary()
"""Without their networks, which would never be forgotten if their own values referred to them."""
