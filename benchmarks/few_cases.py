"""Wall clock of ten cases for every outage: base, and compensation of each single line outage.

    python benchmarks/few_cases.py case118

Reads the grid, draws and solves the base's rows, fits it, and for each line whose loss keeps the
grid connected draws and solves ten cases and adapts to them; all in this process, nothing from a
cache. Interpreter start, imports and the compilation of kernels are told apart, and errors are
measured afterwards, on 1,000 rows each.
"""

import argparse
import time

import numpy as np

from gridshift.adapt.compensation import adapt_compensation
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import generate
from gridshift.adapt.surrogate import train
from gridshift.adapt.surrogate_config import base_config
from gridshift.grid.contingency import cut_off_buses, enumerate_outages
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import nominal_loads
from gridshift.threads import Threads
from gridshift.trial.cases import draw


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("grid", nargs="?", default="case118")
    parser.add_argument("--base", default="quadratic")
    parser.add_argument("--context", type=int, default=10)
    given = parser.parse_args()
    began = time.perf_counter()
    generate(read_grid(given.grid), nominal_loads(read_grid(given.grid), 2), min_rows=0)
    compiling_s, began = time.perf_counter() - began, time.perf_counter()
    network = read_grid(given.grid)
    base = train(network, base_config(given.base))
    base_s, began = time.perf_counter() - began, time.perf_counter()
    outages = enumerate_outages(network, "lines")
    cut = cut_off_buses(network, outages)
    adapted = []
    with Threads(1):
        for outage in (o for o, buses in zip(outages, cut, strict=True) if not len(buses)):
            left = network.without(outage)
            loads = draw(left, "context", given.context, spread=0.2, regime="mixed", seed=0)
            context = Context.of(generate(left, loads, min_rows=2))
            adapted.append((left, adapt_compensation(base, context)))
    outages_s = time.perf_counter() - began
    print(
        f"{given.grid}, base {given.base}: compiling {compiling_s:.2f} s; base {base_s:.2f} s, "
        f"{len(adapted)} outages from {given.context} cases each {outages_s:.2f} s, together "
        f"{base_s + outages_s:.2f} s ({time.process_time():.2f} s of processor time in all)"
    )
    errors = []
    for left, predictor in adapted:
        loads = draw(left, "test", 1000, spread=0.2, regime="drawn", seed=0)
        test = generate(left, loads, min_rows=500)
        errors.append(np.abs(predictor.predict(test.x) - test.y).mean())
    print(
        f"mean absolute error over outages: median {np.median(errors):.3g}, mean "
        f"{np.mean(errors):.3g}, worst {max(errors):.3g}"
    )


if __name__ == "__main__":
    main()
