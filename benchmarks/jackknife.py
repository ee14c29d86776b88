"""Coverage of error bars from ten cases, each left out in turn, on several outages and seeds.

    python benchmarks/jackknife.py case30 case118
    python benchmarks/jackknife.py --table    # writes the table into docs/compensation.md

Every finished record is written to `benchmarks/results/jackknife.parquet` at once, and one that is
there is not made again. Method compensation on base quadratic, level 90 %, 500 test rows: 'mixed',
drawn like the cases, so that the theorem holds for them, and 'drawn', as elsewhere.
"""

import argparse
from pathlib import Path

import numpy as np

from book import Book, digits, write_table
from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS
from gridshift.threads import Threads
from gridshift.trial.cases import Cases, draw
from gridshift.trial.trial import Trial
from robustness import bases, grid, some_outages

RESULTS = Path(__file__).parent / "results" / "jackknife.parquet"
PAGE = Path(__file__).parent.parent / "docs" / "compensation.md"
GRIDS = ("case30", "case118")
SEEDS = range(5)
LEVEL, NUM_CASES, NUM_TEST = 0.9, 10, 500


def measure(case: str, outage: str, seed: int, regime: str) -> dict[str, float]:
    """Coverage and mean half width by quantity, of intervals and bands."""
    network = grid(case).without([outage])
    cases = Cases(network, num_context=NUM_CASES, num_test=NUM_TEST, seed=seed)
    if regime == "mixed":
        loads = draw(network, "test", NUM_TEST, spread=0.2, regime="mixed", seed=seed)
        cases.test = generate(network, loads, min_rows=NUM_TEST // 2)
    bars = Trial(bases(case, 0.2, 0)["quadratic"], METHODS["compensation"], cases).error_bars(LEVEL)
    return {
        f"{name} {kind} {what}": digits(value)
        for what, found in (("coverage", bars.coverage), ("width", bars.widths))
        for name, kinds in found.items()
        for kind, value in kinds.items()
    }


def table(records: dict[str, dict]) -> str:
    """Markdown: mean coverage over outages, seeds and quantities, and over single contexts."""
    lines = [
        "| grid | rows tested on | contexts | one entry | all of a quantity | a tenth of the "
        "contexts have less than |",
        "|---|---|---|---|---|---|",
    ]
    for case in GRIDS:
        for regime in ("mixed", "drawn"):
            found = [one for name, one in records.items() if name.split("|")[::3] == [case, regime]]
            kinds = {
                kind: [
                    [v for k, v in one.items() if k.endswith(f" {kind} coverage")] for one in found
                ]
                for kind in ("interval", "band")
            }
            low = np.quantile([np.mean(one) for one in kinds["band"]], 0.1)
            cells = [f"{np.mean(kinds[kind]):.1%}" for kind in kinds] + [f"{low:.0%}"]
            lines.append(
                f"| {case} | {regime} | {len(found)} | {' | '.join(cells)} |".replace("%", " %")
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*GRIDS, []])
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    book = Book(RESULTS)
    with Threads(1):
        for case in given.cases:
            for outage in some_outages(case):
                for seed in SEEDS:
                    for regime in ("mixed", "drawn"):
                        name = f"{case}|{outage}|{seed}|{regime}"
                        if name not in book.records:
                            book.add(name, measure(case, outage, seed, regime))
    if given.table:
        write_table(PAGE, "jackknife", table(book.records))


if __name__ == "__main__":
    main()
