"""Outages whose scenarios a surrogate predicts, adapted to each and checked on a hold-out."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.adapt.certificate import CertifiedPredictor
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.method import Method
from gridshift.arrays import Complex, Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import Outage, outage_text
from gridshift.grid.equations import worst_mismatch
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.statistics import Statistics
from gridshift.study.counted import counted, interval, limits_reached
from gridshift.study.risk import risk_of, wilson
from gridshift.study.row import CERTIFIED, FAILED, Clock
from gridshift.study.setting import Setting
from gridshift.study.surrogate_error import Predicted
from gridshift.trial.metrics import NO_LIMIT, mean_absolute_errors, summarise

if TYPE_CHECKING:
    from gridshift.adapt.certificate import Certified


def adapted(setting: Setting, outage: Outage, network: Network, clock: Clock) -> dict[str, Any]:
    """Adapt to the outage, check on a hold-out, predict the scenarios."""
    method, surrogate, config = setting.method, setting.surrogate, setting.config
    assert method is not None
    assert surrogate is not None
    name, left, layout = outage_text(outage), network, surrogate.layout
    with clock("data"):
        context = solved_context(setting, method, outage, left, config.num_context)
    failed = context.num_solves - len(context.x)
    with clock("holdout"):
        loads = setting.drawn("holdout", name, config.num_holdout)
        holdout = generate(left, loads, min_rows=0)
    tried = context.num_solves + holdout.num_solves
    unsolved = (failed + holdout.num_solves - len(holdout)) / tried
    solves = {"num_solves": tried, "num_context": len(context.x)}
    limited, limits = setting.limits_on(left)
    statistics, predicted = Statistics(limits), Predicted.of(limits, left)
    try:
        with clock("fit"):
            predictor = method.fit(surrogate, context)
    except (GridshiftError, np.linalg.LinAlgError) as error:
        statistics.add_complex(layout.unpack_voltage(holdout.x, holdout.y))
        reason = f"statistics of {len(holdout)} exact hold-out rows only: {error}"
        row = counted(setting, limited, statistics, unsolved)
        return row | solves | {"status": FAILED, "reason": reason}

    certified: dict[str, float] = dict.fromkeys(CERTIFIED, 0.0)
    corrected = CertifiedPredictor(
        predictor=predictor, network=left, layout=layout,
        tol=NO_LIMIT if config.certify is None else config.certify,
        correct_share=config.correct_share, q_limits=config.q_limits,
    )  # fmt: skip
    at_limit, any_at_limit = np.zeros((2, left.num_buses), np.int64), 0
    for rows in setting.blocks():
        x = layout.pack_inputs(left, setting.loads.rows(rows))
        with clock("predict"):
            y = predictor.predict(x)
            voltage = None if config.corrects else layout.unpack_voltage(x, y)
        if voltage is None:
            with clock("certify"):
                kept = corrected.correct(x, y)
            voltage = kept.voltage
            _tally(certified, kept)
            if kept.rows.at_limit is not None:
                side = kept.rows.at_limit
                at_limit += np.stack([(side > 0).sum(0), (side < 0).sum(0)])
                any_at_limit += int(side.any(1).sum())
        with clock("risk"):
            statistics.add_complex(voltage)
            predicted.statistics.add_complex(voltage)
    if not config.corrects:
        row = counted(setting, limited, statistics, unsolved) | solves
        told, failing = predictor.predict, wilson(unsolved, tried)
        num_rows = setting.loads.num_rows
    else:
        marked = certified["marked"] / setting.loads.num_rows
        row = counted(setting, limited, statistics, marked) | solves | {"certified": certified}
        told, failing = corrected.predict, wilson(marked, setting.loads.num_rows)
        num_rows = statistics.num_rows
        if config.q_limits:
            row |= limits_reached(left, at_limit, any_at_limit, num_rows)
            told = predictor.predict  # errors of the predictions, on rows without limits
    if num_rows:
        y_hat = told(holdout.x)
        pair = [layout.unpack_voltage(holdout.x, y) for y in (y_hat, holdout.y)]
        if config.q_limits:
            pair = _with_limits(corrected, holdout)
        found = predicted.exceeded(
            predicted.largest_errors(*pair), num_holdout=len(holdout), num_rows=num_rows
        )
        row |= interval(found.of_the_rest(failing))
        row |= _holdout_errors(setting, layout, holdout, y_hat)
    return row


def _with_limits(corrected: CertifiedPredictor, holdout: Dataset) -> list[Complex]:
    """Voltages of the hold-out with limits kept, as certified and as solved, where both are."""
    loads = corrected.layout.unpack_loads(holdout.x)
    solution = solve(corrected.network, loads, q_limits=True)
    found = corrected.certified(holdout.x)
    both = solution.solved & found.rows.returned
    return [found.voltage[both], solution.voltage[both]]


def solved_context(
    setting: Setting, method: Method, outage: Outage, network: Network, num_context: int
) -> Context:
    """What a method is told of an outage: solved cases, if it has a use for them."""
    assert setting.surrogate is not None
    if not method.uses_solved_cases or num_context == 0:
        return Context.empty(network, setting.surrogate)
    loads = setting.drawn("context", outage_text(outage), num_context)
    return Context.of(generate(network, loads, min_rows=0))


def _tally(certified: dict[str, float], found: "Certified") -> None:
    """Add a block's counts."""
    for name, number in found.counts().items():
        certified[name] += number
    worst = np.fmax(certified["worst_mismatch"], found.worst_mismatch)
    certified["worst_mismatch"] = float(worst)


def _holdout_errors(
    setting: Setting, layout: Layout, holdout: Dataset, y_hat: Real
) -> dict[str, Any]:
    if not len(holdout):
        return {}
    limited = setting.limited(holdout.network)
    voltage = layout.unpack_voltage(holdout.x, y_hat)
    exact = layout.unpack_voltage(holdout.x, holdout.y)
    demand = layout.unpack_loads(holdout.x).load_power
    return {
        "mae": mean_absolute_errors(layout, holdout.y, y_hat),
        "mismatch": summarise(worst_mismatch(holdout.network, voltage, demand)),
        "holdout_excess": risk_of(limited, exact).excess,
        "holdout_excess_predicted": risk_of(limited, voltage).excess,
    }
