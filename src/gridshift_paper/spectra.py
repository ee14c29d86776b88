"""The spectrum of a context's covariance, and of how many cases it is (Fig. 18, 19)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from gridshift.learn.diagnostics import log_euclidean_distance, spectrum_deviation
from gridshift.learn.moments import EPS, Moments
from gridshift.pictures import GREY, RED
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table
from gridshift_paper.claims import PAPER, Claim, Frame, Note, Numbers, Rows, Undecided
from gridshift_paper.figures import DASHED, WIDE, draw_panels, dress, shared_legend
from gridshift_paper.protocol import GRIDS, Experiment, Scale
from gridshift_paper.records import Record, Study, on_outage
from gridshift_paper.selection import measured, picked

BOTH = ("case30", "case118")
"""Grids whose contexts the paper looks into."""
NUM_DRAWS = 5
REFERENCE = 50
"""Rows of the covariance that others converge to, in contexts: 20,000 at full scale."""
CURVE = (0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3.75, 5)
"""Sizes on the figures, in contexts of the scale: 100 to 2,000 at full scale."""
LEADING = 5
"""Eigenvalues that the tables call leading; the paper names no number."""
LIMITS = (-100, 60)
"""Deviations are drawn between these, in per cent."""
DRAWN = (0, 1, 3, 5, 7, 8)
"""Places of the sizes that get a line in the spectra: 100, 200, 400, 800, 1,500 and 2,000."""


def sizes_of(scale: Scale, factors: Sequence[float]) -> list[int]:
    """Sizes of the context, given in contexts of the scale."""
    return [round(factor * scale.num_context) for factor in factors]


def landmarks(sizes: Sequence[int] | pd.Index) -> tuple[int, int, int]:
    """The smallest size, the paper's, and the largest: 100, 400, 2,000 at full scale."""
    ordered = sorted(set(sizes))
    return ordered[0], ordered[CURVE.index(1)], ordered[-1]


@lru_cache(maxsize=2)
def reference_moments(experiment: Experiment) -> Moments:
    """Moments of a far larger context that shares no row with any other."""
    return Moments.of(experiment.context(REFERENCE * experiment.scale.num_context, draw=-1).y)


def _measure(experiment: Experiment, *, draw: int) -> list[Record]:
    sizes = sizes_of(experiment.scale, CURVE)
    longest = experiment.context(sizes[-1], draw=draw).y
    reference = reference_moments(replace(experiment, seed=0))
    last = Moments.of(longest)
    rows: list[Record] = []
    spectra = {REFERENCE * experiment.scale.num_context: reference}
    for n in sizes:
        spectra[n] = moments = Moments.of(longest[:n])
        nested, far = (
            log_euclidean_distance(moments.covariance, other.covariance)
            for other in (last, reference)
        )
        rows.append({"n": n, "what": "distance", "nested": nested, "independent": far})
    if draw == 0:
        rows += [
            {"n": n, "what": "eigenvalue", "index": index, "eigenvalue": float(value)}
            for n, moments in spectra.items()
            for index, value in enumerate(moments.spectrum.values[::-1], 1)
        ]
    return rows


COVARIANCE = Study(
    name="covariance",
    about="a context's covariance and its spectrum against that of larger contexts",
    keys=lambda scale: on_outage(scale, *BOTH, seed=scale.seeds, draw=range(NUM_DRAWS)),
    measure=_measure,
)


def distance_left(covariance: pd.DataFrame, grid: str, column: str = "nested") -> pd.Series:
    """Log-Euclidean distance at the paper's size over that at the smallest, one a seed."""
    part = picked(covariance, grid=grid, what="distance")
    if not len(part):
        return pd.Series(dtype=float)
    by_size = part.pivot_table(index="seed", columns="n", values=column)
    first, chosen, _ = landmarks(by_size.columns)
    return by_size[chosen] / by_size[first]


