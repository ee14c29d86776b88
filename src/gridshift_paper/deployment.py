"""Table IV: what it costs to adapt to every outage, by solves and statistics or by gradient steps.

Seconds and errors are measured apart, so that an error doesn't depend on how busy a machine is: a
point of a cost curve has its error from `gradient-curves` and its cost from `adaptation-times`, as
solves x seconds a solve + steps x seconds a step + seconds of prediction. The paper times
pandapower's solver and a GPU's gradient steps; here both are seconds of one CPU thread.
"""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gridshift.adapt.baselines.fine_tune import GradientConfig, adapt_fine_tune
from gridshift.adapt.context import Context, Predictor
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.peers.case import Case
from gridshift.peers.clock import least_cpu_seconds
from gridshift.peers.roster import Pandapower
from gridshift.threads import Threads
from gridshift_paper import rules
from gridshift_paper.artefacts import Artefact, Table
from gridshift_paper.claims import Claim, Note, Numbers, Rows
from gridshift_paper.outages import connected_outages
from gridshift_paper.printed import printed
from gridshift_paper.protocol import (
    BACKBONE_LABELS,
    GRIDS,
    Scale,
    adapted,
    base_surrogate,
    context_rows,
    rows_for_test,
    topology,
)
from gridshift_paper.records import Key, Record, Study, crossed
from gridshift_paper.rules import NAN, Count
from gridshift_paper.selection import measured, picked

REPEATS = 5
"""Runs of which the fastest counts: what else a machine does only ever adds time."""
BACKBONES = {backbone: BACKBONE_LABELS[backbone] for backbone in ("mlp", "pfgnn")}
"""Whose gradient steps the paper costs."""
PAPER_DEPLOYMENT = printed("deployment")
PAPER_CORES = printed("cores")
BUDGET = 4_000
"""Gradient steps of the paper's comparison at deployment scale."""
DEPLOYMENT_COLUMNS = (
    "grid", ">K", ">data\n(s/ctg)", ">ICW inf.\n(s/ctg)", ">FT inf.\n(s/ctg)",
    ">4,000 steps\n(s/ctg)", ">ICW total\n(s)", ">FT total\n(s)", ">speed-up",
)  # fmt: skip


def _time_keys(scale: Scale) -> Iterator[Key]:
    yield from crossed(grid=scale.grids_of(*GRIDS), part=["solve"], backbone=[""])
    yield from crossed(grid=scale.grids_of(*GRIDS), part=["network"], backbone=["mlp"])
    yield from crossed(grid=scale.grids_of("case30"), part=["network"], backbone=["pfgnn"])


def _measure_times(scale: Scale, *, grid: str, part: str, backbone: str) -> Sequence[Record]:
    measure = _solve_times if part == "solve" else partial(_network_times, backbone=backbone)
    return [{"outage": GRIDS[grid].single, **measure(scale, grid)}]


def _solve_times(scale: Scale, grid: str) -> Record:
    """Seconds a solved case costs, by the engine and by pandapower, one thread, on N-1 Most."""
    outage, num = GRIDS[grid].single, scale.num_context
    with Threads(1):
        engine = least_cpu_seconds(lambda: context_rows(grid, outage, num), repeats=REPEATS) / num
        few = sample_loads(topology(grid, outage), named_rng(grid, "pandapower"), 4)
        case = Case.of(grid, tuple(outage.split(",")))
        run = Pandapower().prepare(case, few.load_p, few.load_q, 1e-8)
        rows = least_cpu_seconds(run, repeats=3) / few.num_rows
    return {"engine_s": engine, "pandapower_s": rows}


