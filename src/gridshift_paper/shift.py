"""How far two topologies are apart, and which moments account for it (Fig. 3, Fig. 9)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridshift.adapt.datasets import Dataset
from gridshift.arrays import Real
from gridshift.learn.diagnostics import mardia_skewness, mmd, mmd_by_coordinate, mmd_null_band
from gridshift.learn.third_moment import fit_zca_sas
from gridshift.learn.whitening import fit_identity, fit_residual, fit_zca, fit_zscore
from gridshift.pictures import BLUE, GREEN, GREY, ORANGE, RED
from gridshift.study.text import real
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Frame, Note, Numbers, Rows
from gridshift_paper.figures import (
    NARROW,
    PAPERS,
    draw_panels,
    errorbars,
    name_ticks,
    number_ticks,
    shared_legend,
)
from gridshift_paper.protocol import SPREAD, WIDE_SPREAD, Experiment
from gridshift_paper.records import Record, Study, on_outage
from gridshift_paper.selection import by_seed, mean, measured, picked

DISJOINT = 0.9
"""MMD from which the two topologies' values of an output hardly overlap."""
SYMBOLS = {"v": "$|V|$", "theta": r"$\theta$", "q_gen": "$Q_g$", "p_slack": "$P_s$"}
TOPOLOGIES = {"intact": ("intact grid", BLUE), "outage": ("N-2 Most", RED)}
SERIES = {"same rows": (GREEN, "v"), "many": (BLUE, "o"), "context": (ORANGE, "s")}
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


def _pair(experiment: Experiment, num_rows: int, loads: str) -> list[Dataset]:
    """Solved test cases of both topologies, for the same loads or for loads of their own."""
    same = "" if loads == "same" else None
    return [
        one.test(num_rows, loads_of=same) for one in (replace(experiment, outage=""), experiment)
    ]


def _moment_rows(experiment: Experiment, moments: str, pair: Sequence[Dataset]) -> list[Real]:
    """Outputs from which each topology's moments are taken."""
    if moments == "same rows":
        return [data.y for data in pair]
    base = experiment.training()
    few = experiment.scale.num_context if moments == "context" else len(base)
    return [base.y, experiment.context(few).y]


def _measure_distances(experiment: Experiment, *, loads: str, moments: str) -> list[Record]:
    scale, wide = experiment.scale, experiment.spread == WIDE_SPREAD
    pair = _pair(experiment, scale.num_test * (4 if wide else 1), loads)
    fitted_on = _moment_rows(experiment, moments, pair)
    rows = []
    for level in ENDS if wide else LEVELS:
        a, b = (LEVELS[level](y).forward(data.y) for y, data in zip(fitted_on, pair, strict=True))
        row: dict = {
            "level": level, "mmd": mmd(a, b), "rows": len(a), "moment_rows": len(fitted_on[1]),
            "mardia_base": mardia_skewness(a), "mardia_outage": mardia_skewness(b),
        }  # fmt: skip
        if not wide:
            band = mmd_null_band(a, b, NUM_RESAMPLES, np.random.default_rng(experiment.seed))
            row |= {"null_low": band.low, "null_high": band.high}
        elif (loads, moments) == ("independent", "many"):
            few = slice(scale.num_test)
            row["mean_coordinate"] = float(mmd_by_coordinate(a[few], b[few]).mean())
        rows.append(row)
    return rows


DISTANCES = Study(
    name="distances",
    about="MMD between the intact grid and its N-2 outage as moments are matched one by one",
    keys=lambda scale: on_outage(
        scale, "case30", seed=scale.seeds, spread=(SPREAD, WIDE_SPREAD),
        loads=("same", "independent"), moments=MOMENTS,
    ),
    measure=_measure_distances,
)  # fmt: skip


def _measure_histograms(experiment: Experiment) -> list[Record]:
    num_rows = experiment.scale.num_test
    pair = _pair(experiment, 4 * num_rows, "independent")
    fitted_on = _moment_rows(experiment, "many", pair)
    raw, few = [data.y for data in pair], slice(num_rows)
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
    keys=lambda scale: on_outage(scale, "case30", spread=[WIDE_SPREAD], seed=scale.seeds[:1]),
    measure=_measure_histograms,
)


def mmd_drop(rows: Rows, loads: str, moments: str, column: str = "mmd") -> Frame:
    """Factor by which whitening lowers the joint MMD at ±50 %, one a seed (paper: 28.9).

    Args:
        rows: of the study `distances`.
        loads: 'same' on both topologies, or 'independent'.
        moments: one of `MOMENTS`.
        column: 'mean_coordinate' for the mean over each output's own MMD.
    """
    chosen = picked(rows["distances"], spread=WIDE_SPREAD, moments=moments, loads=loads)
    before, after = (by_seed(chosen, column, level=level) for level in ENDS)
    return before / after


