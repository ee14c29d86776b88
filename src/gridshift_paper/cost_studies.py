"""Errors by gradient steps, and without any on the same contexts; seconds are in `cost_times`."""

import time
from collections.abc import Iterator, Sequence
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
from gridshift.errors import GridshiftError
from gridshift.study.metrics import mean_absolute_errors
from gridshift_paper.protocol import (
    Scale,
    base_surrogate,
    context_rows,
    rows_for_test,
)
from gridshift_paper.records import Record, Study, Task
from gridshift_paper.references import context_mean
from gridshift_paper.robustness_studies import connected_outages

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
    return adapt(base.on(context.network), Context.of(context), config=config)


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
    mean = context_mean(context, test)
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
