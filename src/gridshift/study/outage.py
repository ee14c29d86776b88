"""Outages under many scenarios: from the topologies to rows of the study."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
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
from gridshift.grid.prepared import prepare, prepare_all
from gridshift.grid.scenarios import Injections, Scenarios, sample_loads, stream
from gridshift.grid.statistics import Limits, Statistics
from gridshift.grid.streaming import Streamed
from gridshift.grid.streaming import stream as stream_rows
from gridshift.grid.supplied import SuppliedPart, supplied_part
from gridshift.study.risk import (
    Risk,
    lost_supply_severity,
    risk_from,
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
"""Scenarios that are drawn, or predicted and counted, at a time."""
PROBLEMS = (GridshiftError, ArithmeticError, np.linalg.LinAlgError, RuntimeError)
"""What makes an outage's row a failed one, and leaves the study alone."""


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
    threads: int = 1
    """That share the scenarios of one outage."""

    @cached_property
    def intact(self) -> tuple[Network, Limits]:
        """The intact grid with the study's limits, and these as the statistics read them."""
        network = self.limited(self.network)
        return network, Limits.of(network)

    def limits_on(self, network: Network) -> tuple[Network, Limits]:
        """A grid with the limits of this one, and these on an outage of it, or on a part of that.

        Limits of buses and branches are those of the intact grid, whatever is out of service.
        """
        if network.root is self.network.root and network.num_buses == self.network.num_buses:
            limited, limits = self.intact
            return limited, limits.without(network)
        limited = self.limited(network)
        return limited, Limits.of(limited)

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


def screen_outages(
    setting: Setting, outages: Sequence[Outage], cut_off: Sequence[Int]
) -> list[OutageRow]:
    """Rows of some outages; whatever goes wrong with one is its status, never an exception.

    If every scenario is solved, their topologies are prepared together and each block of scenarios
    is drawn once for all of them.

    Args:
        setting: of the study.
        outages: a few, as what is counted of each is kept until the last one is done.
        cut_off: the buses that each cuts off.
    """
    clocks = [Clock() for _ in outages]
    found: dict[int, dict[str, Any] | Solving] = {}
    if setting.method is None:
        whole = [i for i, buses in enumerate(cut_off) if not len(buses)]
        found = _prepared(setting, {i: outages[i] for i in whole}, clocks)
    together = {i: one for i, one in found.items() if isinstance(one, Solving)}
    for rows in _blocks(setting.loads.num_rows) if together else ():
        loads = setting.loads.rows(rows)
        for i, one in list(together.items()):
            try:
                one.add(loads)
            except PROBLEMS as error:
                found[i] = _failed(str(error))
                del together[i]
    return [
        _row(setting, outage, clock, found.get(i), cut)
        for i, (outage, clock, cut) in enumerate(zip(outages, clocks, cut_off, strict=True))
    ]


def _prepared(
    setting: Setting, outages: dict[int, Outage], clocks: list["Clock"]
) -> "dict[int, dict[str, Any] | Solving]":
    """Those that have a nominal solution, prepared together."""
    try:
        left = {i: setting.network.without(outage) for i, outage in outages.items()}
        prepare_all([*left.values()])
    except PROBLEMS:  # then each is tried alone
        return {}
    return {
        i: Solving(setting, network, clocks[i])
        for i, network in left.items()
        if prepare(network).solved
    }


def _row(
    setting: Setting, outage: Outage, clock: "Clock", found: "dict[str, Any] | Solving | None",
    cut_off: Int,
) -> OutageRow:  # fmt: skip
    """The row of one outage, from what is known of it."""
    together = found is not None
    clock = clock if together else Clock()
    try:
        row = found.row() if isinstance(found, Solving) else found
        row = row or _studied(setting, outage, clock, cut_off)
    except PROBLEMS as error:
        row = _failed(str(error))
    if not np.isfinite(row["severity"]):  # must not rank, and least of all as harmless
        row |= _failed("no scenario has a prediction of finite numbers", unsolved=row["unsolved"])
    return OutageRow(outage=outage_text(outage), **row, cost=clock.columns(interleaved=together))


def _failed(reason: str, unsolved: float = 1.0) -> dict[str, Any]:
    return {
        "status": FAILED,
        "reason": reason,
        "unsolved": unsolved,
        "severity": severity(excess=0, unsolved=1),
    }


