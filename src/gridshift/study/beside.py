"""Surrogates measured beside an exact study, on its outages and its scenarios."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.arrays import Bool, Complex, Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import Outage, parse_outage
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.statistics import Limits, Statistics
from gridshift.study.pieces import tasks
from gridshift.study.risk import risk_from, severity
from gridshift.study.row import OutageRow
from gridshift.study.set_up import base_of, known_method
from gridshift.study.setting import Setting
from gridshift.study.store import Store, task_key
from gridshift.trial.cost import training_seconds
from gridshift.trial.metrics import QUANTITIES, mean_absolute_errors

if TYPE_CHECKING:
    from gridshift.adapt.methods import Method

MEASURED = (
    "problem", "severity", "num_rows", "num_violated", "num_missed", "num_false", "num_solves",
    "data_s", "fit_s", "predict_s", *QUANTITIES,
)  # fmt: skip
"""What is kept of each method on each outage."""


@dataclass(frozen=True, kw_only=True)
class Beside:
    """A method, and the size of its context."""

    method: "Method"
    num_context: int

    @classmethod
    def of(cls, text: str, num_context: int) -> "Beside":
        """Of a text like `icw:400`.

        Raises:
            GridshiftError: no such method, or a size that is none.
        """
        name, colon, size = text.strip().partition(":")
        if colon:
            if not size.isdecimal():
                raise GridshiftError(
                    f"'{text}' must be a method, perhaps with the size of its context: {name}:400"
                )
            num_context = int(size)
        method = known_method(name, num_context)
        return cls(method=method, num_context=num_context if method.uses_solved_cases else 0)


def besides(setting: Setting) -> list[Beside]:
    """The methods that a study asks to be measured, checked."""
    config = setting.config
    return [Beside.of(text, config.num_context) for text in config.beside]


def measured_beside(
    setting: Setting, rows: Sequence[OutageRow], store: Store | None = None
) -> list[dict[str, Any]]:
    """Each method's errors, agreement in rank, missed violations and cost.

    Compared are outages of branches that leave the grid in one piece and solved; each method's
    severity is that of its predictions for the scenarios that the exact row counts.
    """
    wanted = [row for row in rows if _comparable(row, setting.network)]
    return [_measured(setting, one, wanted, store) for one in besides(setting)]


def _comparable(row: OutageRow, network: Network) -> bool:
    labels = row.outage.split(",")
    return row.status == "solved" and not row.equal_to and {*labels} <= {*network.elements}


def _measured(
    setting: Setting, one: Beside, rows: list[OutageRow], store: Store | None
) -> dict[str, Any]:
    config = replace(
        setting.config, method=one.method.name, beside=(), num_context=one.num_context,
        precision=None, ignore_below=None,
    )  # fmt: skip
    began = time.perf_counter()
    within = replace(setting, config=config, method=one.method)
    within = replace(within, surrogate=base_of(within, one.method))
    outages = [parse_outage(setting.network, row.outage) for row in rows]
    drawn = [row.num_solves for row in rows]
    keys = [
        task_key(task | {"drawn": number})
        for task, number in zip(tasks(within, outages, measured="beside"), drawn, strict=True)
    ]

    def work(index: int) -> dict[str, Any]:
        values = None if store is None else store.load(keys[index])
        if values is None or values.keys() != {*MEASURED}:
            values = _on_outage(within, outages[index], drawn[index])
            if store is not None:
                store.save(keys[index], values)
        return values

    with ThreadPoolExecutor(config.num_workers) as pool:
        found = list(pool.map(work, range(len(rows))))
    wall_s = time.perf_counter() - began
    return _summary(one, rows, found) | {
        "cost": {
            "train_s": training_seconds(within.surrogate),
            **{f"{part}_s": sum(v[f"{part}_s"] for v in found) for part in _PARTS},
            "wall_s": wall_s,
            "num_solves": sum(v["num_solves"] for v in found),
        }
    }


_OF_ROWS = ("num_rows", "num_violated", "num_missed", "num_false")
_PARTS = ("data", "fit", "predict")


def _on_outage(setting: Setting, outage: Outage, num_rows: int) -> dict[str, Any]:
    """One method on one outage."""
    try:
        return _compared(setting, outage, num_rows)
    except (GridshiftError, ArithmeticError, np.linalg.LinAlgError, RuntimeError) as error:
        blank = dict.fromkeys(MEASURED, 0.0) | dict.fromkeys(QUANTITIES, float("nan"))
        return blank | {"problem": str(error), "severity": float("nan")}


def _compared(setting: Setting, outage: Outage, num_rows: int) -> dict[str, Any]:
    from gridshift.study.adapted import solved_context

    method, surrogate = setting.method, setting.surrogate
    assert method is not None
    assert surrogate is not None
    network, layout = setting.network.without(outage), surrogate.layout
    clock = _Seconds()
    context = solved_context(setting, method, outage, network, setting.config.num_context)
    data_s = clock.lap()
    predictor = method.fit(surrogate, context)
    fit_s, predict_s = clock.lap(), 0.0
    limited, limits = setting.limits_on(network)
    statistics, errors, weights = Statistics(limits), [], []
    violations = np.zeros(3, int)
    for rows in setting.blocks():
        loads = setting.loads.rows(slice(rows.start, min(rows.stop, num_rows)))
        if not loads.num_rows:
            break
        solution = solve(network, loads)
        kept, exact = loads.rows(solution.solved), solution.voltage[solution.solved]
        x, y = layout.pack_inputs(network, kept), layout.pack_outputs(network, kept, exact)
        clock.lap()
        y_hat = predictor.predict(x)
        predict_s += clock.lap()
        predicted = layout.unpack_voltage(x, y_hat)
        truly, said = _violated(limits, exact), _violated(limits, predicted)
        violations += truly.sum(), (truly & ~said).sum(), (said & ~truly).sum()
        statistics.add_complex(predicted)
        errors.append(mean_absolute_errors(layout, y, y_hat))
        weights.append(len(x))
    mean = {q: float(np.average([e[q] for e in errors], weights=weights)) for q in QUANTITIES}
    found = severity(excess=risk_from(limited, statistics).excess, unsolved=0.0)
    return {
        "problem": "", "severity": found, "num_rows": sum(weights),
        "num_violated": int(violations[0]), "num_missed": int(violations[1]),
        "num_false": int(violations[2]), "num_solves": context.num_solves, "data_s": data_s,
        "fit_s": fit_s, "predict_s": predict_s, **mean,
    }  # fmt: skip


def _violated(limits: Limits, voltage: Complex) -> Bool:
    """(R,) whether each state exceeds a limit; a state that is no finite numbers does."""
    statistics, finite = Statistics(limits), np.isfinite(voltage).all(1)
    statistics.add_complex(voltage)
    found = np.ones(len(voltage), bool)
    scenarios = statistics.scenarios()
    found[finite] = scenarios[2] + scenarios[5] > 0
    return found


class _Seconds:
    """Seconds since it was last asked."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    def lap(self) -> float:
        before, self._at = self._at, time.perf_counter()
        return self._at - before