def spectra_of(covariance: pd.DataFrame, grid: str) -> list[Frame]:
    """(index by n) eigenvalues, largest first, of each seed that has any."""
    part = picked(covariance, grid=grid, what="eigenvalue")
    return [one.pivot(index="index", columns="n", values="eigenvalue")
            for _, one in (part.groupby("seed") if len(part) else ())]  # fmt: skip


def ranks_of(values: np.ndarray) -> dict[str, float]:
    """What 'effective rank' can mean: name to number of directions."""
    share = values / values.sum()
    positive = share[share > 0]
    return {
        "exp(entropy)": float(np.exp(-(positive * np.log(positive)).sum())),
        "99 % of variance": int((share.cumsum() < 0.99).sum()) + 1,
        "99.99 % of variance": int((share.cumsum() < 0.9999).sum()) + 1,
        f"above {EPS:g}": int((values > EPS).sum()),
    }


def _of_first_seed(rows: Rows) -> dict[str, Frame]:
    """Grid to the spectra of every size of the context."""
    found = {grid: spectra_of(rows["covariance"], grid) for grid in PAPER.rank}
    return {grid: spectra[0] for grid, spectra in found.items() if spectra}


def _at_400(rows: Rows) -> dict[str, np.ndarray]:
    """Spectrum of each grid at the paper's size of the context, largest first."""
    return {
        grid: spectrum[landmarks(spectrum.columns[:-1])[1]].to_numpy()
        for grid, spectrum in _of_first_seed(rows).items()
    }


def _decades(values: np.ndarray) -> float:
    return float(np.log10(values[0] / values[19]))


def tabulate_spectra(rows: Rows) -> Iterator[Table]:
    """What 'effective rank' can mean, at the paper's size of the context."""
    yield Table(
        "Directions of the covariance of 400 cases",
        ["grid", ">d", ">effective\nrank, paper", ">exp(entropy)", ">99 %\nof variance",
         ">99.99 %", f">above {EPS:g}", ">decades\nto 20th"],
        [[GRIDS[grid].label, len(values), PAPER.rank[grid], *ranks_of(values).values(),
          _decades(values)] for grid, values in _at_400(rows).items()],
    )  # fmt: skip


def deviation(spectrum: Frame, n: int, reference: int) -> np.ndarray:
    """(d,) relative deviation of the eigenvalues of n cases from those of the reference."""
    return spectrum_deviation(spectrum[n].to_numpy(), spectrum[reference].to_numpy())


def _leading(spectra: list[Frame], n: int, reference: int) -> float:
    """Largest deviation of a leading eigenvalue over seeds, per cent."""
    return 100 * max(float(np.abs(deviation(s, n, reference)[:LEADING]).max()) for s in spectra)


def _others(spectra: list[Frame], n: int, reference: int) -> float:
    """Median deviation of the others above eps, per cent."""
    found = []
    for spectrum in spectra:
        decided = spectrum[reference].to_numpy()[LEADING:] > EPS
        found.append(np.abs(deviation(spectrum, n, reference)[LEADING:])[decided])
    return 100 * float(np.median(np.concatenate(found)))


def tabulate_deviations(rows: Rows) -> Iterator[Table]:
    """Largest and typical deviations, against the larger context and against other rows."""
    for grid in _of_first_seed(rows):
        spectra = spectra_of(rows["covariance"], grid)
        *sizes, far = spectra[0].columns
        yield Table(
            f"{GRIDS[grid].label}: deviation of eigenvalues, %",
            [">N", ">sqrt(2/N)", f">first {LEADING}, largest\nto N max", ">others, median",
             f">first {LEADING}, largest\nto 10 N max", ">others, median"],
            [[n, 100 * float(np.sqrt(2 / n))]
             + [part(spectra, n, to) for to in (sizes[-1], far) for part in (_leading, _others)]
             for n in sizes],
            "Paper: leading eigenvalues within 5 % at N = 100. sqrt(2/N) is the standard deviation "
            "of one of a normal sample. Others: those above eps.",
        )  # fmt: skip


