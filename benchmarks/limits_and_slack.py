"""Reactive limits and a distributed slack together, beside pandapower and a dense Newton.

    python -m benchmarks.limits_and_slack case14 case39 --rows 20    # agreement
    python -m benchmarks.limits_and_slack case118 --times
    python -m benchmarks.limits_and_slack --table    # writes both into docs/distributed-slack.md

Each row has loads of its own, within 20 %, and every second one a line out. Participation factors
are drawn once for a grid, and active limits are left out, as pandapower keeps none. Once all loads
are of constant power, once the parts of constant impedance and current are drawn load by load. The
dense Newton is tests/reference/limited_newton.py: from the row's voltages without limits, else
followed from nominal demand.
"""

import argparse
import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.page import write_between
from tests.reference.limited_newton import Limited, LimitedGrid

from gridshift.arrays import Complex
from gridshift.grid.contingency import candidate_elements, cut_off_buses
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.prepared import prepare
from gridshift.grid.readers import from_pandapower, read_grid
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.grid.scenarios import LoadScenarios, named_rng, nominal_loads, sample_loads
from gridshift.peers.clock import in_turns, pinned
from gridshift.storage import write_bytes

RESULTS = Path(__file__).parent / "results" / "limits_and_slack.json"
PAGE = Path(__file__).parents[1] / "docs" / "distributed-slack.md"
TOL = 1e-10
SAME = 1e-8
"""Largest distance of voltages that agree, p.u."""
KEPT = 1e-6
"""By how much a solution of pandapower's may break the rule, p.u."""
NUM_TIMED = 1000


def drawn_net(case: str, *, parts: bool) -> Any:
    """The built-in network with drawn factors, without active limits, and with drawn shares."""
    net, rng = builtin_net(case), named_rng(case, "limits and slack")
    for table in (net.gen, net.ext_grid):
        table["slack_weight"] = rng.uniform(0.1, 1, len(table))
        table["min_p_mw"], table["max_p_mw"] = np.nan, np.nan
    for of in "pq":
        impedance, current, _ = rng.dirichlet([1, 1, 1], len(net.load)).T if parts else [0, 0, 0]
        net.load[f"const_z_{of}_percent"] = 100 * impedance
        net.load[f"const_i_{of}_percent"] = 100 * current
    return net


