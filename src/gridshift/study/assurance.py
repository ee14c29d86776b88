"""What can be said of an adaptation's rows without solving them: certificate and error bars."""

import time
from dataclasses import asdict, dataclass
from typing import Any

from gridshift.adapt.base import Base
from gridshift.adapt.certificate import certify
from gridshift.adapt.choice import one_thread
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.methods import Context, Method
from gridshift.errors import ContextError
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Spread
from gridshift.learn.conformal import calibrate
from gridshift.study.measure import draw
from gridshift.study.metrics import mean_absolute_errors
from gridshift.study.outage import NO_LIMIT

CALIBRATION_SHARE = 0.25
"""Part of the context that error bars are calibrated on, and the method is not fitted on."""
FEWEST = 4
"""Solved cases that leave two to calibrate on and two to fit on."""


@dataclass(frozen=True, kw_only=True)
class CertifiedRows:
    """What correcting a test's predictions took and gave."""

    tol: float
    quantile: float
    counts: dict[str, int]
    """Rows predicted, repaired, solved and marked."""
    seconds: dict[str, float]
    """Of `predict`, `check`, `repair` and `solve`."""
    worst_mismatch: float
    mae: dict[str, float]
    """Errors of the rows returned."""


@dataclass(frozen=True, kw_only=True)
class MeasuredErrorBars:
    """Half widths of error bars, and how often they held on the test."""

    level: float
    num_context: int
    """Solved cases that the prediction they belong to was fitted on."""
    num_calibration: int
    """Other solved cases, that the widths were set on."""
    widths: dict[str, dict[str, float]]
    """Per quantity: `interval` (one entry, mean over entries), `band` (all entries at once)."""
    coverage: dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class Assurance:
    """Of one method on one topology; None for what was not asked for."""

    certified: CertifiedRows | None
    error_bars: MeasuredErrorBars | None

    def to_json(self) -> dict[str, Any]:
        """What was asked for, as plain values."""
        return {key: value for key, value in asdict(self).items() if value is not None}


def assure(
    surrogate: Base,
    network: Network,
    method: Method,
    *,
    num_context: int = 400,
    num_test: int = 1000,
    spread: float = 0.2,
    seed: int = 0,
    tol: float | None = None,
    quantile: float = 0.0,
    level: float | None = None,
) -> Assurance:
    """Certify the test rows of `measure_adaptation`, and give them error bars.

    Args:
        surrogate: trained on the intact grid.
        network: the new topology.
        method: of `METHODS`.
        num_context: scenarios of the context; error bars are calibrated on a quarter of them, for
            methods that take no solved cases too.
        num_test: scenarios of the test.
        spread: spread of the loads.
        seed: root seed of context and test.
        tol: largest mismatch of a returned row, p.u.; None with a quantile corrects only that.
        quantile: share of the rows, the worst ones, that are corrected in any case.
        level: rate of the error bars; None for none.

    Raises:
        ContextError: too few scenarios to calibrate error bars on.
        ScenarioError: most of the context or of the test rows have no solution.
    """

    def solved(role: str, num_rows: int, regime: Spread) -> Dataset:
        loads = draw(network, role, num_rows, spread=spread, regime=regime, seed=seed)
        return generate(network, loads, min_rows=(num_rows + 1) // 2)

    with one_thread():
        test = solved("test", num_test, "drawn")
        empty = Context.empty(network, surrogate)
        cases = solved("context", num_context, "mixed") if num_context > 0 else None
        context = Context.of(cases) if cases is not None and method.uses_solved_cases else empty
        bars = None
        if level is not None:
            check_calibration(0 if cases is None else len(cases))
            assert cases is not None
            bars = _measured_bars(surrogate, method, cases, test, level)
        rows = None
        if tol is not None or quantile:
            rows = _certified(surrogate, method, context, test, tol, quantile)
    return Assurance(certified=rows, error_bars=bars)


def check_calibration(num_cases: int) -> None:
    """Pass if error bars can be calibrated on a part of so many solved cases.

    Raises:
        ContextError: they are too few.
    """
    if num_cases < FEWEST:
        raise ContextError(
            f"error bars are calibrated on a quarter of the context, and {num_cases} cases are too "
            f"few for that; ask for a context of at least {FEWEST}, better 400"
        )


def _measured_bars(
    surrogate: Base, method: Method, cases: Dataset, test: Dataset, level: float
) -> MeasuredErrorBars:
    count = max(2, round(CALIBRATION_SHARE * len(cases)))
    held, rest = cases.rows(slice(count)), cases.rows(slice(count, None))
    part = Context.of(rest)
    if not method.uses_solved_cases:
        part = Context.empty(cases.network, surrogate)
    predictor = method.fit(surrogate, part)
    bars = calibrate(
        predictor.predict(held.x) - held.y, level=level, groups=cases.layout.y_slices
    )  # fmt: skip
    return MeasuredErrorBars(
        level=level,
        num_context=len(part.x),
        num_calibration=count,
        widths=bars.widths(),
        coverage=bars.coverage(predictor.predict(test.x) - test.y),
    )


def _certified(
    surrogate: Base, method: Method, context: Context, test: Dataset, tol: float | None,
    quantile: float,
) -> CertifiedRows:  # fmt: skip
    predictor = method.fit(surrogate, context)
    predictor.predict(test.x)
    certify(test.network, test.layout, test.x[:2], test.y[:2], tol=1e-6)  # may compile
    began = time.perf_counter()
    y_hat = predictor.predict(test.x)
    predict_s = time.perf_counter() - began
    limit = NO_LIMIT if tol is None else tol
    found = certify(test.network, test.layout, test.x, y_hat, tol=limit, correct_share=quantile)
    returned = found.rows.returned
    return CertifiedRows(
        tol=tol if tol is not None else float("inf"),
        quantile=quantile,
        counts=found.counts(),
        seconds={"predict": predict_s} | found.rows.seconds,
        worst_mismatch=found.worst_mismatch,
        mae=mean_absolute_errors(test.layout, test.y[returned], found.y[returned]),
    )