def _colours(spectra: dict[str, Frame]) -> dict[Any, Any]:
    """A colour for each size that gets a line, light for large ones."""
    sizes = [next(iter(spectra.values())).columns[place] for place in DRAWN]
    norm = LogNorm(sizes[0] * 0.8, sizes[-1] * 1.4)
    return {n: mpl.colormaps["viridis"](norm(n)) for n in sizes}


def draw_spectra(rows: Rows) -> Figure:
    """Eigenvalues of each size in order, down to below the regularisation."""
    spectra = _of_first_seed(rows)

    def panel(axes: Axes, grid: str) -> None:
        spectrum = spectra[grid]
        for n, colour in _colours(spectra).items():
            axes.plot(spectrum.index, spectrum[n], color=colour, lw=1, label=f"{n:,}")
        far = spectrum.columns[-1]
        axes.plot(spectrum.index, spectrum[far], color="black", lw=1, ls=":", label=f"{far:,}")
        axes.axhline(EPS, color=RED, lw=1, ls=DASHED, label="eps")
        low, high = map(int, PAPER.rank[grid].split("-"))
        axes.axvspan(low, high, color="black", alpha=0.12, lw=0, label="paper's rank")
        axes.set_ylim(1e-12, 3 * spectrum.to_numpy().max())

    figure = draw_panels(
        {grid: GRIDS[grid].label for grid in spectra}, panel, "run the study covariance", 2.9,
        x="index of the eigenvalue", y="eigenvalue (p.u.², rad²)", log="y",
    )  # fmt: skip
    shared_legend(figure, "right center", 1, title="solved cases")
    return figure


def draw_deviations(rows: Rows) -> Figure:
    """Relative deviation from the largest size, of the same rows above and of others below."""
    spectra = _of_first_seed(rows)
    measured(rows, "covariance")
    figure = Figure(figsize=(WIDE, 4.6), layout="constrained")
    axes_of = figure.subplots(2, len(spectra), squeeze=False, sharex="col", sharey=True)
    for column, (grid, spectrum) in zip(axes_of.T, spectra.items(), strict=True):
        *_, last, far = spectrum.columns
        for axes, reference, said in (
            (column[0], last, f"the {last:,} it is part of"), (column[1], far, f"{far:,} others"),
        ):  # fmt: skip
            _draw_deviations(axes, spectrum, reference, _colours(spectra))
            axes.set_title(f"{GRIDS[grid].label}, from {said}")
        column[1].set_xlabel("index of the eigenvalue")
    for axes in axes_of[:, 0]:
        axes.set_ylabel("deviation (%)")
    shared_legend(figure, "right center", 1, title="solved cases")
    return figure


def _draw_deviations(axes: Axes, spectrum: Frame, reference: int, colours: dict[Any, Any]) -> None:
    dress(axes)
    for n, colour in colours.items():
        values = 100 * deviation(spectrum, n, reference)
        axes.plot(spectrum.index, values, color=colour, lw=1, label=f"{n:,}")
    few = spectrum.columns[0]
    expected = 100 * np.sqrt(2 / few)
    axes.axhspan(-expected, expected, color=GREY, alpha=0.15, lw=0, label=f"± sqrt(2/{few})")
    axes.axhspan(-PAPER.deviation, PAPER.deviation, 0, LEADING / len(spectrum), color="black",
                 alpha=0.25, lw=0, label=f"paper, ± {PAPER.deviation}")  # fmt: skip
    decided = int((spectrum[spectrum.columns[-1]] > EPS).sum())
    axes.axvline(decided + 0.5, color=RED, lw=1, ls=DASHED, label="eps")
    axes.set_ylim(*LIMITS)


def _ranks(grid: str, rows: Rows) -> dict[str, float]:
    spectra = _at_400(rows)
    return ranks_of(spectra[grid]) if grid in spectra else {}


