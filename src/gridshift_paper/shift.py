"""How far two topologies are apart, and which moments account for it (Fig. 3, Fig. 9, Table V)."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from gridshift.adapt.datasets import Dataset, generate
from gridshift.arrays import Real
from gridshift.grid.scenarios import sample_loads, stream
from gridshift.learn.diagnostics import mardia_skewness, mmd, mmd_by_coordinate, mmd_null_band
from gridshift.learn.third_moment import (
    STEEPEST,
    SinhArcsinh,
    SkewCorrected,
    fit_cornish_fisher,
    fit_zca_sas,
)
from gridshift.learn.whitening import fit_identity, fit_residual, fit_zca, fit_zscore
from gridshift_paper.artefacts import Artefact
from gridshift_paper.protocol import (
    SPREAD,
    WIDE_SPREAD,
    PaperGrid,
    Scale,
    context_rows,
    rows_for_test,
    topology,
)
from gridshift_paper.records import Record, Study, Task
from gridshift_paper.references import training_rows
from gridshift_paper.shift_claims import (
    comment_on_moments,
    comment_on_round_trip,
    comment_on_shift,
)
from gridshift_paper.shift_figures import draw_moments, draw_shift
from gridshift_paper.shift_tables import tabulate_moments, tabulate_round_trip, tabulate_shift

NUM_RESAMPLES = 200
"""Deals of the rows to two samples behind the band without shift."""
NUM_BINS = 60
NUM_WORST = 3
"""Coordinates in the figure: those with the largest discrepancy."""

LEVELS = {
    "nothing": fit_identity,
    "mean": fit_residual,
    "mean, variance": fit_zscore,
    "mean, covariance": fit_zca,
    "and skewness": fit_zca_sas,
}
"""What is matched between the topologies."""
ENDS = ("nothing", "mean, covariance")
"""Before and after in-context whitening."""


def _pair(grid: str, outage: str, num_rows: int, spread: float, loads: str, seed: int) -> tuple:
    """Solved test cases of both topologies, for the same loads or for loads of their own."""
    if loads == "independent":
        return tuple(
            rows_for_test(grid, o, num_rows, seed=seed, spread=spread) for o in ("", outage)
        )
    pair = []
    for at in ("", outage):
        network = topology(grid, at)
        rng = stream(network.name, "test", seed=seed)
        pair.append(
            generate(network, sample_loads(network, rng, num_rows, spread=spread, regime="drawn"))
        )
    return tuple(pair)


def _moment_rows(
    moments: str, pair: Sequence[Dataset], outage: str, scale: Scale, spread: float, seed: int
) -> list[Real]:
    """Outputs from which each topology's moments are taken."""
    if moments == "same rows":
        return [data.y for data in pair]
    grid = pair[0].network.name
    base = training_rows(scale, grid, seed=seed, spread=spread)
    few = scale.num_context if moments == "context" else len(base)
    return [base.y, context_rows(grid, outage, few, seed=seed, spread=spread).y]


def _measure_distances(
    case: PaperGrid, scale: Scale, *, spread: float, loads: str, moments: str, seed: int
) -> list[Record]:
    num_rows = scale.num_test * (1 if spread == SPREAD else 4)
    pair = _pair(case.name, case.double, num_rows, spread, loads, seed)
    fitted_on = _moment_rows(moments, pair, case.double, scale, spread, seed)
    wide = spread == WIDE_SPREAD
    rows = []
    for level in ENDS if wide else LEVELS:
        a, b = (LEVELS[level](y).forward(data.y) for y, data in zip(fitted_on, pair, strict=True))
        row: dict = {
            "level": level, "mmd": mmd(a, b), "rows": len(a), "moment_rows": len(fitted_on[1]),
            "mardia_base": mardia_skewness(a), "mardia_outage": mardia_skewness(b),
        }  # fmt: skip
        if not wide:
            band = mmd_null_band(a, b, NUM_RESAMPLES, np.random.default_rng(seed))
            row |= {"null_low": band.low, "null_high": band.high}
        elif (loads, moments) == ("independent", "many"):
            few = slice(scale.num_test)
            row["mean_coordinate"] = float(mmd_by_coordinate(a[few], b[few]).mean())
        rows.append(row)
    return rows


def _distance_tasks(scale: Scale) -> Iterator[Task]:
    for case in scale.cases("case30"):
        for seed in scale.seeds:
            for spread in (SPREAD, WIDE_SPREAD):
                for loads in ("same", "independent"):
                    for moments in ("same rows", "many", "context"):
                        what = {"spread": spread, "loads": loads, "moments": moments, "seed": seed}
                        yield Task(
                            key={"grid": case.name, "outage": case.double, **what},
                            measure=partial(_measure_distances, case, scale, **what),
                        )


DISTANCES = Study(
    name="distances",
    about="MMD between the intact grid and its N-2 outage as moments are matched one by one",
    tasks=_distance_tasks,
)


