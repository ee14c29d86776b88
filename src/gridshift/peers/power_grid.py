"""power-grid-model as a peer: grids of one slack bus, branches without taps, and loads."""

from typing import Any

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.network import BusKind, Network
from gridshift.peers.case import Case
from gridshift.peers.peer import MAX_STEPS, Peer, Run, Solved

VOLTS = 1e4
"""Rated voltage that all buses are given: the network is in per unit, so any one does."""
SHORT_CIRCUIT_VA = 1e25
"""Of the source, which has no impedance in all but name."""


class PowerGridModel(Peer):
    """Its batch of symmetric Newton power flows, on one thread.

    Its tolerance is on the change of a voltage, not on the mismatch: it takes a step more.
    """

    name = "power-grid-model"
    module = "power_grid_model"

    def _why_not(self, case: Case) -> str:
        network = case.network
        if (network.bus_kind == int(BusKind.PV)).any():
            return "has no buses of given voltage (PV)"
        if len(network.slack) != 1 or network.bus_shunt.any() or network.bus_fixed.any():
            return "translated only from one slack bus, branches and loads"
        y = network.branch_y[network.branch_in_service]
        if not (np.allclose(y[:, 0], y[:, 3]) and np.allclose(y[:, 1], y[:, 2])):
            return "translated only from branches without taps"
        return case.why_not_constant

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """As `Peer.prepare`; the model and its units are made beforehand."""
        from power_grid_model import (
            CalculationMethod,
            ComponentType,
            DatasetType,
            initialize_array,
        )

        model, first_load = power_grid_model(case.network)
        watts = case.network.base_mva * 1e6
        shape = (len(load_p), case.network.num_loads)
        update = initialize_array(DatasetType.update, ComponentType.sym_load, shape)
        update["id"] = first_load + np.arange(shape[1])
        update["p_specified"], update["q_specified"] = load_p * watts, load_q * watts

        def run() -> Solved:
            found = model.calculate_power_flow(
                symmetric=True, error_tolerance=tol, max_iterations=MAX_STEPS,
                calculation_method=CalculationMethod.newton_raphson, threading=-1,
                update_data={ComponentType.sym_load: update},
                output_component_types=[ComponentType.node],
            )[ComponentType.node]  # fmt: skip
            voltage = found["u_pu"] * np.exp(1j * found["u_angle"])
            done = np.isfinite(voltage).reshape(len(load_p), -1).all(axis=1)
            return Solved(voltage, np.asarray(done), np.zeros(len(load_p), np.int64))

        return run


def power_grid_model(network: Network) -> tuple[Any, int]:
    """The network as a model of power-grid-model, and the number of its first load."""
    from power_grid_model import ComponentType, DatasetType, PowerGridModel, initialize_array

    def table(kind: ComponentType, first: int, count: int, **columns: Any) -> Any:
        array = initialize_array(DatasetType.input, kind, count)
        array["id"] = first + np.arange(count)
        for column, value in columns.items():
            array[column] = value
        return array

    watts = network.base_mva * 1e6
    on = np.flatnonzero(network.branch_in_service)
    y = network.branch_y[on] * watts / VOLTS**2
    impedance, shunt = -1 / y[:, 1], 2 * (y[:, 0] + y[:, 1])
    first_branch = network.num_buses
    first_load = first_branch + len(on)
    slack = network.slack[0]
    model = PowerGridModel(
        {
            ComponentType.node: table(ComponentType.node, 0, network.num_buses, u_rated=VOLTS),
            ComponentType.generic_branch: table(
                ComponentType.generic_branch, first_branch, len(on),
                from_node=network.branch_from[on], to_node=network.branch_to[on],
                from_status=1, to_status=1, k=1.0, theta=0.0, sn=watts,
                r1=impedance.real, x1=impedance.imag, g1=shunt.real, b1=shunt.imag,
            ),
            ComponentType.sym_load: table(
                ComponentType.sym_load, first_load, network.num_loads,
                node=network.load_bus, status=1, type=0,
                p_specified=network.load_power.real * watts,
                q_specified=network.load_power.imag * watts,
            ),
            ComponentType.source: table(
                ComponentType.source, first_load + network.num_loads, 1,
                node=slack, status=1, sk=SHORT_CIRCUIT_VA,
                u_ref=np.abs(network.v_start[slack]),
                u_ref_angle=np.angle(network.v_start[slack]),
            ),
        }
    )  # fmt: skip
    return model, first_load