def at_level(rows: Rows, level: str, moments: str = "many", loads: str = "independent") -> Frame:
    """Rows of one level at loads of ±20 %, one a seed."""
    return picked(rows["distances"], level=level, spread=SPREAD, moments=moments, loads=loads)


def _tables_of_shift(rows: Rows) -> Iterator[Table]:
    """The factor of the caption, for every way to take moments, and the outputs drawn."""
    measured(rows, "distances")
    yield Table(
        "How much closer ICW brings the topologies",
        ["loads", "moments of", ">paper", ">joint, times", ">each, times"],
        [[loads, said, PAPER.drop if (loads, moments) == ("independent", "many") else None,
          *(mean_and_spread(mmd_drop(rows, loads, moments, column))
            for column in ("mmd", "mean_coordinate"))]
         for loads in ("independent", "same") for moments, said in MOMENTS.items()],
        "Spread ±50 %. Joint: MMD of all outputs before over after; each: the mean over "
        "outputs of each one's own MMD. The paper doesn't say from which rows its moments are.",
    )  # fmt: skip
    drawn = measured(rows, "histograms").groupby(["order", "entry", "space"]).mmd.first().unstack()
    yield Table(
        "MMD of the outputs in the picture",
        ["output", ">raw", ">whitened"],
        [[entry, row.raw, row.whitened] for (_, entry), row in drawn.iterrows()],
    )


def _tables_of_moments(rows: Rows) -> Iterator[Table]:
    """MMD at each level; the paper's beside it."""
    levels = dict.fromkeys(measured(rows, "distances").level)
    for loads, said in (("independent", "of their own"), ("same", "the same")):
        floor = at_level(rows, "mean, covariance", loads=loads)
        yield Table(
            f"MMD, loads {said}, ±20 %", ["matched", ">paper", ">same rows", ">many", ">context"],
            [[level, PAPER.mmd.get(level),
              *(mean_and_spread(at_level(rows, level, m, loads)["mmd"]) for m in MOMENTS)]
             for level in levels],
            "Dealing the whitened rows to two samples at random gives "
            f"{real(mean(floor.null_low))} to {real(mean(floor.null_high))} in 95 of 100 cases; "
            f"the paper's noise floor is {PAPER.floor}.",
        )  # fmt: skip


def draw_shift(rows: Rows) -> Figure:
    """Three outputs, raw on the left and whitened on the right, each on both topologies."""
    frame = measured(rows, "histograms")
    orders = sorted(set(frame.order))
    figure = Figure(figsize=(NARROW, 1.0 + 1.15 * len(orders)), layout="constrained")
    grid = figure.subplots(len(orders), 2, squeeze=False)
    for order, axes_row in zip(orders, grid, strict=True):
        for space, axes in zip(("raw", "whitened"), axes_row, strict=True):
            part = frame[(frame.order == order) & (frame.space == space)]
            for name, (label, colour) in TOPOLOGIES.items():
                bars = part[part.topology == name]
                edges = np.append(bars.left, bars.right.iloc[-1])
                axes.stairs(bars.density, edges, fill=True, color=colour, alpha=0.3)
                axes.stairs(bars.density, edges, color=colour, lw=1, label=label)
            first = part.iloc[0]
            quantity, element = first.entry.replace(":", " ").split(" ", 1)
            name = f"{SYMBOLS[quantity]} of {element} ({first.unit})"
            axes.set_xlabel(name if space == "raw" else f"whitened coordinate {order + 1}")
            axes.set_title(f"MMD {first.mmd:.2g}", loc="right")
            axes.set_yticks([])
            axes.set_ylim(bottom=0)
        axes_row[0].set_ylabel("density")
    for axes, space in zip(grid[0], ("raw", "whitened"), strict=True):
        axes.set_title(space, fontweight="bold")
    shared_legend(figure, "upper center", 2)
    return figure


def draw_moments(rows: Rows) -> Figure:
    """MMD at each level, beside the paper's and the band that no shift at all would give."""
    levels = list(dict.fromkeys(measured(rows, "distances").level))
    at, bands = np.arange(len(levels)), [at_level(rows, level) for level in levels]

    def panel(axes: Axes, _: str) -> None:
        low, high = ([b[column].mean() for b in bands] for column in ("null_low", "null_high"))
        axes.fill_between(at, low, high, color=GREY, alpha=0.3, lw=0, label="no shift (95 %)")
        for moments, (colour, marker) in SERIES.items():
            cells = [at_level(rows, level, moments).mmd for level in levels]
            errorbars(axes, at, cells, color=colour, marker=marker, ms=4, lw=1,
                      label=f"moments of {MOMENTS[moments]}")  # fmt: skip
        told = [PAPER.mmd.get(level, np.nan) for level in levels]
        axes.plot(at, told, label="paper", **PAPERS)
        number_ticks(axes.yaxis, [0.02, 0.05, 0.1, 0.2, 0.5, 1])
        axes.set_ylim(0.015, 1.3)
        name_ticks(axes, [level.replace(", ", ",\n").replace("and ", "and\n") for level in levels])

    return draw_panels(
        {"": ""}, panel, "distances", 3.3, x="matched between the topologies",
        y="MMD of all outputs", log="y", legend="upper left", columns=1,
    )  # fmt: skip


