"""One table over all methods on one topology, exact solving among them: errors and costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.method import Method
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import outage_text
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.threads import Threads
from gridshift.trial.cases import Cases
from gridshift.trial.cost import Cost, break_even_rows, training_seconds
from gridshift.trial.exact import EXACT, solve_timed
from gridshift.trial.metrics import QUANTITIES, mean_absolute_errors, summarise
from gridshift.trial.trial import Measurement, Trial

FAR_TIGHTER = 1e-11
"""Mismatch, p.u., of the solutions that exact rows are compared with."""


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """Error and cost of one method on one topology; NaN where it could not be measured."""

    method: str
    kind: str
    """'exact', 'gradient steps', 'solved cases', 'network' or 'nothing': the most it takes."""
    base: str | None = None
    """What it started from, in `BASES`; None: nothing, or a model of its own."""
    problem: str = ""
    num_solves: int = 0
    mae: dict[str, float]
    mismatch: dict[str, float]
    cost: Cost = field(default_factory=Cost)
    training_s: float = 0.0
    """Of the surrogate on the intact grid, once for all outages."""


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
        """Solving every row."""
        return self.rows[0]

    def break_even_rows(self, row: ComparisonRow, *, training: bool = False) -> float:
        """Scenarios from which the method is faster than solving all; infinite if it never is.

        Args:
            training: charge the training of the surrogate to this outage alone.
        """
        cost, exact = row.cost, self.exact.cost
        if not np.isfinite(cost.predict_us_per_row):
            return float("inf")
        setup_s = cost.setup_s + (row.training_s if training else 0.0)
        return break_even_rows(
            setup_s, cost.predict_us_per_row, exact.setup_s, exact.predict_us_per_row
        )

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain values."""
        rows = [
            {
                "method": row.method, "kind": row.kind, "base": row.base, "mae": row.mae,
                "mismatch": row.mismatch,
                "num_solves": row.num_solves, "data_s": row.cost.data_s, "fit_s": row.cost.fit_s,
                "gradient_s": row.cost.gradient_s, "us_per_row": row.cost.predict_us_per_row,
                "us_per_1000_rows": 1000 * row.cost.predict_us_per_row,
                "training_s": row.training_s, "problem": row.problem,
            }
            for row in self.rows
        ]  # fmt: skip
        return {
            "grid": self.network.name, "outage": outage_text(self.network.outaged),
            "num_context": self.num_context, "num_test": self.num_test, "spread": self.spread,
            "seed": self.seed, "rows": rows,
        }  # fmt: skip


def compare(
    methods: Sequence[Method],
    base_for: Callable[[Method], Base],
    cases: Cases,
    *,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Measure each method on one topology, with the same context and test scenarios for all.

    A method that can't work there (no nominal solution, too small a context) is a row with its
    problem. One thread throughout.

    Args:
        base_for: gives what a method starts from.
        progress: called with the number of finished methods.
    """
    rows = []
    for number, method in enumerate(methods, 1):
        rows.append(_measured(method, base_for, cases))
        if progress is not None:
            progress(number)
    rows.sort(key=lambda row: (bool(row.problem), row.mae["overall"]))
    return Comparison(
        network=cases.network, rows=(_row(measure_exact(cases), "exact"), *rows),
        num_context=cases.num_context, num_test=cases.num_test, spread=cases.spread,
        seed=cases.seed,
    )  # fmt: skip


def measure_exact(cases: Cases, *, tol: float = 1e-8) -> Measurement:
    """Solving every row of the test to the solver's tolerance, held against tighter solutions."""
    network, loads = cases.network, cases.test_loads
    with Threads(1):
        exact = solve_timed(network, loads, tol=tol)
    solution, tight = exact.solution, solve(network, loads, tol=FAR_TIGHTER)
    both = solution.solved & tight.solved
    mae: dict[str, float] = dict.fromkeys(QUANTITIES, float("nan"))
    if both.any():
        layout, kept = Layout.of(network), loads.rows(both)
        y_hat, y = (
            layout.pack_outputs(network, kept, rows.voltage[both]) for rows in (solution, tight)
        )
        mae = mean_absolute_errors(layout, y, y_hat)
    return Measurement(
        method=EXACT, outage=outage_text(network.outaged), num_context=0,
        num_solves=loads.num_rows, num_test=int(both.sum()), test_counts=solution.counts(), mae=mae,
        mismatch=summarise(solution.mismatch[solution.solved]),
        cost=Cost(
            data_s=0.0, fit_s=exact.setup_s, gradient_s=0.0, predict_us_per_row=exact.us_per_row
        ),
    )  # fmt: skip


def _measured(method: Method, base_for: Callable[[Method], Base], cases: Cases) -> ComparisonRow:
    kinds = ("gradient steps", "solved cases", "network", "nothing")
    kind = next((k for k in kinds if k in method.needs), "nothing")
    try:
        method.check_num_context(cases.num_context)
        base = base_for(method)
        found = Trial(base, method, cases).measurement()
    except (GridshiftError, np.linalg.LinAlgError) as problem:
        return ComparisonRow(
            method=method.name, kind=kind, problem=str(problem),
            mae=dict.fromkeys(QUANTITIES, float("nan")), mismatch=summarise(np.empty(0)),
        )  # fmt: skip
    row = _row(found, kind, training_seconds(base) if method.uses_surrogate else 0.0)
    return replace(row, base=method.base_name(base))


def _row(found: Measurement, kind: str, training_s: float = 0.0) -> ComparisonRow:
    return ComparisonRow(
        method=found.method, kind=kind, num_solves=found.num_solves, mae=found.mae,
        mismatch=found.mismatch, cost=found.cost, training_s=training_s,
    )  # fmt: skip