def _measure_histograms(case: PaperGrid, scale: Scale, seed: int) -> list[Record]:
    pair = _pair(case.name, case.double, 4 * scale.num_test, WIDE_SPREAD, "independent", seed)
    fitted_on = _moment_rows("many", pair, case.double, scale, WIDE_SPREAD, seed)
    raw = [data.y for data in pair]
    few = slice(scale.num_test)
    worst = np.argsort(-mmd_by_coordinate(raw[0][few], raw[1][few]))[:NUM_WORST]
    white = [fit_zca(y).forward(v) for y, v in zip(fitted_on, raw, strict=True)]
    rows = []
    for space, samples in (("raw", raw), ("whitened", white)):
        for order, column in enumerate(worst.tolist()):
            a, b = (sample[:, [column]] for sample in samples)
            low, high = np.quantile(np.vstack([a, b]), [0.0005, 0.9995])
            edges = np.linspace(low, high, NUM_BINS + 1)
            entry, apart = pair[0].layout.outputs[column], mmd(a, b)
            for name, sample in (("intact", a), ("outage", b)):
                share = np.histogram(sample, edges)[0] / (len(sample) * np.diff(edges))
                rows += [
                    {
                        "space": space, "order": order, "entry": entry.name, "unit": entry.unit,
                        "topology": name, "left": left, "right": right, "density": density,
                        "mmd": apart, "rows": len(sample),
                    }
                    for left, right, density in zip(edges[:-1], edges[1:], share, strict=True)
                ]  # fmt: skip
    return rows


def _histogram_tasks(scale: Scale) -> Iterator[Task]:
    for case in scale.cases("case30"):
        for seed in scale.seeds[:1]:
            yield Task(
                key={"grid": case.name, "outage": case.double, "spread": WIDE_SPREAD, "seed": seed},
                measure=partial(_measure_histograms, case, scale, seed),
            )


HISTOGRAMS = Study(
    name="histograms",
    about="distributions of the outputs that an N-2 outage moves most, raw and whitened",
    tasks=_histogram_tasks,
)


def _round_trip(z: Real, transform: SkewCorrected, y: Real) -> dict[str, float]:
    """Errors of there and back, in z (paper) with double and single precision, and in y."""
    errors = {"_y": np.abs(transform.inverse(transform.forward(y)) - y)}
    for name, precision in (("", np.float64), ("_single", np.float32)):
        given: Any = z.astype(precision)
        sas = SinhArcsinh(skew=cast(Any, transform.skew.astype(precision)))
        errors[name] = np.abs(sas.inverse(sas.forward(given)) - given)
    means = {f"mean{name}": float(error.mean()) for name, error in errors.items()}
    return means | {f"max{name}": float(error.max()) for name, error in errors.items()}


def _measure_round_trip(case: PaperGrid, scale: Scale, seed: int) -> list[Record]:
    trained_on = training_rows(scale, case.name, seed=seed).y
    context = context_rows(case.name, case.double, scale.num_context, seed=seed).y
    validation = rows_for_test(case.name, "", scale.num_test, seed=seed).y
    rows = []
    for name, fitted_on, y in (
        ("training", trained_on, trained_on),
        ("context", context, context),
        ("validation", trained_on, validation),
    ):
        transform = fit_zca_sas(fitted_on)
        z = transform.whitening.forward(y)
        parabola = fit_cornish_fisher(transform.whitening.forward(fitted_on))
        folded = parabola.folded(z)
        lost = np.abs(parabola.inverse(parabola.forward(z)) - z)
        rows.append(
            {
                "set": name, "rows": len(y), **_round_trip(z, transform, y),
                "largest_skew": float(np.abs(transform.skew).max()),
                "ended": int((np.abs(transform.skew) > STEEPEST - 1e-6).sum()),
                "folded": float(folded.mean()), "folded_rows": float(folded.any(1).mean()),
                "folded_max": float(lost.max()),
            }
        )  # fmt: skip
    return rows


def _round_trip_tasks(scale: Scale) -> Iterator[Task]:
    for case in scale.cases("case30"):
        for seed in scale.seeds:
            yield Task(
                key={"grid": case.name, "outage": case.double, "seed": seed},
                measure=partial(_measure_round_trip, case, scale, seed),
            )


ROUND_TRIP = Study(
    name="round-trip",
    about="errors of the sinh-arcsinh map and its inverse on solved cases",
    tasks=_round_trip_tasks,
)


ARTEFACTS = (
    Artefact(
        name="operator-shift", kind="figure", paper="Fig. 3",
        title="distributions of the outputs that two lost lines move most, raw and whitened",
        studies=(DISTANCES, HISTOGRAMS), tables=tabulate_shift, draw=draw_shift,
        comments=comment_on_shift,
    ),
    Artefact(
        name="mmd-by-moment", kind="figure", paper="Fig. 9",
        title="distance between the topologies as moments are matched",
        studies=(DISTANCES,), tables=tabulate_moments, draw=draw_moments,
        comments=comment_on_moments,
    ),
    Artefact(
        name="round-trip", kind="table", paper="Table V",
        title="invertibility of the sinh-arcsinh map", studies=(ROUND_TRIP,),
        tables=tabulate_round_trip, comments=comment_on_round_trip,
    ),
)  # fmt: skip
