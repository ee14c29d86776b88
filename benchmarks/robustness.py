"""Where compensation breaks: spreads, pairs, other loads, noise, wrong buses, few cases, limits.

    python benchmarks/robustness.py spread pairs loads noise buses few limits
    python benchmarks/robustness.py --summary    # prints the tables, measures nothing
    python benchmarks/robustness.py --table      # writes them into docs/robustness.md

Every finished record is written to `benchmarks/results/robustness.parquet` at once, and one that is
there is not made again. MAE is the mean over all outputs (p.u. and rad) of 1,000 drawn test rows;
contexts are mixed, and unless a variant says otherwise both have ±20 %. Bases are fitted to 6,000
rows of the intact grid, others for each seed. Beside compensation: ridge with 400 cases of the same
kind, and ICW with 400 on the product's surrogate, trained at ±20 %, where that is in the cache.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from book import Book, digits, write_table
from departures import half_at_rest, in_step, misled, noisy, scaled, solved
from gridshift.adapt.base import Base
from gridshift.adapt.cache import cached_surrogate, is_kept
from gridshift.adapt.compensation import touched_by
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.surrogate_config import SurrogateConfig, base_config
from gridshift.adapt.training_rows import state_columns
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import cut_off_buses, enumerate_outages, outage_text
from gridshift.grid.network import Network
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng
from gridshift.learn.compensation import Touched, fit_compensation
from gridshift.learn.regression import REGRESSIONS
from gridshift.threads import Threads
from limits import held_generators, rows_with_limits

RESULTS = Path(__file__).parent / "results" / "robustness.parquet"
PAGE = Path(__file__).parent.parent / "docs" / "robustness.md"
HEADLINE = {"case30": "line:9", "case118": "line:34", "case300": "line:228"}
"""A heavy outage of each grid, beside ten random ones."""
SEEDS = (0, 1, 2)

Rows = Callable[[Network, str, int, int], Dataset]
"""Solved rows of a topology: (network, role, number, seed)."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One outage under one departure from what compensation is made for."""

    study: str
    case: str
    variant: str
    outage: str
    seed: int
    rows: Rows
    trained: float = 0.2
    """Spread of the base's rows."""
    touched: Callable[[Network, int], Touched] = lambda network, _: touched_by(network)
    sizes: tuple[int, ...] = (10, 50)
    num_beside: int = 400
    """Cases for ridge and ICW; 0: neither."""
    describe: Callable[[Dataset], dict[str, float]] = lambda _: {}
    """What else to say of the test's rows."""

    @property
    def name(self) -> str:
        return "|".join((self.study, self.case, self.variant, self.outage, str(self.seed)))


@cache
def grid(case: str) -> Network:
    return read_grid(case)


@cache
def bases(case: str, spread: float, seed: int) -> dict[str, Surrogate]:
    return {
        name: cached_surrogate(grid(case), base_config(name, spread=spread, seed=seed))
        for name in REGRESSIONS
    }


@cache
def surrogate(case: str) -> Surrogate | None:
    """The product's, if it was trained already."""
    config = SurrogateConfig()
    return cached_surrogate(grid(case), config) if is_kept(grid(case), config) else None


@cache
def whole_outages(case: str, size: int) -> tuple[str, ...]:
    """All outages of so many lines that keep the grid connected."""
    found = enumerate_outages(grid(case), "lines", size)
    cut = cut_off_buses(grid(case), found)
    return tuple(outage_text(o) for o, buses in zip(found, cut, strict=True) if not len(buses))


@cache
def some_outages(case: str, num: int = 10, size: int = 1) -> tuple[str, ...]:
    """The heavy one, if single ones are asked for, and random ones."""
    found, rng = whole_outages(case, size), named_rng(case, "outages studied")
    chosen = [found[k] for k in rng.permutation(len(found))[:num]]
    return tuple(dict.fromkeys([HEADLINE[case], *chosen] if size == 1 else chosen))


