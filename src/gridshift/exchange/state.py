"""Solved states for people and for pandapower: CSV files, and the result tables of a network."""

from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gridshift.arrays import Real
from gridshift.errors import ScenarioError, TableError
from gridshift.exchange.tables import write_table
from gridshift.grid.controls import grid_of_row
from gridshift.grid.names import bus_parts
from gridshift.grid.network import Network
from gridshift.grid.powerflow import BatchSolution
from gridshift.grid.quantities import Quantities, quantities
from gridshift.grid.scenarios import LoadScenarios, nominal_loads
from gridshift.grid.voltage_dependence import drawn

FILES = ("buses.csv", "generators.csv", "branches.csv")
SIDES = {"line": ("from", "to"), "trafo": ("hv", "lv")}


def write_state(
    solution: BatchSolution, folder: str | Path, *, loads: LoadScenarios | None = None, row: int = 0
) -> list[Path]:
    """Write one solved state as `FILES`, elements by label and name, MW, Mvar, p.u. and degrees.

    Args:
        loads: the demands that were solved; nominal by default.

    Raises:
        ScenarioError: the row isn't solved, or isn't there.
        StorageError: a file can't be written.
    """
    network, found = solution.network, _state(solution, loads, row)
    names = network.names
    branches = np.array([label or f"(branch {e})" for e, label in enumerate(network.branch_labels)])

    def named(labels: Iterable[str]) -> list[str]:
        return [names.get(label, "") for label in labels]

    buses = np.array(network.bus_labels)
    content = (
        {
            "bus": buses, "name": named(buses), "vn_kv": network.bus_kv,
            "vm_pu": found.magnitude[0], "va_degree": found.angle[0],
            "demand_mw": found.demand_p[0], "demand_mvar": found.demand_q[0],
            "generation_mw": found.bus_p[0], "generation_mvar": found.bus_q[0],
        },
        {
            "generator": list(network.gen_labels), "name": named(network.gen_labels),
            "bus": buses[network.gen_bus], "p_mw": found.gen_p[0], "q_mvar": found.gen_q[0],
        },
        {
            "branch": branches, "name": named(network.branch_labels),
            "from_bus": buses[network.branch_from], "to_bus": buses[network.branch_to],
            "in_service": network.branch_in_service, "p_from_mw": found.from_p[0],
            "q_from_mvar": found.from_q[0], "p_to_mw": found.to_p[0], "q_to_mvar": found.to_q[0],
        },
    )  # fmt: skip
    paths = [Path(folder, name) for name in FILES]
    for path, columns in zip(paths, content, strict=True):
        write_table(columns, path)
    return paths


def to_pandapower(
    net: Any, solution: BatchSolution, *, loads: LoadScenarios | None = None, row: int = 0
) -> Any:
    """A copy of a pandapower network with one solved state in its result tables.

    `res_bus`, `res_line`, `res_trafo`, `res_load`, `res_gen` and `res_ext_grid` have the columns
    and units that `runpp` gives them; `p_mw` and `q_mvar` of `load` are the demands.
    Lines and transformers that the solution has out are out of service in the copy; controls are
    where the solution has them.

    Args:
        net: the network that the grid was read from; it is left as it is.
        solution: solved rows of that grid, or of an outage of it.
        loads: the demands that were solved; nominal by default.

    Raises:
        TableError: the network has other elements than the grid.
        ScenarioError: the row isn't solved, or isn't there.
    """
    found = _state(solution, loads, row)
    network, copy = grid_of_row(solution, row), deepcopy(net)
    for one, at in zip(network.controls, _positions(solution, row), strict=True):
        kind, _, index = one.label.partition(":")
        column = "step" if kind == "shunt" else "tap_pos"
        if at != round(at):
            copy[kind][column] = copy[kind][column].astype(float)
        copy[kind].loc[int(index), column] = at
    bus = _bus_results(copy, network, found)
    copy["res_bus"] = bus
    for kind in SIDES:
        if len(copy[kind]):
            copy[f"res_{kind}"] = _branch_results(copy, kind, network, found, bus)
    demands = nominal_loads(network) if loads is None else loads.rows(slice(row, row + 1))
    at_1_pu = demands.load_power[0] * network.base_mva
    taken = drawn(network, at_1_pu, solution.voltage[row])
    power, result = (
        pd.DataFrame({"p_mw": s.real, "q_mvar": s.imag}, index=pd.Index(network.load_labels))
        for s in (at_1_pu, taken)
    )
    given = result.reindex([f"load:{i}" for i in copy.load.index]).fillna(0.0)
    copy["res_load"] = given.set_axis(copy.load.index)
    for label in set(power.index) & {f"load:{i}" for i in copy.load.index}:
        index = int(label.partition(":")[2])
        copy.load.loc[index, ["p_mw", "q_mvar"]] = power.loc[label].to_numpy()
        copy.load.loc[index, "scaling"] = 1.0
    gens = pd.DataFrame(
        {"p_mw": found.gen_p[0], "q_mvar": found.gen_q[0]}, index=pd.Index(network.gen_labels)
    )
    for kind in ("gen", "ext_grid"):
        table = copy[kind]
        result = gens.reindex([f"{kind}:{i}" for i in table.index]).fillna(0.0)
        result = result.set_axis(table.index)
        if kind == "gen":
            at = bus.loc[table.bus.to_numpy()]
            result["va_degree"] = at.va_degree.to_numpy()
            result["vm_pu"] = at.vm_pu.to_numpy()
        copy[f"res_{kind}"] = result
    copy["converged"] = True
    return copy