def _network_times(scale: Scale, grid: str, backbone: str) -> Record:
    """Seconds of ICW's fit, of predicting the test rows, and of a gradient step, one thread."""
    outage = GRIDS[grid].single
    base = base_surrogate(scale, grid, backbone=backbone).on(topology(grid, outage))
    context = context_rows(grid, outage, scale.num_context)
    x = rows_for_test(grid, outage, scale.num_test).x
    num_steps = min(100 if backbone == "mlp" else 20, scale.num_steps)

    def tuned(number: int) -> Predictor:
        config = GradientConfig(num_steps=number, target="zscore")
        return adapt_fine_tune(base, Context.of(context), config=config)

    with Threads(1):
        icw, once = adapted("icw", base, context), tuned(1)
        work = {
            "fit_s": lambda: adapted("icw", base, context),
            "predict_s": lambda: icw.predict(x),
            "predict_tuned_s": lambda: once.predict(x),
            "step_s": lambda: tuned(num_steps),
        }
        seconds = {name: least_cpu_seconds(one, repeats=REPEATS) for name, one in work.items()}
    return seconds | {"step_s": seconds["step_s"] / num_steps}


TIMES = Study(
    name="adaptation-times",
    about="CPU seconds of each part of an adaptation on one thread, fastest of some runs",
    keys=_time_keys,
    measure=_measure_times,
)


def _sweep(scale: Scale, *, grid: str) -> Sequence[Record]:
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
            context = context_rows(grid, outage, scale.num_context)
            solved = time.perf_counter()
            predictor = adapted("icw", base, context)
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
    keys=lambda scale: crossed(grid=scale.grids_of(*GRIDS)),
    measure=_sweep,
)


class Seconds(NamedTuple):
    """Of one thread, for one grid and backbone; NaN where nothing was measured."""

    engine: float = NAN
    """A solved case of the context, drawing and packing included."""
    pandapower: float = NAN
    """A case solved by pandapower's `runpp`."""
    fit: float = NAN
    """ICW's statistics, and folding them into the network."""
    predict: float = NAN
    """The test rows, after ICW."""
    predict_tuned: float = NAN
    """The test rows, after fine-tuning."""
    step: float = NAN
    """A gradient step."""

    def icw(self, num_solves: float, *, solver: str = "engine") -> float:
        """Cost of one adaptation: solves, statistics, prediction."""
        return num_solves * getattr(self, solver) + self.fit + self.predict

    def gradient(
        self, num_solves: float, num_steps: float, *, solver: str = "engine"
    ) -> float:  # fmt: skip
        """Cost of one adaptation by gradient steps."""
        solves = num_solves * getattr(self, solver)
        return solves + num_steps * self.step + self.predict_tuned


def seconds_of(rows: Rows, grid: str, backbone: str = "mlp") -> Seconds:
    """What the study adaptation-times has for a grid and a backbone."""

    def value(column: str, **wanted: str) -> float:
        found = picked(rows["adaptation-times"], grid=grid, **wanted)
        return float(found[column].iloc[-1]) if len(found) and column in found else NAN

    names = ("fit_s", "predict_s", "predict_tuned_s", "step_s")
    return Seconds(
        *(value(name, part="solve") for name in ("engine_s", "pandapower_s")),
        *(value(name, part="network", backbone=backbone) for name in names),
    )


def factor(value: float) -> str:
    """'12×' or '0.84×'."""
    return "–" if not np.isfinite(value) else f"{value:.3g}×" if value < 10 else f"{value:,.0f}×"


def deployment(rows: Rows, grid: str, *, solver: str, cores: int) -> tuple[Any, ...] | None:
    """One row of the table of deployment cost; None if its parts weren't measured."""
    seconds, sweep = seconds_of(rows, grid), picked(rows["deployment-sweep"], grid=grid)
    if not np.isfinite(seconds.step) or not len(sweep):
        return None
    number, num_context = int(sweep.num_outages.iloc[-1]), int(sweep.num_context.iloc[-1])
    data = num_context * getattr(seconds, solver) / cores
    inference, gradient = seconds.fit + seconds.predict, BUDGET * seconds.step
    icw = number * (data + inference)
    tuned = number * (data + gradient + seconds.predict_tuned)
    return (grid, number, data, inference, seconds.predict_tuned, gradient, icw, tuned,
            factor(tuned / icw))  # fmt: skip