def spread() -> Iterator[Task]:
    for case in HEADLINE:
        for trained, used in ((0.1, 0.1), (0.2, 0.2), (0.5, 0.5), (0.2, 0.5)):
            variant = f"±{used:.0%}, base trained at ±{trained:.0%}"
            for seed in SEEDS if case == "case30" else (0,):
                for outage in some_outages(case):
                    yield Task(
                        study="spread", case=case, variant=variant, outage=outage, seed=seed,
                        rows=partial(solved, spread=used), trained=trained,
                    )  # fmt: skip


def pairs() -> Iterator[Task]:
    for case, outages in (
        ("case30", whole_outages("case30", 2)), ("case118", some_outages("case118", 40, 2)),
    ):  # fmt: skip
        for outage in outages:
            yield Task(
                study="pairs", case=case, variant="two lines", outage=outage, seed=0, rows=solved,
                num_beside=0 if case == "case30" else 400,
            )  # fmt: skip


def varied(
    study: str, variants: dict[str, dict[str, Any]], **seeds: tuple[int, ...]
) -> Iterator[Task]:
    """Each variant on some outages of two grids, of three seeds or those given for a grid."""
    for case in ("case30", "case118"):
        for variant, own in variants.items():
            for seed in seeds.get(case, SEEDS):
                for outage in some_outages(case):
                    settings: dict[str, Any] = {"rows": solved} | own
                    yield Task(
                        study=study, case=case, variant=variant, outage=outage, seed=seed,
                        **settings,
                    )  # fmt: skip


def loads() -> Iterator[Task]:
    changes: dict[str, Callable] = {
        "all loads × 0.9": partial(scaled, factor=0.9),
        "all loads × 1.1": partial(scaled, factor=1.1),
        "loads in step": in_step,
        "half of the loads at rest": half_at_rest,
    }
    variants: dict[str, dict[str, Any]] = {"as the test": {}} | {
        f"context: {name}": {"rows": partial(solved, change=change)}
        for name, change in changes.items()
    }
    later = partial(solved, change=partial(scaled, factor=1.1), of="test")
    variants |= {"test: all loads × 1.1": {"rows": later}}
    return varied("loads", variants, case30=(0,), case118=(0,))


def noise() -> Iterator[Task]:
    return varied("noise", {
        f"{share:.1%} of {what}": {"rows": partial(noisy, share=share, of_value=of_value)}
        for what, of_value in (("the standard deviation", False), ("the value", True))
        for share in (0.001, 0.01)
    }, case118=(0,))  # fmt: skip


def buses() -> Iterator[Task]:
    told = ("one wrong", "both wrong", "a neighbour too", "no buses at all")
    return varied(
        "buses",
        {"right": {"num_beside": 0}}
        | {how: {"touched": partial(misled, how=how), "num_beside": 0} for how in told},
    )


def few() -> Iterator[Task]:
    return varied("few", {"few cases": {"sizes": (2, 3, 5, 7, 10, 15), "num_beside": 0}})


def limits() -> Iterator[Task]:
    for case in ("case30", "case118"):
        for variant in ("without limits", "with limits"):
            rows = partial(rows_with_limits, limited=variant == "with limits")
            for outage in some_outages(case)[: 6 if case == "case30" else 3]:
                yield Task(
                    study="limits", case=case, variant=variant, outage=outage, seed=0, rows=rows,
                    num_beside=0, describe=held_generators,
                )  # fmt: skip


STUDIES: dict[str, Callable[[], Iterator[Task]]] = {
    one.__name__: one for one in (spread, pairs, loads, noise, buses, few, limits)
}