def _state(solution: BatchSolution, loads: LoadScenarios | None, row: int) -> Quantities:
    """One case.

    Raises:
        ScenarioError: it isn't solved, or isn't there.
    """
    if not 0 <= row < len(solution.status):
        raise ScenarioError(f"no row {row}; the solution has {len(solution.status)}")
    if not solution.solved[row]:
        raise ScenarioError(f"row {row} has no solution, so there is no state to export")
    part = slice(row, row + 1)
    demands = nominal_loads(solution.network) if loads is None else loads.rows(part)
    network, given = grid_of_row(solution, row), solution.gen_p
    if given is None:
        return quantities(network, demands, solution.voltage[part])
    moved = replace(network, gen_p=given[row].copy(), outage_of=None)
    found = quantities(moved, demands, solution.voltage[part])
    return found._replace(gen_p=given[part] * network.base_mva)


def _positions(solution: BatchSolution, row: int) -> list[float]:
    """Of the network's controls, as the source counts."""
    if solution.positions is not None:
        return solution.positions[row].tolist()
    return [one.first + one.by * one.start for one in solution.network.controls]


def _bus_results(net: Any, network: Network, found: Quantities) -> pd.DataFrame:
    """As `res_bus`; NaN at buses that the grid doesn't have."""
    parts = ((label.removeprefix("bus:"), row) for label, row in bus_parts(network).items())
    row_of = {int(name): row for name, row in parts if name.isdecimal()}
    if unknown := row_of.keys() - {*net.bus.index}:
        raise TableError(f"the network has no bus {min(unknown)}, which {network.name} has")
    table = pd.DataFrame(np.nan, index=net.bus.index,
                         columns=pd.Index(["vm_pu", "va_degree", "p_mw", "q_mvar"]))  # fmt: skip
    rows = [row_of[bus] for bus in net.bus.index if bus in row_of]
    shunts = network.base_mva * network.bus_shunt.conj() * found.magnitude[0] ** 2
    drawn = (
        found.demand_p[0] - found.bus_p[0] + shunts.real,
        found.demand_q[0] - found.bus_q[0] + shunts.imag,
    )
    values = np.column_stack([found.magnitude[0], found.angle[0], *drawn])[rows]
    table.loc[[bus for bus in net.bus.index if bus in row_of]] = values
    return table


def _branch_results(
    net: Any, kind: str, network: Network, found: Quantities, bus: pd.DataFrame
) -> pd.DataFrame:
    """As `res_line` or `res_trafo`."""
    table, (a, b) = net[kind], SIDES[kind]
    missing = [i for i in table.index if f"{kind}:{i}" not in network.elements]
    if missing:
        raise TableError(f"{network.name} has no {kind} {missing[0]}, which the network has")
    branch = [network.elements[f"{kind}:{i}"][0] for i in table.index]
    result = pd.DataFrame(index=table.index)
    for side, p, q in ((a, found.from_p, found.from_q), (b, found.to_p, found.to_q)):
        result[f"p_{side}_mw"], result[f"q_{side}_mvar"] = p[0, branch], q[0, branch]
    result["pl_mw"] = result[f"p_{a}_mw"] + result[f"p_{b}_mw"]
    result["ql_mvar"] = result[f"q_{a}_mvar"] + result[f"q_{b}_mvar"]
    for side in (a, b):
        end = table[f"{side}_bus"].to_numpy()
        vm, kv = bus.vm_pu[end].to_numpy(), net.bus.vn_kv[end].to_numpy()
        mva = np.hypot(result[f"p_{side}_mw"], result[f"q_{side}_mvar"])
        result[f"i_{side}_ka"] = np.where(mva > 0, mva / (np.sqrt(3) * vm * kv), 0.0)
    currents = result[[f"i_{a}_ka", f"i_{b}_ka"]].to_numpy()
    if kind == "line":
        result["i_ka"] = currents.max(1)
    for side in (a, b):
        end = table[f"{side}_bus"].to_numpy()
        result[f"vm_{side}_pu"] = bus.vm_pu[end].to_numpy()
        result[f"va_{side}_degree"] = bus.va_degree[end].to_numpy()
    result["loading_percent"] = _loading(table, kind, currents)
    table["in_service"] = table.in_service & network.branch_in_service[branch]
    return result


def _loading(table: pd.DataFrame, kind: str, currents: Real) -> Real:
    """(n,) percent, as `runpp` has it by default: of the current that is allowed."""
    share = table.df.to_numpy() * table.parallel.to_numpy()
    if kind == "line":
        return 100 * currents.max(1) / (table.max_i_ka.to_numpy() * share)
    kv = table[["vn_hv_kv", "vn_lv_kv"]].to_numpy()
    return 100 * np.sqrt(3) * (currents * kv).max(1) / (table.sn_mva.to_numpy() * share)
