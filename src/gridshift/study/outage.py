"""Outages under many scenarios: from the topologies to rows of the study."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gridshift.arguments import some_of
from gridshift.errors import GridshiftError
from gridshift.grid.after_outage import AfterOutage, after_outage
from gridshift.grid.contingency import Outage, demand_at, generation_at, outage_text
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus, nominal, solve
from gridshift.grid.prepared import prepare, prepare_all
from gridshift.grid.slack_shares import scheduled_near
from gridshift.grid.supplied import SuppliedPart, standing_apart, supplied_part
from gridshift.grid.voltage_dependence import dependent_loads
from gridshift.study.counted import added
from gridshift.study.risk import lost_supply_severity, severity
from gridshift.study.row import BY_BRANCH, BY_BUS, FAILED, Clock, OutageRow
from gridshift.study.setting import Setting
from gridshift.study.solving import Solving, solved

PROBLEMS = (GridshiftError, ArithmeticError, np.linalg.LinAlgError, RuntimeError)
"""What makes an outage's row a failed one, and leaves the study alone."""


def screen_outages(setting: Setting, outages: Sequence[Outage]) -> list[OutageRow]:
    """Rows of some outages; whatever goes wrong with one is its status, never an exception.

    If every scenario is solved, their topologies are prepared together and each block of scenarios
    is drawn once for all of them.

    Args:
        outages: a few, as what is counted of each is kept until the last one is done; `()` is the
            intact grid.
    """
    clocks = [Clock() for _ in outages]
    after = [_after(setting, outage) for outage in outages]
    found: dict[int, dict[str, Any] | Solving] = {}
    if setting.method is None and setting.counted is None:
        found = _prepared(setting, {i: one for i, one in enumerate(after) if one}, clocks)
    open_ = {i: one for i, one in found.items() if isinstance(one, Solving)}
    for rows in setting.blocks() if open_ else ():
        loads = setting.loads.rows(rows)
        for i, one in list(open_.items()):
            try:
                one.add(rows, loads)
            except PROBLEMS as error:
                found[i] = _failed(str(error))
            if one.stopped or found[i] is not one:
                del open_[i]
        if not open_:
            break
    return [
        _row(setting, outage, clock, one, found.get(i))
        for i, (outage, clock, one) in enumerate(zip(outages, clocks, after, strict=True))
    ]


def count_scenarios(setting: Setting, outage: Outage, rows: slice) -> dict[str, Any]:
    """What is counted of some scenarios of one outage, for `Setting.counted`.

    Empty where it has no nominal solution, or nothing is left to solve: then no scenario counts.
    """
    after = _after(setting, outage)
    if isinstance(after, dict):
        return {}
    network = _on_grid(setting, after)
    if network is None or (network.apart and not prepare(network).solved):
        part = _supplied(setting, after)
        setting, network = _on_part(setting, part), part.network
    if network.num_buses == len(network.slack) or not prepare(network).solved:
        return {}
    solving = Solving(setting, network, Clock())
    for block in setting.blocks(rows):
        solving.add(block, setting.loads.rows(block))
    return solving.stored()


def _after(setting: Setting, outage: Outage) -> "AfterOutage | dict[str, Any]":
    """The grid after the outage, or the row of one that leaves none."""
    try:
        return after_outage(
            setting.network, outage, redistribute=setting.config.redistribute == "generators"
        )
    except PROBLEMS as error:
        return _failed(str(error))


def _prepared(
    setting: Setting, after: "dict[int, AfterOutage | dict[str, Any]]", clocks: list[Clock]
) -> "dict[int, dict[str, Any] | Solving]":
    """Those that are solved on the grid itself and have a nominal solution, prepared together."""
    grids = {i: _on_grid(setting, one) for i, one in after.items() if isinstance(one, AfterOutage)}
    left = {i: grid for i, grid in grids.items() if grid is not None}
    try:
        prepare_all([*left.values()])
    except PROBLEMS:  # then each is tried alone
        return {}
    return {
        i: Solving(setting, network, clocks[i])
        for i, network in left.items()
        if prepare(network).solved
    }


def _row(
    setting: Setting, outage: Outage, clock: Clock, after: "AfterOutage | dict[str, Any]",
    found: "dict[str, Any] | Solving | None",
) -> OutageRow:  # fmt: skip
    """The row of one outage, from what is known of it."""
    together = found is not None
    clock = clock if together else Clock()
    try:
        row = found.row() if isinstance(found, Solving) else found
        if isinstance(after, dict):
            row = after
        elif row is None:
            row = _studied(setting, outage, after, clock)
        elif isinstance(found, Solving) and not after.whole:
            row = _told_of_rest(after, row, _lost(setting, outage, after))
    except PROBLEMS as error:
        row = _failed(str(error))
    if not np.isfinite(row["severity"]):  # must not rank, and least of all as harmless
        row |= _failed("no scenario has a prediction of finite numbers", unsolved=row["unsolved"])
    if setting.reference is not None:
        row |= added(row, setting.reference, setting.network)
    return OutageRow(outage=outage_text(outage), **row, cost=clock.columns(interleaved=together))


def _failed(reason: str, unsolved: float = 1.0) -> dict[str, Any]:
    return {
        "status": FAILED,
        "reason": reason,
        "unsolved": unsolved,
        "severity": severity(excess=0, unsolved=1),
    }


def _studied(setting: Setting, outage: Outage, after: AfterOutage, clock: Clock) -> dict[str, Any]:
    """One outage on its own."""
    if not after.whole:
        return _rest(setting, outage, after, clock)
    status = nominal(after.network).status[0]
    if status != RowStatus.SOLVED:
        told = f"{outage_text(outage)} leaves no nominal solution ({_words(status)})"
        return {"status": RowStatus(int(status)).text, "reason": told} | _without_solution(
            setting, outage, after.network, clock
        )
    if setting.method is None:
        return solved(setting, after.network, clock)
    from gridshift.study.adapted import adapted

    return adapted(setting, outage, after.network, clock)


