"""Every method on one heavy outage of four grids: error and time at 0, 10, 50 and 400 cases.

    python benchmarks/choosing.py case30 case118 case300 case1354pegase
    python benchmarks/choosing.py --times-only    # times again, errors as they are; idle machine
                                                  # (goes on where it stopped)
    python benchmarks/choosing.py --table         # writes the table into docs/how-to-choose.md

Every finished record is written to `benchmarks/results/choosing.parquet` at once, and one that is
there is not made again. MAE is the mean over all outputs (p.u. and rad) of 1,000 drawn test rows,
contexts are mixed, loads ±20 %, both of three seeds; bases are of seed 0. Times are of seed 0, in
one process, on one thread, the fastest of five runs over the test rows. Each record has the load
average it was timed at; `--times-only` leaves alone what was timed on an idle machine (up to 1.5).
"""

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from book import Book, digits, write_table
from gridshift.adapt.base import Base
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate_config import base_config
from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.grid.readers import read_grid
from gridshift.machine import processor
from gridshift.threads import Threads, usable_cores
from gridshift.trial.cases import Cases
from gridshift.trial.cost import fastest, training_seconds
from gridshift.trial.exact import EXACT, solve_timed

RESULTS = Path(__file__).parent / "results" / "choosing.parquet"
PAGE = Path(__file__).parent.parent / "docs" / "how-to-choose.md"
OUTAGES = {
    "case30": "line:9", "case118": "line:34", "case300": "line:228", "case1354pegase": "line:222",
}  # fmt: skip
"""The heaviest line that can be studied (`gridshift.grid.contingency.rank_by_loading`)."""
WITHOUT_SURROGATE = ("case1354pegase",)
"""Grids of which no network is trained here; see the line under the table."""
IDLE = 1.5
"""Load average up to which a time counts as one of an idle machine; one thread is our own."""
SIZES = (10, 50, 400)
SEEDS = (0, 1, 2)
ALONE = (EXACT, "tangent", "tangent2", "frozen mlp", "frozen quadratic")
FROM_CASES = ("compensation", "ridge", "ridge-features", "icw", "icw-paired", "icw-auto")


@dataclass(frozen=True, kw_only=True)
class Task:
    case: str
    method: str
    num_cases: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.case}|{self.method}|{self.num_cases}|{self.seed}"


def tasks(cases: list[str]) -> Iterator[Task]:
    for case in cases:
        for seed in SEEDS:
            for method in (*ALONE, *FROM_CASES):
                if case in WITHOUT_SURROGATE and needs_surrogate(method):
                    continue
                for num in (0,) if method in ALONE else SIZES:
                    yield Task(case=case, method=method, num_cases=num, seed=seed)


def needs_surrogate(method: str) -> bool:
    one = METHODS.get(method.split()[0])
    return method != "frozen quadratic" and one is not None and one.fast and one.uses_surrogate


@cache
def topology(case: str) -> Network:
    return read_grid(case).without([OUTAGES[case]])


@cache
def cases_of(case: str, num: int, seed: int) -> Cases:
    """Ask for the test at 0 cases only, so that it is solved once."""
    return Cases(topology(case), num_context=num, seed=seed)


@cache
def start(case: str, method: str) -> Base:
    name = "quadratic" if method in ("frozen quadratic", "compensation") else "mlp"
    return METHODS[method.split()[0]].start(topology(case), base_config(name))


def fit(task: Task) -> Predictor:
    base = start(task.case, task.method)
    if task.method == "frozen quadratic":
        return base  # type: ignore[return-value]
    context = Context.empty(topology(task.case), base)
    if task.num_cases:
        context = Context.of(cases_of(task.case, task.num_cases, task.seed).context)
    return METHODS[task.method.split()[0]].fit(base, context)


def measure(task: Task) -> dict:
    """Error of a method, and times if the seed is the first."""
    cases = cases_of(task.case, 0, task.seed)
    if task.method == EXACT:
        exact = solve_timed(topology(task.case), cases.test_loads)
        return {
            "mae": 0.0, "us": digits(exact.us_per_row), "fit_s": digits(exact.setup_s),
            "load": digits(os.getloadavg()[0]),
        }  # fmt: skip
    test, _ = cases.test, start(task.case, task.method)
    began = time.perf_counter()
    predictor = fit(task)
    found = {"fit_s": digits(time.perf_counter() - began)}
    found["mae"] = digits(float(np.abs(predictor.predict(test.x) - test.y).mean()))
    if task.seed == 0:
        found["us"] = digits(fastest(lambda: predictor.predict(test.x)) / len(test) * 1e6)
        found["load"] = digits(os.getloadavg()[0])
    chosen = getattr(predictor, "name", None)
    return found | ({"took": chosen} if isinstance(chosen, str) else {})


