"""Pictures of how errors and covariances change with the size of the context."""

# pandas comes without types that could be checked
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation

from gridshift.errors import GridshiftError
from gridshift.learn.moments import EPS
from gridshift.study.figures import BLUE, GREEN, GREY, RED
from gridshift_paper.artefacts import Rows
from gridshift_paper.context_spectra import PAPER_RANK, deviation, spectrum_of
from gridshift_paper.context_tables import landmarks
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import picked, spread

LIMITS = (-100, 60)
"""Deviations are drawn between these, in per cent."""
DRAWN = (0, 1, 3, 5, 7, 8)
"""Places of the sizes that get a line in the spectra: 100, 200, 400, 800, 1,500 and 2,000."""


def draw_size(grid: str, rows: Rows) -> Figure:
    """Errors and the time that they cost above, distance of the covariance below."""
    errors, covariance = rows[f"context-size-{grid}"], rows["covariance"]
    if not len(errors) or not len(covariance):
        raise GridshiftError(
            f"nothing measured yet: run the studies context-size-{grid} and covariance"
        )
    figure = Figure(figsize=(3.5, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_errors(upper, errors.loc[errors["n"] > 0])
    part = picked(covariance, grid=grid, what="distance")
    for column, colour, style, label in (
        ("nested", BLUE, "-", "to $N_{max}$, which holds the same cases"),
        ("independent", RED, "--", "to ten times as many others"),
    ):
        _band(lower, part, column, colour, style, label)
    lower.set_ylabel("log-Euclidean\ndistance", fontsize=8)
    lower.set_xlabel("solved cases in the context", fontsize=8)
    lower.set_ylim(0, 1.5 * part["independent"].max())
    lower.legend(fontsize=7, loc="upper right")
    chosen = landmarks([n for n in set(errors.n) if n])[1]
    for axes in (upper, lower):
        axes.axvline(chosen, color=GREY, lw=1, ls=(0, (4, 3)), zorder=0)
        axes.tick_params(labelsize=8)
        axes.grid(axis="y")
    return figure


def _draw_errors(axes: Axes, errors: pd.DataFrame) -> None:
    lost = next(iter(set(errors.outage) - {""}), "")
    for outage, method, colour, style, label in (
        (lost, "icw", RED, "-", "ICW, N-2 Most"),
        (lost, "perfect", RED, ":", "perfect base, N-2 Most"),
        ("", "icw", BLUE, "-", "ICW, intact grid"),
    ):
        _band(axes, picked(errors, outage=outage, method=method), "overall", colour, style, label)
    axes.set_yscale("log")
    axes.yaxis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(1, 0.5)))
    axes.tick_params(axis="y", which="minor", labelsize=7)
    axes.set_ylabel("overall MAE (p.u., rad)", fontsize=8)
    cost = axes.twinx()
    fastest = 1e3 * errors.groupby("n").collect_s.min()
    cost.plot(fastest.index, fastest, color=GREEN, ls="--", lw=1.2, marker="^", ms=3,
              label="collecting (right axis)")  # fmt: skip
    cost.set_ylabel("time to collect (ms)", fontsize=8, color=GREEN)
    cost.set_ylim(bottom=0)
    cost.spines["right"].set_visible(True)
    cost.tick_params(labelsize=8, colors=GREEN)
    (lines, labels), (line, label) = (a.get_legend_handles_labels() for a in (axes, cost))
    axes.legend([*lines, *line], [*labels, *label], fontsize=7, loc="lower center",
                bbox_to_anchor=(0.5, 1.0), ncols=2)  # fmt: skip


def _band(
    axes: Axes, frame: pd.DataFrame, column: str, colour: str, style: str, label: str
) -> None:
    """Mean over draws and seeds, and one standard deviation to either side."""
    sizes = sorted(set(frame["n"]))
    cells = [picked(frame, n=n)[column] for n in sizes]
    mean, width = np.array([c.mean() for c in cells]), np.array([spread(c) for c in cells])
    axes.plot(sizes, mean, style, color=colour, lw=1.3, marker="o", ms=3, label=label)
    axes.fill_between(sizes, mean - width, mean + width, color=colour, alpha=0.2, lw=0)


