"""Errors of compensation, the table of issue 13: every single line outage, and the headline ones.

    python benchmarks/compensation.py case30 case118 case300
    python benchmarks/compensation.py --summary    # prints the table, measures nothing

Every finished record is written to `benchmarks/results/compensation.json` at once, and one that is
there is not made again. Contexts and test rows are those of `gridshift adapt` with the same seed:
contexts mixed, 1,000 test rows drawn. Base models are fitted to 6,000 rows, a stream for each seed.
MAE is the mean over all outputs (p.u. and rad); nothing is chosen by test rows.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.compensation import adapt_compensation
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.surrogate_config import base_config
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import cut_off_buses, enumerate_outages, outage_text
from gridshift.grid.network import Network
from gridshift.grid.readers import read_grid
from gridshift.learn.regression import REGRESSIONS
from gridshift.storage import replacing
from gridshift.trial.cases import draw

RESULTS = Path(__file__).parent / "results" / "compensation.json"
SEEDS = (0, 1, 2)
SIZES = (10, 50, 400)
HEADLINE = {
    "case30": ("line:9", "line:9,line:28"),
    "case118": ("line:34", "line:34,line:128"),
    "case300": ("line:228", "line:100"),
}
EVERY = ("case30", "case118")
"""Grids of which every single line outage is measured."""


def outages_of(case: str, network: Network) -> list[str]:
    """The headline outages, and all single lines that keep the grid connected."""
    found = list(HEADLINE[case])
    if case in EVERY:
        singles = enumerate_outages(network, "lines")
        cut = cut_off_buses(network, singles)
        found += [outage_text(o) for o, buses in zip(singles, cut, strict=True) if not len(buses)]
    return list(dict.fromkeys(found))


def rows(network: Network, role: str, num: int, seed: int) -> Dataset:
    regime = "drawn" if role == "test" else "mixed"
    drawn = draw(network, role, num, spread=0.2, regime=regime, seed=seed)
    return generate(network, drawn, min_rows=(num + 1) // 2)


def compensated(bases: dict[str, Surrogate], network: Network, seed: int, *, choices: bool) -> dict:
    """MAE by base and size, the base's own without any change, and what was chosen, if asked."""
    test = rows(network, "test", 1000, seed)
    found: dict = {"num_test": len(test)}
    for name, base in bases.items():
        found[f"{name} frozen"] = mae(base, test)
        for size in SIZES:
            context = Context.of(rows(network, "context", size, seed))
            predictor = adapt_compensation(base, context)
            found[f"{name}@{size}"] = mae(predictor, test)
            chosen = predictor.compensation
            if choices:
                found[f"{name}@{size} took"] = f"{chosen.features}, {chosen.rest}"
    return found


def mae(predictor, test: Dataset) -> float:
    return float(f"{np.abs(predictor.predict(test.x) - test.y).mean():.4g}")


def measure(case: str, records: dict[str, dict]) -> None:
    network = read_grid(case)
    outages = outages_of(case, network)
    for seed in SEEDS:
        todo = [o for o in outages if f"compensation {case} {o} seed {seed}" not in records]
        if not todo:
            continue
        bases = {
            name: cached_surrogate(network, base_config(name, seed=seed)) for name in REGRESSIONS
        }
        for name, base in bases.items():
            records[f"base {case} {name} seed {seed}"] = {"mae": base.mae}
        for number, outage in enumerate(todo):
            left, began = network.without(outage.split(",")), time.perf_counter()
            try:
                found = compensated(bases, left, seed, choices=outage in HEADLINE[case])
            except GridshiftError as problem:
                found = {"problem": str(problem)}
            found["wall_s"] = round(time.perf_counter() - began, 3)
            records[f"compensation {case} {outage} seed {seed}"] = found
            if number % 20 == 0:
                write(records)
        write(records)


def write(records: dict[str, dict]) -> None:
    with replacing(RESULTS) as part:
        part.write_text(json.dumps(records, indent=0) + "\n", encoding="utf-8")


def summarise(records: dict[str, dict]) -> None:
    """Markdown: headline outages over seeds, then all single lines of a grid over seeds."""
    print("| case | base | cases | mean over seeds | worst seed |\n|---|---|---|---|---|")
    for case, outages in HEADLINE.items():
        for outage in outages:
            found = [records.get(f"compensation {case} {outage} seed {s}") for s in SEEDS]
            for name in REGRESSIONS:
                for size in SIZES:
                    errors = [
                        one[f"{name}@{size}"] for one in found if one and "problem" not in one
                    ]
                    if errors:
                        print(
                            f"| {case} {outage} | {name} | {size} | {np.mean(errors):.2g} |"
                            f" {max(errors):.2g} |"
                        )
    print("\n| all single lines | method | median | mean | worst |\n|---|---|---|---|---|")
    beside = icw_records()
    for case in EVERY:
        found = {
            key: one
            for key, one in records.items()
            if key.startswith(f"compensation {case} ") and "," not in key and "problem" not in one
        }
        columns = [f"{name}@{size}" for name in REGRESSIONS for size in SIZES]
        table = {column: [one[column] for one in found.values()] for column in columns}
        table["icw@400"] = [beside[key] for key in found if key in beside]
        for column, errors in table.items():
            if errors:
                print(
                    f"| {case}, {len(errors)} rows | {column} | {np.median(errors):.2g} |"
                    f" {np.mean(errors):.2g} | {max(errors):.2g} |"
                )


def icw_records() -> dict[str, float]:
    """ICW with 400 cases on the same rows of seed 0, from `benchmarks/tangent.py`."""
    rows_ = pq.read_table(RESULTS.with_name("tangent.parquet")).to_pylist()
    return {
        f"compensation {row['record'].replace(' spread 0.2', ' seed 0')}": row["icw@400"]
        for row in rows_
        if row["record"].endswith(" spread 0.2") and row["icw@400"] is not None
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*HEADLINE, []])
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    records = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for case in given.cases:
        measure(case, records)
    if given.summary:
        summarise(records)


if __name__ == "__main__":
    main()
