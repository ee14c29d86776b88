"""The paper's variants on the intact grid and on both standard outages, and levels beside them.

What Table II and Figures 4, 10, 11 and 12 are drawn from.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate import Surrogate, fit_output_transform
from gridshift.adapt.surrogate_config import PRODUCT_TRAINING
from gridshift.learn.moments import EPS
from gridshift.learn.regression import RegressionConfig
from gridshift.learn.third_moment import SkewCorrected
from gridshift.learn.whitening import fit_zca
from gridshift.peers.clock import least_cpu_seconds
from gridshift.trial.metrics import mean_absolute_errors, mismatch_summary
from gridshift_paper.claims import Frame, Rows
from gridshift_paper.protocol import (
    EXACT,
    GRIDS,
    WIDE,
    Scale,
    adapted,
    base_config,
    base_surrogate,
    changed,
    context_rows,
    errors_of,
    errors_where_given,
    exact_base,
    given,
    network_of,
    reference_levels,
    standard_tests,
    surrogate_without_dropout,
    trained,
    training_rows,
)
from gridshift_paper.records import Key, Record, Study, crossed
from gridshift_paper.selection import picked

WITH_CONTEXT = {"residual": "residual", "zscore": "zscore", "zca": "icw", "zca-sas": "icw-sas"}
"""Transform to the method that re-estimates it from a context; 'identity' has no statistics."""
VARIANTS_OF = {
    ("case30", "mlp"): ("identity", *WITH_CONTEXT),
    ("case30", "transformer"): ("identity", *WITH_CONTEXT),
    ("case30", "pfgnn"): ("identity", "residual", "zscore", "zca"),
    ("case118", "mlp"): ("identity", "residual", "zscore", "zca"),
    ("case300", "mlp"): ("zca",),
    ("case300", EXACT): ("zca",),
    ("case300", WIDE): ("zca",),
}
"""Grid and backbone to the transforms measured; the third moment is on case30 in the paper."""
ONE_SEED = (WIDE,)
"""Backbones that are trained with the first seed alone: a training takes 40 minutes."""
NUM_TIMINGS = 5
"""Of which the fastest counts, in CPU time: a busy machine changes it little."""
NUM_DRAWS = 5
"""Contexts of each seed that errors on case30 are averaged over, 15 in all at full scale."""


def context_sizes(scale: Scale, grid: str) -> tuple[int, ...]:
    """The paper has ten times the context for the 300-bus system in Fig. 4."""
    n = scale.num_context
    return (n, 10 * n) if grid == "case300" else (n,)


def measure_surrogate(scale: Scale, surrogate: Surrogate, seed: int) -> list[Record]:
    """Rows of one trained surrogate: topologies x statistics of the base or of a context."""
    grid, rows = surrogate.grid, []
    for topology, test in standard_tests(scale, grid, seed):
        for n in context_sizes(scale, grid):
            context = context_rows(grid, topology["outage"], n, seed=seed)
            for statistics, fit in _adaptations(surrogate, Context.of(context)).items():
                if statistics == "frozen" and n != scale.num_context:
                    continue
                about = {
                    "statistics": statistics, "num_context": 0 if statistics == "frozen" else n,
                    "num_steps": surrogate.config.training.num_steps,
                }  # fmt: skip
                rows.append(topology | about | evaluate(fit, test))
    return rows


def _adaptations(surrogate: Surrogate, context: Context) -> dict[str, Callable[[], Predictor]]:
    """'frozen'; 'ctx', unless the transform has no statistics; for a third moment 'ctx-2' too.

    For a backbone that takes a graph also 'ctx-intact', where it keeps the intact grid's.
    """
    fits: dict[str, Callable[[], Predictor]] = {}
    fits["frozen"] = partial(METHODS["frozen"].fit, surrogate, context)
    base = surrogate.transform
    if base.name in WITH_CONTEXT:
        method, backbone = METHODS[WITH_CONTEXT[base.name]], surrogate.config.backbone
        assert not isinstance(backbone, RegressionConfig)  # the paper has networks alone
        fits["ctx"] = partial(method.fit, surrogate, context)
        if backbone.needs_graph:
            fits["ctx-intact"] = partial(method.adapt, surrogate, context)
    if isinstance(base, SkewCorrected):
        fits["ctx-2"] = lambda: _with_skew_of_base(surrogate, base, context)
    return fits


def _with_skew_of_base(surrogate: Surrogate, base: SkewCorrected, context: Context) -> Predictor:
    """Mean and covariance of the context, skewness as trained: no third moment is sampled."""
    whitening = fit_zca(context.y, eps=base.eps)
    return surrogate.on(context.network).with_transform(replace(base, whitening=whitening))


def evaluate(fit: Callable[[], Any], test: Dataset) -> dict[str, Any]:
    """Errors, mismatch and CPU seconds of what `fit` returns, on rows of one topology."""
    predictor = fit()
    y_hat = predictor.predict(test.x)
    fit_s = least_cpu_seconds(fit, repeats=NUM_TIMINGS)
    predict_s = least_cpu_seconds(lambda: predictor.predict(test.x), repeats=NUM_TIMINGS)
    layout = test.layout
    load_power = layout.unpack_loads(test.x).load_power
    mismatch = mismatch_summary(test.network, layout.unpack_voltage(test.x, y_hat), load_power)
    return {
        **mean_absolute_errors(layout, test.y, y_hat),
        "mismatch_median": mismatch["median"],
        "fit_s": fit_s,
        "predict_1000_s": predict_s * 1000 / len(test),
        "num_test": len(test),
        "num_test_failed": test.num_solves - len(test),
    }


def measure_variant(
    scale: Scale, *, grid: str, backbone: str, transform: str, seed: int,
    num_steps: int | None = None, dropout: float | None = None,
) -> list[Record]:  # fmt: skip
    """Rows of one of the paper's surrogates, perhaps trained for other steps or dropout."""
    if backbone == EXACT:
        return _around_exact(scale, grid, seed)
    config = base_config(scale, backbone=backbone, transform=transform, seed=seed)
    config = changed(config, num_steps=num_steps, dropout=dropout)
    return measure_surrogate(scale, trained(grid, config), seed)