def measure(task: Task) -> dict:
    network = grid(task.case).without(task.outage.split(","))
    test = task.rows(network, "test", 1000, task.seed)
    found: dict = {"num_test": len(test)} | task.describe(test)
    contexts = {n: task.rows(network, "context", n, task.seed) for n in task.sizes}
    touched = task.touched(network, task.seed)
    for name, base in bases(task.case, task.trained, task.seed).items():
        y_base = base.predict(test.x)
        found[f"{name} frozen"] = digits(float(np.abs(y_base - test.y).mean()))
        for num, rows in contexts.items():
            learned = fit_compensation(
                rows.x, rows.y, base.predict(rows.x), touched, state=state_columns(base.layout),
                varied=base.model.varied,
            )  # fmt: skip
            error = np.abs(learned.add(test.x, y_base) - test.y).mean()
            found[f"{name}@{num}"] = digits(float(error))
    if task.num_beside:
        rows = task.rows(network, "context", task.num_beside, task.seed)
        found |= beside(task.case, Context.of(rows), test)
    return found


def beside(case: str, context: Context, test: Dataset) -> dict[str, float]:
    """What the other methods make of many more cases."""
    starts: dict[str, Base | None] = {
        "ridge": Base.untrained(grid(case), SurrogateConfig()), "icw": surrogate(case),
    }  # fmt: skip
    found = {}
    for name, start in starts.items():
        if start is not None:
            y = METHODS[name].fit(start, context).predict(test.x)
            found[f"{name}@400"] = digits(float(np.abs(y - test.y).mean()))
    return found


COLUMNS = {
    "quadratic frozen": "no adaptation", "linear@10": "10 cases, linear base",
    "quadratic@10": "10 cases", "quadratic@50": "50 cases",
    "ridge@400": "ridge, 400", "icw@400": "ICW, 400",
}  # fmt: skip
BEFORE = {"noise": "noise, ", "buses": "end buses: ", "limits": "pandapower, "}
"""What a variant's name is of, where it doesn't say so itself."""
FEW = {f"quadratic@{n}": f"{n} cases" for n in (2, 3, 5, 7, 10, 15)}


def summary(records: dict[str, dict]) -> str:
    """Markdown: median and worst error over outages and seeds; few cases have a table."""
    main = [study for study in STUDIES if study != "few"]
    return f"{table(records, main, COLUMNS)}\n\n{table(records, ['few'], FEW)}"


def table(records: dict[str, dict], studies: list[str], columns: dict[str, str]) -> str:
    rows: dict[tuple[str, str, str], list[dict]] = {}
    for name, one in records.items():
        study, case, variant, _, _ = name.split("|")
        rows.setdefault((study, case, variant), []).append(one)
    lines = [
        f"| | grid | rows | {' | '.join(columns.values())} |",
        "|---" * (len(columns) + 3) + "|",
    ]
    for study in studies:
        for (_, case, variant), every in ((k, v) for k, v in rows.items() if k[0] == study):
            found = [one for one in every if "problem" not in one]
            cells = [spread_of([one[key] for one in found if key in one]) for key in columns]
            held = [one["held"] for one in found if "held" in one]
            told = f", {np.mean(held):.1f} held" if held and "with limits" in variant else ""
            count = f"{len(found)}" if len(found) == len(every) else f"{len(found)} of {len(every)}"
            what = f"{BEFORE.get(study, '')}{variant}{told}".replace("%", " %")
            lines.append(f"| {what} | {case} | {count} | {' | '.join(cells)} |")
    return "\n".join(lines)


def spread_of(errors: list[float]) -> str:
    if not errors:
        return ""
    return f"{np.median(errors):.1e}, {max(errors):.1e}".replace("e-0", "e-")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []])
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--table", action="store_true", help="rewrite the table in the docs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    book = Book(RESULTS)
    with Threads(1):
        for study in given.studies:
            began = time.perf_counter()
            for task in STUDIES[study]():
                if task.name in book.records:
                    continue
                try:
                    book.add(task.name, measure(task))
                except GridshiftError as problem:
                    book.add(task.name, {"problem": str(problem)})
            print(f"{study}: {time.perf_counter() - began:.0f} s", flush=True)
    if given.summary:
        print(summary(book.records))
    if given.table:
        write_table(PAGE, "robustness", summary(book.records))


if __name__ == "__main__":
    main()
