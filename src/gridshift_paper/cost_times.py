"""Seconds of each part of an adaptation, and of a sweep over all outages.

Seconds and errors are measured apart, so that an error doesn't depend on how busy a machine is: a
point of a cost curve has its error from `gradient-curves` and its cost from `adaptation-times`, as
solves x seconds a solve + steps x seconds a step + seconds of prediction.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from gridshift.adapt.baselines.fine_tune import GradientConfig, adapt_fine_tune
from gridshift.adapt.context import Context
from gridshift.adapt.methods import METHODS
from gridshift.bench.case import Case
from gridshift.bench.clock import fastest
from gridshift.bench.peers import Pandapower
from gridshift.grid.scenarios import sample_loads, stream
from gridshift.study.provenance import Threads
from gridshift_paper.protocol import (
    GRIDS,
    Scale,
    base_surrogate,
    context_rows,
    rows_for_test,
    topology,
)
from gridshift_paper.records import Record, Study, Task
from gridshift_paper.robustness_studies import connected_outages

REPEATS = 5
"""Runs of which the fastest counts: what else a machine does only ever adds time."""


def _time_tasks(scale: Scale) -> Iterator[Task]:
    for case in scale.cases("case30", "case118", "case300"):
        key = {"grid": case.name, "part": "solve", "backbone": ""}
        yield Task(key=key, measure=partial(_solve_times, scale, case.name))
    for case in scale.cases("case30", "case118", "case300"):
        key = {"grid": case.name, "part": "network", "backbone": "mlp"}
        yield Task(key=key, measure=partial(_network_times, scale, case.name, "mlp"))
    for case in scale.cases("case30"):
        key = {"grid": case.name, "part": "network", "backbone": "pfgnn"}
        yield Task(key=key, measure=partial(_network_times, scale, case.name, "pfgnn"))


def _solve_times(scale: Scale, grid: str) -> Sequence[Record]:
    """Seconds a solved case costs, by the engine and by pandapower, one thread, on N-1 Most."""
    outage, num = GRIDS[grid].single, scale.num_context
    with Threads(1):
        engine = fastest(lambda: context_rows(grid, outage, num), repeats=REPEATS) / num
        few = sample_loads(topology(grid, outage), stream(grid, "pandapower"), 4)
        case = Case.of(grid, tuple(outage.split(",")))
        run = Pandapower().prepare(case, few.load_p, few.load_q, 1e-8)
        rows = fastest(run, repeats=3) / few.num_rows
    return [{"outage": outage, "engine_s": engine, "pandapower_s": rows}]


def _network_times(scale: Scale, grid: str, backbone: str) -> Sequence[Record]:
    """Seconds of ICW's fit, of predicting the test rows, and of a gradient step, one thread."""
    outage = GRIDS[grid].single
    base = base_surrogate(scale, grid, backbone=backbone).on(topology(grid, outage))
    context = Context.of(context_rows(grid, outage, scale.num_context))
    x = rows_for_test(grid, outage, scale.num_test).x
    num_steps = min(100 if backbone == "mlp" else 20, scale.num_steps)
    config = GradientConfig(num_steps=num_steps, target="zscore")
    with Threads(1):
        adapted = METHODS["icw"].fit(base, context)
        tuned = adapt_fine_tune(base, context, config=replace(config, num_steps=1))
        return [
            {
                "outage": outage,
                "fit_s": fastest(lambda: METHODS["icw"].fit(base, context), repeats=REPEATS),
                "predict_s": fastest(lambda: adapted.predict(x), repeats=REPEATS),
                "predict_tuned_s": fastest(lambda: tuned.predict(x), repeats=REPEATS),
                "step_s": fastest(
                    lambda: adapt_fine_tune(base, context, config=config), repeats=REPEATS
                )
                / num_steps,
            }
        ]


TIMES = Study(
    name="adaptation-times",
    about="CPU seconds of each part of an adaptation on one thread, fastest of some runs",
    tasks=_time_tasks,
)


def _sweep_tasks(scale: Scale) -> Iterator[Task]:
    for case in scale.cases("case30", "case118", "case300"):
        yield Task(key={"grid": case.name}, measure=partial(_sweep, scale, case.name))


def _sweep(scale: Scale, grid: str) -> Sequence[Record]:
    """Adapt to every single outage by ICW and predict, one after the other; what that takes."""
    outages, num_left_out = connected_outages(grid, 1)
    outages, base = outages[: scale.max_outages], base_surrogate(scale, grid)
    spent = {"data_s": 0.0, "fit_s": 0.0, "predict_s": 0.0}
    began, cpu_began, rows = time.perf_counter(), time.process_time(), 0
    with Threads(1):
        context_rows(grid, outages[0], 2)  # kernels may compile
        for outage in outages:
            x = rows_for_test(grid, outage, scale.num_test).x
            start = time.perf_counter()
            context = Context.of(context_rows(grid, outage, scale.num_context))
            solved = time.perf_counter()
            predictor = METHODS["icw"].fit(base, context)
            fitted = time.perf_counter()
            rows += len(predictor.predict(x))
            spent["data_s"] += solved - start
            spent["fit_s"] += fitted - solved
            spent["predict_s"] += time.perf_counter() - fitted
    return [
        {
            "num_outages": len(outages), "num_left_out": num_left_out, "num_rows": rows,
            "num_context": scale.num_context, **spent,
            "with_test_rows_s": time.perf_counter() - began,
            "with_test_rows_cpu_s": time.process_time() - cpu_began,
        }
    ]  # fmt: skip


SWEEP = Study(
    name="deployment-sweep",
    about="wall time of adapting to every single-line outage by ICW, one thread, one after another",
    tasks=_sweep_tasks,
)
