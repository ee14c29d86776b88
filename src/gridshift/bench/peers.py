"""One roster of programs that solve the same rows; feeds the equality tests and the timings.

Every peer gets the same demands, the same start (the topology's nominal solution) and the same
tolerance on the mismatch, in its own units, and one thread. What a program needs once per grid or
per batch in its own form (its model, MW instead of per unit) is made before the clock starts.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridFileError
from gridshift.grid.engine import Engine
from gridshift.grid.network import BusKind, Network
from gridshift.grid.powerflow import solve, topology_of
from gridshift.grid.readers import builtin_names, read_grid
from gridshift.grid.readers.pandapower_source import builtin_net, json_net, quiet_pandapower
from gridshift.grid.scenarios import Injections


class Solved(NamedTuple):
    """What a program answers for R rows."""

    voltage: Complex
    """(R, B) in the order of the network's buses; what it is in rows that failed is its affair."""
    converged: Bool
    """(R,)"""
    iterations: Int
    """(R,)"""


Run = Callable[[], Solved]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One topology, as a network and as the pandapower network that other programs read."""

    network: Network
    net: Any
    """None where the source is no pandapower network."""

    @classmethod
    def of(cls, source: str, outage: tuple[str, ...] = ()) -> "Case":
        """A grid that the readers know, without the outaged elements.

        Raises:
            GridFileError: nothing that can be read.
            OutageError: an element that it doesn't have.
        """
        network = read_grid(source)
        network = network.without(outage) if outage else network
        if source in builtin_names():
            net = builtin_net(source)
        elif source.endswith(".json"):
            from pathlib import Path

            net = json_net(Path(source))
        else:
            return cls(network=network, net=None)
        for label in outage:
            kind, _, index = label.partition(":")
            net[kind].loc[int(index), "in_service"] = False
        return cls(network=network, net=net)

    @cached_property
    def nominal(self) -> Complex:
        """(B,) solution at nominal demand, where every program starts."""
        return topology_of(self.network).point.voltage.view(np.complex128)

    @cached_property
    def solved_net(self) -> Any:
        """The pandapower network with pandapower's own results in it, as other readers expect."""
        net = copy.deepcopy(self.net)
        for init in ("flat", "dc"):
            try:
                _runpp(net, init=init, tol=1e-8)
                return net
            except _pandapower().LoadflowNotConverged:
                continue
        raise GridFileError(self.network.name, ["pandapower finds no nominal solution"])

    @cached_property
    def bus_rows(self) -> Int | None:
        """Row in `net.bus` of each bus of the network, None if they don't match one to one."""
        names = [label.removeprefix("bus:") for label in self.network.bus_labels]
        index = {str(number): row for row, number in enumerate(self.net.bus.index)}
        if len(names) != len(index) or any(name not in index for name in names):
            return None
        return np.array([index[name] for name in names])

    @property
    def same_loads(self) -> bool:
        """Whether the loads of the network are the rows of `net.load`, in that order."""
        return self.network.load_labels == tuple(f"load:{i}" for i in self.net.load.index)