def compared(case: str, rows: int, *, parts: bool) -> dict:
    """How many rows each program solves, and how far apart they are."""
    net = drawn_net(case, parts=parts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network = from_pandapower(net)
    loads = sample_loads(network, named_rng(case, "rows"), rows, spread=0.2, regime="fixed")
    lines = [(label,) for label in candidate_elements(network, "lines")]
    whole = [line for line, cut in zip(lines, cut_off_buses(network, lines), strict=True)
             if not len(cut)]  # fmt: skip
    out = {"rows": rows, "solved": 0, "at_limits": 0, "dense": 0, "dense_agrees": 0,
           "pandapower": 0, "keeps": 0, "agrees": 0, "worst": 0.0, "worst_dense": 0.0}  # fmt: skip
    for row in range(rows):
        outage = whole[row * len(whole) // rows] if row % 2 else ()
        left = network.without(outage) if outage else network
        one = loads.rows(slice(row, row + 1))
        ours = solve(left, one, tol=TOL, q_limits=True, distributed_slack="given")
        solved, voltage = bool(ours.solved[0]), ours.voltage[0]
        out["solved"] += solved
        out["at_limits"] += bool(solved and ours.at_limit is not None and ours.at_limit.any())
        dense = by_dense(left, one)
        out["dense"] += dense is not None
        if solved and dense is not None:
            apart = float(np.abs(dense.voltage - voltage).max())
            out["dense_agrees"] += apart <= SAME
            out["worst_dense"] = max(out["worst_dense"], apart)
        theirs = by_pandapower(net, network, one, outage)
        if theirs is None:
            continue
        out["pandapower"] += 1
        if not (keeps := grid_of(left).off(theirs, one.load_power[0]) <= KEPT):
            continue
        out["keeps"] += keeps
        if solved:
            apart = float(np.abs(theirs - voltage).max())
            out["agrees"] += apart <= SAME
            out["worst"] = max(out["worst"], apart)
    return out


def grid_of(network: Network) -> LimitedGrid:
    """For the dense Newton."""
    return LimitedGrid(network, factor=network.gen_weight / network.gen_weight.sum())


def by_dense(network: Network, loads: LoadScenarios) -> Limited | None:
    """The dense Newton's solution of one row."""
    grid, power = grid_of(network), loads.load_power[0]
    start = solve(network, loads, distributed_slack="given")
    near = grid.solve(Limited(start.voltage[0], 0.0), power) if start.solved[0] else None
    if near is not None:
        return near
    nominal = solve(network, nominal_loads(network), distributed_slack="given")
    at = grid.solve(Limited(nominal.voltage[0], 0.0), network.load_power)
    return grid.follow(at, network.load_power, power) if at is not None else None


def by_pandapower(
    net: Any, network: Network, loads: LoadScenarios, outage: tuple[str, ...]
) -> Complex | None:
    """(B,) its voltages, None without a solution."""
    import pandapower

    net = copy.deepcopy(net)
    net.load["p_mw"] = loads.load_p[0] * network.base_mva
    net.load["q_mvar"] = loads.load_q[0] * network.base_mva
    for label in outage:
        net.line.loc[int(label.partition(":")[2]), "in_service"] = False
    with quiet_pandapower():
        try:
            pandapower.runpp(
                net, enforce_q_lims=True, distributed_slack=True, tolerance_mva=1e-9,
                max_iteration=50, calculate_voltage_angles=True, numba=False, lightsim2grid=False,
            )  # fmt: skip
        except (pandapower.LoadflowNotConverged, ValueError, KeyError, IndexError):
            return None
    buses = net.res_bus.loc[[int(label.partition(":")[2]) for label in network.bus_labels]]
    return buses.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(buses.va_degree.to_numpy()))


def timed(case: str) -> dict:
    """Time of a row with neither, either and both, µs, as `solve` returns them."""
    network = read_grid(case)
    rng = named_rng(case, "generator limits")
    loads = sample_loads(network, rng, NUM_TIMED, spread=0.2, regime="fixed")
    prepared, slack = prepare(network), {"distributed_slack": "headroom"}
    options = {"neither": {}, "limits": {"q_limits": True}, "slack": slack,
               "both": {"q_limits": True} | slack}  # fmt: skip
    runs = {name: (lambda more=more: solve(prepared, loads, **more))
            for name, more in options.items()}  # fmt: skip
    both = solve(prepared, loads, q_limits=True, distributed_slack="headroom")
    limited = solve(prepared, loads, q_limits=True)
    ok = both.solved & limited.solved
    with pinned():
        took = {name: one.cpu_s / NUM_TIMED * 1e6 for name, one in in_turns(runs).items()}
    steps = {
        "steps_limits": limited.iterations[ok].mean(),
        "steps_both": both.iterations[ok].mean(),
    }
    return took | {name: float(value) for name, value in steps.items()}


def section(results: dict) -> str:
    """Both tables of the page."""
    heads = ("grid", "loads", "rows", "solved", "at limits", "dense Newton solves", "agrees",
             "largest difference (p.u.)", "pandapower solves", "keeps the rule", "agrees",
             "largest difference (p.u.)")  # fmt: skip
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * (len(heads) - 2)]
    for case, found in results.items():
        for kind in ("constant power", "drawn parts"):
            if (of := found.get(kind)) is not None:
                cells = [of[name] for name in ("rows", "solved", "at_limits", "dense",
                                               "dense_agrees")]  # fmt: skip
                cells += [f"{of['worst_dense']:.1e}", of["pandapower"], of["keeps"], of["agrees"],
                          f"{of['worst']:.1e}" if of["agrees"] else ""]  # fmt: skip
                lines.append(f"| {case} | {kind} | " + " | ".join(map(str, cells)) + " |")
    if not any("times" in found for found in results.values()):
        return "\n".join(lines)
    heads = ("grid, µs per row", "neither", "slack alone", "limits alone", "both",
             "both by limits alone", "steps, limits alone", "steps, both")  # fmt: skip
    lines += ["", "| " + " | ".join(heads) + " |", "|---|" + "---:|" * (len(heads) - 1)]
    for case, found in results.items():
        if (of := found.get("times")) is not None:
            cells = [f"{of[name]:.2f}" for name in ("neither", "slack", "limits", "both")]
            cells += [f"{of['both'] / of['limits']:.2f}"]
            cells += [f"{of[name]:.1f}" for name in ("steps_limits", "steps_both")]
            lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure what is asked for, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--times", action="store_true", help="measure times instead")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    for case in asked.cases:
        if asked.times:
            found = {"times": timed(case)}
        else:
            found = {"constant power": compared(case, asked.rows, parts=False),
                     "drawn parts": compared(case, asked.rows, parts=True)}  # fmt: skip
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        known[case] = known.get(case, {}) | found
        write_bytes(RESULTS, json.dumps(known, indent=1).encode())
        print(case, found, flush=True)
    if asked.table:
        marks = "<!-- limits-and-slack:begin -->", "<!-- limits-and-slack:end -->"
        write_between(PAGE, *marks, section(json.loads(RESULTS.read_text())))


if __name__ == "__main__":
    main()
