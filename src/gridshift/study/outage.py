"""One outage under many scenarios: from the topology to a row of the study."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.adapt.datasets import Dataset, generate
from gridshift.arrays import Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import Assessment, Outage, assess, outage_text
from gridshift.grid.equations import worst_mismatch
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus, nominal, solve
from gridshift.grid.scenarios import Injections, Scenarios, sample_loads, stream
from gridshift.grid.supplied import SuppliedPart, supplied_part
from gridshift.study.risk import (
    Risk,
    RiskCounter,
    lost_supply_severity,
    risk_of,
    severity,
    with_limits,
)
from gridshift.study.row import BY_BRANCH, BY_BUS, CERTIFIED, FAILED, Clock, OutageRow
from gridshift.trial.metrics import NO_LIMIT, mean_absolute_errors, summarise

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.certificate import Certified
    from gridshift.adapt.methods import Method
    from gridshift.study.screening import ScreenConfig

BLOCK = 4096
"""Scenarios that are predicted and counted at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """What all outages of a study share; read-only, so that workers can use it at once."""

    config: "ScreenConfig"
    network: Network
    """The intact grid."""
    voltage: Complex
    """(B,) its nominal solution."""
    loads: Injections | Scenarios
    """The scenarios, the same for every outage, so that outages differ by what they do alone."""
    method: "Method | None" = None
    """None solves every scenario exactly."""
    surrogate: "Base | None" = None

    def limited(self, network: Network) -> Network:
        """The network with the limits that the study counts against."""
        c = self.config
        return with_limits(network, v_min=c.v_min, v_max=c.v_max, rating_mva=c.rating_mva)

    def drawn(self, role: str, outage: str, num_rows: int) -> Injections:
        """Scenarios of a role of their own; the context mixes spreads as in the paper."""
        rng = stream(self.network.name, role, outage=outage, seed=self.config.seed)
        regime = "mixed" if role == "context" else self.config.regime
        spread = self.config.spread
        return sample_loads(self.network, rng, num_rows, spread=spread, regime=regime)


def screen_outage(setting: Setting, outage: Outage, *, cut_off: Int | None = None) -> OutageRow:
    """The row of one outage; whatever goes wrong with it is its status, never an exception."""
    clock = Clock()
    try:
        found = assess(setting.network, outage, cut_off=cut_off)
        if not found.usable:
            row = _cut_off(setting, found, clock)
        elif setting.method is None:
            row = _solved(setting, found.network, clock)
        else:
            row = _adapted(setting, found, clock)
    except (GridshiftError, ArithmeticError, np.linalg.LinAlgError, RuntimeError) as error:
        row = {
            "status": FAILED,
            "reason": str(error),
            "unsolved": 1.0,
            "severity": severity(excess=0, unsolved=1),
        }
    if not np.isfinite(row["severity"]):  # must not rank, and least of all as harmless
        row |= {
            "status": FAILED,
            "reason": "no scenario has a prediction of finite numbers",
            "severity": severity(excess=0, unsolved=1),
        }
    return OutageRow(outage=outage_text(outage), **row, cost=clock.columns())


def _cut_off(setting: Setting, found: Assessment, clock: "Clock") -> dict[str, Any]:
    """Buses are cut off, or there is no nominal solution.

    Demand that is cut off is lost, and that is the severity; the rest is not looked at. Where only
    generation or an empty bus goes, the rest is a grid that must do without: every scenario is
    solved, as a surrogate of the whole grid knows nothing of it.
    """
    row = {
        "status": found.status.text,
        "reason": found.reason,
        "cut_off": list(found.cut_off),
        "mw_cut_off": found.mw_cut_off,
        "mw_generation_cut_off": found.mw_generation_cut_off,
    }
    if found.mw_cut_off > 0:
        return row | {"unsolved": 1.0, "severity": lost_supply_severity(found.mw_cut_off)}
    if found.status != RowStatus.ISLANDED:
        return row | _without_solution(setting, found.outage, found.network, clock)
    part = supplied_part(found.network)
    rest = replace(
        setting, voltage=setting.voltage[part.buses], loads=setting.loads.of_loads(part.loads)
    )
    status = RowStatus(int(nominal(part.network).status[0]))
    if status != RowStatus.SOLVED:
        words = status.text.replace("_", " ")
        row["reason"] += f", and the rest has no nominal solution ({words})"
        return row | _without_solution(setting, found.outage, part.network, clock, part=part)
    row["reason"] += "; the rest is solved without them"
    studied = _solved(rest, part.network, clock)
    studied |= {name: part.bus_values(studied[name]) for name in BY_BUS}
    studied |= {name: part.branch_values(studied[name]) for name in BY_BRANCH}
    return studied | row