class Peer(ABC):
    """One program in one mode."""

    name: str
    module: str = "gridshift"
    most_rows: int | None = None
    """Rows beyond which timing it would take too long; the time per row doesn't depend on them."""

    @property
    def is_ours(self) -> bool:
        return self.module == "gridshift"

    def why_not(self, case: Case) -> str:
        """Why this peer can't solve the case, in words; empty if it can."""
        if find_spec(self.module) is None:
            return f"{self.module} is not installed"
        return self._why_not(case)

    def available(self, case: Case) -> bool:
        return not self.why_not(case)

    def solve(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Solved:
        """Voltages of all rows, demands (R, L) in per unit."""
        return self.prepare(case, load_p, load_q, tol)()

    def _why_not(self, case: Case) -> str:
        return ""

    @abstractmethod
    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """What the clock measures: a function that solves all rows from the nominal start."""


class Gridshift(Peer):
    """The public `solve`, as anybody would call it."""

    name = "gridshift"

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        network, injections = case.network, Injections(load_p=load_p, load_q=load_q)
        topology_of(network)

        def run() -> Solved:
            solution = solve(network, injections, tol=tol)
            return Solved(solution.voltage, solution.solved, solution.iterations)

        return run


class GridshiftNewton(Peer):
    """The engine's full Newton from the nominal point, without chord steps before it."""

    name = "gridshift, full Newton only"

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        engine = Engine.of(case.network)
        # An untrusted topology is one whose factors the engine makes anew in every step.
        topology = replace(topology_of(case.network), growth=np.inf)

        def run() -> Solved:
            rows = engine.solve(topology, load_p, load_q, tol=tol)
            return Solved(rows.voltage.view(np.complex128), rows.worst <= tol, rows.steps)

        return run


class Lightsim2grid(Peer):
    """One algorithm of lightsim2grid's injection sweep."""

    module = "lightsim2grid"

    def __init__(self, name: str, algorithm: str, *, keep_factors: bool = False):
        self.name, self.algorithm, self.keep_factors = name, algorithm, keep_factors

    def _why_not(self, case: Case) -> str:
        if case.net is None:
            return "reads pandapower networks, not this file"
        if case.bus_rows is None or not case.same_loads:
            return "its buses or loads are not those of the network one to one"
        return ""

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        import lightsim2grid.lightsim2grid_cpp as compiled

        model = lightsim_model(case)
        rows, base = case.bus_rows, case.network.base_mva
        start = np.empty_like(case.nominal)
        start[rows] = case.nominal
        p_mw, q_mvar = load_p * base, load_q * base
        # The sweep wants every machine's power in every row.
        gen = _tiled([g.target_p_mw for g in model.get_generators()], len(load_p))
        static = _tiled([g.target_p_mw for g in model.get_static_generators()], len(load_p))
        sweep = compiled.InjectionSweepCPP(model)
        configure_lightsim(sweep, self.algorithm, keep_factors=self.keep_factors)
        most_steps = 60 if self.keep_factors else 30
        in_order = np.array_equal(rows, np.arange(len(rows)))

        def run() -> Solved:
            sweep.compute_Vs(
                gen, static, p_mw, q_mvar, start.copy(), most_steps, tol * base
            )  # its tolerance is in MVA
            voltage = sweep.get_voltages()
            return Solved(
                voltage if in_order else voltage[:, rows],
                np.array(sweep.converged_mask()),
                np.array(sweep.get_row_nb_iter()),
            )

        return run


def lightsim_model(case: Case) -> Any:
    """lightsim2grid's own model of a case, solved once so that it is complete."""
    from lightsim2grid.network import init_from_pandapower

    with quiet_pandapower():
        model = init_from_pandapower(case.solved_net, pp_orig_file="pandapower_v3")
    start = np.empty_like(case.nominal)
    start[case.bus_rows] = case.nominal
    model.ac_pf(start, 30, 1e-8)
    return model


def configure_lightsim(batch: Any, algorithm: str, *, keep_factors: bool) -> None:
    """Choose algorithm and refactorisation of one of lightsim2grid's batch computers."""
    from lightsim2grid.algorithm import AlgorithmType, RefactorPolicyType

    batch.change_algorithm(getattr(AlgorithmType, algorithm))
    if keep_factors:
        config = batch.get_algo_config()
        numbers = list(config.int_params)  # scaling, refactorisation, ...
        numbers[1] = int(RefactorPolicyType.Chord)
        config.int_params = numbers
        batch.set_algo_config(config)


class Pandapower(Peer):
    """`runpp`, row by row."""

    name = "pandapower runpp"
    module = "pandapower"
    most_rows = 5

    def _why_not(self, case: Case) -> str:
        if case.net is None:
            return "reads its own networks, not this file"
        if case.bus_rows is None or not case.same_loads:
            return "its buses or loads are not those of the network one to one"
        return ""

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        net, rows = copy.deepcopy(case.solved_net), case.bus_rows
        base, start = case.network.base_mva, case.nominal
        vm, va = np.empty(len(start)), np.empty(len(start))
        vm[rows], va[rows] = np.abs(start), np.degrees(np.angle(start))

        def run() -> Solved:
            voltage = np.full((len(load_p), len(start)), np.nan, complex)
            converged = np.zeros(len(load_p), bool)
            steps = np.zeros(len(load_p), np.int64)
            for row in range(len(load_p)):
                net.load["p_mw"], net.load["q_mvar"] = load_p[row] * base, load_q[row] * base
                try:
                    _runpp(net, init_vm_pu=vm, init_va_degree=va, tol=tol)
                except _pandapower().LoadflowNotConverged:
                    continue
                converged[row] = True
                steps[row] = net._ppc["iterations"]
                found = net.res_bus.vm_pu * np.exp(1j * np.radians(net.res_bus.va_degree))
                voltage[row] = found.to_numpy()[rows]
            return Solved(voltage, converged, steps)

        return run


class PowerGridModel(Peer):
    """power-grid-model's batch of symmetric Newton power flows, for grids without PV buses.

    Its tolerance is on the change of voltages, not on the mismatch: a step later than the others.
    """

    name = "power-grid-model"
    module = "power_grid_model"

    def _why_not(self, case: Case) -> str:
        network = case.network
        if (network.bus_kind == BusKind.PV).any():
            return "has no buses of given voltage (PV)"
        if len(network.slack) != 1 or network.bus_shunt.any() or network.bus_fixed.any():
            return "only grids of one slack bus, branches and loads are translated"
        y = network.branch_y[network.branch_in_service]
        if not (np.allclose(y[:, 0], y[:, 3]) and np.allclose(y[:, 1], y[:, 2])):
            return "only branches without taps are translated"
        return ""

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        from power_grid_model import (
            CalculationMethod,
            ComponentType,
            DatasetType,
            PowerGridModel,
            initialize_array,
        )

        network = case.network
        watts, volts = network.base_mva * 1e6, 1e4
        on = np.flatnonzero(network.branch_in_service)
        y = network.branch_y[on] * watts / volts**2
        nodes = np.arange(network.num_buses)
        slack = int(network.slack[0])

        def table(kind: ComponentType, first: int, count: int, **columns: Any) -> np.ndarray:
            array = initialize_array(DatasetType.input, kind, count)
            array["id"] = first + np.arange(count)
            for column, value in columns.items():
                array[column] = value
            return array

        impedance, shunt = -1 / y[:, 1], y[:, 0] + y[:, 1]
        first_branch = len(nodes)
        first_load = first_branch + len(on)
        model = PowerGridModel(
            {
                ComponentType.node: table(ComponentType.node, 0, len(nodes), u_rated=volts),
                ComponentType.generic_branch: table(
                    ComponentType.generic_branch, first_branch, len(on),
                    from_node=network.branch_from[on], to_node=network.branch_to[on],
                    from_status=1, to_status=1, k=1.0, theta=0.0, sn=watts,
                    r1=impedance.real, x1=impedance.imag,
                    g1=2 * shunt.real, b1=2 * shunt.imag,
                ),
                ComponentType.sym_load: table(
                    ComponentType.sym_load, first_load, network.num_loads,
                    node=network.load_bus, status=1, type=0,
                    p_specified=network.load_power.real * watts,
                    q_specified=network.load_power.imag * watts,
                ),
                # A source without impedance, in all but name.
                ComponentType.source: table(
                    ComponentType.source, first_load + network.num_loads, 1, node=slack, status=1,
                    u_ref=np.abs(network.v_start[slack]),
                    u_ref_angle=np.angle(network.v_start[slack]), sk=1e25,
                ),
            }
        )  # fmt: skip
        update = initialize_array(
            DatasetType.update, ComponentType.sym_load, (len(load_p), network.num_loads)
        )
        update["id"] = first_load + np.arange(network.num_loads)
        update["p_specified"], update["q_specified"] = load_p * watts, load_q * watts

        def run() -> Solved:
            found = model.calculate_power_flow(
                symmetric=True, error_tolerance=tol, max_iterations=30,
                calculation_method=CalculationMethod.newton_raphson,
                update_data={ComponentType.sym_load: update}, threading=-1,
                output_component_types=[ComponentType.node],
            )[ComponentType.node]  # fmt: skip
            voltage = found["u_pu"] * np.exp(1j * found["u_angle"])
            done = np.isfinite(voltage).all(axis=1)
            return Solved(voltage, done, np.zeros(len(load_p), np.int64))

        return run


PEERS: tuple[Peer, ...] = (
    Gridshift(),
    GridshiftNewton(),
    Lightsim2grid("lightsim2grid, default (NR)", "NR_KLU"),
    Lightsim2grid("lightsim2grid, single slack", "NRSing_KLU"),
    Lightsim2grid("lightsim2grid, factors kept", "NRSing_KLU", keep_factors=True),
    PowerGridModel(),
    Pandapower(),
)


def _tiled(values: list[float], rows: int) -> Real:
    return np.ascontiguousarray(np.tile(np.array(values, float), (rows, 1)))


def _pandapower() -> Any:
    import pandapower

    return pandapower


def _runpp(net: Any, *, tol: float, **start: Any) -> None:
    """Its `tolerance_mva` is compared with a mismatch in per unit."""
    with quiet_pandapower():
        _pandapower().runpp(
            net, tolerance_mva=tol, max_iteration=30, trafo_model="t",
            calculate_voltage_angles=True, enforce_q_lims=False, **start,
        )  # fmt: skip