def _spectra(rows: Rows) -> dict[str, pd.DataFrame]:
    spectra = {grid: spectrum_of(rows["covariance"], grid) for grid in PAPER_RANK}
    spectra = {grid: spectrum for grid, spectrum in spectra.items() if len(spectrum)}
    if not spectra:
        raise GridshiftError("nothing measured yet: run the study covariance")
    return spectra


def _colours(spectra: dict[str, pd.DataFrame]) -> dict[Any, Any]:
    """A colour for each size that gets a line, light for large ones."""
    sizes = [next(iter(spectra.values())).columns[place] for place in DRAWN]
    norm = LogNorm(sizes[0] * 0.8, sizes[-1] * 1.4)
    return {n: mpl.colormaps["viridis"](norm(n)) for n in sizes}


def _label(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(axis="y")


def draw_spectra(rows: Rows) -> Figure:
    """Eigenvalues of each size in order, down to below the regularisation."""
    spectra = _spectra(rows)
    figure = Figure(figsize=(3.6 * len(spectra), 2.9), layout="constrained")
    panels = figure.subplots(1, len(spectra), squeeze=False)[0]
    for axes, (grid, spectrum) in zip(panels, spectra.items(), strict=True):
        for n, colour in _colours(spectra).items():
            axes.plot(spectrum.index, spectrum[n], color=colour, lw=1, label=f"{n:,}")
        far = spectrum.columns[-1]
        axes.plot(spectrum.index, spectrum[far], color="black", lw=1, ls=":", label=f"{far:,}")
        axes.axhline(EPS, color=RED, lw=1, ls=(0, (4, 3)), label="eps")
        axes.set_yscale("log")
        axes.set_ylim(1e-12, 3 * spectrum.to_numpy().max())
        axes.set_xlabel("index of the eigenvalue", fontsize=8)
        _label(axes, GRIDS[grid].label)
    panels[0].set_ylabel("eigenvalue (p.u.², rad²)", fontsize=8)
    _legend(figure, panels[0])
    return figure


def draw_deviations(rows: Rows) -> Figure:
    """Relative deviation from the largest size, of the same rows above and of others below."""
    spectra = _spectra(rows)
    figure = Figure(figsize=(3.6 * len(spectra), 4.6), layout="constrained")
    panels = figure.subplots(2, len(spectra), squeeze=False, sharex="col", sharey=True)
    for column, (grid, spectrum) in zip(panels.T, spectra.items(), strict=True):
        *_, last, far = spectrum.columns
        _draw_deviations(column[0], spectrum, last, _colours(spectra))
        _label(column[0], f"{GRIDS[grid].label}, from the {last:,} it is part of")
        _draw_deviations(column[1], spectrum, far, _colours(spectra))
        _label(column[1], f"{GRIDS[grid].label}, from {far:,} others")
        column[1].set_xlabel("index of the eigenvalue", fontsize=8)
    for axes in panels[:, 0]:
        axes.set_ylabel("deviation (%)", fontsize=8)
    _legend(figure, panels[1, 0])
    return figure


def _draw_deviations(
    axes: Axes, spectrum: pd.DataFrame, reference: int, colours: dict[Any, Any]
) -> None:
    for n, colour in colours.items():
        values = 100 * deviation(spectrum, n, reference)
        axes.plot(spectrum.index, values, color=colour, lw=1, label=f"{n:,}")
    few = spectrum.columns[0]
    expected = 100 * np.sqrt(2 / few)
    label = f"± sqrt(2/{few})"
    axes.axhspan(-expected, expected, color=GREY, alpha=0.15, lw=0, label=label)
    decided = int((spectrum[spectrum.columns[-1]] > EPS).sum())
    axes.axvline(decided + 0.5, color=RED, lw=1, ls=(0, (4, 3)), label="eps")
    axes.set_ylim(*LIMITS)


def _legend(figure: Figure, axes: Axes) -> None:
    figure.legend(*axes.get_legend_handles_labels(), title="solved cases",
                  loc="outside right center", fontsize=7, title_fontsize=8)  # fmt: skip
