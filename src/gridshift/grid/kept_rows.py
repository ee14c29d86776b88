"""Rows whose reactive limits are kept, or can't be, as rows of a solution; the status of a row."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from gridshift.arguments import how_many
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.grid.equations import branch_loading, branch_powers
from gridshift.grid.limited_workspace import Kept
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.solution import BatchSolution, RowStatus

Flows = Mapping[str, Callable[[Network, Complex], Real]]
"""What is computed of voltages (R, B) besides, by its name in `BatchSolution`."""
FLOWS: Flows = {"powers": branch_powers, "loading": branch_loading}


def of_kept(
    network: Network, loads: LoadScenarios, kept: Kept, limit: float, flows: Flows
) -> BatchSolution:
    """Rows whose reactive limits are kept, or can't be."""
    reason, status = "", _kept_statuses(kept, limit)
    failed = np.flatnonzero(status)
    finite = np.isfinite(loads.load_p[failed] + loads.load_q[failed]).all(1)
    if not finite.all():
        status[failed[~finite]] = RowStatus.NOT_RUN
        reason = not_finite((~finite).sum())
    voltage = kept.voltage.view(np.complex128)
    voltage[failed], kept.side[failed] = np.nan, 0
    solution = BatchSolution(
        network=network, voltage=voltage, status=status, iterations=kept.steps,
        mismatch=kept.mismatch, reason=reason, at_limit=kept.side,
    )  # fmt: skip
    return replace(solution, **{name: of(network, voltage) for name, of in flows.items()})


def take_kept(solution: BatchSolution, rows: Int, kept: Kept, limit: float) -> None:
    """Put rows whose reactive limits are kept, or can't be, into their places."""
    assert solution.at_limit is not None
    status = _kept_statuses(kept, limit)
    failed = status != RowStatus.SOLVED
    solution.status[rows] = status
    solution.voltage[rows] = kept.voltage.view(np.complex128)
    solution.voltage[rows[failed]] = np.nan
    solution.mismatch[rows] = kept.mismatch
    solution.iterations[rows] += kept.steps
    solution.at_limit[rows[~failed]] = kept.side[~failed]
    for name, of in FLOWS.items():
        if getattr(solution, name) is not None:
            getattr(solution, name)[rows] = of(solution.network, solution.voltage[rows])


def _kept_statuses(kept: Kept, limit: float) -> Int:
    status = row_statuses(kept.mismatch, kept.reached, kept.growth, limit)
    status[kept.unsettled & ~kept.reached] = RowStatus.UNSETTLED_LIMITS
    return status


def not_finite(count: int) -> str:
    bad = how_many(int(count), "row has", "rows have")
    return f"{bad} a load that is not a finite number"


def row_statuses(mismatch: Real, operating: Bool, growth: Real, limit: float) -> Int:
    status = np.zeros(len(mismatch), np.int64)
    assert RowStatus.SOLVED == 0
    solved = mismatch <= limit
    if not (solved & operating).all():  # for most batches that is all; names of an enum cost µs
        status[~operating] = RowStatus.IMPLAUSIBLE
        status[~solved] = RowStatus.NO_CONVERGENCE
        status[~solved & ~np.isfinite(growth)] = RowStatus.SINGULAR
    return status
