"""Errors of the tangent methods, of paired moments and of ridge, against ICW and frozen.

    python benchmarks/tangent.py headline case118singles case30doubles case30singles

Every finished record is written to `benchmarks/results/tangent.parquet` at once, and one that is
there is not made again. `--summary` prints the tables of docs/tangent.md from that file. Context
rows have mixed, test rows drawn spread; MAE is the mean over all outputs (p.u. and rad).
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.surrogate import Surrogate, SurrogateConfig
from gridshift.adapt.surrogate_config import PRODUCT_TRAINING
from gridshift.errors import GridshiftError, RankDeficientWarning
from gridshift.grid.contingency import enumerate_outages, outage_text
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare_all
from gridshift.grid.readers import read_grid
from gridshift.storage import replacing
from gridshift.trial.cases import draw

RESULTS = Path(__file__).parent / "results" / "tangent.parquet"
HEADLINE = {
    "case30": ("line:9", "line:9,line:28"),
    "case118": ("line:34", "line:34,line:128"),
    "case300": ("line:228",),
}
PLAIN = ("frozen", "icw", "zscore-paired", "icw-paired", "ridge")
TANGENT = ("tangent", "tangent2", "tangent-icw", "tangent2-icw")
STEPS = dict.fromkeys(
    ((case, name, 0.2) for case in ("case30", "case118") for name in ("zca", "tangent")), 20_000
)
"""Training steps of a surrogate; 8,000 otherwise."""
SIZES = (50, 100, 200, 400)


class Book:
    """Records by key, in one file."""

    def __init__(self, path: Path):
        self.path = path
        rows = pq.read_table(path).to_pylist() if path.exists() else []
        self.records = {
            row.pop("record"): {k: v for k, v in row.items() if v is not None} for row in rows
        }

    def add(self, key: str, record: dict) -> None:
        self.records[key] = record
        fields = dict.fromkeys(name for one in self.records.values() for name in one)
        rows = [
            {"record": key} | {name: one.get(name) for name in fields}
            for key, one in self.records.items()
        ]
        with replacing(self.path) as part:
            pq.write_table(pa.Table.from_pylist(rows), part, compression="zstd")


def surrogate(network: Network, transform: str, spread: float) -> Surrogate:
    key = network.name, transform, spread
    if key not in _SURROGATES:
        training = replace(PRODUCT_TRAINING, num_steps=STEPS.get(key, 8_000))
        config = SurrogateConfig(transform=transform, spread=spread, training=training)
        _SURROGATES[key] = cached_surrogate(network, config)
    return _SURROGATES[key]


def record(
    network: Network,
    methods: tuple[str, ...],
    sizes: tuple[int, ...],
    recalibrated: tuple[int, ...],
    *,
    spread: float,
    seed: int,
) -> dict:
    """MAE of each method, by 'name' without a context and 'name@size' with one.

    Methods that can do without a context get those of the sizes `recalibrated`.
    """
    test = generate(
        network, draw(network, "test", 1000, spread=spread, regime="drawn", seed=seed), min_rows=2
    )
    context = generate(
        network,
        draw(network, "context", max(sizes), spread=spread, regime="mixed", seed=seed),
        min_rows=2,
    )
    errors: dict[str, object] = {"num_test": len(test), "num_context": len(context)}
    for name in methods:
        method = METHODS[name]
        fitting = surrogate(network.intact, method.transform or "zca", spread)
        contexts: list[tuple[str, Context]] = []
        if "solved cases" not in method.needs:
            contexts.append((name, Context.empty(network, fitting)))
        if method.uses_solved_cases:
            own = sizes if "solved cases" in method.needs else recalibrated
            contexts += [(f"{name}@{n}", Context.of(context.rows(slice(0, n)))) for n in own]
        for key, given in contexts:
            errors[key], chosen = _error(method, fitting, given, test)
            if chosen:
                errors[f"{key} took"] = chosen
    return errors


def _error(method, fitting: Surrogate, context: Context, test: Dataset) -> tuple[float, str]:
    try:
        predictor = method.fit(fitting, context)
    except GridshiftError as problem:
        return float("nan"), str(problem)
    choice = getattr(predictor, "choice", None)
    chosen = choice.correction.name if choice else getattr(predictor, "name", "")
    mae = np.abs(predictor.predict(test.x) - test.y).mean()
    return float(f"{mae:.4g}"), chosen


def headline() -> Iterator[tuple]:
    methods = (*PLAIN, "residual-paired", "icw-shrunk", "ridge-features", "icw-auto", *TANGENT)
    for case, outages in HEADLINE.items():
        for outage in outages:
            for seed in (0, 1, 2):
                network = read_grid_once(case).without(outage.split(","))
                yield (
                    f"headline {case} {outage} seed {seed}",
                    network,
                    methods,
                    (50, 400),
                    0.2,
                    seed,
                )


def every(case: str, size: int, spread: float, sizes: tuple[int, ...], methods) -> Iterator[tuple]:
    network = read_grid_once(case)
    outages = [outage_text(o) for o in enumerate_outages(network, "lines", size)]
    outages = [o for o in outages if not len(network.without(o.split(",")).cut_off_buses())]
    for start in range(0, len(outages), 32):
        some = [network.without(o.split(",")) for o in outages[start : start + 32]]
        prepare_all(some)
        for left, outage in zip(some, outages[start:], strict=False):
            yield f"{case} {outage} spread {spread}", left, methods, sizes, spread, 0


STUDIES = {
    "headline": headline,
    "case30singles": lambda: every("case30", 1, 0.2, SIZES, (*PLAIN, *TANGENT)),
    "case118singles": lambda: every("case118", 1, 0.2, SIZES, (*PLAIN, *TANGENT)),
    "case30doubles": lambda: every("case30", 2, 0.5, (400,), (*PLAIN, *TANGENT)),
}
_GRIDS: dict[str, Network] = {}
_SURROGATES: dict[tuple[str, str, float], Surrogate] = {}


def read_grid_once(case: str) -> Network:
    if case not in _GRIDS:
        _GRIDS[case] = read_grid(case)
    return _GRIDS[case]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, []])
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RankDeficientWarning)
    book = Book(given.out)
    for study in given.studies:
        for key, network, methods, sizes, spread, seed in STUDIES[study]():
            if key in book.records:
                continue
            began = time.perf_counter()
            try:
                last = sizes if study == "headline" else sizes[-1:]
                found = record(network, methods, sizes, last, spread=spread, seed=seed)
            except GridshiftError as problem:
                found = {"problem": str(problem)}
            book.add(key, {"study": study, **found, "wall_s": time.perf_counter() - began})
    if given.summary:
        summarise(book.records)


def summarise(records: dict[str, dict]) -> None:
    """Print Markdown: the headline over seeds, then one table for each set of outages."""
    cells: dict[tuple[str, str], str] = {}
    for case, outages in HEADLINE.items():
        for outage in outages:
            rows = [records.get(f"headline {case} {outage} seed {s}", {}) for s in (0, 1, 2)]
            for key in errors_in(rows[0]):
                cells[key, f"{case} {outage}"] = f"{np.mean([r[key] for r in rows]):.2g}"
    columns = [f"{case} {outage}" for case, outages in HEADLINE.items() for outage in outages]
    lines = {method: None for method, _ in cells}
    print("| method @ context |", " | ".join(columns), "|\n|" + "---|" * (len(columns) + 1))
    for method in lines:
        print(f"| {method} |", " | ".join(cells.get((method, c), "") for c in columns), "|")
    for study in ("case118singles", "case30singles", "case30doubles"):
        rows = [r for r in records.values() if r.get("study") == study]
        solved = [r for r in rows if "problem" not in r]
        if solved:
            print(f"\n{study}: {len(solved)} of {len(rows)} outages with enough solved rows\n")
            compare(solved)


def errors_in(row: dict) -> list[str]:
    return [k for k, v in row.items() if isinstance(v, float) and k != "wall_s"]


def compare(rows: list[dict]) -> None:
    """Median error; factor over ICW at 400 (median, worst percentile); outages where better."""
    icw = np.array([r["icw@400"] for r in rows])
    frozen = np.array([r["frozen"] for r in rows])
    print(
        "| method @ context | median | ICW(400) / it, median | worst 1 % | better than ICW(400) "
        "| than frozen | than ICW, same context |\n|---|---|---|---|---|---|---|"
    )
    for key in errors_in(rows[0]):
        error = np.array([r[key] for r in rows])
        size = key.partition("@")[2]
        same = np.array([r[f"icw@{size}"] for r in rows]) if size else icw
        gain = icw / error
        wins = [f"{(error < other).sum()}" for other in (icw, frozen, same)]
        print(
            f"| {key} | {np.median(error):.2g} | {np.median(gain):.3g} |"
            f" {np.percentile(gain, 1):.3g} | {' | '.join(wins)} |"
        )


if __name__ == "__main__":
    main()
