"""Newton's method for many states of one grid: topologies, powers and starts side by side."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import scipy.sparse as sp

from gridshift.arrays import Int, Real
from gridshift.grid.blocks import run_blocks
from gridshift.grid.equations import no_load_start
from gridshift.grid.following import NEWTON_STEPS, Correct, Origin
from gridshift.grid.kernels.lanes import Lanes
from gridshift.grid.kernels.newton import newton_states
from gridshift.grid.network import Network
from gridshift.grid.pi_model import bus_admittance
from gridshift.grid.symbolic import analyse, revalued
from gridshift.grid.voltage_dependence import Dependence, constant_parts
from gridshift.grid.workspace import NewtonBatch, NewtonRule, NewtonWork, States, interleaved

NEWTON_LANES = 8
PLAIN_STEPS = 12
"""Full Newton steps before a state is followed instead."""
UNTRUSTED_GROWTH = 1e8
"""Multiplier in the elimination above which a topology is left to a pivoting factorisation."""

NO_VOLTAGE = 0.1
"""Magnitude, p.u., below which a bus of a state without load is at its trivial root, 0 V."""

Removed = tuple[int, ...]
"""Branches that a topology lacks."""


class Newton:
    """What depends on the grid alone, and Newton's method on it in lanes."""

    def __init__(self, intact: Network, other: "Newton | None" = None):
        self.symbolic = revalued(other.symbolic, intact) if other else analyse(intact)
        self.num_buses, self.num_branches = intact.num_buses, intact.num_branches
        self.newton_lanes = Lanes(NEWTON_LANES)
        self.pq, self.kind, self.shunt = intact.pq, intact.bus_kind, intact.bus_shunt
        self.unit = intact.tolerance_base
        self.dependence, nominal = Dependence.of(intact), intact.load_power
        self.constant = constant_parts(intact)
        of_parts = self.dependence.injected(nominal.real[None], nominal.imag[None])[0]
        self.nominal_power = np.append(interleaved(intact.injected(nominal)), of_parts)
        self.set_point = np.nan_to_num(intact.bus_v_set, nan=1.0)
        self.source_start = interleaved(intact.v_start)
        self.branch_from, self.branch_to = intact.branch_from, intact.branch_to
        self.in_service = intact.branch_in_service
        self.branch_y = np.where(intact.branch_in_service[:, None], intact.branch_y, 0)
        self._spare: list[NewtonWork] = []

    def without_power_at(self, buses: Int, power: Real) -> Real:
        """Specified powers (2 B + 6 K,) with none at these buses."""
        power = power.copy()
        power[2 * buses], power[2 * buses + 1] = 0.0, 0.0
        return power

    def states(
        self,
        removed: Sequence[Removed],
        *,
        power: Real,
        start: Real,
        tol: float,
        renewals: int = PLAIN_STEPS,
        max_steps: int = PLAIN_STEPS,
        brisk: bool = False,
        finish: bool = False,
        keep: bool = False,
        threads: int = 1,
    ) -> States:
        """Newton's method for T states side by side in lanes.

        Args:
            removed: branches that the topology of each state lacks, or of all.
            power: (T, 2 B + 6 K) specified injections, real and imaginary parts, or one row for all
                (`voltage_dependence`).
            start: (T, 2 B) starting voltages, or one row for all.
            tol: largest mismatch, p.u.
            renewals: steps that make new factors.
            brisk: end a state where a step no longer halves the mismatch.
            finish: judge the orientation at the voltage reached, not at the last factorisation.
            keep: write factors and admittances as well.
        """
        count = max(len(removed), len(power), len(start))
        out = States.empty(count, self.num_buses, self.symbolic, keep=keep)
        ptr = np.concatenate([[0], np.cumsum([len(r) for r in removed])]).astype(np.int64)
        branch = np.array([b for r in removed for b in r], np.int64)
        batch = NewtonBatch(self.symbolic, self.set_point, ptr, branch, power, start)
        rule = NewtonRule(tol, max_steps, renewals, brisk, finish or keep, keep)
        kernel = partial(newton_states, self.newton_lanes, batch, rule)
        blocks = -(-count // NEWTON_LANES)
        run_blocks(kernel, out, blocks, threads, self._spare, self.newton_work)
        return out

    def admittance_without(self, removed: Removed) -> sp.csr_array:
        """(B, B) bus admittance matrix of a topology."""
        y = self.branch_y.copy()
        y[list(removed)] = 0
        return bus_admittance(self.branch_from, self.branch_to, y, self.shunt)

    def no_load(self, removed: Removed) -> Origin | None:
        """The state without load and generation; None if there is none to be trusted."""
        admittance = self.admittance_without(removed)
        source = self.source_start.view(np.complex128)
        start = interleaved(no_load_start(admittance, self.kind, self.set_point, source))
        nothing = np.zeros_like(self.nominal_power)
        found = self.states([removed], start=start[None], power=nothing[None],
                            tol=1e-8 * self.unit)  # fmt: skip
        sound = found.growth[0] <= UNTRUSTED_GROWTH and found.orientation[0] != 0
        sound = sound and np.abs(found.voltage[0].view(np.complex128)).min() > NO_VOLTAGE
        if not (found.mismatch[0] <= 1e-8 * self.unit and sound):
            return None
        return Origin(nothing, found.voltage[0], float(found.orientation[0]))

    def corrector(self, removed: Removed, tol: float, max_steps: int, threads: int = 1) -> Correct:
        """Newton's method for states of one topology, as `follow` asks for it."""
        most = min(max_steps, NEWTON_STEPS)

        def correct(power: Real, start: Real) -> States:
            return self.states(
                [removed], power=power, start=start, tol=tol,
                renewals=most, max_steps=most, brisk=True, finish=True, threads=threads,
            )  # fmt: skip

        return correct

    def newton_work(self) -> NewtonWork:
        """A workspace for one block of Newton lanes."""
        return NewtonWork.new(NEWTON_LANES, self.symbolic, self.num_buses)


def retained(voltage: Real, reference: Real, buses: Int) -> Real:
    """(...) smallest squared magnitude of voltages (..., 2 B), as a fraction of that of (2 B,)."""
    parts, known = voltage.reshape(*voltage.shape[:-1], -1, 2), reference.reshape(-1, 2)
    squares = (parts[..., buses, :] ** 2).sum(-1) / (known[buses] ** 2).sum(-1)
    return squares.min(-1, initial=np.inf)
