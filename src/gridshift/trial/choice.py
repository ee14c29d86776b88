"""Which way to adapt is worth it here: errors and times are measured, exact solving included.

A method's error is measured on cases of the context that it was not fitted on, its time per row on
this machine and in this process. The exact engine is a candidate like any other: with a network at
hand it is fast, and where it is the cheapest it is the one to take.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.methods import METHODS, Context, Method, Predictor
from gridshift.arguments import how_many
from gridshift.errors import ContextError, GridshiftError
from gridshift.grid.powerflow import solve
from gridshift.threads import Threads
from gridshift.trial.cases import Cases
from gridshift.trial.cost import break_even_rows
from gridshift.trial.exact import EXACT, ExactRows, solve_timed
from gridshift.trial.trial import Trial

HOLDOUT_SHARE = 0.25
"""Part of the context on which errors are measured."""
FEWEST = 8
"""Solved cases below which a choice says nothing."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One line of the ledger. NaN where a method could not be tried."""

    name: str
    problem: str = ""
    """Why it could not be tried; empty if it could."""
    mae: float = float("nan")
    """Mean absolute error over all outputs of the hold-out, after correction with a tolerance."""
    num_solves: int = 0
    setup_s: float = float("nan")
    """Solving the context, if it needs one, and fitting."""
    us_per_row: float = float("nan")
    """Predicting a row; with a tolerance, checking and correcting it as well."""
    corrected: float = float("nan")
    """Share of rows that a tolerance had corrected."""
    total_s: float = float("inf")
    meets: bool = False
    """Whether it keeps what was asked for."""
    break_even_rows: float = float("inf")
    """Rows from which it is faster than solving all; infinite if it never is."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The cheapest candidate that keeps what was asked for, and what all of them cost."""

    chosen: Candidate
    predictor: Predictor | None
    """Fitted on the whole context; None for exact solving."""
    ledger: tuple[Candidate, ...]
    """Cheapest first, then those that could not be tried."""
    num_rows: int
    target_mae: float | None
    tol: float | None
    num_holdout: int
    measuring_s: float
    """What the measuring itself took; in nobody's total."""

    @property
    def exact(self) -> bool:
        """Whether solving every row was chosen."""
        return self.predictor is None

    @property
    def reason(self) -> str:
        """The choice in a sentence."""
        asked = [] if self.target_mae is None else [f"an error of at most {self.target_mae:.3g}"]
        asked += [] if self.tol is None else [f"a mismatch of at most {self.tol:.3g}"]
        name, best = self.chosen.name, self.chosen
        if not best.meets:
            return f"no method keeps {' and '.join(asked)}; {name} comes closest, {best.mae:.3g}"
        said = f"{name} is the cheapest of {sum(c.meets for c in self.ledger)} that keep "
        said += f"{' and '.join(asked)}: {best.total_s:.3g} s for {how_many(self.num_rows, 'row')}"
        others = [c for c in self.ledger if c.name != EXACT and c.meets and not c.problem]
        if self.exact and others:
            soonest = min(others, key=lambda c: c.break_even_rows)
            if np.isfinite(soonest.break_even_rows):
                later = f"{soonest.name} is faster from {soonest.break_even_rows:,.0f} rows on"
            else:
                later = f"an exact row takes {best.us_per_row:.3g} µs here, no other is faster"
            said += f"; {later}"
        return said


def choose(
    surrogates: Base | Sequence[Base],
    context: Context,
    *,
    num_rows: int,
    target_mae: float | None = None,
    tol: float | None = None,
    context_s: float | None = None,
    methods: Mapping[str, Method] | None = None,
    exact: bool = True,
) -> Choice:
    """Measure every eligible method on the context and take the cheapest that keeps what is asked.

    The cost of a method is its set-up (its context and its fit) plus its time per row times
    `num_rows`; that of exact solving likewise. All times are of one thread.

    Args:
        surrogates: trained on the intact grid; each method takes the first that suits it. For
            methods that need none, `Base.untrained` will do.
        context: solved cases of the topology. A quarter is held out for the errors; the method
            chosen is fitted on all of it.
        num_rows: rows that will be predicted.
        target_mae: largest mean absolute error over all outputs.
        tol: largest power-balance mismatch of a row, p.u.; predictions are then corrected, and the
            time of that counts.
        context_s: what solving the context took; by default its rows at the engine's speed.
        methods: by default all.
        exact: whether solving all rows is an option.

    Raises:
        ContextError: a context of fewer than 8 cases.
        GridshiftError: neither an error nor a tolerance is asked for, or no method can be tried.
    """
    if target_mae is None and tol is None:
        raise GridshiftError(
            "a choice of method needs something to keep: give a target for the mean error, for "
            "instance 1e-4, or a tolerance for the power balance, for instance 1e-6"
        )
    check_num_context(len(context.x))
    methods = METHODS if methods is None else methods
    surrogates = [surrogates] if isinstance(surrogates, Base) else list(surrogates)
    began = time.perf_counter()
    with Threads(1):
        ledger_of = _Ledger(surrogates, context, num_rows, target_mae, tol, context_s)
        ledger = [ledger_of.candidate(method) for method in methods.values()]
        if exact:
            ledger.append(ledger_of.exact())
        ledger = [ledger_of.judged(candidate) for candidate in ledger]
        ledger.sort(key=lambda c: (bool(c.problem), c.total_s))
        tried = [c for c in ledger if not c.problem]
        if not tried:
            told = "; ".join(f"{c.name}: {c.problem}" for c in ledger)
            raise GridshiftError(f"no method can be tried on this context ({told})")
        keeping = [c for c in tried if c.meets]
        chosen = keeping[0] if keeping else min(tried, key=lambda c: c.mae)
        measuring_s = time.perf_counter() - began
        predictor = None
        if chosen.name != EXACT:
            method = methods[chosen.name]
            predictor = method.fit(ledger_of.suited(method), context)
    return Choice(
        chosen=chosen,
        predictor=predictor,
        ledger=tuple(ledger),
        num_rows=num_rows,
        target_mae=target_mae,
        tol=tol,
        num_holdout=ledger_of.cases.num_test,
        measuring_s=measuring_s,
    )


