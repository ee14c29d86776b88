"""What is measured about cost: seconds of each part of an adaptation, and errors by gradient steps.

Seconds and errors are measured apart, so that an error doesn't depend on how busy a machine is: a
point of a cost curve has its error from `gradient-curves` and its cost from `adaptation-times`, as
solves x seconds a solve + steps x seconds a step + seconds of prediction.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import product

import numpy as np

from gridshift.adapt.baselines.fine_tune import (
    MILESTONES,
    GradientConfig,
    Kind,
    Target,
    adapt_fine_tune,
    adapt_scratch,
)
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.methods import METHODS
from gridshift.bench.case import Case
from gridshift.bench.clock import fastest
from gridshift.bench.peers import Pandapower
from gridshift.errors import GridshiftError
from gridshift.grid.scenarios import sample_loads, stream
from gridshift.study.metrics import mean_absolute_errors
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
BASE_TRANSFORM: dict[Target, str] = {"no-norm": "identity", "zscore": "zscore"}
"""What a surrogate that is fine-tuned towards a target was trained with."""
KINDS: tuple[Kind, ...] = ("fine-tune", "scratch")
TARGETS: tuple[Target, ...] = ("no-norm", "zscore")
SWEPT: tuple[tuple[Kind, Target], ...] = (
    ("fine-tune", "zscore"), ("fine-tune", "no-norm"), ("scratch", "zscore"),
)  # fmt: skip
"""Curves of case118."""
SWEPT_PFGNN: tuple[tuple[Kind, Target], ...] = (
    ("fine-tune", "no-norm"), ("scratch", "no-norm"), ("scratch", "zscore"),
)  # fmt: skip
"""Curves of PowerFlowNet: the paper's, for a step of it takes twenty of the MLP."""
CONTEXTS_30, CONTEXTS_300 = (400, 1_000), (400, 1_000, 2_000)
NUM_TERCILE = 10
"""Outages of each third of the difficulty of case118's."""


