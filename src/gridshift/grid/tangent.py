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
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare

BLOCK = 256
"""Right-hand sides solved at a time: enough to share the index work, few enough to stay small."""


@dataclass(frozen=True, eq=False)
class Tangent:
    """Derivatives at the nominal point of one topology; get it with `Tangent.of`.

    Inputs are, in this order, `p_load` and `q_load` of each load, `v_set` of each slack or PV bus,
    `p_gen` of each generator that isn't at a slack bus, `theta_slack` of each slack bus. Outputs
    are `p_slack`, `q_gen` of each slack or PV bus, `v` of each PQ bus, `theta` of each other bus
    than a slack. Buses ascend; `inputs` and `outputs` tell where each quantity sits.
    """

    network: Network
    voltage: Complex
    """(B,) the solved nominal point."""
    inputs: dict[str, slice]
    outputs: dict[str, slice]
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
        parts = _Parts.of(network)
        by_angle, by_magnitude = power_derivatives(network, voltage)
        full = sp.csr_array(
            sp.block_array([[by_angle.real, by_magnitude.real], [by_angle.imag, by_magnitude.imag]])
        )
        balance, generation = full[parts.unknown], full[parts.generation]
        set_points, injected = parts.set_points, parts.injected
        moved = full[:, parts.given] @ set_points - injected
        own = sp.csr_array(
            (
                np.ones(len(parts.observed)),
                (np.arange(len(parts.observed)), np.searchsorted(parts.unknown, parts.observed)),
            ),
            shape=(len(parts.observed), len(parts.unknown)),
        )
        power = voltage * (network.admittance @ voltage).conj() - network.bus_fixed
        np.add.at(power, network.load_bus, network.load_power)
        state = np.concatenate([np.angle(voltage), np.abs(voltage)])
        return cls(
            network=network,
            voltage=voltage,
            inputs=parts.inputs,
            outputs=parts.outputs,
            x=parts.nominal(network),
            y=np.concatenate(
                [np.concatenate([power.real, power.imag])[parts.generation], state[parts.observed]]
            ),
            by_input=sp.csr_array(-moved[parts.unknown]),
            by_state=sp.csr_array(sp.vstack([generation[:, parts.unknown], own])),
            direct=sp.csr_array(
                sp.vstack(
                    [
                        moved[parts.generation],
                        sp.csr_array((len(parts.observed), len(parts.nominal(network)))),
                    ]
                )
            ),
            jacobian=sp.csc_array(balance[:, parts.unknown]),
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


@dataclass(frozen=True, eq=False)
class _Parts:
    """Which of the 2 B powers, and of the 2 B angles and magnitudes, play which role."""

    inputs: dict[str, slice]
    outputs: dict[str, slice]
    unknown: Int
    """Angles and magnitudes that are solved for; the same places of [P, Q] are specified."""
    given: Int
    """Angles and magnitudes that are inputs."""
    generation: Int
    """Active power at slack and reactive power at slack and PV buses."""
    observed: Int
    """Magnitudes, then angles, that are outputs."""
    set_points: sp.csr_array
    """(given, X) which input each is."""
    injected: sp.csr_array
    """(2 B, X) power into the network that an input adds."""

    @classmethod
    def of(cls, network: Network) -> "_Parts":
        b, loads = network.num_buses, network.num_loads
        controlled = np.sort(np.concatenate([network.slack, network.pv]))
        moving = np.sort(np.concatenate([network.pv, network.pq]))
        generators = scheduled_generators(network)
        inputs = _slices(
            p_load=loads, q_load=loads, v_set=len(controlled), p_gen=len(generators),
            theta_slack=len(network.slack),
        )  # fmt: skip
        outputs = _slices(
            p_slack=len(network.slack), q_gen=len(controlled), v=len(network.pq), theta=len(moving)
        )
        width = inputs["theta_slack"].stop
        column = np.arange(width)
        given = np.concatenate([network.slack, b + controlled])
        source = np.concatenate([column[inputs["theta_slack"]], column[inputs["v_set"]]])
        rows = [network.load_bus, b + network.load_bus, network.gen_bus[generators]]
        columns = [column[inputs[name]] for name in ("p_load", "q_load", "p_gen")]
        signs = np.concatenate([np.full(2 * loads, -1.0), np.ones(len(generators))])
        return cls(
            inputs=inputs,
            outputs=outputs,
            unknown=np.concatenate([moving, b + network.pq]),
            given=given,
            generation=np.concatenate([network.slack, b + controlled]),
            observed=np.concatenate([b + network.pq, moving]),
            set_points=sp.csr_array(
                (np.ones(len(given)), (np.arange(len(given)), source)), shape=(len(given), width)
            ),
            injected=sp.csr_array(
                (signs, (np.concatenate(rows), np.concatenate(columns))), shape=(2 * b, width)
            ),
        )

    def nominal(self, network: Network) -> Real:
        """(X,) the network's own inputs."""
        controlled = np.sort(np.concatenate([network.slack, network.pv]))
        return np.concatenate(
            [
                network.load_power.real,
                network.load_power.imag,
                network.bus_v_set[controlled],
                network.gen_p[scheduled_generators(network)],
                np.angle(network.v_start[network.slack]),
            ]
        )


def scheduled_generators(network: Network) -> Int:
    """Generators whose active power is an input: those that aren't at a slack bus."""
    return np.flatnonzero(~np.isin(network.gen_bus, network.slack))


def _slices(**sizes: int) -> dict[str, slice]:
    stops = np.cumsum(list(sizes.values())).tolist()
    return {
        name: slice(stop - size, stop)
        for (name, size), stop in zip(sizes.items(), stops, strict=True)
    }
