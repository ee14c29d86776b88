"""One adaptation measured: error against exact solutions, power balance, and what it cost."""

import time
from dataclasses import dataclass
from typing import Any

from gridshift.adapt.base import Base
from gridshift.adapt.datasets import generate, require_rows
from gridshift.adapt.methods import Context, Method, Predictor
from gridshift.arrays import Real
from gridshift.grid.contingency import outage_text
from gridshift.grid.network import Network
from gridshift.grid.scenarios import Injections, Spread, nominal_loads, sample_loads, stream
from gridshift.study.metrics import mean_absolute_errors, mismatch_summary
from gridshift.threads import Threads

REPEATS = 5
"""Predictions that are timed; the fastest counts, after one that is not timed."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Time that one adaptation takes, s; what a method doesn't do costs 0."""

    data_s: float
    """Drawing and solving the context."""
    fit_s: float
    """Fitting without gradients."""
    gradient_s: float
    """Gradient steps on the new topology."""
    predict_us_per_row: float


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How well one method predicts one topology."""

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


def measure_adaptation(
    surrogate: Base,
    network: Network,
    method: Method,
    *,
    num_context: int = 400,
    num_test: int = 1000,
    spread: float = 0.2,
    seed: int = 0,
    **solver: Any,
) -> Measurement:
    """Adapt to a topology with a context of its own and test on fresh rows of another stream.

    Context rows have mixed spread, test rows drawn spread (section IV of the paper). BLAS and torch
    run on one thread, so that times can be compared.

    Args:
        surrogate: trained on the intact grid.
        network: the new topology.
        method: of `METHODS`.
        num_context: scenarios solved for the context, if the method needs solved cases.
        num_test: scenarios solved for the test.
        spread: spread of the loads.
        seed: root seed of context and test.
        solver: keyword arguments of `solve`.

    Raises:
        ContextError: a context that is too small for the method.
        ScenarioError: most of the context or of the test rows have no solution.
        SurrogateMismatchError: the surrogate is of another grid.
    """
    surrogate.check(network)
    with Threads(1):
        generate(network, nominal_loads(network, 2), min_rows=0, **solver)  # kernels may compile
        began = time.perf_counter()
        context = draw_context(
            surrogate, network, method, num_context=num_context, spread=spread, seed=seed, **solver
        )
        data_s = time.perf_counter() - began if len(context.x) else 0.0

        began = time.perf_counter()
        predictor = method.fit(surrogate, context)
        fit_s = time.perf_counter() - began

        test = generate(
            network, draw(network, "test", num_test, spread=spread, regime="drawn", seed=seed),
            min_rows=(num_test + 1) // 2, **solver,
        )  # fmt: skip
        y_hat, predict_s = _timed_prediction(predictor, test.x)
    voltage = test.layout.unpack_voltage(test.x, y_hat)
    loads = test.layout.unpack_injections(test.x).load_power
    return Measurement(
        method=method.name,
        outage=outage_text(network.outaged),
        num_context=len(context.x),
        num_solves=context.num_solves,
        num_test=len(test),
        test_counts=test.status_counts,
        mae=mean_absolute_errors(test.layout, test.y, y_hat),
        mismatch=mismatch_summary(network, voltage, loads),
        cost=Cost(
            data_s=data_s,
            fit_s=0.0 if method.gradient else fit_s,
            gradient_s=fit_s if method.gradient else 0.0,
            predict_us_per_row=predict_s / len(test) * 1e6,
        ),
    )


def draw_context(
    surrogate: Base,
    network: Network,
    method: Method,
    *,
    num_context: int,
    spread: float = 0.2,
    seed: int = 0,
    **solver: Any,
) -> Context:
    """What this method is told of a topology: scenarios of mixed spread, solved if it needs them.

    Raises:
        ContextError: too few scenarios for what the method needs, or a negative number.
        ScenarioError: most of them have no solution.
    """
    method.check_num_context(num_context)
    if not method.uses_solved_cases or num_context == 0:
        return Context.empty(network, surrogate)
    injections = draw(network, "context", num_context, spread=spread, regime="mixed", seed=seed)
    return Context.of(generate(network, injections, min_rows=(num_context + 1) // 2, **solver))


def draw(
    network: Network, role: str, num_rows: int, *, spread: float, regime: Spread, seed: int
) -> Injections:
    """Scenarios of a topology's own stream for this role, to be solved and packed.

    Raises:
        MemoryNeededError: they don't fit into memory.
    """
    require_rows(network, num_rows, f"{role} scenarios")
    rng = stream(network.name, role, outage=outage_text(network.outaged), seed=seed)
    return sample_loads(network, rng, num_rows, spread=spread, regime=regime)


def _timed_prediction(predictor: Predictor, x: Real) -> tuple[Real, float]:
    y_hat, times = predictor.predict(x), []
    for _ in range(REPEATS):
        began = time.perf_counter()
        predictor.predict(x)
        times.append(time.perf_counter() - began)
    return y_hat, min(times)