def measure_all(book: Book, todo: list[Task], *, times_only: bool) -> None:
    with Threads(1):
        for task in todo:
            before = book.records.get(task.name)
            if (before is None) == times_only:
                continue
            if before is not None and before.get("load", np.inf) <= IDLE:
                continue
            try:
                found = measure(task)
            except GridshiftError as problem:
                found = {"problem": str(problem)}
            if before is not None:
                found |= {key: before[key] for key in ("mae", "took") if key in before}
            book.add(task.name, found)
    for case in {task.case for task in todo}:
        seconds = {"quadratic_s": digits(training_seconds(start(case, "frozen quadratic")))}
        if case not in WITHOUT_SURROGATE:
            seconds["mlp_s"] = digits(training_seconds(start(case, "icw")))
        book.add(f"trained|{case}", seconds)
    book.add("machine", {
        "processor": processor(), "cores": usable_cores(),
        "load": digits(os.getloadavg()[0]), "date": time.strftime("%Y-%m-%d"),
    })  # fmt: skip


def table(records: dict[str, dict]) -> str:
    """Markdown: error and µs a row by method and number of cases, a table for each grid."""
    parts, numbers = [], (0, *SIZES)
    for case, outage in OUTAGES.items():
        lines = [f"**{case}, {outage}**", ""]
        lines.append("| method | " + " | ".join(f"{n} cases" for n in numbers) + " |")
        lines.append("|---|" + "---|" * len(numbers))
        for method in (*ALONE, *FROM_CASES):
            cells = [cell(records, case, method, n) for n in numbers]
            if any(cells):
                lines.append(f"| {method} | {' | '.join(cells)} |")
        trained = records.get(f"trained|{case}")
        if trained is not None and len(lines) > 4:
            told = [f"{kind[:-2]} {seconds:.0f} s" for kind, seconds in trained.items()]
            lines += ["", f"Bases, rows included: {', '.join(told)}."]
            parts.append("\n".join(lines))
    where, busiest = records["machine"], load_of(records)
    parts.append(
        f"Error · µs a row. Measured with `benchmarks/choosing.py` on {where['processor']}, "
        f"{where['cores']} cores, one thread, {where['date']}, load average up to {busiest:.1f}"
        + (": **the machine was shared, so times are upper bounds**" if busiest > IDLE else "")
        + f". {', '.join(WITHOUT_SURROGATE)} has no network trained, which takes too long here: "
        "methods that start from one are left out."
    )
    return "\n\n".join(parts)


def load_of(records: dict[str, dict]) -> float:
    """The largest load average that a time was taken at; unknown ones are of the first machine."""
    timed = [one for one in records.values() if "us" in one]
    return max(one.get("load", records["machine"]["load"]) for one in timed)


def cell(records: dict[str, dict], case: str, method: str, num: int) -> str:
    found = [records.get(Task(case=case, method=method, num_cases=num, seed=s).name) for s in SEEDS]
    if found[0] is None:
        return ""
    if "problem" in found[0]:
        return "no"
    errors = [one["mae"] for one in found if one and "mae" in one]
    error = (
        "exact"
        if method == EXACT
        else f"{np.mean(errors):.1e}".replace("e-0", "e-").replace("e+00", "")
    )
    us = found[0]["us"]
    return f"{error} · {us:,.0f}" if us >= 10 else f"{error} · {us:.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*OUTAGES, []])
    parser.add_argument("--times-only", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    book = Book(RESULTS)
    if given.times_only:
        timed = [task for task in tasks(list(OUTAGES)) if task.seed == 0]
        measure_all(book, [t for t in timed if t.name in book.records], times_only=True)
    elif given.cases:
        measure_all(book, list(tasks(given.cases)), times_only=False)
    if given.table:
        write_table(PAGE, "choosing", table(book.records))


if __name__ == "__main__":
    main()
