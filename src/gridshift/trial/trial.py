"""One method on one outage, measured: errors, power balance, certificate, error bars, cost."""

import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.certificate import Certified, certify
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.method import Method
from gridshift.arrays import Real
from gridshift.errors import ContextError
from gridshift.grid.contingency import outage_text
from gridshift.grid.network import Network
from gridshift.learn.conformal import calibrate, fewest_rows, jackknife_plus
from gridshift.learn.splits import folds, num_held_out
from gridshift.threads import Threads
from gridshift.trial.cases import Cases
from gridshift.trial.cost import Cost, fastest
from gridshift.trial.metrics import NO_LIMIT, mean_absolute_errors, mismatch_summary


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How well one method predicts one topology, and what that costs."""

    method: str
    outage: str
    num_context: int
    """Solved cases that the method was given."""
    num_solves: int
    """Solves that were paid for, failed ones included."""
    num_test: int
    test_counts: dict[str, int]
    """Test scenarios per status of their exact solve; only solved ones are compared."""
    mae: dict[str, float]
    mismatch: dict[str, float]
    cost: Cost


@dataclass(frozen=True, kw_only=True)
class CertifiedTest:
    """What correcting a test's predictions took and gave."""

    tol: float
    """Largest mismatch of a returned row, p.u.; infinite if none was asked for."""
    correct_share: float
    """Share of the rows, the worst ones, that were corrected in any case."""
    counts: dict[str, int]
    """Rows predicted, repaired, solved and marked."""
    seconds: dict[str, float]
    """Of `predict`, `check`, `repair` and `solve`."""
    worst_mismatch: float
    mae: dict[str, float]
    """Errors of the rows returned."""


@dataclass(frozen=True, kw_only=True)
class TestedErrorBars:
    """Half widths of error bars, and how often they held on the test."""

    level: float
    way: Literal["split", "left out"]
    """Cases set aside for it, or each case left out of the fit in turn (jackknife+)."""
    guaranteed: float
    """Rate that holds whatever the method is, if cases are exchangeable; `level` is about it."""
    num_context: int
    """Solved cases that each prediction they belong to was fitted on."""
    num_calibration: int
    """Solved cases that the widths were set on."""
    widths: dict[str, dict[str, float]]
    """Per quantity: `interval` (one entry, mean over entries), `band` (all entries at once)."""
    coverage: dict[str, dict[str, float]]


CALIBRATION_SHARE = 0.25
"""Part of the context that error bars are calibrated on, and the method is not fitted on."""
FEWEST_CALIBRATED = 4
"""Solved cases that leave two to calibrate on and two to fit on."""
FOLDS = 5
"""Parts of the other cases of which each is left out in turn, for the proportions of a band."""
MOST_LEFT_OUT = 100
"""Solved cases up to which a method is fitted anew without each, if a quarter is too few."""


