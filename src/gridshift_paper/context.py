"""How many solved cases a context needs, and why (Table VIII; Fig. 6, 17, 18, 19)."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

from gridshift.adapt.context import Context
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate import Surrogate
from gridshift.arrays import Real
from gridshift.errors import RankDeficientWarning
from gridshift.learn.diagnostics import log_euclidean_distance
from gridshift.learn.moments import Moments
from gridshift.study.metrics import mean_absolute_errors
from gridshift_paper.artefacts import Artefact
from gridshift_paper.context_claims import comment_on_size, comment_on_sweep
from gridshift_paper.context_figures import draw_deviations, draw_size, draw_spectra
from gridshift_paper.context_spectra import (
    comment_on_deviations,
    comment_on_spectra,
    tabulate_deviations,
    tabulate_spectra,
)
from gridshift_paper.context_tables import CURVE, tabulate_size, tabulate_sweep
from gridshift_paper.protocol import (
    PaperGrid,
    Scale,
    base_surrogate,
    context_rows,
    rows_for_test,
    surrogate_without_dropout,
)
from gridshift_paper.records import Record, Study, Task
from gridshift_paper.references import context_mean, errors_where_given, perfect_icw

SWEEP = {"case118": (1, 1.5, 2, 3, 4), "case300": (2, 3, 5, 7.5, 10)}
"""Sizes of Table VIII likewise."""
NUM_DRAWS = 5
REFERENCE = 50
"""Rows of the covariance that others converge to, in contexts: 20,000 at full scale."""


def _sizes(scale: Scale, factors: Sequence[float]) -> list[int]:
    return [round(factor * scale.num_context) for factor in factors]


def _levels(base, grid: str, context: Dataset, test: Dataset) -> dict[str, Real]:
    """Predictions of ICW, and of the two levels beside every accuracy table."""
    return {
        "icw": METHODS["icw"].fit(base, Context.of(context)).predict(test.x),
        "perfect": perfect_icw(grid, context, test, base.transform),
        "context-mean": context_mean(context, test),
    }


Start = Callable[..., Surrogate]
"""Scale, grid and seed to the surrogate that a context adapts."""


def _measure_errors(
    case: PaperGrid, outage: str, scale: Scale, sizes: Sequence[int], start: Start, *,
    seed: int, draw: int,
) -> list[Record]:  # fmt: skip
    base = start(scale, case.name, seed=seed)
    test = rows_for_test(case.name, outage, scale.num_test, seed=seed)
    frozen = mean_absolute_errors(test.layout, test.y, base.predict(test.x))
    rows: list[Record] = [{"n": 0, "method": "frozen", "test_rows": len(test), **frozen}]
    context_rows(case.name, outage, 2, seed=seed, draw=draw)  # compiling is no collecting
    for n in sizes:
        began = time.perf_counter()
        context = context_rows(case.name, outage, n, seed=seed, draw=draw)
        collect_s = time.perf_counter() - began
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankDeficientWarning)  # the sizes tell
            levels = _levels(base, case.name, context, test)
        for method, y_hat in levels.items():
            errors, num = errors_where_given(test, y_hat)
            counts = {"context_rows": len(context), "test_rows": num}
            rows.append({"n": n, "method": method, "collect_s": collect_s, **counts, **errors})
    return rows


def _error_tasks(
    scale: Scale, case: PaperGrid, outage: str, factors: Sequence[float], num_draws: int,
    start: Start = base_surrogate,
) -> Iterator[Task]:  # fmt: skip
    for seed in scale.seeds:
        for draw in range(num_draws):
            what = {"seed": seed, "draw": draw}
            sizes = _sizes(scale, factors)
            yield Task(
                key={"grid": case.name, "outage": outage, **what},
                measure=partial(_measure_errors, case, outage, scale, sizes, start, **what),
            )


def _size_tasks(grid: str, scale: Scale) -> Iterator[Task]:
    for case in scale.cases(grid):
        for outage in ("", case.double):
            yield from _error_tasks(scale, case, outage, CURVE, NUM_DRAWS)


def _sweep_tasks(start: Start, scale: Scale) -> Iterator[Task]:
    for case in scale.cases(*SWEEP):
        yield from _error_tasks(scale, case, case.single, SWEEP[case.name], 1, start)


SIZES = {
    grid: Study(
        name=f"context-size-{grid}",
        about=f"error of ICW and time to collect its context, by size of the context, {grid}",
        tasks=partial(_size_tasks, grid),
    )
    for grid in ("case30", "case118")
}
SWEEPS = Study(
    name="context-sweep",
    about="error of ICW on the N-1 outage by size of the context, 118 and 300 buses",
    tasks=partial(_sweep_tasks, base_surrogate),
)
SWEEPS_NO_DROPOUT = Study(
    name="context-sweep-no-dropout",
    about="the same around a surrogate that fits the intact grid better",
    tasks=partial(_sweep_tasks, surrogate_without_dropout),
)


@lru_cache(maxsize=2)
def _reference(grid: str, outage: str, num_rows: int) -> Moments:
    """Moments of a far larger context that shares no row with any other."""
    return Moments.of(context_rows(grid, outage, num_rows, draw=-1).y)


def _measure_covariance(
    case: PaperGrid, scale: Scale, *, seed: int, draw: int, keep_spectra: bool
) -> list[Record]:
    sizes = _sizes(scale, CURVE)
    longest = context_rows(case.name, case.double, sizes[-1], seed=seed, draw=draw).y
    reference = _reference(case.name, case.double, REFERENCE * scale.num_context)
    last = Moments.of(longest)
    rows: list[Record] = []
    spectra = {REFERENCE * scale.num_context: reference}
    for n in sizes:
        spectra[n] = moments = Moments.of(longest[:n])
        nested, far = (
            log_euclidean_distance(moments.covariance, other.covariance)
            for other in (last, reference)
        )
        rows.append({"n": n, "what": "distance", "nested": nested, "independent": far})
    if keep_spectra:
        rows += [
            {"n": n, "what": "eigenvalue", "index": index, "eigenvalue": float(value)}
            for n, moments in spectra.items()
            for index, value in enumerate(moments.spectrum.values[::-1], 1)
        ]
    return rows


def _covariance_tasks(scale: Scale) -> Iterator[Task]:
    for case in scale.cases("case30", "case118"):
        for seed in scale.seeds:
            for draw in range(NUM_DRAWS):
                what = {"seed": seed, "draw": draw}
                yield Task(
                    key={"grid": case.name, "outage": case.double, **what},
                    measure=partial(
                        _measure_covariance, case, scale, **what, keep_spectra=draw == 0
                    ),
                )


COVARIANCE = Study(
    name="covariance",
    about="a context's covariance and its spectrum against that of larger contexts",
    tasks=_covariance_tasks,
)

ARTEFACTS = (
    Artefact(
        name="context-sweep", kind="table", paper="Table VIII",
        title="ICW by size of the context, N-1 Most",
        studies=(SWEEPS, SWEEPS_NO_DROPOUT), tables=tabulate_sweep, comments=comment_on_sweep,
    ),
    *(
        Artefact(
            name=f"context-size-{grid.removeprefix('case')}", kind="figure", paper=place,
            title=f"accuracy and cost by size of the context, {label}",
            studies=(SIZES[grid], COVARIANCE), tables=partial(tabulate_size, grid),
            draw=partial(draw_size, grid), comments=partial(comment_on_size, grid),
        )
        for grid, place, label in (
            ("case118", "Fig. 6", "118-Bus"), ("case30", "Fig. 17", "30-Bus"),
        )
    ),
    Artefact(
        name="spectra", kind="figure", paper="Fig. 18",
        title="eigenvalues of the context's covariance", studies=(COVARIANCE,),
        tables=tabulate_spectra, draw=draw_spectra, comments=comment_on_spectra,
    ),
    Artefact(
        name="deviations", kind="figure", paper="Fig. 19",
        title="eigenvalues of the context's covariance against those of a larger one",
        studies=(COVARIANCE,), tables=tabulate_deviations, draw=draw_deviations,
        comments=comment_on_deviations,
    ),
)  # fmt: skip