def _words(status: int) -> str:
    return RowStatus(int(status)).text.replace("_", " ")


def _rest(setting: Setting, outage: Outage, after: AfterOutage, clock: Clock) -> dict[str, Any]:
    """Buses are cut off, or something else than branches is out: the rest is studied.

    Every scenario of it is solved, as a surrogate of the whole grid knows nothing of it: where
    `_on_grid` says so in the equations of the intact grid, else as a grid of its own.
    Demand that is cut off is lost, which is the severity.
    """
    cut, row = after.cut_off, _lost(setting, outage, after)
    grid = _on_grid(setting, after)
    if grid is not None and prepare(grid).solved:
        return _told_of_rest(after, solved(setting, grid, clock), row)
    part = _supplied(setting, after)
    if part.network.num_buses == len(part.network.slack):
        row["reason"] += "; nothing is left to solve"
        return row | {"unsolved": 0.0, "severity": lost_supply_severity(row["mw_cut_off"])}
    rest = _on_part(setting, part)
    status = nominal(part.network).status[0]
    if status != RowStatus.SOLVED:
        before = (
            f"{row['reason']}, and the rest"
            if row["reason"]
            else outage_text(outage) + " leaves a grid that"
        )
        row["reason"] = f"{before} has no nominal solution ({_words(status)})"
        if not len(cut):
            row["status"] = RowStatus(int(status)).text
        return row | _without_solution(
            setting, outage, part.network, clock, part=part, mw_cut_off=row["mw_cut_off"]
        )
    studied = solved(rest, part.network, clock)
    studied |= {name: part.bus_values(studied[name]) for name in BY_BUS if name in studied}
    studied |= {name: part.branch_values(studied[name]) for name in BY_BRANCH}
    return _told_of_rest(after, studied, row)


def _on_grid(setting: Setting, after: AfterOutage) -> Network | None:
    """What is left, if the equations of the intact grid solve it: in one piece, or with buses
    without supply that stand apart. None where the supplied part has to be a grid of its own."""
    network, cut, config = after.network, after.cut_off, setting.config
    if after.whole:
        return network
    plain = not (config.q_limits or setting.shares or config.controls)
    if not plain or not after.branches_alone:
        return None
    nothing_left = network.num_buses - len(cut) == len(network.slack)
    if nothing_left or len(dependent_loads(network)):
        return None
    return standing_apart(network)


def _told_of_rest(
    after: AfterOutage, studied: dict[str, Any], row: dict[str, Any]
) -> dict[str, Any]:
    """What was found on the rest, and what the outage leaves without supply: there it has NaN."""
    network, cut = after.network, after.cut_off
    ends = np.isin(network.branch_from, cut) | np.isin(network.branch_to, cut)
    for names, where in ((BY_BUS, cut), (BY_BRANCH, ends)):
        for name in names:
            if name in studied:
                studied[name][where] = np.nan
    if len(cut):
        row["reason"] += "; the rest is solved without them"
    if row["mw_cut_off"] > 0:
        row["severity"] = lost_supply_severity(row["mw_cut_off"])
    return studied | row


def _supplied(setting: Setting, after: AfterOutage) -> SuppliedPart:
    """The part of the grid that keeps its supply, its generators near what they will give."""
    part = supplied_part(after.network, lost_loads=after.lost_loads)
    if setting.shares is None:
        return part
    return replace(part, network=scheduled_near(part.network, setting.shares))


def _on_part(setting: Setting, part: SuppliedPart) -> Setting:
    """The setting for the part of a grid that keeps its supply."""
    return replace(
        setting, voltage=setting.voltage[part.buses], loads=setting.loads.of_loads(part.loads)
    )


def _lost(setting: Setting, outage: Outage, after: AfterOutage) -> dict[str, Any]:
    """What the outage leaves without supply."""
    intact, cut = setting.network, after.cut_off
    if not len(cut):
        return {"mw_cut_off": 0.0, "status": RowStatus.SOLVED.text, "reason": ""}
    demand, generation = demand_at(intact, cut), generation_at(intact, cut)
    names = [intact.bus_labels[b] for b in cut]
    return {
        "status": RowStatus.ISLANDED.text,
        "reason": f"{outage_text(outage)} separates {some_of(names)} ({demand:.1f} MW of demand, "
        f"{generation:.1f} MW of generation)",
        "cut_off": names,
        "mw_cut_off": demand,
        "mw_generation_cut_off": generation,
    }


def _without_solution(
    setting: Setting, outage: Outage, network: Network, clock: Clock, *,
    part: SuppliedPart | None = None, mw_cut_off: float = 0.0,
) -> dict[str, Any]:  # fmt: skip
    """No nominal solution: some scenarios may still have one; the others lose all demand."""
    loads = setting.drawn("holdout", outage_text(outage), setting.config.num_holdout)
    with clock("holdout"):
        rows = loads if part is None else loads.of_loads(part.loads)
        solution = solve(
            network,
            rows,
            q_limits=setting.config.q_limits,
            distributed_slack=setting.shares,
            controls=setting.config.controls,
        )
    unsolved = float(1 - solution.solved.mean())
    demand = float(setting.network.bus_demand.sum() * setting.network.base_mva)
    mw = mw_cut_off + unsolved * (demand - mw_cut_off)
    return {
        "unsolved": unsolved,
        "num_solves": len(solution.solved),
        "severity": lost_supply_severity(mw),
    }
