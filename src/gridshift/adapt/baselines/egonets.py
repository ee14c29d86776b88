"""What a bus knows of its neighbourhood: injections, and first-order sensitivities to them and to
admittances, linearised once at the intact grid's nominal point."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from gridshift.arrays import Bool, Int, Real
from gridshift.grid.equations import jacobian, specified_mismatch
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.tangent import Tangent


@dataclass(frozen=True, kw_only=True, eq=False)
class Egonets:
    """Each bus with its neighbours on the intact grid. Axis M: members, the bus itself first."""

    network: Network
    """The intact grid."""
    layout: Layout
    tangent: Tangent
    members: Int
    """(B, M) buses; -1 where a bus has fewer."""

    @classmethod
    def of(cls, network: Network) -> "Egonets":
        """The egonets of a grid; it must have a solution at nominal demand."""
        adjacent = _adjacent(network)
        nets = [np.append(bus, np.flatnonzero(row)) for bus, row in enumerate(adjacent)]
        members = np.full((network.num_buses, max(map(len, nets))), -1)
        for bus, net in enumerate(nets):
            members[bus, : len(net)] = net
        return cls(
            network=network,
            layout=Layout.of(network),
            tangent=Tangent.of(network),
            members=members,
        )

    def features(self, networks: Sequence[Network], x: Real, topology: Int) -> "LocalFeatures":
        """Features of rows x (R, X), each on the topology whose number is in `topology` (R,)."""
        layout, num_buses = self.layout, self.layout.num_buses
        loads = layout.unpack_loads(x).load_power - self.network.load_power
        at_bus = sp.csr_array(
            (np.ones(len(layout.load_bus)), (np.arange(len(layout.load_bus)), layout.load_bus)),
            shape=(len(layout.load_bus), num_buses),
        )
        drawn = -(loads @ at_bus)
        moved = self.tangent.apply(x - self.tangent.x)
        response = np.zeros((len(x), num_buses, 2))
        response[:, layout.pq, 0] = moved[:, layout.y_slices["v"]]
        response[:, layout.non_slack, 1] = moved[:, layout.y_slices["theta"]]
        adjacent = np.stack([_adjacent(network) for network in networks])
        own = np.arange(num_buses)[:, None]
        kept = (adjacent[:, own, self.members] | (self.members == own)) & (self.members >= 0)
        return LocalFeatures(
            egonets=self,
            topology=topology,
            injections=np.stack([drawn.real, drawn.imag], -1),
            response=response,
            shift=np.stack([self._shift(network) for network in networks]),
            degree=adjacent.sum(-1).astype(np.float64),
            kept=kept,
        )

    def _shift(self, network: Network) -> Real:
        """(B, 2) first-order answer of magnitudes and angles to what the admittances leave over.

        That is the power lacking at each bus if the intact grid's nominal voltages met the
        topology's admittances: nothing but at the ends of the outage.
        """
        root, voltage = self.network, self.tangent.voltage
        shift = np.zeros((root.num_buses, 2))
        if not network.outaged:
            return shift
        off = specified_mismatch(network, voltage, root.load_power)
        moving = np.concatenate([root.pv, root.pq])
        step = -splu(jacobian(root, voltage)).solve(np.append(off[moving].real, off[root.pq].imag))
        shift[moving, 1], shift[root.pq, 0] = step[: len(moving)], step[len(moving) :]
        return shift


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalFeatures:
    """Everything that the buses' features of R rows on T topologies are cut out of."""

    egonets: Egonets
    topology: Int
    """(R,)"""
    injections: Real
    """(R, B, 2) deviation of active and reactive power from nominal."""
    response: Real
    """(R, B, 2) first-order answer of magnitude and angle to it on the intact grid."""
    shift: Real
    """(T, B, 2) the same to the changed admittances; zero on the intact grid."""
    degree: Real
    """(T, B) neighbours in the topology."""
    kept: Bool
    """(T, B, M) members that are still neighbours; the others' features are zero."""

    @property
    def num_features(self) -> int:
        """F: 2 for each member of the largest egonet, and 5 of the bus."""
        return 2 * self.egonets.members.shape[1] + 5

    def at(self, bus: int, *, response: bool = True) -> Real:
        """(R, F) [response, shift, degree, injections of the members]."""
        members, kept = self.egonets.members[bus], self.kept[:, bus, :, None]
        answer = self.response[:, bus] if response else np.zeros((len(self.topology), 2))
        of_topology = np.column_stack([self.shift[:, bus], self.degree[:, bus]])[self.topology]
        injections = self.injections[:, members] * kept[self.topology]
        flat = injections.reshape(len(answer), 2 * members.size)
        return np.hstack([answer, of_topology, flat])


def _adjacent(network: Network) -> Bool:
    """(B, B) whether two different buses have a branch in service between them."""
    on = network.branch_in_service
    f, t = network.branch_from[on], network.branch_to[on]
    adjacent = np.zeros((network.num_buses, network.num_buses), bool)
    adjacent[f, t] = adjacent[t, f] = True
    np.fill_diagonal(adjacent, False)
    return adjacent