def _without_solution(
    setting: Setting, outage: Outage, network: Network, clock: "Clock",
    part: SuppliedPart | None = None,
) -> dict[str, Any]:  # fmt: skip
    """No nominal solution: some scenarios may still have one; the others lose all demand."""
    loads = setting.drawn("holdout", outage_text(outage), setting.config.num_holdout)
    with clock("holdout"):
        solution = solve(network, loads if part is None else loads.of_loads(part.loads))
    unsolved = float(1 - solution.solved.mean())
    demand = float(setting.network.bus_demand.sum() * setting.network.base_mva)
    return {
        "unsolved": unsolved,
        "num_solves": len(solution.solved),
        "severity": lost_supply_severity(unsolved * demand),
    }


def _solved(setting: Setting, network: Network, clock: "Clock") -> dict[str, Any]:
    """Every scenario solved exactly."""
    counter = _Counter(setting, network)
    solved, worst = 0, []
    tol = min(1e-8, setting.config.certify or 1e-8)
    for rows in _blocks(setting.loads.num_rows):
        with clock("predict"):
            solution = solve(network, setting.loads.rows(rows), tol=tol)
        solved += int(solution.solved.sum())
        worst.append(solution.mismatch[solution.solved])
        with clock("risk"):
            counter.add(solution.voltage)
    unsolved = 1 - solved / setting.loads.num_rows
    return counter.row(unsolved) | {
        "num_solves": setting.loads.num_rows,
        "mismatch": summarise(np.concatenate(worst)),
    }


def _adapted(setting: Setting, found: Assessment, clock: "Clock") -> dict[str, Any]:
    """Adapt to the outage, check on a hold-out, predict the scenarios."""
    from gridshift.adapt.certificate import CertifiedPredictor
    from gridshift.adapt.methods import Context

    method, surrogate, config = setting.method, setting.surrogate, setting.config
    assert method is not None
    assert surrogate is not None
    name, left, layout = outage_text(found.outage), found.network, surrogate.layout
    context = Context.empty(left, surrogate)
    failed = 0
    if method.uses_solved_cases and config.num_context > 0:
        with clock("data"):
            loads = setting.drawn("context", name, config.num_context)
            data = generate(left, loads, min_rows=0)
        context, failed = Context.of(data), data.num_solves - len(data)
    with clock("holdout"):
        loads = setting.drawn("holdout", name, config.num_holdout)
        holdout = generate(left, loads, min_rows=0)
    tried = context.num_solves + holdout.num_solves
    unsolved = (failed + holdout.num_solves - len(holdout)) / tried
    solves = {"num_solves": tried, "num_context": len(context.x)}
    try:
        with clock("fit"):
            predictor = method.fit(surrogate, context)
    except (GridshiftError, np.linalg.LinAlgError) as error:
        counter = _Counter(setting, left)
        counter.add(layout.unpack_voltage(holdout.x, holdout.y))
        reason = f"statistics of {len(holdout)} exact hold-out rows only: {error}"
        return counter.row(unsolved) | solves | {"status": FAILED, "reason": reason}

    counter = _Counter(setting, left)
    certified: dict[str, float] = dict.fromkeys(CERTIFIED, 0.0)
    corrected = CertifiedPredictor(
        predictor=predictor, network=left, layout=layout,
        tol=NO_LIMIT if config.certify is None else config.certify,
        correct_share=config.quantile,
    )  # fmt: skip
    for rows in _blocks(setting.loads.num_rows):
        x = layout.pack_inputs(left, setting.loads.rows(rows))
        with clock("predict"):
            y = predictor.predict(x)
            voltage = None if config.corrects else layout.unpack_voltage(x, y)
        if voltage is None:
            with clock("certify"):
                kept = corrected.correct(x, y)
            voltage = kept.voltage
            _tally(certified, kept)
        with clock("risk"):
            counter.add(voltage)
    if not config.corrects:
        errors = _holdout_errors(setting, layout, holdout, predictor.predict)
        return counter.row(unsolved) | solves | errors
    return (
        counter.row(certified["marked"] / setting.loads.num_rows)
        | solves
        | {"certified": certified}
        | _holdout_errors(setting, layout, holdout, corrected.predict)
    )


