"""Reactive limits of generators beside pandapower's `enforce_q_lims`, and what they cost.

    python benchmarks/generator_limits.py case14 case118 --outages 20
    python benchmarks/generator_limits.py --table    # writes it into docs/generator-limits.md

A solution keeps its limits if every generator bus is on the right side: at its upper limit its
voltage is at most the set-point, at its lower one at least, else it is held at it. pandapower
switches generators off their set-point for good, so that it may end without that.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from gridshift.grid.contingency import candidate_elements
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.reactive import bus_limits
from gridshift.grid.readers import read_grid
from gridshift.grid.readers.pandapower_source import builtin_net, quiet_pandapower
from gridshift.grid.scenarios import named_rng, nominal_loads, sample_loads
from gridshift.peers.clock import in_turns, pinned
from gridshift.storage import write_bytes
from page import write_between

RESULTS = Path(__file__).parent / "results" / "generator_limits.json"
PAGE = Path(__file__).parents[1] / "docs" / "generator-limits.md"
TOL = 1e-10
"""Mismatch of both, as a multiple of the tolerance base."""
SAME = 1e-8
"""Largest distance of voltages that agree, p.u."""
OFF = 1e-7
"""Voltage, p.u., and reactive power, p.u., from which on a bus is on the wrong side."""
NUM_ROWS = 1000
"""Rows that are timed, at +-20 %."""


def pandapowers(net, network: Network):
    """(B,) voltages of `runpp` with limits, or None."""
    import pandapower

    with quiet_pandapower():
        try:
            pandapower.runpp(
                net, enforce_q_lims=True, tolerance_mva=TOL, max_iteration=50,
                calculate_voltage_angles=True,
            )  # fmt: skip
        except (pandapower.LoadflowNotConverged, np.linalg.LinAlgError, FloatingPointError):
            return None
    bus = net.res_bus.loc[[int(label.partition(":")[2]) for label in network.bus_labels]]
    return bus.vm_pu.to_numpy() * np.exp(1j * np.deg2rad(bus.va_degree.to_numpy()))


def on_the_right_side(network: Network, voltage) -> bool:
    """Whether a solution keeps every limit by the rule above."""
    low, high = bus_limits(network)
    power = voltage * (network.admittance @ voltage).conj() - network.injected(network.load_power)
    pv = network.pv
    given, off = power.imag[pv], np.abs(voltage[pv]) - network.bus_v_set[pv]
    within = (given >= low[pv] - OFF) & (given <= high[pv] + OFF)
    below = (off >= -OFF) | (given >= high[pv] - OFF)
    above = (off <= OFF) | (given <= low[pv] + OFF)
    return bool((within & below & above).all())


def compared(case: str, most: int | None) -> dict:
    """What becomes of the grid and its line outages at nominal demand, here and in pandapower."""
    network, net = read_grid(case), builtin_net(case)
    found = dict.fromkeys(
        ("topologies", "at_limits", "both", "agree", "wrong_side", "only_here", "only_there",
         "neither", "unsettled"), 0,
    )  # fmt: skip
    worst = 0.0
    outages = [(), *((label,) for label in candidate_elements(network, "lines"))]
    for outage in outages[: None if most is None else most + 1]:
        left = network.without(outage) if outage else network
        if len(left.cut_off_buses()):
            continue
        found["topologies"] += 1
        ours = solve(left, nominal_loads(left), tol=TOL, q_limits=True)
        for label in outage:
            net.line.at[int(label.partition(":")[2]), "in_service"] = False
        theirs = pandapowers(net, left)
        for label in outage:
            net.line.at[int(label.partition(":")[2]), "in_service"] = True
        solved = bool(ours.solved[0])
        found["unsettled"] += int(ours.status[0] == RowStatus.UNSETTLED_LIMITS)
        assert ours.at_limit is not None
        found["at_limits"] += bool(ours.at_limit.any())
        if theirs is None or not solved:
            found["only_here" if solved else "neither" if theirs is None else "only_there"] += 1
            continue
        found["both"] += 1
        assert on_the_right_side(left, ours.voltage[0]), (case, outage)
        if not on_the_right_side(left, theirs):
            found["wrong_side"] += 1
            continue
        apart = float(np.abs(ours.voltage[0] - theirs).max())
        found["agree"] += apart <= SAME
        worst = max(worst, apart)
    return {"case": case, **found, "worst": worst}


def timed_rows(case: str) -> dict:
    """Microseconds per row on one thread without and with limits, and what the rows are like."""
    network = read_grid(case)
    rng = named_rng(case, "generator limits")
    loads = sample_loads(network, rng, NUM_ROWS, spread=0.2, regime="fixed")
    prepared = prepare(network)
    runs = {q: (lambda q=q: solve(prepared, loads, q_limits=q)) for q in (False, True)}
    with pinned():
        took = {q: one.cpu_s for q, one in in_turns(runs).items()}
    found = solve(prepared, loads, q_limits=True)
    assert found.at_limit is not None
    return {
        "without_us": took[False] / NUM_ROWS * 1e6, "with_us": took[True] / NUM_ROWS * 1e6,
        "rows_solved": int(found.solved.sum()),
        "rows_at_limits": int(found.at_limit.any(1).sum()),
    }  # fmt: skip


def table(records: list[dict]) -> str:
    """The page's table, and what its columns mean."""
    head = (
        "| grid | topologies | at limits | both solve | agree | pandapower on a wrong side | "
        "only here | only there | neither | not settled | largest difference (p.u.) |\n"
        "|---|" + "---:|" * 10
    )
    keys = ("topologies", "at_limits", "both", "agree", "wrong_side", "only_here", "only_there",
            "neither", "unsettled")  # fmt: skip
    lines = [
        f"| {one['case']} | " + " | ".join(str(one[key]) for key in keys)
        + f" | {one['worst']:.1e} |" for one in records
    ]  # fmt: skip
    times = [one for one in records if "with_us" in one]
    if times:
        lines += [
            "", "| grid | rows solved | of them at limits | without (µs/row) | with (µs/row) | "
            "ratio |", "|---|---:|---:|---:|---:|---:|",
        ]  # fmt: skip
        lines += [
            f"| {one['case']} | {one['rows_solved']} | {one['rows_at_limits']} | "
            f"{one['without_us']:.2f} | {one['with_us']:.2f} | "
            f"{one['with_us'] / one['without_us']:.1f} |"
            for one in times
        ]
    return "\n".join([head, *lines])


def main() -> None:
    """Measure the grids named, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--outages", type=int, help="line outages of each grid at most")
    parser.add_argument("--times", action="store_true", help="measure times too")
    parser.add_argument("--table", action="store_true")
    asked = parser.parse_args()
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for case in asked.cases:
        known[case] = compared(case, asked.outages) | (timed_rows(case) if asked.times else {})
        write_bytes(RESULTS, json.dumps(known, indent=1).encode())
        print(known[case], flush=True)
    if asked.table:
        marks = "<!-- generator-limits:begin -->", "<!-- generator-limits:end -->"
        write_between(PAGE, *marks, table([*known.values()]))


if __name__ == "__main__":
    main()
