"""How far two topologies' outputs are apart, and how they are distributed: what is measured."""

from collections.abc import Sequence
from itertools import product

import numpy as np

from gridshift.adapt.datasets import Dataset, generate
from gridshift.arrays import Real
from gridshift.grid.scenarios import sample_loads, stream
from gridshift.learn.diagnostics import mardia_skewness, mmd, mmd_by_coordinate, mmd_null_band
from gridshift.learn.third_moment import fit_zca_sas
from gridshift.learn.whitening import fit_identity, fit_residual, fit_zca, fit_zscore
from gridshift_paper.protocol import (
    GRIDS,
    SPREAD,
    WIDE_SPREAD,
    Scale,
    context_rows,
    rows_for_test,
    topology,
    training_rows,
)
from gridshift_paper.records import Record, Study, crossed

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
MOMENTS = {
    "same rows": "the rows compared",
    "many": "as many others as trained on",
    "context": "a context",
}
"""From which rows moments are taken."""


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
    scale: Scale, *, grid: str, outage: str, spread: float, loads: str, moments: str, seed: int
) -> list[Record]:
    num_rows = scale.num_test * (1 if spread == SPREAD else 4)
    pair = _pair(grid, outage, num_rows, spread, loads, seed)
    fitted_on = _moment_rows(moments, pair, outage, scale, spread, seed)
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


DISTANCES = Study(
    name="distances",
    about="MMD between the intact grid and its N-2 outage as moments are matched one by one",
    keys=lambda scale: crossed(
        grid=scale.grids_of("case30"), outage=[GRIDS["case30"].double], seed=scale.seeds,
        spread=(SPREAD, WIDE_SPREAD), loads=("same", "independent"), moments=MOMENTS,
    ),
    measure=_measure_distances,
)  # fmt: skip


def _measure_histograms(
    scale: Scale, *, grid: str, outage: str, spread: float, seed: int
) -> list[Record]:
    pair = _pair(grid, outage, 4 * scale.num_test, spread, "independent", seed)
    fitted_on = _moment_rows("many", pair, outage, scale, spread, seed)
    raw = [data.y for data in pair]
    few = slice(scale.num_test)
    worst = np.argsort(-mmd_by_coordinate(raw[0][few], raw[1][few]))[:NUM_WORST]
    white = [fit_zca(y).forward(v) for y, v in zip(fitted_on, raw, strict=True)]
    rows = []
    for (space, samples), (order, column) in product(
        (("raw", raw), ("whitened", white)), enumerate(worst.tolist())
    ):
        a, b = (sample[:, [column]] for sample in samples)
        low, high = np.quantile(np.vstack([a, b]), [0.0005, 0.9995])
        edges = np.linspace(low, high, NUM_BINS + 1)
        entry = pair[0].layout.outputs[column]
        about = {"space": space, "order": order, "entry": entry.name, "unit": entry.unit}
        apart = mmd(a, b)
        for name, sample in (("intact", a), ("outage", b)):
            share = np.histogram(sample, edges)[0] / (len(sample) * np.diff(edges))
            rows += [
                {**about, "topology": name, "left": left, "right": right, "density": density,
                 "mmd": apart, "rows": len(sample)}
                for left, right, density in zip(edges[:-1], edges[1:], share, strict=True)
            ]  # fmt: skip
    return rows


HISTOGRAMS = Study(
    name="histograms",
    about="distributions of the outputs that an N-2 outage moves most, raw and whitened",
    keys=lambda scale: crossed(
        grid=scale.grids_of("case30"), outage=[GRIDS["case30"].double], spread=[WIDE_SPREAD],
        seed=scale.seeds[:1],
    ),
    measure=_measure_histograms,
)  # fmt: skip
