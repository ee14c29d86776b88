"""Coverage of split-conformal error bars on outages that nothing was tuned on.

    python -m benchmarks.conformal            # measures what results/conformal.parquet lacks
    python -m benchmarks.conformal --table    # rewrites the table in docs/certificates.md

For each outage: a context of 400 solved cases, 300 to fit and 100 to calibrate; coverage on 2,000
fresh rows, drawn like the context (exchangeable) and drawn like test rows (not exchangeable).
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from benchmarks.page import write_between

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.grid.contingency import cut_off_buses, enumerate_outages, outage_text
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.learn.conformal import calibrate, distance
from gridshift.trial.cases import draw

RESULTS = Path(__file__).parent / "results" / "conformal.parquet"
PAGE = Path(__file__).parent.parent / "docs" / "certificates.md"
GRIDS = {"case30": 1, "case118": 7}
"""Grid, and every which of its single-line outages is taken."""
NUM_CONTEXT, NUM_CALIBRATION, NUM_TEST = 400, 100, 2000
LEVELS = (0.9, 0.95)
SLOW_FIT_S = 3.0
"""Methods that take longer to fit are measured on the first outages of a grid only."""
BEGIN, END = "<!-- conformal:begin -->", "<!-- conformal:end -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", action="store_true")
    if parser.parse_args().table:
        write_table(pq.read_table(RESULTS).to_pylist())
        return
    torch.set_num_threads(1)
    found = pq.read_table(RESULTS).to_pylist() if RESULTS.exists() else []
    done = {(row["grid"], row["outage"], row["method"]) for row in found}
    for grid, every in GRIDS.items():
        base = read_grid(grid)
        surrogate = cached_surrogate(base)
        methods = [
            m
            for m in METHODS.values()
            if not m.gradient and m.transform in (None, surrogate.config.transform)
        ]
        outages = enumerate_outages(base, "lines")
        whole = [
            o for o, cut in zip(outages, cut_off_buses(base, outages), strict=True) if not len(cut)
        ]
        slow = {
            row["method"]
            for row in found
            if row["grid"] == grid and row.get("fit_s", 0) > SLOW_FIT_S
        }
        for outage in whole[::every]:
            text = outage_text(outage)
            missing = [
                m for m in methods if (grid, text, m.name) not in done and m.name not in slow
            ]
            if missing:
                began = time.perf_counter()
                new = list(one_outage(base.without(outage), text, surrogate, missing))
                slow |= {row["method"] for row in new if row["fit_s"] > SLOW_FIT_S}
                found += new
                pq.write_table(pa.Table.from_pylist(found), RESULTS, compression="zstd")
                print(grid, text, f"{time.perf_counter() - began:.1f} s", flush=True)


def one_outage(network, text, surrogate, methods):
    def solved(role, num, regime):
        return generate(network, draw(network, role, num, spread=0.2, regime=regime, seed=0))

    context = solved("context", NUM_CONTEXT, "mixed")
    fit = context.rows(slice(NUM_CALIBRATION, None))
    held = context.rows(slice(NUM_CALIBRATION))
    mixed = sample_loads(
        network, named_rng(network.name, "coverage", outage=text), NUM_TEST, regime="mixed"
    )
    tests = {"mixed": generate(network, mixed), "drawn": solved("test", NUM_TEST, "drawn")}
    center, scale = fit.x.mean(0), np.where(np.ptp(fit.x, 0) > 0, fit.x.std(0), 0.0)
    for method in methods:
        part = Context.of(fit) if method.uses_solved_cases else Context.empty(network, surrogate)
        began = time.perf_counter()
        predictor = method.fit(surrogate, part)
        fit_s = time.perf_counter() - began
        error = predictor.predict(held.x) - held.y
        row = {"grid": network.name, "outage": text, "method": method.name, "fit_s": fit_s}
        row["coverage"] = {}
        far = {name: distance(data.x, center, scale) for name, data in tests.items()}
        off = {name: predictor.predict(data.x) - data.y for name, data in tests.items()}
        for level in LEVELS:
            for scaled in (False, True):
                bars = calibrate(
                    error, level=level, groups=context.layout.y_slices,
                    difficulty=distance(held.x, center, scale) if scaled else None,
                )  # fmt: skip
                for name in tests:
                    key = f"{level} {name} {'scaled' if scaled else 'plain'}"
                    row["coverage"][key] = bars.coverage(off[name], far[name] if scaled else None)
                if level == LEVELS[0] and not scaled:
                    row["widths"] = bars.widths()
        yield row


def write_table(found) -> None:
    """The table between the marks of docs/certificates.md."""
    lines = [
        "| grid | outages | rows tested on | scores | level | one entry | all of a quantity | "
        "single outages |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for grid in GRIDS:
        rows = [row for row in found if row["grid"] == grid]
        outages = len({row["outage"] for row in rows})
        for level in LEVELS:
            for regime, scores in (("mixed", "plain"), ("drawn", "plain"), ("drawn", "scaled")):
                key = f"{level} {regime} {scores}"
                kinds = {}
                for kind in ("interval", "band"):
                    kinds[kind] = np.array(
                        [np.mean([q[kind] for q in row["coverage"][key].values()]) for row in rows]
                    )
                low, high = np.percentile(kinds["interval"], [5, 95])
                lines.append(
                    f"| {grid} | {outages} | {regime} | {scores} | {level:.0%} "
                    f"| {kinds['interval'].mean():.1%} | {kinds['band'].mean():.1%} "
                    f"| {low:.1%} to {high:.1%} |"
                )
    write_between(PAGE, BEGIN, END, "\n".join(lines))


if __name__ == "__main__":
    main()
