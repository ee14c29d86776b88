"""Errors of the tangent methods, of paired moments and of ridge, against ICW and frozen.

    python benchmarks/tangent.py headline case118singles case30doubles case30singles

Every finished record is written to `benchmarks/results/tangent.json` at once, and a record that is
there is not made again. `--summary` prints the tables of docs/tangent.md from that file. Context
rows have mixed, test rows drawn spread; MAE is the mean over all outputs (p.u. and rad).
"""

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.datasets import Dataset, generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.surrogate import Surrogate, SurrogateConfig
from gridshift.adapt.surrogate_config import PRODUCT_TRAINING
from gridshift.errors import GridshiftError, RankDeficientWarning
from gridshift.grid.contingency import enumerate_outages, outage_text
from gridshift.grid.network import Network
from gridshift.grid.powerflow import cut_off, prepare
from gridshift.grid.readers import read_grid
from gridshift.study.measure import draw

RESULTS = Path(__file__).parent / "results" / "tangent.json"
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
        self.records = json.loads(path.read_text()) if path.exists() else {}

    def add(self, key: str, record: dict) -> None:
        self.records[key] = record
        self.path.parent.mkdir(exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.records, indent=1))
        os.replace(part, self.path)


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
        fitting = surrogate(network.root, method.transform or "zca", spread)
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
    return float(np.abs(predictor.predict(test.x) - test.y).mean()), chosen


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
    outages = [o for o in outages if not cut_off(network.without(o.split(","))).any()]
    for start in range(0, len(outages), 32):
        some = [network.without(o.split(",")) for o in outages[start : start + 32]]
        prepare(some)
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
    print("headline, MAE, mean over 3 seeds of rows (one surrogate)")
    for case, outages in HEADLINE.items():
        for outage in outages:
            rows = [records.get(f"headline {case} {outage} seed {s}") for s in (0, 1, 2)]
            rows = [r for r in rows if r and "problem" not in r]
            if not rows:
                continue
            print(f"\n{case} without {outage} ({len(rows)} seeds)")
            for key, value in rows[0].items():
                if isinstance(value, float) and key != "wall_s":
                    took = {r.get(f"{key} took", "") for r in rows}
                    mean = np.mean([r[key] for r in rows])
                    print(f"  {key:22} {mean:.2e}  {', '.join(sorted(took))}")
    for study in ("case118singles", "case30singles", "case30doubles"):
        rows = [r for r in records.values() if r.get("study") == study and "problem" not in r]
        problems = sum("problem" in r for r in records.values() if r.get("study") == study)
        if rows:
            print(f"\n{study}: {len(rows)} outages, {problems} without enough solved rows")
            _compare(rows)


def _compare(rows: list[dict]) -> None:
    """Factor over ICW at 400: median and worst percentile; and how often better than frozen."""
    keys = [k for k, v in rows[0].items() if isinstance(v, float) and k != "wall_s"]
    icw = np.array([r["icw@400"] for r in rows])
    frozen = np.array([r["frozen"] for r in rows])
    print(
        f"  {'':20} {'median':>9} {'p99':>9} | {'ICW@400 / it':>14} {'worst 1 %':>10} {'wins':>9}"
        f" | {'beats frozen':>12} {'beats ICW, same size':>20}"
    )
    for key in keys:
        e = np.array([r[key] for r in rows])
        ok = np.isfinite(e)
        gain = icw[ok] / e[ok]
        size = key.partition("@")[2]
        same = np.array([r[f"icw@{size}"] for r in rows]) if size else icw
        print(
            f"  {key:20} {np.median(e[ok]):9.2e} {np.percentile(e[ok], 99):9.2e} |"
            f" {np.median(gain):14.3g} {np.percentile(gain, 1):10.3g}"
            f" {(gain > 1).sum():4}/{len(e):<4} | {(e < frozen).sum():7}/{len(e):<4}"
            f" {(e < same).sum():12}/{len(e):<4}"
        )


if __name__ == "__main__":
    main()
