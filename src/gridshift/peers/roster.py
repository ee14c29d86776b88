"""One roster of programs that solve the same rows; feeds the equality tests and the timings.

Every peer gets the same demands, the same start (the topology's nominal solution) and the same
tolerance on the mismatch, in its own units, and one thread. What a program needs once per grid or
once per batch in its own form (its model, MW instead of per unit) is made before the clock starts.
"""

import copy

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.grid.scenarios import LoadScenarios
from gridshift.peers.case import Case, run_pandapower
from gridshift.peers.lightsim import LIGHTSIM_MODES, Lightsim2grid
from gridshift.peers.peer import MAX_STEPS, Peer, Run, Solved
from gridshift.peers.power_grid import PowerGridModel


class Gridshift(Peer):
    """The public `solve`, as anybody would call it."""

    name = "gridshift"

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """As `Peer.prepare`; what the topology needs once is made beforehand."""
        network, loads = case.network, LoadScenarios(load_p=load_p, load_q=load_q)
        prepared = prepare(network)

        def run() -> Solved:
            share = tol / network.tolerance_base
            found = solve(prepared, loads, tol=share, max_iterations=MAX_STEPS)
            return Solved(found.voltage, found.solved, found.iterations)

        return run


class GridshiftNewton(Peer):
    """The engine's full Newton from the nominal point, without chord steps before it."""

    name = "gridshift, Newton only"

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """As `Peer.prepare`; what the topology needs once is made beforehand."""
        prepared = prepare(case.network)
        engine, topology = prepared.engine, prepared.topology

        def run() -> Solved:
            found = engine.states(
                [topology.removed], power=engine.injected(load_p, load_q),
                start=topology.point.voltage[None], tol=tol, renewals=MAX_STEPS,
                max_steps=MAX_STEPS,
            )  # fmt: skip
            return Solved(found.voltage.view(np.complex128), found.mismatch <= tol, found.steps)

        return run


class Pandapower(Peer):
    """`runpp`, row by row."""

    name = "pandapower runpp"
    module = "pandapower"
    most_rows = 5

    def _why_not(self, case: Case) -> str:
        return case.why_not_pandapower

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """As `Peer.prepare`; what the topology needs once is made beforehand."""
        from pandapower import LoadflowNotConverged

        net, rows, base = copy.deepcopy(case.solved_net), case.bus_rows, case.network.base_mva
        start = {
            "init_vm_pu": np.abs(case.start),
            "init_va_degree": np.degrees(np.angle(case.start)),
        }

        def run() -> Solved:
            voltage = np.full((len(load_p), len(rows)), np.nan, complex)
            converged = np.zeros(len(load_p), bool)
            steps = np.zeros(len(load_p), np.int64)
            for row in range(len(load_p)):
                net.load["p_mw"], net.load["q_mvar"] = load_p[row] * base, load_q[row] * base
                try:
                    run_pandapower(net, tol=tol, max_steps=MAX_STEPS, **start)
                except LoadflowNotConverged:
                    continue
                converged[row], steps[row] = True, net._ppc["iterations"]
                angle = np.radians(net.res_bus.va_degree.to_numpy())
                voltage[row] = (net.res_bus.vm_pu.to_numpy() * np.exp(1j * angle))[rows]
            return Solved(voltage, converged, steps)

        return run


PEERS: tuple[Peer, ...] = (
    Gridshift(),
    GridshiftNewton(),
    *(
        Lightsim2grid(f"lightsim2grid, {name}", algorithm, keep_factors=kept)
        for name, (algorithm, kept) in LIGHTSIM_MODES.items()
    ),
    PowerGridModel(),
    Pandapower(),
)
