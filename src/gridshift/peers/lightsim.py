"""lightsim2grid as a peer."""

from typing import Any

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.readers.pandapower_source import quiet_pandapower
from gridshift.peers.case import Case
from gridshift.peers.peer import MAX_CHORD_STEPS, MAX_STEPS, Peer, Run, Solved

LIGHTSIM_MODES = {
    "default": ("NR_KLU", False),
    "single slack": ("NRSing_KLU", False),
    "factors kept": ("NRSing_KLU", True),
}
"""Name to algorithm, and whether it keeps the factors of the nominal point."""


class Lightsim2grid(Peer):
    """One algorithm of lightsim2grid's injection sweep.

    `TimeSeriesCPP` would fail on every row after the first one without a solution.
    """

    module = "lightsim2grid"

    def __init__(self, name: str, algorithm: str, *, keep_factors: bool = False):
        self.name, self.algorithm, self.keep_factors = name, algorithm, keep_factors

    def _why_not(self, case: Case) -> str:
        return case.why_not_pandapower

    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """As `Peer.prepare`; the model and its units are made beforehand."""
        from lightsim2grid.lightsim2grid_cpp import InjectionSweepCPP

        model, base, rows = lightsim_model(case), case.network.base_mva, case.bus_rows
        p_mw, q_mvar = np.ascontiguousarray(load_p * base), np.ascontiguousarray(load_q * base)
        # The sweep wants every machine's power in every row.
        gen = _tiled([g.target_p_mw for g in model.get_generators()], len(load_p))
        static = _tiled([g.target_p_mw for g in model.get_static_generators()], len(load_p))
        sweep = InjectionSweepCPP(model)
        configure_lightsim(sweep, self.algorithm, keep_factors=self.keep_factors)
        max_steps = MAX_CHORD_STEPS if self.keep_factors else MAX_STEPS
        tol_mva, in_order = tol * base, np.array_equal(rows, np.arange(len(rows)))

        def run() -> Solved:
            sweep.compute_Vs(gen, static, p_mw, q_mvar, case.start.copy(), max_steps, tol_mva)
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
    model.ac_pf(case.start.copy(), MAX_STEPS, 1e-8)
    return model


def configure_lightsim(batch: Any, algorithm: str, *, keep_factors: bool) -> None:
    """Choose algorithm and refactorisation of one of lightsim2grid's batch computers."""
    from lightsim2grid.algorithm import AlgorithmType, RefactorPolicyType

    batch.change_algorithm(getattr(AlgorithmType, algorithm))
    if keep_factors:
        config = batch.get_algo_config()
        numbers = list(config.int_params)  # scaling, refactorisation, ...; a copy
        numbers[1] = int(RefactorPolicyType.Chord)
        config.int_params = numbers
        batch.set_algo_config(config)


def _tiled(values: list[float], rows: int) -> Real:
    return np.ascontiguousarray(np.tile(np.array(values, float), (rows, 1)))