def check_num_context(num_cases: int) -> None:
    """Pass if a choice can be measured on so many solved cases.

    Raises:
        ContextError: fewer than 8.
    """
    if num_cases < FEWEST:
        raise ContextError(
            f"a choice of method needs a context of at least {FEWEST} solved cases, "
            f"not {num_cases}; ask for a larger one, for instance 400"
        )


class _Ledger:
    """Tries candidates on one split of a context, and prices them for a number of rows."""

    def __init__(
        self, surrogates: list[Base], context: Context, num_rows: int,
        target_mae: float | None, tol: float | None, context_s: float | None,
    ):  # fmt: skip
        self.surrogates, self.num_rows, self.target_mae, self.tol = (
            surrogates, num_rows, target_mae, tol,
        )  # fmt: skip
        layout = surrogates[0].layout
        self.cases = Cases.held_out(context, layout, HOLDOUT_SHARE, data_s=context_s or 0.0)
        self.loads = layout.unpack_loads(self.cases.timed_x)
        self.solving = self._solving()
        if context_s is None:
            self.cases.data_s = context.num_solves * self.solving.us_per_row * 1e-6

    def suited(self, method: Method) -> Base:
        """The first surrogate that suits the method; the first of all, if it will refuse each."""
        return next((s for s in self.surrogates if method.suits(s)), self.surrogates[0])

    def candidate(self, method: Method) -> Candidate:
        if method.gradient:
            return Candidate(name=method.name, problem="takes gradient steps; not tried")
        if method.base is not None:
            return Candidate(name=method.name, problem="starts from its own model; not tried")
        try:
            trial = Trial(self.suited(method), method, self.cases)
            mae, us, corrected = trial.mae, trial.predict_us_per_row, 0.0
            if self.tol is not None:
                found = trial.certified(self.tol)
                mae, us = found.mae, trial.certified_us_per_row(self.tol)
                corrected = 1 - found.counts["predicted"] / self.cases.num_test
        except (GridshiftError, np.linalg.LinAlgError) as problem:
            return Candidate(name=method.name, problem=str(problem))
        return Candidate(
            name=method.name,
            mae=mae["overall"],
            num_solves=trial.context.num_solves,
            setup_s=trial.cost.setup_s,
            us_per_row=us,
            corrected=corrected,
        )

    def exact(self) -> Candidate:
        """Solving every row: its error is what the solver's tolerance leaves, at most `tol`.

        Its time is the less of one taken before all others and one after: machines are shared.
        """
        again = self._solving()
        self.solving = replace(
            again, us_per_row=min(again.us_per_row, self.solving.us_per_row)
        )  # fmt: skip
        network, test = self.cases.network, self.cases.test
        held = test.layout.unpack_loads(test.x)
        solution = solve(network, held, tol=self._tol)
        solved = solution.solved
        y = test.layout.pack_outputs(network, held.rows(solved), solution.voltage[solved])
        mae = float(np.abs(y - test.y[solved]).mean()) if solved.any() else float("nan")
        return Candidate(
            name=EXACT, mae=mae, num_solves=self.num_rows, setup_s=self.solving.setup_s,
            us_per_row=self.solving.us_per_row, corrected=1.0,
        )  # fmt: skip

    def judged(self, candidate: Candidate) -> Candidate:
        """With what follows from error and times."""
        if candidate.problem:
            return candidate
        setup_s, us = candidate.setup_s, candidate.us_per_row
        even = 0.0
        if candidate.name != EXACT:
            even = break_even_rows(setup_s, us, self.solving.setup_s, self.solving.us_per_row)
        return replace(
            candidate,
            total_s=setup_s + us * 1e-6 * self.num_rows,
            meets=self.target_mae is None or candidate.mae <= self.target_mae,
            break_even_rows=even,
        )

    @property
    def _tol(self) -> float:
        return 1e-8 if self.tol is None else self.tol

    def _solving(self) -> ExactRows:
        return solve_timed(self.cases.network, self.loads, tol=self._tol)