def _around_exact(scale: Scale, grid: str, seed: int) -> list[Record]:
    """The same errors of exact solutions of the intact grid, in the place of a surrogate."""
    old, rows = fit_zca(training_rows(scale, grid, seed=seed).y), []
    for topology, test in standard_tests(scale, grid, seed):
        y_base = exact_base(grid, test)
        about = topology | {"num_test": int(given(y_base).sum())}
        rows.append(about | {"statistics": "frozen", "num_context": 0}
                    | errors_where_given(test, y_base))  # fmt: skip
        for n in context_sizes(scale, grid):
            context = context_rows(grid, topology["outage"], n, seed=seed)
            y_hat = fit_zca(context.y).inverse(old.forward(y_base))
            rows.append(about | {"statistics": "ctx", "num_context": n}
                        | errors_where_given(test, y_hat))  # fmt: skip
    return rows


def _variants(scale: Scale) -> Iterator[Key]:
    for seed in scale.seeds:
        for (grid, backbone), transforms in VARIANTS_OF.items():
            if backbone in ONE_SEED and seed != scale.seeds[0]:
                continue
            for transform in transforms if grid in scale.grids else ():
                yield {"grid": grid, "backbone": backbone, "transform": transform, "seed": seed}


VARIANTS = Study(
    name="variants",
    about="errors of each backbone and output transform on three topologies, with the base's "
    "statistics and with a context's",
    keys=_variants,
    measure=measure_variant,
)


def _longer(scale: Scale) -> Iterator[Key]:
    for backbone, transform in (("transformer", "identity"), ("pfgnn", "zca")):
        if scale.steps(backbone) < scale.num_steps:
            yield from crossed(grid=scale.grids_of("case30"), backbone=[backbone],
                               transform=[transform], num_steps=[scale.num_steps],
                               seed=scale.seeds)  # fmt: skip


LONGER = Study(
    name="longer",
    about="what this scale trains for fewer steps than the MLP, trained for as many",
    keys=_longer,
    measure=measure_variant,
)


def _no_dropout(scale: Scale) -> Iterator[Key]:
    about = {"backbone": ["pfgnn"], "transform": ["zca"]}
    yield from crossed(grid=scale.grids_of("case30"), **about, seed=scale.seeds)
    if scale.steps("pfgnn") < scale.num_steps:
        yield from crossed(grid=scale.grids_of("case30"), **about, seed=scale.seeds,
                           num_steps=[scale.num_steps])  # fmt: skip