def _drops(*which: str) -> Callable[[Rows], Numbers]:
    """Factor of the joint MMD, with moments of these rows."""
    return lambda rows: {
        f"moments of {MOMENTS[m]}": mean(mmd_drop(rows, "independent", m)) for m in which
    }


def _own_mmd(rows: Rows) -> Numbers:
    """Of the outputs drawn, each by itself."""
    by_entry = measured(rows, "histograms").groupby(["space", "entry"]).mmd.first()
    raw, whitened = by_entry["raw"], by_entry["whitened"]
    return {"smallest before": raw.min(), "smallest before over after": (raw / whitened).min()}


def _mmd(rows: Rows, level: str, moments: str = "same rows", column: str = "mmd") -> float:
    measured(rows, "distances")
    return mean(at_level(rows, level, moments)[column])


def _over(level: str, other: str, *of: str):
    """A number of one level over that of another one; `of`: moments and column."""
    return lambda rows: {"": _mmd(rows, level, *of) / _mmd(rows, other, *of)}


def _fall(rows: Rows) -> Numbers:
    """Largest deviation from the paper's three numbers, for every way to read its text."""
    return {
        reading: max(abs(mean(at_level(rows, level, *how).mmd) / told - 1)
                     for level, told in PAPER.mmd.items())
        for reading, how in _readings(rows)
    }  # fmt: skip


def _over_noise(rows: Rows) -> Numbers:
    """MMD of two matched moments over its noise, for every way to read the text."""
    at = {reading: at_level(rows, TWO, *how) for reading, how in _readings(rows)}
    return {reading: mean(found.mmd) / mean(found.null_high) for reading, found in at.items()}


def _readings(rows: Rows) -> Iterator[tuple[str, tuple[str, str]]]:
    """Of the paper's text: which moments are matched, and whether loads are the same."""
    measured(rows, "distances")
    drawn = {"same": "the same loads", "independent": "loads of their own"}
    for loads, moments in product(drawn, MOMENTS):
        yield f"{drawn[loads]} and moments of {MOMENTS[moments]}", (moments, loads)


TWO = "mean, covariance"
ON_SHIFT = (
    Claim(f"ICW lowers the joint MMD {PAPER.drop} times at loads of ±50 %", "before over after",
          _drops("many"), rules.NEAR, PAPER.drop, "caption of Fig. 3",
          Note("With other moments", _drops("same rows", "context"))),
    Claim("the three outputs that move most are nearly disjoint between the topologies, and "
          "collapse onto each other after ICW",
          "MMD of each output by itself", _own_mmd,
          rules.above({"smallest before": DISJOINT, "smallest before over after": 10})),
)  # fmt: skip
ON_MOMENTS = (
    Claim("MMD falls from 0.923 to 0.045 with the mean and to 0.029 with mean and covariance",
          "largest relative deviation from these; the paper doesn't tell which rows it takes",
          _fall, rules.in_one(rules.at_most(rules.TOLERANCE)), where="appendix A"),
    Claim(f"the last of these is at the sampling noise floor, 1 / sqrt(N) = {PAPER.floor}, and "
          "indistinguishable from noise",
          "MMD, with moments of the rows compared, over the upper end of the band that random "
          "deals give",
          lambda rows: {"": _mmd(rows, TWO) / _mmd(rows, TWO, column="null_high")},
          rules.at_most(1), where="appendix A",
          beside=Note("The same by every way to read the text", _over_noise)),
    Claim("z-score normalisation reduces MMD less than ZCA does", "MMD left over ZCA's",
          _over("mean, variance", TWO), rules.above(1), where="remark 3"),
    Claim("matching the third moment can't lower MMD any further",
          "MMD left over that of two moments", _over("and skewness", TWO), rules.at_least(1),
          where="appendix A"),
    Claim("Mardia's skewness is unchanged by ICW, as by every nonsingular affine map",
          "that of the outage's rows, after over before",
          _over(TWO, "nothing", "many", "mardia_outage"), rules.between(0.999, 1.001),
          where="section III"),
)  # fmt: skip

ARTEFACTS = (
    Artefact("operator-shift", "Fig. 3",
             "distributions of the outputs that two lost lines move most, raw and whitened",
             (DISTANCES, HISTOGRAMS), _tables_of_shift, draw_shift, ON_SHIFT),
    Artefact("mmd-by-moment", "Fig. 9", "distance between the topologies as moments are matched",
             (DISTANCES,), _tables_of_moments, draw_moments, ON_MOMENTS),
)  # fmt: skip
