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
from gridshift.adapt.certificate import certify
from gridshift.adapt.methods import METHODS, Context, Method, Predictor
from gridshift.errors import ContextError, GridshiftError
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.threads import Threads

EXACT = "newton"
"""Name of solving every row."""
HOLDOUT_SHARE = 0.25
"""Part of the context on which errors are measured."""
FEWEST = 8
"""Solved cases below which a choice says nothing."""
PROBE_ROWS = 2048
"""Rows that are timed; hold-out rows, repeated."""
REPEATS = 3
"""Timings, of which the shortest counts, after one that is not timed."""


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
        said += f"{' and '.join(asked)}: {best.total_s:.3g} s for {self.num_rows:,} rows"
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
    gradient: bool = False,
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
        gradient: try methods that take gradient steps as well, which may take minutes.
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
        trial = _Trial(surrogates, context, num_rows, target_mae, tol, context_s)
        ledger = [trial.candidate(method, gradient) for method in methods.values()]
        trial.time_exact_again()
        ledger = [trial.exact, *map(trial.line, ledger)] if exact else ledger
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
            predictor = method.fit(trial.suited(method), context)
    return Choice(
        chosen=chosen,
        predictor=predictor,
        ledger=tuple(ledger),
        num_rows=num_rows,
        target_mae=target_mae,
        tol=tol,
        num_holdout=len(trial.holdout.x),
        measuring_s=measuring_s,
    )


def break_even_rows(setup_s: float, us: float, exact_setup_s: float, exact_us: float) -> float:
    """Rows from which a method is faster than solving all; infinite if it never is.

    Args:
        setup_s: before the first row.
        us: microseconds per row.
        exact_setup_s: of solving.
        exact_us: of solving.
    """
    saved = exact_us - us
    if not saved > 0:
        return float("inf")
    return max(0.0, (setup_s - exact_setup_s) / saved * 1e6)


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


class _Trial:
    """Measures candidates on one split of a context."""

    def __init__(
        self, surrogates: list[Base], context: Context, num_rows: int,
        target_mae: float | None, tol: float | None, context_s: float | None,
    ):  # fmt: skip
        self.surrogates, self.context, self.num_rows = surrogates, context, num_rows
        self.target_mae, self.tol = target_mae, tol
        self.layout, self.network = surrogates[0].layout, context.network
        count = max(2, round(HOLDOUT_SHARE * len(context.x)))
        # evenly spaced: contexts may be sorted by how they were drawn
        held = np.zeros(len(context.x), bool)
        held[np.linspace(0, len(held) - 1, count).astype(int)] = True
        self.part = replace(context, x=context.x[~held], y=context.y[~held])
        self.holdout = replace(context, x=context.x[held], y=context.y[held])
        self.probe = np.resize(self.holdout.x, (PROBE_ROWS, context.x.shape[1]))
        self.exact = self._exact()
        at_engine_speed = context.num_solves * self.exact.us_per_row * 1e-6
        self.context_s = at_engine_speed if context_s is None else context_s

    def suited(self, method: Method) -> Base:
        """The first surrogate that suits the method; the first of all, if it will refuse each."""
        fits = [
            s
            for s in self.surrogates
            if method.transform in (None, s.config.transform)
            and method.backbone in (None, s.config.backbone.name)
        ]
        return fits[0] if fits else self.surrogates[0]

    def candidate(self, method: Method, gradient: bool) -> Candidate:
        if method.gradient and not gradient:
            return Candidate(name=method.name, problem="takes gradient steps; not tried")
        if method.base is not None:
            return Candidate(name=method.name, problem="starts from its own model; not tried")
        try:
            surrogate = self.suited(method)
            began = time.perf_counter()
            predictor = method.fit(surrogate, self.part)
            fit_s = time.perf_counter() - began
            mae, us, corrected = self._measured(predictor)
        except (GridshiftError, np.linalg.LinAlgError) as problem:
            return Candidate(name=method.name, problem=str(problem))
        return self.line(
            Candidate(
                name=method.name,
                mae=mae,
                num_solves=self.context.num_solves if method.uses_solved_cases else 0,
                setup_s=fit_s + (self.context_s if method.uses_solved_cases else 0.0),
                us_per_row=us,
                corrected=corrected,
            )
        )

    def _measured(self, predictor: Predictor) -> tuple[float, float, float]:
        """Error on the hold-out, microseconds per row, share of corrected rows."""
        tol, layout, holdout = self.tol, self.layout, self.holdout
        if tol is None:
            mae = float(np.abs(predictor.predict(holdout.x) - holdout.y).mean())
            return mae, _us_per_row(lambda: predictor.predict(self.probe)), 0.0
        y = predictor.predict(holdout.x)
        found = certify(self.network, layout, holdout.x, y, tol=tol)
        mae = float(np.nanmean(np.abs(found.y - holdout.y)))
        corrected = 1 - found.counts()["predicted"] / len(holdout.x)
        return mae, _us_per_row(lambda: self._certified(predictor, tol)), corrected

    def _certified(self, predictor: Predictor, tol: float) -> None:
        certify(self.network, self.layout, self.probe, predictor.predict(self.probe), tol=tol)

    def time_exact_again(self) -> None:
        """The faster of a timing before all others and one after: machines are shared."""
        again = self._exact()
        us = min(again.us_per_row, self.exact.us_per_row)
        self.exact = self.line(replace(again, us_per_row=us))

    def _exact(self) -> Candidate:
        """Solving every row: its error is what the solver's tolerance leaves, at most `tol`."""
        injections = self.layout.unpack_injections(self.probe)
        tol = 1e-8 if self.tol is None else self.tol
        us = _us_per_row(lambda: solve(self.network, injections, tol=tol))
        setup = _us_per_row(lambda: prepare(self.network, anew=True), rows=1) * 1e-6
        held = self.layout.unpack_injections(self.holdout.x)
        solution = solve(self.network, held, tol=tol)
        solved = solution.solved
        y = self.layout.pack_outputs(self.network, held.rows(solved), solution.voltage[solved])
        mae = float(np.abs(y - self.holdout.y[solved]).mean()) if solved.any() else float("nan")
        return self.line(
            Candidate(
                name=EXACT, mae=mae, num_solves=self.num_rows, setup_s=setup, us_per_row=us,
                corrected=1.0,
            )
        )  # fmt: skip

    def line(self, candidate: Candidate) -> Candidate:
        """With what follows from error and times."""
        if candidate.problem:
            return candidate
        close = self.target_mae is None or candidate.mae <= self.target_mae
        setup_s, us = candidate.setup_s, candidate.us_per_row
        even = 0.0
        if candidate.name != EXACT:
            even = break_even_rows(setup_s, us, self.exact.setup_s, self.exact.us_per_row)
        total_s = setup_s + us * 1e-6 * self.num_rows
        return replace(candidate, total_s=total_s, meets=bool(close), break_even_rows=even)


def _us_per_row(work, rows: int = PROBE_ROWS) -> float:
    work()
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) / rows * 1e6