def _tally(certified: dict[str, float], found: "Certified") -> None:
    """Add a block's counts."""
    for name, number in found.counts().items():
        certified[name] += number
    worst = np.fmax(certified["worst_mismatch"], found.worst_mismatch)
    certified["worst_mismatch"] = float(worst)


def _holdout_errors(
    setting: Setting, layout: Layout, holdout: Dataset, predict: Callable[[Real], Real]
) -> dict[str, Any]:
    if not len(holdout):
        return {}
    y_hat = predict(holdout.x)
    limited = setting.limited(holdout.network)
    voltage = layout.unpack_voltage(holdout.x, y_hat)
    exact = layout.unpack_voltage(holdout.x, holdout.y)
    demand = layout.unpack_injections(holdout.x).load_power
    return {
        "mae": mean_absolute_errors(layout, holdout.y, y_hat),
        "mismatch": summarise(worst_mismatch(holdout.network, voltage, demand)),
        "holdout_excess": risk_of(limited, exact).excess,
        "holdout_excess_predicted": risk_of(limited, voltage).excess,
    }


class _Counter:
    """Limit statistics and mean voltage of one outage."""

    def __init__(self, setting: Setting, network: Network):
        self.setting, self.network = setting, network
        self._risk = RiskCounter(setting.limited(network))
        self._sum = np.zeros(network.num_buses, complex)
        self._rows = 0

    def add(self, voltage: Complex) -> None:
        voltage = voltage[np.isfinite(voltage).all(1)]
        self._risk.add(voltage)
        self._sum += voltage.sum(0)
        self._rows += len(voltage)

    def row(self, unsolved: float) -> dict[str, Any]:
        risk, network = self._risk.result(), self.network
        mean = self._sum / (self._rows or np.nan)
        bus, bus_p = _worst(risk.bus_probability, risk.voltage_violation)
        branch, branch_p = _worst(risk.overload_probability, risk.overload)
        return {
            "status": RowStatus.SOLVED.text,
            "severity": severity(excess=risk.excess, unsolved=unsolved),
            "unsolved": unsolved,
            "num_scenarios": risk.num_rows,
            "excess": risk.excess,
            "voltage_excess": risk.voltage_excess,
            "overload_excess": risk.overload_excess,
            "any_voltage": risk.any_voltage,
            "any_overload": risk.any_overload,
            "shift": float(np.abs(mean - self.setting.voltage).mean()),
            "worst_bus": network.bus_labels[bus] if bus >= 0 else "",
            "worst_bus_probability": bus_p,
            "worst_branch": network.branch_labels[branch] if branch >= 0 else "",
            "worst_branch_probability": branch_p,
            **_arrays(risk),
        }


def _arrays(risk: Risk) -> dict[str, Real]:
    return {
        "bus_under": risk.under_probability,
        "bus_over": risk.over_probability,
        "bus_violation": risk.voltage_violation,
        "branch_overload_probability": risk.overload_probability,
        "branch_overload": risk.overload,
        "branch_loading": risk.loading,
    }


def _worst(probability: Real, size: Real) -> tuple[int, float]:
    """Entry with the largest expected size, and its probability; -1 if nothing is exceeded."""
    size = np.nan_to_num(size, nan=0.0)
    if not size.size or size.max() <= 0:
        return -1, 0.0
    worst = int(size.argmax())
    return worst, float(probability[worst])


def _blocks(num_rows: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, num_rows, BLOCK))