PFGNN_NO_DROPOUT = Study(
    name="pfgnn-no-dropout",
    about="the graph network with ZCA, trained without dropout, for this scale's steps and for as "
    "many as the MLP",
    keys=_no_dropout,
    measure=partial(measure_variant, dropout=0.0),
)
NO_DROPOUT = Study(
    name="no-dropout",
    about="the same of a surrogate that fits the intact grid better: what is left to the network",
    keys=lambda scale: crossed(seed=scale.seeds, grid=scale.grids_of(*GRIDS)),
    measure=lambda scale, grid, seed: measure_surrogate(
        scale, surrogate_without_dropout(scale, grid, seed=seed), seed
    ),
)
CHANGES = {
    "dropout": {"dropout": 0.0},
    "learning rate": {"learning_rate": PRODUCT_TRAINING.learning_rate},
    "steps": {"num_steps": PRODUCT_TRAINING.num_steps},
}
"""What the product's network differs in from the paper's, one at a time."""


def _measure_change(scale: Scale, *, grid: str, change: str, seed: int) -> list[Record]:
    config = changed(base_config(scale, seed=seed), **CHANGES[change])
    config = changed(config, num_steps=min(config.training.num_steps, scale.num_steps))
    return measure_surrogate(scale, trained(grid, config), seed)


ONE_CHANGE = Study(
    name="one-change",
    about="the paper's MLP with one setting as the product has it: dropout, learning rate or steps",
    keys=lambda scale: crossed(seed=scale.seeds, grid=scale.grids_of("case30", "case118"),
                               change=CHANGES),
    measure=_measure_change,
)  # fmt: skip


def _measure_references(scale: Scale, *, grid: str, seed: int) -> Sequence[Record]:
    """Rows of one grid: topologies x (mean of the context, perfect surrogate of each transform)."""
    training = training_rows(scale, grid, seed=seed)
    transforms = {t: fit_output_transform(t, training.y, EPS) for t in WITH_CONTEXT}
    rows: list[Record] = []
    for topology, test in standard_tests(scale, grid, seed):
        for n in context_sizes(scale, grid):
            context = context_rows(grid, topology["outage"], n, seed=seed)
            for level, y_hat in reference_levels(grid, context, test, transforms).items():
                about = {"topology": topology["topology"], "reference": level, "num_context": n}
                num = int(given(y_hat).sum())
                counts = {"num_test": num, "num_without_base_solution": len(test) - num}
                rows.append(about | errors_where_given(test, y_hat) | counts)
    return rows


REFERENCES = Study(
    name="references",
    about="errors of the context's mean, and of adaptation around exact solutions of the intact "
    "grid, for each output transform",
    keys=lambda scale: crossed(grid=scale.grids_of(*GRIDS), seed=scale.seeds),
    measure=_measure_references,
)


def _measure_draws(scale: Scale, *, grid: str, transform: str, seed: int) -> list[Record]:
    """Errors with several contexts of each topology, and how far off the mean load of each is."""
    base, rows = base_surrogate(scale, grid, transform=transform, seed=seed), []
    for topology, test in standard_tests(scale, grid, seed):
        rows.append(topology | {"statistics": "frozen", "draw": 0} | errors_of(base, test))
        for draw in range(NUM_DRAWS):
            context = context_rows(grid, topology["outage"], scale.num_context, seed=seed,
                                   draw=draw)  # fmt: skip
            total = context.x[:, context.layout.x_slices["p_load"]].sum(1)
            off = total.mean() - network_of(grid).load_power.real.sum()
            about = {"statistics": "ctx", "draw": draw,
                     "load_sigma": float(off / total.std(ddof=1) * len(total) ** 0.5)}  # fmt: skip
            fitted = adapted(WITH_CONTEXT[transform], base, context)
            rows.append(topology | about | errors_of(fitted, test))
    return rows


DRAWS = Study(
    name="context-draws",
    about="errors on case30 with several contexts of each topology, by output transform",
    keys=lambda scale: crossed(grid=scale.grids_of("case30"), transform=["zca", "zscore",
                                                                         "residual"],
                               seed=scale.seeds),
    measure=_measure_draws,
)  # fmt: skip


def drawn(rows: Rows, topology: str, quantity: str, statistics: str = "ctx") -> Frame:
    """Error of ICW, or frozen, on case30 by seed: the mean over several contexts."""
    part = picked(rows[DRAWS.name], transform="zca", topology=topology, statistics=statistics)
    return part.groupby("seed")[quantity].mean() if len(part) else part


def drawn_factor(rows: Rows, topology: str, quantity: str) -> Frame:
    """Frozen over ICW by seed."""
    frozen = drawn(rows, topology, quantity, "frozen")
    return frozen / drawn(rows, topology, quantity) if len(frozen) else frozen
