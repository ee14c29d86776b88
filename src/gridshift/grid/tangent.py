"""`Tangent`: the exact first-order map from every input to every output at a solved point.

The unknowns s (angles of buses that aren't a slack, magnitudes of PQ buses) follow the inputs x
through the balance of power, J s = B dx, and the outputs follow both, dy = C s + D dx. B, C and D
are sparse; J is factored once, and no dense matrix of buses by buses is ever built.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, splu, svds

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.equations import power_derivatives
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare

BLOCK = 256
"""Right-hand sides solved at a time: enough to share the index work, few enough to stay small."""


@dataclass(frozen=True, eq=False)
class Tangent:
    """Derivatives at the nominal point of one topology; get it with `Tangent.of`.

    Inputs x and outputs y are those of `layout`.
    """

    network: Network
    layout: Layout
    voltage: Complex
    """(B,) the solved nominal point."""
    x: Real
    """(X,) inputs of the nominal point."""
    y: Real
    """(Y,) its outputs."""
    by_input: sp.csr_array
    """B (n, X): what an input does to the balance of the n unknowns."""
    by_state: sp.csr_array
    """C (Y, n): what an unknown does to the outputs."""
    direct: sp.csr_array
    """D (Y, X): what an input does to the outputs while the unknowns stay."""
    jacobian: sp.csc_array
    """J (n, n)"""

    @classmethod
    def of(cls, network: Network) -> "Tangent":
        """The tangent of a topology, from its nominal point.

        Raises:
            NotConvergedError: the topology has no solution at nominal demand, so no tangent.
        """
        return cls.at(network, prepare(network).require_solved().voltage)

    @classmethod
    def at(cls, network: Network, voltage: Complex) -> "Tangent":
        """The tangent at voltages (B,) that solve the network for its nominal demand."""
        layout, num_buses = Layout.of(network), network.num_buses
        by_angle, by_magnitude = power_derivatives(network, voltage)
        # powers [P, Q] by voltages [angle, magnitude], (2 B, 2 B)
        full = sp.csr_array(
            sp.block_array([[by_angle.real, by_magnitude.real], [by_angle.imag, by_magnitude.imag]])
        )
        unknown = np.concatenate([network.non_slack, num_buses + network.pq])
        given, set_points = _set_points(network, layout)
        moved = sp.csr_array(full[:, given] @ set_points - _injected(network, layout))
        # outputs are rows of [P, Q, angle, magnitude]
        observed = _observed(network, layout)
        voltages = sp.eye_array(2 * num_buses, format="csr")
        by_voltage = sp.csr_array(sp.vstack([full, voltages]))
        nothing = sp.csr_array((2 * num_buses, layout.num_inputs))
        power = voltage * (network.admittance @ voltage).conj() - network.bus_fixed
        np.add.at(power, network.load_bus, network.load_power)
        state = [power.real, power.imag, np.angle(voltage), np.abs(voltage)]
        return cls(
            network=network,
            layout=layout,
            voltage=voltage,
            x=layout.nominal_inputs(network),
            y=np.concatenate(state)[observed],
            by_input=sp.csr_array(-moved[unknown]),
            by_state=sp.csr_array(by_voltage[observed][:, unknown]),
            direct=sp.csr_array(sp.csr_array(sp.vstack([moved, nothing]))[observed]),
            jacobian=sp.csc_array(full[unknown][:, unknown]),
        )

    @cached_property
    def factorisation(self):
        """SuperLU factors of J."""
        return splu(self.jacobian)

    def apply(self, dx: Real) -> Real:
        """(R, Y) first-order changes of the outputs for changes dx (R, X) of the inputs."""
        dy = np.empty((len(dx), len(self.y)))
        for start in range(0, len(dx), BLOCK):
            change = np.ascontiguousarray(dx[start : start + BLOCK].T)
            state = self.factorisation.solve(self.by_input @ change)
            dy[start : start + BLOCK] = (self.by_state @ state + self.direct @ change).T
        return dy

    def apply_transposed(self, dy: Real) -> Real:
        """(R, X) the transposed map: gradients by inputs of gradients by outputs dy (R, Y)."""
        dx = np.empty((len(dy), len(self.x)))
        for start in range(0, len(dy), BLOCK):
            change = np.ascontiguousarray(dy[start : start + BLOCK].T)
            state = self.factorisation.solve(self.by_state.T @ change, trans="T")
            dx[start : start + BLOCK] = (self.by_input.T @ state + self.direct.T @ change).T
        return dx

    def matrix(self, columns: slice | Int = slice(None)) -> Real:
        """(Y, columns) dense derivatives by the chosen inputs; all of them by default."""
        which = np.arange(len(self.x))[columns]
        out = np.empty((len(self.y), len(which)))
        for start in range(0, len(which), BLOCK):
            some = which[start : start + BLOCK]
            state = self.factorisation.solve(self.by_input[:, some].toarray())
            out[:, start : start + BLOCK] = self.by_state @ state + self.direct[:, some].toarray()
        return out

    def low_rank(self, rank: int) -> tuple[Real, Real]:
        """(Y, rank) and (rank, X) whose product is the best of that rank, without the matrix."""
        start = np.ones(min(len(self.y), len(self.x)))
        left, values, right = svds(_Action(self), k=rank, v0=start)
        assert right is not None
        return left * values, right


class _Action(LinearOperator):
    """The map as scipy's iterative methods take it."""

    def __init__(self, tangent: Tangent):
        self.tangent = tangent
        super().__init__(np.dtype(np.float64), (len(tangent.y), len(tangent.x)))

    def _matvec(self, x: Real) -> Real:
        return self.tangent.apply(x.reshape(1, -1))[0]

    def _rmatvec(self, x: Real) -> Real:
        return self.tangent.apply_transposed(x.reshape(1, -1))[0]


def _set_points(network: Network, layout: Layout) -> tuple[Int, sp.csr_array]:
    """Angles and magnitudes that are inputs, as places of [angle, magnitude]; and (given, X) which
    input each is."""
    given = np.concatenate([network.slack, network.num_buses + network.controlled])
    column = np.arange(layout.num_inputs)
    source = [column[layout.x_slices[name]] for name in ("theta_slack", "v_set")]
    entries = np.arange(len(given)), np.concatenate(source)
    shape = len(given), layout.num_inputs
    return given, sp.csr_array((np.ones(len(given)), entries), shape=shape)


def _injected(network: Network, layout: Layout) -> sp.csr_array:
    """(2 B, X) power [P, Q] into the network that an input adds."""
    num_buses, generators = network.num_buses, network.scheduled_gen
    rows = [network.load_bus, num_buses + network.load_bus, network.gen_bus[generators]]
    column = np.arange(layout.num_inputs)
    columns = [column[layout.x_slices[name]] for name in ("p_load", "q_load", "p_gen")]
    signs = np.concatenate([np.full(2 * network.num_loads, -1.0), np.ones(len(generators))])
    return sp.csr_array(
        (signs, (np.concatenate(rows), np.concatenate(columns))),
        shape=(2 * num_buses, layout.num_inputs),
    )


def _observed(network: Network, layout: Layout) -> Int:
    """(Y,) place of each output in [P, Q, angle, magnitude]."""
    num_buses, observed = network.num_buses, np.empty(layout.num_outputs, np.int64)
    observed[layout.y_slices["p_slack"]] = network.slack
    observed[layout.y_slices["q_gen"]] = num_buses + network.controlled
    observed[layout.y_slices["theta"]] = 2 * num_buses + network.non_slack
    observed[layout.y_slices["v"]] = 3 * num_buses + network.pq
    return observed
