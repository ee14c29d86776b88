"""Which base model compensation should start from: error, seconds, and what ten cases make of it.

    python benchmarks/bases.py case30 case118 --bases linear quadratic mlp --spreads 0.1 0.2 0.5
    python benchmarks/bases.py --table    # writes the table into docs/robustness.md

Every finished record is written to `benchmarks/results/bases.parquet` at once, and one that is
there is not made again. Error on the intact grid: MAE over all outputs (p.u. and rad) of 1,000
fresh drawn rows. Then compensation with 10 mixed cases on ten random single line outages, spread as
in training, seed 0, 1,000 drawn test rows each. Training is what the base's own record says.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np

from book import Book, digits, write_table
from departures import solved
from gridshift.adapt.base import Base
from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.compensation import adapt_compensation
from gridshift.adapt.context import Context
from gridshift.adapt.surrogate_config import base_config
from gridshift.errors import GridshiftError
from gridshift.grid.scenarios import named_rng
from gridshift.learn.regression import REGRESSIONS
from gridshift.threads import Threads
from robustness import PAGE, grid, whole_outages

RESULTS = Path(__file__).parent / "results" / "bases.parquet"
NAMES = (*REGRESSIONS, "mlp")
NUM_OUTAGES = 10


def start(case: str, name: str, spread: float) -> Base:
    return cached_surrogate(grid(case), base_config(name, spread=spread))


def measure(case: str, name: str, spread: float) -> dict:
    base = start(case, name, spread)
    singles = whole_outages(case, 1)
    order = named_rng(case, "outages studied").permutation(len(singles))[:NUM_OUTAGES]
    errors = []
    for number in order:
        network = grid(case).without([singles[number]])
        try:
            test = solved(network, "test", 1000, 0, spread=spread)
            context = Context.of(solved(network, "context", 10, 0, spread=spread))
        except GridshiftError:
            continue
        errors.append(np.abs(adapt_compensation(base, context).predict(test.x) - test.y).mean())
    found = {"frozen": digits(base.mae), "num_outages": len(errors)}
    found |= {key: digits(base.record[key]) for key in ("data_s", "train_s")}
    if errors:
        found |= {"median": digits(float(np.median(errors))), "worst": digits(float(max(errors)))}
    return found


def table(records: dict[str, dict]) -> str:
    """Markdown, the smallest grid first."""
    lines = ["| grid | spread | base | intact grid | training, s | 10 cases, median | worst |"]
    lines.append("|---" * 7 + "|")
    for name in sorted(records, key=_order):
        one, (case, spread, base) = records[name], name.split("|")
        cells = [one.get(key) for key in ("frozen", "train_s", "median", "worst")]
        told = ["" if value is None else f"{value:.1e}".replace("e-0", "e-") for value in cells]
        if one.get("train_s") is not None:
            told[1] = f"{one['train_s']:.{0 if one['train_s'] >= 10 else 1}f}"
        lines.append(f"| {case} | ±{100 * float(spread):.0f} % | {base} | {' | '.join(told)} |")
    return "\n".join(lines)


def _order(key: str) -> tuple[int, str, int]:
    case, spread, base = key.split("|")
    return grid(case).num_buses, spread, NAMES.index(base)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--bases", nargs="*", default=REGRESSIONS, choices=NAMES)
    parser.add_argument("--spreads", nargs="*", type=float, default=(0.1, 0.2, 0.5))
    parser.add_argument("--table", action="store_true", help="rewrite the table in the docs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    book = Book(RESULTS)
    tasks = [(c, s, b) for c in given.cases for s in given.spreads for b in given.bases]
    with Threads(1):
        for case, spread, name in tasks:
            key = f"{case}|{spread:g}|{name}"
            if key in book.records:
                continue
            began = time.perf_counter()
            try:
                book.add(key, measure(case, name, spread))
            except GridshiftError as problem:
                book.add(key, {"problem": str(problem)})
            print(f"{key}: {time.perf_counter() - began:.0f} s", flush=True)
    if given.table:
        write_table(PAGE, "bases", table(book.records))


if __name__ == "__main__":
    main()