def _effective_rank(grid: str, rows: Rows) -> Numbers:
    """What may be meant by it; the paper doesn't say."""
    low, high = map(int, PAPER.rank[grid].split("-"))
    ranks = _ranks(grid, rows)
    if {(rank > high) - (rank < low) for rank in ranks.values()} == {-1, 1}:
        raise Undecided("the paper doesn't define effective rank, and of the usual definitions "
                        "some give less than that, some more")  # fmt: skip
    return ranks


def _by_grid(number: Callable[[Rows, str], float]) -> Callable[[Rows], Numbers]:
    """NaN where there are no rows of a grid."""
    return lambda rows: {
        grid: number(rows, grid) if grid in _of_first_seed(rows) else rules.NAN
        for grid in PAPER.rank
    }


def _weights(rows: Rows, grid: str) -> float:
    """What whitening weighs the first direction with, over the last: 1 / sqrt(s + eps)."""
    values = _at_400(rows)[grid]
    return float(np.sqrt((values[-1] + EPS) / (values[0] + EPS)))


def _leading_at(first: int, second: int) -> Callable[[Rows], Numbers]:
    """Largest deviation of a leading eigenvalue, per cent; sizes by their places in the spectra."""

    def number(rows: Rows, grid: str) -> float:
        spectra = spectra_of(rows["covariance"], grid)
        return _leading(spectra, spectra[0].columns[first], spectra[0].columns[second])

    return _by_grid(number)


SPECTRA = (
    *(Claim(f"the covariance of {grid} has an effective rank of {told.replace('-', ' to ')}",
            "by definition", partial(_effective_rank, grid),
            rules.in_one(rules.between(*map(int, told.split("-")))), where="appendix H",
            beside=Note("By usual definitions", partial(_ranks, grid)))
      for grid, told in PAPER.rank.items()),
    Claim("the spectrum decays by 3 to 5 orders of magnitude over the first 10 to 20 indices",
          "orders of magnitude to the 20th", _by_grid(lambda rows, g: _decades(_at_400(rows)[g])),
          rules.between(PAPER.decades[0] - 0.5, PAPER.decades[1] + 0.5), where="appendix H"),
    Claim("the whitening matrix is dominated by the leading eigenpairs",
          "weight of the first direction over that of the last", _by_grid(_weights), rules.above(1),
          where="appendix H",
          why="It weighs a direction with 1 / sqrt(s + eps): small eigenvalues decide it, down to "
          "eps. What adaptation takes of a context is the inverse, which the leading ones do "
          "decide."),
)  # fmt: skip
DEVIATIONS = (
    Claim(f"leading eigenvalues are within {PAPER.deviation} % of the reference at N = 100",
          f"largest deviation of the {LEADING} leading ones and all seeds, 100 cases from 2,000, %",
          _leading_at(0, -2), rules.at_most(PAPER.deviation)),
    Claim("dominant eigenvalues stabilise by N = 200",
          f"largest deviation of the {LEADING} leading ones and all seeds, 200 cases from 2,000, %",
          _leading_at(1, -2), rules.at_most(PAPER.deviation), where="Fig. 18"),
    Claim("eigenvalues at 1,500 cases hardly deviate from those at 2,000, which confirms that "
          "reference as converged",
          f"largest deviation of the {LEADING} leading ones and all seeds, 2,000 cases from 20,000 "
          "others, %",
          _leading_at(-2, -1), rules.at_most(PAPER.deviation),
          beside=Note("Of 1,500 cases from 2,000, which share three quarters of their rows",
                      _leading_at(-3, -2))),
)  # fmt: skip

ARTEFACTS = (
    Artefact("spectra", "Fig. 18", "eigenvalues of the context's covariance", (COVARIANCE,),
             tabulate_spectra, draw_spectra, SPECTRA),
    Artefact("deviations", "Fig. 19",
             "eigenvalues of the context's covariance against those of a larger one",
             (COVARIANCE,), tabulate_deviations, draw_deviations, DEVIATIONS),
)  # fmt: skip
