"""Rows whose imbalance generators share, with and without reactive limits.

Rows take chord steps that have the imbalance among their unknowns: `kernels.shared_chord`, or
`kernels.limited_chord` where generators are at reactive limits. Those that these leave over go to
Newton's method with the imbalance as an unknown, and then are followed, as `ReactiveLimits.keep`
does it with limits or without any.
"""

from dataclasses import replace

import numpy as np

from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.kept_rows import Flows, of_kept
from gridshift.grid.prepared import Prepared
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.scenarios import LoadScenarios, demands
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.solution import BatchSolution, RowStatus
from gridshift.grid.topology import settled

NEAR = 1e-2
"""Mismatch, as a multiple of the tolerance base, below which rows go on from where chord steps have
led."""


def solve_shared(
    prepared: Prepared, loads: LoadScenarios, shares: SlackShares, limits: ReactiveLimits | None,
    *, tol: float, threads: int, flows: Flows,
) -> BatchSolution:  # fmt: skip
    """Rows whose imbalance is shared.

    Args:
        prepared: a topology that leaves no bus without supply.
        loads: demands, R rows.
        shares: who shares it.
        limits: of reactive power, if they are to be kept.
        tol: largest mismatch, as a multiple of the tolerance base, of the slack's share as well.
        threads: that share the rows.
        flows: what is computed of the voltages besides.
    """
    network, limit = prepared.network, tol * prepared.network.tolerance_base
    load_p, load_q = demands(network, loads)
    slack = DistributedSlack.of(network, shares)
    if limits is not None and limits.at_nominal(prepared):
        kept = limits.keep(prepared, load_p, load_q, tol=tol, threads=threads, slack=slack)
        found, imbalance = of_kept(network, loads, kept, limit, {}), kept.imbalance
    else:
        found, imbalance = _without_limits_first(prepared, loads, slack, limits, tol, threads)
    generation = slack.schedule.generation(imbalance)
    generation[~found.solved] = np.nan
    computed = {name: of(network, found.voltage) for name, of in flows.items()}
    return replace(found, gen_p=generation, **computed)


def _without_limits_first(
    prepared: Prepared, loads: LoadScenarios, slack: DistributedSlack,
    limits: ReactiveLimits | None, tol: float, threads: int,
) -> tuple[BatchSolution, np.ndarray]:  # fmt: skip
    """Rows that know of no limits first, those that exceed one again; and imbalances (R,)."""
    network, unit = prepared.network, prepared.network.tolerance_base
    load_p, load_q = demands(network, loads)
    rows = slack.chord_rows(
        prepared, load_p, load_q, tol=tol, threads=threads,
        limits=None if limits is None else limits.of_pv,
    )  # fmt: skip
    num = len(load_p)
    found = BatchSolution(
        network=network, voltage=rows.voltage.view(np.complex128),
        status=np.full(num, RowStatus.SOLVED, np.int64), iterations=rows.steps,
        mismatch=rows.mismatch,
        at_limit=None if limits is None else np.zeros((num, network.num_buses), np.int8),
    )  # fmt: skip
    left = np.flatnonzero(~settled(rows.mismatch, rows.retained, tol * unit, rows.excess))
    if not len(left):
        return found, rows.imbalance
    near = rows.mismatch[left] < NEAR * unit
    start = np.where(near[:, None], rows.voltage[left], prepared.topology.point.voltage)
    first = slack.schedule.first_imbalance(load_p[left])
    kept = (limits or ReactiveLimits.none_of(network)).keep(
        prepared, load_p[left], load_q[left], start, tol=tol, threads=threads, slack=slack,
        imbalance=np.where(near, rows.imbalance[left], first),
    )  # fmt: skip
    again = of_kept(network, loads.rows(left), kept, tol * unit, {})
    found.take_rows(left, again)
    rows.imbalance[left] = kept.imbalance
    return replace(found, reason=again.reason), rows.imbalance
