"""One table over all methods on one topology, exact solving among them: errors and costs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.choice import EXACT, break_even_rows
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.methods import Method
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import outage_text
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.study.ledger import training_seconds
from gridshift.study.measure import REPEATS, Cost, Measurement, draw, measure_adaptation
from gridshift.study.metrics import QUANTITIES, mean_absolute_errors, summarise
from gridshift.threads import Threads

FAR_TIGHTER = 1e-11
"""Mismatch, p.u., of the solutions that exact rows are compared with."""


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """Error and cost of one method on one topology; NaN where it could not be measured."""

    method: str
    kind: str
    """'exact', 'gradient steps', 'solved cases', 'network' or 'nothing': the most it takes."""
    problem: str = ""
    num_solves: int = 0
    mae: dict[str, float]
    mismatch: dict[str, float]
    data_s: float = float("nan")
    fit_s: float = float("nan")
    gradient_s: float = float("nan")
    us_per_row: float = float("nan")
    training_s: float = 0.0
    """Of the surrogate on the intact grid, once for all outages."""

    @property
    def setup_s(self) -> float:
        """Before the first row of this outage."""
        return self.data_s + self.fit_s + self.gradient_s


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All methods on one topology."""

    network: Network
    rows: tuple[ComparisonRow, ...]
    """Exact solving first, then methods by error, then those that could not be measured."""
    num_context: int
    num_test: int
    spread: float
    seed: int

    @property
    def exact(self) -> ComparisonRow:
        return self.rows[0]

    def break_even_rows(self, row: ComparisonRow, *, training: bool = False) -> float:
        """Scenarios from which the method is faster than solving all; infinite if it never is.

        Args:
            row: of this comparison.
            training: charge the training of the surrogate to this outage alone.
        """
        if not np.isfinite(row.us_per_row):
            return float("inf")
        setup = row.setup_s + (row.training_s if training else 0.0)
        exact = self.exact
        return break_even_rows(setup, row.us_per_row, exact.setup_s, exact.us_per_row)

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        rows = [
            {
                "method": row.method, "kind": row.kind, "mae": row.mae, "mismatch": row.mismatch,
                "num_solves": row.num_solves, "data_s": row.data_s, "fit_s": row.fit_s,
                "gradient_s": row.gradient_s, "us_per_row": row.us_per_row,
                "us_per_1000_rows": 1000 * row.us_per_row, "training_s": row.training_s,
                "problem": row.problem,
            }
            for row in self.rows
        ]  # fmt: skip
        return {
            "grid": self.network.name, "outage": outage_text(self.network.outaged),
            "num_context": self.num_context, "num_test": self.num_test, "spread": self.spread,
            "seed": self.seed, "rows": rows,
        }  # fmt: skip


def compare(
    network: Network,
    methods: Sequence[Method],
    surrogate_for: Callable[[Method], Base],
    *,
    num_context: int = 400,
    num_test: int = 1000,
    spread: float = 0.2,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Measure each method on one topology, with the same context and test scenarios for all.

    A method that can't work there (no nominal solution, too small a context) is a row with its
    problem. One thread throughout.

    Args:
        network: the new topology.
        methods: of `METHODS`.
        surrogate_for: gives the surrogate that a method starts from.
        num_context: scenarios solved for the methods that take solved cases.
        num_test: scenarios of the test.
        spread: spread of the loads.
        seed: root seed of context and test.
        progress: called with the number of finished methods.

    Raises:
        NotConvergedError, ScenarioError: the topology itself has no solutions.
    """
    rows = []
    for number, method in enumerate(methods, 1):
        rows.append(_measured(network, method, surrogate_for, num_context, num_test, spread, seed))
        if progress is not None:
            progress(number)
    rows.sort(key=lambda row: (bool(row.problem), row.mae["overall"]))
    solved = measure_exact(network, num_test=num_test, spread=spread, seed=seed)
    exact = _row(solved, "exact", 0.0)
    return Comparison(
        network=network, rows=(exact, *rows), num_context=num_context, num_test=num_test,
        spread=spread, seed=seed,
    )  # fmt: skip


def measure_exact(
    network: Network,
    *,
    num_test: int = 1000,
    spread: float = 0.2,
    seed: int = 0,
    tol: float = 1e-8,
) -> Measurement:
    """Solving every row to the solver's tolerance, compared with far tighter solutions.

    The test rows are those of `measure_adaptation`.
    """
    loads = draw(network, "test", num_test, spread=spread, regime="drawn", seed=seed)
    with Threads(1):
        solution, times = solve(network, loads, tol=tol), []
        for _ in range(REPEATS):
            began = time.perf_counter()
            solve(network, loads, tol=tol)
            times.append(time.perf_counter() - began)
        began = time.perf_counter()
        prepare(network, anew=True)
        setup_s = time.perf_counter() - began
    tight = solve(network, loads, tol=FAR_TIGHTER)
    both = solution.solved & tight.solved
    mae: dict[str, float] = dict.fromkeys(QUANTITIES, float("nan"))
    if both.any():
        data: Dataset = generate(network, loads.rows(both), tol=FAR_TIGHTER)
        y = data.layout.pack_outputs(network, loads.rows(both), solution.voltage[both])
        mae = mean_absolute_errors(data.layout, data.y, y)
    return Measurement(
        method=EXACT, outage=outage_text(network.outaged), num_context=0, num_solves=num_test,
        num_test=int(both.sum()), test_counts=solution.counts(), mae=mae,
        mismatch=summarise(solution.mismatch[solution.solved]),
        cost=Cost(
            data_s=0.0, fit_s=setup_s, gradient_s=0.0,
            predict_us_per_row=min(times) / num_test * 1e6,
        ),
    )  # fmt: skip


def _measured(
    network: Network, method: Method, surrogate_for: Callable[[Method], Base],
    num_context: int, num_test: int, spread: float, seed: int,
) -> ComparisonRow:  # fmt: skip
    kinds = ("gradient steps", "solved cases", "network", "nothing")
    kind = next((k for k in kinds if k in method.needs), "nothing")
    try:
        method.check_num_context(num_context)
        surrogate = surrogate_for(method)
        found = measure_adaptation(
            surrogate, network, method, num_context=num_context, num_test=num_test,
            spread=spread, seed=seed,
        )  # fmt: skip
    except (GridshiftError, np.linalg.LinAlgError) as problem:
        return ComparisonRow(
            method=method.name, kind=kind, problem=str(problem),
            mae=dict.fromkeys(QUANTITIES, float("nan")), mismatch=summarise(np.empty(0)),
        )  # fmt: skip
    training_s = training_seconds(surrogate) if method.uses_surrogate else 0.0
    return _row(found, kind, training_s)


def _row(found: Measurement, kind: str, training_s: float) -> ComparisonRow:
    cost = found.cost
    return ComparisonRow(
        method=found.method, kind=kind, num_solves=found.num_solves, mae=found.mae,
        mismatch=found.mismatch, data_s=cost.data_s, fit_s=cost.fit_s,
        gradient_s=cost.gradient_s, us_per_row=cost.predict_us_per_row, training_s=training_s,
    )  # fmt: skip