class Trial:
    """One method on one topology: fitted once, predicted once and timed once, when first needed.

    BLAS and torch run on one thread, so that times can be compared with each other and with the
    engine's.

    Args:
        cases: context and test; trials of several methods may share them.

    Raises:
        SurrogateMismatchError: the base is of another grid.
    """

    def __init__(self, base: Base, method: Method, cases: Cases):
        base.check(cases.network)
        self.base, self.method, self.cases = base, method, cases

    @cached_property
    def context(self) -> Context:
        """What the method is told of the topology; raises as `Cases.given_to`."""
        return self.cases.given_to(self.method, self.base)

    @cached_property
    def _fitted(self) -> tuple[Predictor, float]:
        context = self.context
        with Threads(1):
            began = time.perf_counter()
            predictor = self.method.fit(self.base, context)
            return predictor, time.perf_counter() - began

    @property
    def predictor(self) -> Predictor:
        """Fitted on the context; raises as `Method.fit`."""
        return self._fitted[0]

    @cached_property
    def y_hat(self) -> Real:
        """(R, Y) predictions for the test."""
        return _predicted(self.predictor, self.cases.test.x)

    @cached_property
    def predict_us_per_row(self) -> float:
        """Predicting a row, uncorrected, µs."""
        predictor, x, _ = self.predictor, self.cases.timed_x, self.y_hat
        with Threads(1):
            return fastest(lambda: predictor.predict(x)) / len(x) * 1e6

    @cached_property
    def mae(self) -> dict[str, float]:
        """Mean absolute errors on the test, by quantity (`QUANTITIES`)."""
        test = self.cases.test
        return mean_absolute_errors(test.layout, test.y, self.y_hat)

    @cached_property
    def mismatch(self) -> dict[str, float]:
        """Median, 99th percentile and largest of the power mismatch of the test's rows, p.u."""
        test = self.cases.test
        voltage = test.layout.unpack_voltage(test.x, self.y_hat)
        loads = test.layout.unpack_loads(test.x).load_power
        return mismatch_summary(self.cases.network, voltage, loads)

    @cached_property
    def cost(self) -> Cost:
        """What the adaptation took."""
        fit_s, gradient = self._fitted[1], self.method.gradient
        return Cost(
            data_s=self.cases.data_s if len(self.context.x) else 0.0,
            fit_s=0.0 if gradient else fit_s,
            gradient_s=fit_s if gradient else 0.0,
            predict_us_per_row=self.predict_us_per_row,
        )

    def measurement(self) -> Measurement:
        """All of it as one result."""
        test = self.cases.test
        return Measurement(
            method=self.method.name,
            outage=outage_text(self.cases.network.outaged),
            num_context=len(self.context.x),
            num_solves=self.context.num_solves,
            num_test=len(test),
            test_counts=test.status_counts,
            mae=self.mae,
            mismatch=self.mismatch,
            cost=self.cost,
        )

    def certified(self, tol: float | None, *, correct_share: float = 0.0) -> CertifiedTest:
        """The test's predictions, corrected where they need it.

        Args:
            tol: largest mismatch of a returned row, p.u.; None corrects the share alone.
        """
        test = self.cases.test
        certify(test.network, test.layout, test.x[:2], test.y[:2], tol=1e-6)  # may compile
        found = self._certified(test.x, self.y_hat, tol, correct_share)
        returned, predict_s = found.rows.returned, self.predict_us_per_row * len(test) * 1e-6
        return CertifiedTest(
            tol=float("inf") if tol is None else tol,
            correct_share=correct_share,
            counts=found.counts(),
            seconds={"predict": predict_s} | found.rows.seconds,
            worst_mismatch=found.worst_mismatch,
            mae=mean_absolute_errors(test.layout, test.y[returned], found.y[returned]),
        )

    def certified_us_per_row(self, tol: float) -> float:
        """Predicting a row, checking it, and correcting it if it needs that, µs."""
        predictor, x = self.predictor, self.cases.timed_x

        def run() -> None:
            self._certified(x, predictor.predict(x), tol)

        with Threads(1):
            run()
            return fastest(run) / len(x) * 1e6

    def error_bars(self, level: float) -> TestedErrorBars:
        """Error bars that hold at a rate, calibrated on a quarter of the context.

        They belong to a prediction fitted on the rest; a method that takes no solved cases needs a
        context too, to calibrate on. Where a quarter is too few for the level, each case is left
        out in turn, unless that takes gradient steps.

        Raises:
            ContextError: too few solved cases to calibrate on.
        """
        test, num_context = self.cases.test, self.cases.num_context
        cases = self.cases.context if num_context > 0 else None
        check_calibration(self.method, 0 if cases is None else len(cases), level)
        assert cases is not None
        count = num_held_out(len(cases), CALIBRATION_SHARE)
        if count < fewest_rows(level) and len(cases) <= MOST_LEFT_OUT and not self.method.gradient:
            return self._left_out(cases, level)
        held = cases.rows(slice(count))
        if self.method.uses_solved_cases:
            context = Context.of(cases.rows(slice(count, None)))
            with Threads(1):
                predictor = self.method.fit(self.base, context)
            y_hat = _predicted(predictor, test.x)
        else:
            context, predictor, y_hat = self.context, self.predictor, self.y_hat
        error = _predicted(predictor, held.x) - held.y
        bars = calibrate(error, level=level, groups=test.layout.y_slices)
        return TestedErrorBars(
            level=level,
            way="split",
            guaranteed=level,
            num_context=len(context.x),
            num_calibration=count,
            widths=bars.widths(),
            coverage=bars.coverage(y_hat - test.y),
        )

    def _left_out(self, cases: Dataset, level: float) -> TestedErrorBars:
        """Bars from a fit without each case; from the one fit there is, if it takes no cases.

        A method's own choices are made anew in every fit.
        """
        test, num, fits, scale = self.cases.test, len(cases), [self.predictor], None
        fitted = self.method.uses_solved_cases
        with Threads(1):
            if fitted:
                others = [cases.rows(np.arange(num) != i) for i in range(num)]
                fits = [self._fit(rows) for rows in others]
                scale = np.stack([self._typical_error(rows) for rows in others])
            error = np.concatenate([
                fits[i if fitted else 0].predict(cases.x[i : i + 1]) - cases.y[i : i + 1]
                for i in range(num)
            ])  # fmt: skip
            bounds = jackknife_plus(
                error, [one.predict for one in (fits if fitted else fits * num)], test.x,
                level=level, groups=test.layout.y_slices, scale=scale,
            )  # fmt: skip
        return TestedErrorBars(
            level=level,
            way="left out",
            guaranteed=max(0.0, 2 * level - 1) if fitted else level,
            num_context=num - 1 if fitted else 0,
            num_calibration=num,
            widths=bounds.widths(),
            coverage=bounds.coverage(test.y),
        )

    def _fit(self, cases: Dataset) -> Predictor:
        return self.method.fit(self.base, Context.of(cases))

    def _typical_error(self, cases: Dataset) -> Real:
        """(Y,) mean absolute error of the cases, each by a fit to other parts of them.

        The same for all entries where two cases leave a single one to fit to.
        """
        if len(cases) < 3:
            return np.ones(cases.y.shape[1])
        total = np.zeros(cases.y.shape[1])
        for kept, part in folds(len(cases), min(FOLDS, len(cases))):
            predicted = self._fit(cases.rows(kept)).predict(cases.x[part])
            total += np.abs(predicted - cases.y[part]).sum(0)
        return total / len(cases)

    def _certified(
        self, x: Real, y: Real, tol: float | None, correct_share: float = 0.0
    ) -> Certified:
        limit = NO_LIMIT if tol is None else tol
        layout = self.cases.test.layout
        return certify(self.cases.network, layout, x, y, tol=limit, correct_share=correct_share)


def _predicted(predictor: Predictor, x: Real) -> Real:
    with Threads(1):
        return predictor.predict(x)


def measure_adaptation(
    base: Base, network: Network, method: Method, *, num_context: int = 400, num_test: int = 1000,
    spread: float = 0.2, seed: int = 0, **solver: Any,
) -> Measurement:  # fmt: skip
    """Adapt to a topology with a context of its own and test on fresh rows of another stream.

    Raises:
        ContextError: a context that is too small for the method.
        ScenarioError: most of the context or of the test rows have no solution.
        SurrogateMismatchError: the surrogate is of another grid.
    """
    cases = Cases(
        network, num_context=num_context, num_test=num_test, spread=spread, seed=seed, **solver
    )
    return Trial(base, method, cases).measurement()


def check_calibration(method: Method, num_cases: int, level: float) -> None:
    """Pass if error bars of this level can be calibrated on so many solved cases.

    Raises:
        ContextError: they are too few.
    """
    fewest = FEWEST_CALIBRATED if method.gradient else max(3, fewest_rows(level))
    if num_cases < fewest:
        raise ContextError(
            f"error bars that hold at {level:.6g} can't be set by {num_cases} solved cases; ask "
            f"for a context of at least {fewest}, better 400, or for a lower level"
        )