def _studied(setting: Setting, outage: Outage, clock: "Clock", cut_off: Int) -> dict[str, Any]:
    """One outage on its own."""
    found = assess(setting.network, outage, cut_off=cut_off)
    if not found.usable:
        return _cut_off(setting, found, clock)
    if setting.method is None:
        return _solved(setting, found.network, clock)
    return _adapted(setting, found, clock)


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


class Solving:
    """One outage, all of whose scenarios are solved exactly, block by block."""

    def __init__(self, setting: Setting, network: Network, clock: "Clock"):
        self._setting, self._network, self._clock = setting, network, clock
        self._limited, self._limits = setting.limits_on(network)
        self._tol = min(1e-8, setting.config.certify or 1e-8)
        self._found: list[Streamed] = []

    def add(self, loads: Injections) -> None:
        """Solve and count some scenarios."""
        with self._clock("predict"):
            found = stream_rows(
                self._network, loads, self._limits, tol=self._tol, threads=self._setting.threads
            )
        self._found.append(found)

    def row(self) -> dict[str, Any]:
        """What all scenarios together say."""
        with self._clock("risk"):
            first, *more = (one.statistics for one in self._found)
            mismatch = np.concatenate([one.mismatch[one.solved] for one in self._found])
            num_rows = sum(len(one.mismatch) for one in self._found)
            row = _counted(
                self._setting, self._limited, first.merge(more), 1 - len(mismatch) / num_rows
            )
            return row | {"num_solves": num_rows, "mismatch": summarise(mismatch)}


def _solved(setting: Setting, network: Network, clock: "Clock") -> dict[str, Any]:
    """Every scenario solved exactly."""
    solving = Solving(setting, network, clock)
    for rows in _blocks(setting.loads.num_rows):
        solving.add(setting.loads.rows(rows))
    return solving.row()


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
    limited, limits = setting.limits_on(left)
    statistics = Statistics(limits)
    try:
        with clock("fit"):
            predictor = method.fit(surrogate, context)
    except (GridshiftError, np.linalg.LinAlgError) as error:
        statistics.add_complex(layout.unpack_voltage(holdout.x, holdout.y))
        reason = f"statistics of {len(holdout)} exact hold-out rows only: {error}"
        counted = _counted(setting, limited, statistics, unsolved)
        return counted | solves | {"status": FAILED, "reason": reason}

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
            statistics.add_complex(voltage)
    if not config.corrects:
        errors = _holdout_errors(setting, layout, holdout, predictor.predict)
        return _counted(setting, limited, statistics, unsolved) | solves | errors
    return (
        _counted(setting, limited, statistics, certified["marked"] / setting.loads.num_rows)
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


def _counted(
    setting: Setting, network: Network, statistics: Statistics, unsolved: float
) -> dict[str, Any]:
    """What the scenarios of one outage say, on a network with the limits they count against."""
    mean, risk = statistics.mean_voltage(), risk_from(network, statistics)
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
        "shift": float(np.abs(mean - setting.voltage).mean()),
        "worst_bus": network.bus_labels[bus] if bus >= 0 else "",
        "worst_bus_probability": bus_p,
        "worst_branch": network.branch_labels[branch] if branch >= 0 else "",
        "worst_branch_probability": branch_p,
        "worst_voltage": risk.worst_voltage._asdict(),
        "worst_loading": risk.worst_loading._asdict(),
        "scenario_excess": risk.scenario_excess._asdict(),
        **_arrays(risk),
    }


def _arrays(risk: Risk) -> dict[str, Real]:
    least, p5, mean, p95, most = risk.voltage.T.copy()
    loading_p95, loading_p99, loading_max = risk.loading_tail.T.copy()
    return {
        "bus_under": risk.under_probability,
        "bus_over": risk.over_probability,
        "bus_violation": risk.voltage_violation,
        "bus_worst": risk.worst_bus_share,
        "bus_voltage_min": least,
        "bus_voltage_p5": p5,
        "bus_voltage_mean": mean,
        "bus_voltage_p95": p95,
        "bus_voltage_max": most,
        "branch_overload_probability": risk.overload_probability,
        "branch_overload": risk.overload,
        "branch_loading": risk.loading,
        "branch_loading_p95": loading_p95,
        "branch_loading_p99": loading_p99,
        "branch_loading_max": loading_max,
        "branch_worst": risk.worst_branch_share,
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