def tables(rows: Rows) -> Iterator[Table]:
    """The paper's accounting by pandapower and by the engine, and wall time as it passed."""
    sweeps = measured(rows, "deployment-sweep").groupby("grid", sort=False).last()
    grids = [grid for grid in GRIDS if grid in sweeps.index]
    for solver, label in (("pandapower", "pandapower"), ("engine", "our engine")):
        lines: list[tuple[object, ...]] = []
        for grid in grids:
            lines += filter(None, [deployment(rows, grid, solver=solver, cores=PAPER_CORES)])
            paper = PAPER_DEPLOYMENT[grid]
            lines.append(("paper", *paper[:-1], factor(paper[-1])))
        yield Table(f"Serial solver time of {label}, divided by {PAPER_CORES} cores",
                    DEPLOYMENT_COLUMNS, lines,
                    "The paper's accounting. ICW inf.: its statistics, and 1,000 predictions."
                    )  # fmt: skip
    serial = [deployment(rows, grid, solver="engine", cores=1) for grid in grids]
    yield Table("Our engine, everything on one thread", DEPLOYMENT_COLUMNS,
                [line for line in serial if line])  # fmt: skip
    lines = []
    for grid in grids:
        row = sweeps.loc[grid]
        parts = [float(row[name]) for name in ("data_s", "fit_s", "predict_s")]
        exact = seconds_of(rows, grid).engine * int(row.num_rows)
        lines.append((grid, int(row.num_outages), int(row.num_left_out), *parts, sum(parts), exact))
    yield Table(
        "ICW for every outage as it ran here, wall time on one thread of a shared machine",
        ("grid", ">K", ">no nominal\nsolution", ">solves (s)", ">fit (s)", ">predict (s)",
         ">total (s)", ">exact rows\ninstead (s)"), lines,
        "Last column: the engine's time for the rows that were predicted, context not needed.",
    )  # fmt: skip


def _speed_ups(rows: Rows, solver: str, cores: int) -> Numbers:
    """Fine-tuning over ICW, over all outages."""
    lines = {grid: deployment(rows, grid, solver=solver, cores=cores) for grid in GRIDS}
    return {grid: line[-2] / line[-3] if line else NAN for grid, line in lines.items()}


def _parts(grid: str, rows: Rows) -> Numbers:
    """Where the speed-up comes from, and what solving the rows themselves costs."""
    seconds, sweep = seconds_of(rows, grid), picked(rows["deployment-sweep"], grid=grid)
    if not len(sweep):
        return {}
    row = sweep.iloc[-1]
    per_outage = int(row.num_rows) // int(row.num_outages)
    data, exact = int(row.num_context) * seconds.engine, per_outage * seconds.engine
    adapted = data + seconds.fit + seconds.predict
    return {
        f"{BUDGET:,} gradient steps, s": BUDGET * seconds.step,
        f"{int(row.num_context)} solves, ms": 1000 * data,
        "one solve, µs": 1e6 * seconds.engine,
        "one solve by pandapower, ms": 1000 * seconds.pandapower,
        f"solving the {per_outage:,} rows of an outage, ms": 1000 * exact,
        "a context, ICW and predicting them, ms": 1000 * adapted,
        "the latter over the former": adapted / exact,
    }


def _left_out(rows: Rows) -> Numbers:
    last = measured(rows, "deployment-sweep").groupby("grid").num_left_out.last()
    return {g: Count(int(n), PAPER_DEPLOYMENT[g][0]) for g, n in last.items() if n}


ARTEFACTS = (
    Artefact(
        "deployment-cost", "Table IV",
        "Cost of adapting to every single-line outage, 400 context rows, MLP",
        (TIMES, SWEEP), tables,
        findings=(
            Claim("adapting to all single-line outages is 21 to 34 times cheaper by ICW than by "
                  "4,000 gradient steps",
                  "fine-tuning over ICW, solves by pandapower divided by 48 cores",
                  partial(_speed_ups, solver="pandapower", cores=PAPER_CORES), rules.REACHES,
                  {grid: row[-1] for grid, row in PAPER_DEPLOYMENT.items()},
                  beside=Note("With our engine on one thread",
                              partial(_speed_ups, solver="engine", cores=1))),
            *(Note(f"{grid}, one thread", partial(_parts, grid)) for grid in GRIDS),
            Note("Outages that have no nominal solution and are left out", _left_out),
        ),
    ),
)  # fmt: skip
