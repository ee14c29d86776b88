"""`Expansion`: outputs of many load scenarios to first or second order, at engine speed.

The first order is the tangent plane, the second its curvature as well; neither iterates, and both
use the factors that the engine has of the topology.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.equations import specified_mismatch
from gridshift.grid.kernels.linear import expand
from gridshift.grid.network import Network
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.tangent import Tangent

Order = Literal[1, 2]


class Outputs(NamedTuple):
    """How outputs follow from the kernel's steps and powers: sparse rows, powers first."""

    constant: Real
    """(Y,) value without any step; for powers, minus what the loads add."""
    ptr: Int
    unknown: Int
    value: Real
    power_at: Int
    """For each power: twice its bus, plus one if it is reactive."""
    own: Real
    """For each power: what generators add to the scheduled power there."""
    row_ptr: Int
    row_bus: Int
    admittance: Real


@dataclass(frozen=True, eq=False)
class Expansion:
    """Outputs near the nominal point of one topology, everything but the loads at its own value."""

    tangent: Tangent
    prepared: Prepared

    @classmethod
    def of(cls, network: Network) -> "Expansion":
        """The expansion of a topology around its nominal point.

        Raises:
            NotConvergedError: it has no solution at nominal demand.
        """
        return cls(Tangent.of(network), prepare(network))

    def outputs(self, load_p: Real, load_q: Real, *, order: Order = 1, threads: int = 1) -> Real:
        """(R, Y) outputs for demands (R, L) to that order, in the order of `Layout`.

        Where the topology needs a pivoting factorisation, through the tangent's own, which is
        slower.
        """
        if not self.prepared.topology.trusted:
            return self._pivoted(load_p, load_q, order)
        engine = self.prepared.engine
        load_p = np.ascontiguousarray(load_p, np.float64)
        load_q = np.ascontiguousarray(load_q, np.float64)
        out = np.empty((len(load_p), len(self.tangent.y)))
        batch = engine.batch(self.prepared.topology, load_p, load_q)
        kernel = partial(expand, engine.lanes, engine.solving, batch, self._rows, order)
        engine.run_blocks(kernel, out, len(load_p), threads)
        return out

    @cached_property
    def _rows(self) -> Outputs:
        tangent, network = self.tangent, self.tangent.network
        engine = self.prepared.engine
        symbolic = engine.symbolic
        # unknowns of the kernels in the order of the tangent, magnitudes relative to themselves
        pq, layout = network.pq, tangent.layout
        first = np.zeros(network.num_buses, np.int64)
        first[symbolic.node_bus] = symbolic.node_first[:-1]
        place = np.concatenate([first[network.non_slack], first[pq] + 1])
        size = np.concatenate([np.ones(len(network.non_slack)), np.abs(tangent.voltage[pq])])
        by_state = sp.csr_array(tangent.by_state @ sp.diags_array(size))

        power_at = np.empty(layout.y_slices["v"].start, np.int64)
        power_at[layout.y_slices["p_slack"]] = 2 * network.slack
        power_at[layout.y_slices["q_gen"]] = 2 * network.controlled + 1
        own = np.zeros(network.num_buses)
        np.add.at(own, network.gen_bus, network.gen_p)
        constant = tangent.y.copy()
        constant[: len(power_at)] += engine.nominal_power[power_at]
        admittance = sp.csr_array(network.admittance[power_at // 2])
        return Outputs(
            constant=constant,
            ptr=by_state.indptr.astype(np.int64),
            unknown=place[by_state.indices],
            value=np.asarray(by_state.data, np.float64),
            power_at=power_at,
            own=(power_at % 2 == 0) * own[power_at // 2],
            row_ptr=admittance.indptr.astype(np.int64),
            row_bus=admittance.indices.astype(np.int64),
            admittance=np.ascontiguousarray(admittance.data).view(np.float64),
        )

    def _pivoted(self, load_p: Real, load_q: Real, order: Order) -> Real:
        tangent, network = self.tangent, self.tangent.network
        layout = tangent.layout
        x = layout.pack_inputs(network, LoadScenarios(load_p=load_p, load_q=load_q))
        y = tangent.y + tangent.apply(x - tangent.x)
        if order == 1:
            return y
        voltage = self._voltage(y)
        off = specified_mismatch(network, voltage, load_p + 1j * load_q)
        left = np.hstack([off.real[:, network.non_slack], off.imag[:, network.pq]])
        step = tangent.factorisation.solve(np.ascontiguousarray(-left.T))
        exact = voltage * (network.admittance @ voltage.T).T.conj() - network.bus_fixed
        np.add.at(exact.T, network.load_bus, (load_p + 1j * load_q).T)
        y[:, layout.y_slices["p_slack"]] = exact.real[:, network.slack]
        y[:, layout.y_slices["q_gen"]] = exact.imag[:, network.controlled]
        return y + (tangent.by_state @ step).T

    def _voltage(self, y: Real) -> Complex:
        tangent, network = self.tangent, self.tangent.network
        magnitude = np.tile(np.abs(tangent.voltage), (len(y), 1))
        angle = np.tile(np.angle(tangent.voltage), (len(y), 1))
        magnitude[:, network.pq] = y[:, tangent.layout.y_slices["v"]]
        angle[:, network.non_slack] = y[:, tangent.layout.y_slices["theta"]]
        return magnitude * np.exp(1j * angle)