def _summary(one: Beside, rows: list[OutageRow], found: list[dict[str, Any]]) -> dict[str, Any]:
    good = [i for i, v in enumerate(found) if np.isfinite(v["severity"])]
    problems = [
        v["problem"] or "predictions are no finite numbers" for v in found
        if not np.isfinite(v["severity"])
    ]  # fmt: skip

    def total(name: str) -> int:
        return sum(found[i][name] for i in good)

    mae = {q: float(np.mean([found[i][q] for i in good])) if good else np.nan for q in QUANTITIES}
    # of the scenarios with a solution: those that a prediction is compared on
    exact = np.array([severity(excess=rows[i].excess, unsolved=0.0) for i in good])
    said = np.array([found[i]["severity"] for i in good])
    violated, missed = total("num_violated"), total("num_missed")
    return {
        "method": one.method.name,
        "num_context": one.num_context,
        "num_outages": len(good),
        "num_failed": len(problems),
        "problem": problems[0] if problems else "",
        "mae": mae,
        "rank_correlation": rank_correlation(exact, said),
        "missed_violations": missed / violated if violated else 0.0,
        "num_violated": violated,
        "num_missed": missed,
        "num_false": total("num_false"),
        "outages": [
            {
                "outage": rows[i].outage, "severity": float(said[k]),
                "exact_severity": float(exact[k]), "mae": found[i]["overall"],
                **{name: found[i][name] for name in _OF_ROWS},
            }
            for k, i in enumerate(good)
        ],
    }  # fmt: skip


def rank_correlation(a: Real, b: Real) -> float:
    """Spearman's correlation of ranks, ties at their mean; NaN if one of them has no order."""
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    from scipy.stats import rankdata

    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])
