"""PFΔ's tasks as far as they can be made without its files: `python -m benchmarks.pfdelta`.

Tasks: the intact grid (N), outages of one and two branches (N-1, N-2), and the intact grid near the
nose: every demand, with generation as scheduled, times the largest factor in steps of 1/100
that has a solution, times 0.99. The error is PFΔ's power balance error: |dS| of a bus, p.u., with
the generation that a method predicts, mean and worst over all buses and cases. Each record is kept
in `benchmarks/results/pfdelta.parquet` and made once; the page is docs/pfdelta.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from benchmarks.page import write_between

from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.methods import METHODS
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import Outage, candidate_elements, outage_text
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.powerflow import solve
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng
from gridshift.storage import replacing
from gridshift.study.varied_grids import draw_outages
from gridshift.trial.base import base_for
from gridshift.trial.cases import Cases
from gridshift.trial.trial import Trial

RESULTS = Path(__file__).parent / "results" / "pfdelta.parquet"
PAGE = Path(__file__).parent.parent / "docs" / "pfdelta.md"
MARKS = "<!-- measured: begin -->", "<!-- measured: end -->"
METHOD_CONTEXT = {"tangent": 0, "tangent2": 0, "compensation": 10, "icw": 400}
"""Method, and the solved cases that it is given of each topology."""
TASKS = ("N", "N-1", "N-2", "nose")
PUBLISHED = {
    "PFΔ, trained on N (task 1.1)": (1.4e-3, 4.2e-2, 5.0e-2, 0.30),
    "PFΔ, trained on N, N-1, N-2 (task 1.3)": (2.7e-3, 4.6e-3, 5.9e-3, 0.22),
}
STEPS = 400
"""Steps of 1/100 in which demand is raised to the nose."""


def main() -> None:
    """Measure what isn't there yet, and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--grid", default="case118")
    parser.add_argument("--outages", type=int, default=20, help="of one and of two branches each")
    parser.add_argument("--test", type=int, default=200, help="cases of each topology")
    given = parser.parse_args()
    network = read_grid(given.grid)
    rows = pq.read_table(RESULTS).to_pylist() if RESULTS.exists() else []
    known = {(row["grid"], row["task"], row["outage"], row["method"]) for row in rows}
    for task, outage in topologies(network, given.outages):
        cases = None
        for method in ("exact", *METHOD_CONTEXT):
            if (given.grid, task, outage_text(outage), method) in known:
                continue
            cases = cases or cases_of(network, task, outage, given.test)
            row = measured(cases, method)
            rows.append({"grid": given.grid, "task": task, "outage": outage_text(outage), **row})
            with replacing(RESULTS) as part:
                pq.write_table(pa.Table.from_pylist(rows), part, compression="zstd")
            print(rows[-1], flush=True)
    write_between(PAGE, *MARKS, table([row for row in rows if row["grid"] == given.grid]))


def topologies(network: Network, count: int) -> list[tuple[str, Outage]]:
    """Each task's topologies."""
    found: list[tuple[str, Outage]] = [("N", ()), ("nose", ())]
    for task, shares in (("N-1", (1.0,)), ("N-2", (0.0, 1.0))):
        rng = named_rng(network.name, f"pfdelta {task}")
        drawn = draw_outages(network, shares, 4 * count, rng)
        found += [(task, outage) for outage in [*dict.fromkeys(drawn)][:count]]
    assert len(candidate_elements(network, "all")) > count
    return found


def cases_of(network: Network, task: str, outage: Outage, num_test: int) -> Cases:
    """Test and context of a topology."""
    cases = Cases(
        network.without(outage) if outage else network, num_test=num_test, num_context=400
    )  # fmt: skip
    if task == "nose":
        near = raised_to_the_nose(network, cases.test_loads)
        cases.test_loads, cases.test = near, generate(network, near)
    return cases


def raised_to_the_nose(network: Network, loads: LoadScenarios) -> LoadScenarios:
    """Each scenario at 0.99 of the largest demand in its direction that has a solution."""
    factor = np.ones(loads.num_rows)
    left = np.arange(loads.num_rows)
    for step in range(1, STEPS):
        scale = 1 + step / 100
        rows = loads.rows(left)
        raised = LoadScenarios(load_p=rows.load_p * scale, load_q=rows.load_q * scale)
        left = left[solve(network, raised).solved]
        factor[left] = scale
        if not len(left):
            break
    factor *= 0.99
    return LoadScenarios(
        load_p=loads.load_p * factor[:, None], load_q=loads.load_q * factor[:, None]
    )


def measured(cases: Cases, name: str) -> dict[str, object]:
    """Power balance errors of a method on the test; without numbers where it can't be used."""
    test = cases.test
    if name == "exact":
        return record(name, 0, test, test.y)
    count, method = METHOD_CONTEXT[name], METHODS[name]
    limited = Cases(cases.network, num_context=count, num_test=cases.num_test)
    limited.test_loads, limited.test = cases.test_loads, test
    if count:
        limited.context = cases.context.rows(slice(count))
    try:
        trial = Trial(base_for(method, cases.network, num_context=count), method, limited)
        return record(name, count, test, trial.y_hat)
    except GridshiftError as problem:
        return {"method": name, "num_context": count, "problem": str(problem)}


def record(name: str, count: int, test: Dataset, y: Real) -> dict[str, object]:
    """What is kept of a method on a topology."""
    error = balance_error(test.network, test.layout, test.x, y)
    return {
        "method": name, "num_context": count, "mean": float(error.mean()),
        "worst": float(error.max()), "num_test": len(test),
        "made": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


def balance_error(network: Network, layout: Layout, x: Real, y: Real) -> Real:
    """(R, B) |dS|, p.u., with the voltages and the generation that y has."""
    v = layout.unpack_voltage(x, y)
    flowing = v * (network.admittance @ v.T).T.conj()
    given = network.injected(layout.unpack_loads(x).load_power)
    parts = layout.y_slices
    at_slack = np.isin(network.gen_bus, network.slack)
    given[:, network.slack] -= np.bincount(
        network.gen_bus[at_slack], network.gen_p[at_slack], network.num_buses
    )[network.slack]  # fmt: skip
    given[:, network.slack] += y[:, parts["p_slack"]]
    given[:, network.controlled] += 1j * y[:, parts["q_gen"]]
    return np.abs(flowing - given)


def table(rows: list[dict]) -> str:
    """Mean and worst error of each method and task, and the published rows."""
    lines = [
        "| | solved cases given | " + " | ".join(TASKS) + " |",
        "|---|---:|" + "---:|" * 4,
    ]
    for name in ("exact", *METHOD_CONTEXT):
        cells, mine = [], [row for row in rows if row["method"] == name]
        for task in TASKS:
            found = [row for row in mine if row["task"] == task and row.get("mean") is not None]
            cells.append(
                f"{np.mean([r['mean'] for r in found]):.1e} ({max(r['worst'] for r in found):.1e})"
                if found else "–"
            )  # fmt: skip
        given = METHOD_CONTEXT.get(name, 0) if name != "exact" else "–"
        lines.append(f"| {name} | {given} | " + " | ".join(cells) + " |")
    for name, numbers in PUBLISHED.items():
        lines.append(f"| {name} | – | " + " | ".join(f"{n:.1e}" for n in numbers) + " |")
    counts = {task: len({row["outage"] for row in rows if row["task"] == task}) for task in TASKS}
    cases = {row["num_test"] for row in rows if row.get("num_test")}
    told = ", ".join(f"{task} {count}" for task, count in counts.items())
    lines += ["", f"Topologies: {told}; up to {max(cases):,} cases of each."]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