def scaled(scale: Scale, num: int) -> int:
    """Context rows of the paper, as many fewer as the scale's 400 are."""
    return max(2, num * scale.num_context // 400)


def steps_of(scale: Scale, backbone: str) -> tuple[int, ...]:
    """Budgets of gradient steps: the paper's up to an eighth of the base surrogate's own steps.

    Where none is that small, all of them, shortened as the base's steps are.
    """
    trained_for = scale.steps(backbone)
    afforded = tuple(number for number in MILESTONES if number <= trained_for // 8)
    shortened = (max(1, number * trained_for // 40_000) for number in MILESTONES)
    return afforded or tuple(dict.fromkeys(shortened))


# seconds


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
    base = base_surrogate(scale, grid, backbone=backbone)
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

# errors


def _curve_tasks(scale: Scale) -> Iterator[Task]:
    """Cheap ones first, PowerFlowNet last and with one seed."""
    for seed in scale.seeds:
        for case in scale.cases("case30"):
            for num, kind, target in product(CONTEXTS_30, KINDS, TARGETS):
                yield from _curve(scale, case.name, case.double, "mlp", kind, target, num, seed)
        for case in scale.cases("case118"):
            for kind, target in SWEPT:
                yield from _curve(scale, case.name, case.double, "mlp", kind, target, 400, seed)
    for seed, case in product(scale.seeds, scale.cases("case300")):
        for target, num in product(TARGETS, CONTEXTS_300):
            yield from _curve(scale, case.name, case.single, "mlp", "fine-tune", target, num, seed)
    for case, num, (kind, target) in product(scale.cases("case30"), CONTEXTS_30, SWEPT_PFGNN):
        first = scale.seeds[0]
        yield from _curve(scale, case.name, case.double, "pfgnn", kind, target, num, first)


def _curve(
    scale: Scale, grid: str, outage: str, backbone: str, kind: Kind, target: Target, num: int,
    seed: int,
) -> Iterator[Task]:  # fmt: skip
    for num_steps in steps_of(scale, backbone):
        key = {
            "grid": grid, "outage": outage, "backbone": backbone, "kind": kind, "target": target,
            "num_context": num, "num_steps": num_steps, "seed": seed,
        }  # fmt: skip
        measure = partial(
            _point, scale, grid, outage, backbone, kind, target, num, num_steps, seed
        )  # fmt: skip
        yield Task(key=key, measure=measure)


def _point(
    scale: Scale, grid: str, outage: str, backbone: str, kind: Kind, target: Target, num: int,
    num_steps: int, seed: int,
) -> Sequence[Record]:  # fmt: skip
    """Error after one budget of steps, spent by itself (`gradient_curve`)."""
    context, test = _rows(scale, grid, outage, num, seed)
    began, cpu = time.perf_counter(), time.process_time()
    predictor = trained(scale, grid, context, backbone, kind, target, num_steps, seed)
    seconds = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    return [{"num_solves": context.num_solves, **seconds, **_errors(predictor, test)}]


def trained(
    scale: Scale, grid: str, context: Dataset, backbone: str, kind: Kind, target: Target,
    num_steps: int, seed: int,
) -> Predictor:  # fmt: skip
    """What gradient steps on the context make of the base surrogate, or of random weights."""
    config = GradientConfig(num_steps=num_steps, target=target)
    # from scratch, nothing of a base surrogate is used but its architecture
    transform = BASE_TRANSFORM[target] if kind == "fine-tune" else "zca"
    base = base_surrogate(scale, grid, transform=transform, backbone=backbone, seed=seed)
    adapt = adapt_fine_tune if kind == "fine-tune" else adapt_scratch
    return adapt(base, Context.of(context), config=config)


CURVES = Study(
    name="gradient-curves",
    about="error by budget of gradient steps, fine-tuned or from scratch",
    tasks=_curve_tasks,
)


def _closed_form_tasks(scale: Scale) -> Iterator[Task]:
    wanted = [
        (case.name, outage, backbone, num)
        for backbone in ("mlp", "pfgnn")
        for case in scale.cases("case30", "case118", "case300")
        for outage, sizes in {
            "case30": ((case.double, CONTEXTS_30),),
            "case118": ((case.double, (400,)),),
            "case300": ((case.single, CONTEXTS_300),),
        }[case.name]
        for num in sizes
        if backbone == "mlp" or case.name == "case30"
    ]
    for grid, outage, backbone, num in wanted:
        for seed in scale.seeds if backbone == "mlp" else scale.seeds[:1]:
            key = {"grid": grid, "outage": outage, "backbone": backbone, "num_context": num,
                   "seed": seed}  # fmt: skip
            measure = partial(_closed_form, scale, grid, outage, backbone, num, seed)
            yield Task(key=key, measure=measure)


def _closed_form(
    scale: Scale, grid: str, outage: str, backbone: str, num: int, seed: int
) -> Sequence[Record]:
    """Errors without gradient steps: the frozen surrogate, ICW, and what a context gives else."""
    context, test = _rows(scale, grid, outage, num, seed)
    base = base_surrogate(scale, grid, backbone=backbone, seed=seed)
    rows = []
    for name in ("frozen", "icw", "icw-paired", "ridge"):
        predictor = METHODS[name].fit(base, Context.of(context))
        rows.append({"method": name, **_errors(predictor, test)})
    mean = np.tile(context.y.mean(0), (len(test), 1))
    rows.append({"method": "context-mean", **mean_absolute_errors(test.layout, test.y, mean)})
    return [{"num_solves": context.num_solves, **row} for row in rows]


CLOSED_FORM = Study(
    name="closed-form",
    about="errors without gradient steps on the contexts of the study gradient-curves",
    tasks=_closed_form_tasks,
)


def _band_tasks(scale: Scale) -> Iterator[Task]:
    case = next(scale.cases("case118", "case30"), None)
    if case is None:
        return
    number = NUM_TERCILE if scale.max_outages is None else max(1, scale.max_outages // 3)
    for target in TARGETS:
        for tercile in ("low", "mid", "high"):
            for pick in range(number):
                key = {"grid": case.name, "tercile": tercile, "pick": pick, "of": number,
                       "target": target, "seed": scale.seeds[0]}  # fmt: skip
                measure = partial(
                    _band, scale, case.name, tercile, pick, number, target, scale.seeds[0]
                )  # fmt: skip
                yield Task(key=key, measure=measure)


def _band(
    scale: Scale, grid: str, tercile: str, pick: int, number: int, target: Target, seed: int
) -> Sequence[Record]:
    """Errors of frozen, ICW and fine-tuning by steps, on one outage of a third of difficulty."""
    outage = picks(scale, grid, seed, number)[tercile][pick]
    context, test = _rows(scale, grid, outage, 400, seed)
    base = base_surrogate(scale, grid, seed=seed)
    rows = [
        {"outage": outage, "method": name, "num_steps": 0, **_errors(predictor, test)}
        for name in ("frozen", "icw", "icw-paired")
        for predictor in (METHODS[name].fit(base, Context.of(context)),)
    ]
    for num_steps in steps_of(scale, "mlp"):
        predictor = trained(scale, grid, context, "mlp", "fine-tune", target, num_steps, seed)
        rows.append(
            {"outage": outage, "method": "fine-tune", "num_steps": num_steps,
             **_errors(predictor, test)}
        )  # fmt: skip
    return rows


@lru_cache(maxsize=4)
def picks(scale: Scale, grid: str, seed: int, number: int) -> dict[str, tuple[str, ...]]:
    """Outages of each third by the frozen surrogate's |V| error, evenly over their ranks."""
    outages, _ = connected_outages(grid, 1)
    base = base_surrogate(scale, grid, seed=seed)
    errors = [
        _errors(base, rows_for_test(grid, outage, scale.num_test // 5, seed=seed))["v"]
        for outage in outages
    ]
    thirds = np.array_split(np.argsort(errors, kind="stable"), 3)
    if min(map(len, thirds)) < number:
        raise GridshiftError(f"{grid} has {len(outages)} outages; {3 * number} are to be picked")
    return {
        name: tuple(
            outages[third[k]] for k in np.linspace(0, len(third) - 1, number).round().astype(int)
        )
        for name, third in zip(("low", "mid", "high"), thirds, strict=True)
    }


BAND = Study(
    name="band-30",
    about="ICW and fine-tuning by steps on 30 outages of case118, ten of each third of difficulty",
    tasks=_band_tasks,
)


@lru_cache(maxsize=4)
def _rows(
    scale: Scale, grid: str, outage: str, num_context: int, seed: int
) -> tuple[Dataset, Dataset]:
    """Context and test rows."""
    context = context_rows(grid, outage, scaled(scale, num_context), seed=seed)
    return context, rows_for_test(grid, outage, scale.num_test, seed=seed)


def _errors(predictor: Predictor, test: Dataset) -> dict[str, float]:
    return mean_absolute_errors(test.layout, test.y, predictor.predict(test.x))
