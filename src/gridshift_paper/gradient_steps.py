"""Errors by gradient steps and without any, and their costs: points of the cost-accuracy plane."""

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import pandas as pd

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
from gridshift.trial.metrics import mean_absolute_errors
from gridshift_paper.claims import Rows
from gridshift_paper.deployment import TIMES, seconds_of
from gridshift_paper.protocol import (
    GRIDS,
    Scale,
    base_surrogate,
    context_mean,
    context_rows,
    rows_for_test,
)
from gridshift_paper.records import Key, Record, Study, crossed
from gridshift_paper.rules import NAN
from gridshift_paper.selection import by_seed, picked

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
CONTEXTS = {"case30": (400, 1_000), "case118": (400,), "case300": (400, 1_000, 2_000)}
TARGET_LABELS = {"no-norm": "raw y", "zscore": "z-score"}
SOLVERS = ("engine", "pandapower")


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


def _outage(grid: str) -> str:
    return GRIDS[grid].single if grid == "case300" else GRIDS[grid].double


def _curve_keys(scale: Scale) -> Iterator[Key]:
    """Cheap ones first, PowerFlowNet last and with one seed."""
    wanted: list[tuple[Any, ...]] = [
        (seed, grid, "mlp", num, *way)
        for seed in scale.seeds
        for grid, ways in (("case30", product(KINDS, TARGETS)), ("case118", SWEPT))
        for num, way in product(CONTEXTS[grid], tuple(ways))
    ]
    wanted += [
        (seed, "case300", "mlp", num, "fine-tune", target)
        for seed, target, num in product(scale.seeds, TARGETS, CONTEXTS["case300"])
    ]
    wanted += [
        (scale.seeds[0], "case30", "pfgnn", num, *way)
        for num, way in product(CONTEXTS["case30"], SWEPT_PFGNN)
    ]
    for seed, grid, backbone, num, kind, target in wanted:
        for num_steps in steps_of(scale, backbone) if grid in scale.grids else ():
            yield {
                "grid": grid, "outage": _outage(grid), "backbone": backbone, "kind": kind,
                "target": target, "num_context": num, "num_steps": num_steps, "seed": seed,
            }  # fmt: skip


def _measure_point(
    scale: Scale, *, grid: str, outage: str, backbone: str, kind: Kind, target: Target,
    num_context: int, num_steps: int, seed: int,
) -> Sequence[Record]:  # fmt: skip
    """Error after one budget of steps, spent by itself (`gradient_curve`)."""
    context, test = rows_of(scale, grid, outage, num_context, seed)
    began, cpu = time.perf_counter(), time.process_time()
    predictor = stepped(scale, grid, context, backbone, kind, target, num_steps, seed)
    seconds = {"wall_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    return [{"num_solves": context.num_solves, **seconds, **errors_of(predictor, test)}]


def stepped(
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
    keys=_curve_keys,
    measure=_measure_point,
)


def _closed_form_keys(scale: Scale) -> Iterator[Key]:
    for backbone, grids, seeds in (
        ("mlp", scale.grids_of(*GRIDS), scale.seeds),
        ("pfgnn", scale.grids_of("case30"), scale.seeds[:1]),
    ):
        for grid in grids:
            yield from crossed(
                grid=[grid], outage=[_outage(grid)], backbone=[backbone],
                num_context=CONTEXTS[grid], seed=seeds,
            )  # fmt: skip


def _closed_form(
    scale: Scale, *, grid: str, outage: str, backbone: str, num_context: int, seed: int
) -> Sequence[Record]:
    """Errors without gradient steps: the frozen surrogate, ICW, and what a context gives else."""
    context, test = rows_of(scale, grid, outage, num_context, seed)
    base = base_surrogate(scale, grid, backbone=backbone, seed=seed)
    rows = [
        {"method": name, **errors_of(METHODS[name].fit(base, Context.of(context)), test)}
        for name in ("frozen", "icw", "icw-paired", "ridge")
    ]
    mean = context_mean(context, test)
    rows.append({"method": "context-mean", **mean_absolute_errors(test.layout, test.y, mean)})
    return [{"num_solves": context.num_solves, **row} for row in rows]


CLOSED_FORM = Study(
    name="closed-form",
    about="errors without gradient steps on the contexts of the study gradient-curves",
    keys=_closed_form_keys,
    measure=_closed_form,
)


@lru_cache(maxsize=4)
def rows_of(
    scale: Scale, grid: str, outage: str, num_context: int, seed: int
) -> tuple[Dataset, Dataset]:
    """Context and test rows."""
    context = context_rows(grid, outage, scaled(scale, num_context), seed=seed)
    return context, rows_for_test(grid, outage, scale.num_test, seed=seed)


def errors_of(predictor: Predictor, test: Dataset) -> dict[str, float]:
    """Mean absolute errors on test rows."""
    return mean_absolute_errors(test.layout, test.y, predictor.predict(test.x))


class Point(NamedTuple):
    """One way to adapt: what it costs, and the errors of each seed."""

    num_steps: int
    cost_s: float
    cost_pandapower_s: float
    """The same with a context solved by pandapower."""
    errors: pd.Series
    """One for each seed."""

    @property
    def error(self) -> float:
        """Mean over seeds."""
        return float(self.errors.mean()) if len(self.errors) else NAN

    @property
    def deviation(self) -> float:
        """Sample deviation over seeds; 0 for a single one."""
        return float(self.errors.std()) if len(self.errors) > 1 else 0.0


def curve(
    rows: Rows, quantity: str, grid: str, backbone: str = "mlp", **wanted: Any
) -> list[Point]:  # fmt: skip
    """Points of a curve of gradient steps, by steps; empty if nothing was measured."""
    found = picked(rows["gradient-curves"], grid=grid, backbone=backbone, **wanted)
    seconds, points = seconds_of(rows, grid, backbone), []
    for num_steps, part in found.groupby("num_steps") if len(found) else ():
        steps, solves = int(num_steps), float(part.num_solves.mean())  # type: ignore[arg-type]
        cost, other = (seconds.gradient(solves, steps, solver=s) for s in SOLVERS)
        points.append(Point(steps, cost, other, by_seed(part, quantity)))
    return points


def closed_form(
    rows: Rows, quantity: str, method: str, grid: str, num_context: int, backbone: str = "mlp"
) -> Point:
    """The point of a method without gradient steps; ICW's cost, whatever the method."""
    found = picked(
        rows["closed-form"], grid=grid, backbone=backbone, num_context=num_context, method=method
    )
    seconds = seconds_of(rows, grid, backbone)
    solves = float(found.num_solves.mean()) if len(found) else NAN
    cost, other = (seconds.icw(solves, solver=s) for s in SOLVERS)
    return Point(0, cost, other, by_seed(found, quantity))


def contexts_of(rows: Rows, grid: str, backbone: str = "mlp") -> list[int]:
    """Context sizes measured, ascending."""
    found = picked(rows["closed-form"], grid=grid, backbone=backbone)
    return sorted(map(int, set(found.num_context))) if len(found) else []


def crossing(points: list[Point], level: float) -> Point | None:
    """The first point of a curve with a mean error below the level."""
    return next((point for point in points if point.error < level), None)


PLANE = (TIMES, CLOSED_FORM, CURVES)
"""What a point of the plane is put together from."""
