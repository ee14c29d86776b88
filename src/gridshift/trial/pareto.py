"""Error against time per row for all methods, exact solving included, as one picture."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from gridshift.arrays import Real
from gridshift.errors import StorageError
from gridshift.grid.contingency import outage_text
from gridshift.pictures import BLUE, GREEN, GREY, RED, STYLE
from gridshift.storage import replacing
from gridshift.trial.compare import Comparison, ComparisonRow

LOOKS = {
    "exact": ("#111827", "*", "exact"),
    "nothing": (GREY, "o", "needs nothing"),
    "network": (GREEN, "s", "needs the network"),
    "solved cases": (BLUE, "^", "needs solved cases"),
    "gradient steps": (RED, "D", "takes gradient steps"),
}
"""Colour and shape by what a method takes; either tells alone."""
SHARE, LINE = 0.71, 0.175
"""Height of the axes as a share of the figure, and of a line of text in inches."""
SUFFIXES = (".svg", ".png", ".pdf")


def frontier(error: Real, time: Real) -> list[int]:
    """Points that no other beats in both error and time, fastest first."""
    best, found = np.inf, []
    for i in np.lexsort((error, time)).tolist():
        if error[i] < best:
            best = error[i]
            found.append(i)
    return found


def save_pareto(comparison: Comparison, path: str | Path) -> Path:
    """Draw the picture and write it as its suffix says: .svg, .png or .pdf.

    Raises:
        StorageError: another suffix, or a file that can't be written.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise StorageError(f"cannot write {path}: give a name that ends in {', '.join(SUFFIXES)}")
    with mpl.rc_context({"svg.hashsalt": "pareto", **STYLE}):
        figure = pareto_figure(comparison)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        with replacing(path) as part:
            figure.savefig(
                part, format=path.suffix[1:], dpi=160, metadata=metadata, facecolor="white"
            )
    return path


def pareto_figure(comparison: Comparison) -> Figure:
    """Logarithmic axes; names and break-even numbers stand in a column beside the points."""
    rows = [
        row for row in comparison.rows
        if row.mae["overall"] > 0 and row.cost.predict_us_per_row > 0
    ]  # fmt: skip
    error = np.array([row.mae["overall"] for row in rows])
    time = np.array([row.cost.predict_us_per_row for row in rows])
    figure = Figure(figsize=(9.6, max(4.6, 1.6 + 0.26 * len(rows))))
    axes = figure.add_axes((0.085, 0.115, 0.44, SHARE))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(time.min() / 1.6, time.max() * 1.6)
    axes.set_ylim(error.min() / 2.5, error.max() * 2.5)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(which="major")
    best = frontier(error, time)
    axes.plot(time[best], error[best], color="#9CA3AF", lw=1.2, drawstyle="steps-post", zorder=1)
    for kind, (colour, marker, label) in LOOKS.items():
        at = [i for i, row in enumerate(rows) if row.kind == kind]
        if at:
            size = 150 if marker == "*" else 42
            axes.scatter(
                time[at], error[at], s=size, color=colour, marker=marker, label=label,
                edgecolor="white", lw=0.7, zorder=3,
            )  # fmt: skip
    exact = comparison.exact
    axes.axvline(exact.cost.predict_us_per_row, color="#111827", lw=1, ls=(0, (4, 3)), zorder=0)
    gap = LINE / (SHARE * figure.get_figheight())
    _label(axes, comparison, rows, error, time, gap)
    axes.set_xlabel("time per row on one thread, µs")
    axes.set_ylabel("mean absolute error over all outputs, p.u. and rad")
    outage = outage_text(comparison.network.outaged) or "no outage"
    figure.text(
        0.012, 0.965, f"{comparison.network.name}, {outage}: error against time per row",
        fontsize=11, fontweight="bold", va="top",
    )  # fmt: skip
    figure.legend(
        *axes.get_legend_handles_labels(), loc="upper left", bbox_to_anchor=(0.005, 0.93),
        ncols=5, handletextpad=0.1, columnspacing=1.1,
    )  # fmt: skip
    return figure


def _label(
    axes: Axes,
    comparison: Comparison,
    rows: list[ComparisonRow],
    error: Real,
    time: Real,
    gap: float,
) -> None:
    """A column of names right of the axes, in the order of errors, joined to their points."""
    order = np.argsort(error, kind="stable")
    low, high = np.log10(axes.get_ylim())
    height = (np.log10(error[order]) - low) / (high - low)
    at = _spread(height, gap)
    for place, i in zip(at, order.tolist(), strict=True):
        row = rows[i]
        colour = LOOKS[row.kind][0]
        x = (np.log10(time[i]) - np.log10(axes.get_xlim()[0])) / np.ptp(np.log10(axes.get_xlim()))
        y = (np.log10(error[i]) - low) / (high - low)
        axes.plot(
            [x, 1.0, 1.035], [y, place, place], color=colour, lw=0.6, alpha=0.55,
            transform=axes.transAxes, clip_on=False, zorder=2,
        )  # fmt: skip
        style = {"transform": axes.transAxes, "va": "center", "fontsize": 8.5}
        axes.text(1.045, place, row.method, color=colour, fontweight="bold", **style)
        axes.text(1.50, place, f"{error[i]:.1e}", ha="right", color="#374151", **style)
        axes.text(1.62, place, f"{time[i]:.3g}", ha="right", color="#374151", **style)
        axes.text(2.02, place, pays(comparison, row), ha="right", color="#374151", **style)
    top = {"transform": axes.transAxes, "va": "bottom", "fontsize": 8, "color": "#6B7280"}
    for x, text in ((1.50, "error"), (1.62, "µs"), (2.02, "faster than exact")):
        axes.text(x, 1.03, text, ha="right", **top)


def pays(comparison: Comparison, row: ComparisonRow) -> str:
    """From how many scenarios of an outage on the method is faster than solving all, in words."""
    if row is comparison.exact:
        return "—"
    number = comparison.break_even_rows(row)
    if not np.isfinite(number):
        return "never"
    return f"from {number:,.0f} rows" if number >= 1 else "from the first row"


def _spread(height: Real, gap: float) -> Real:
    """Ascending heights moved apart to at least `gap`, close to where they were, none above 1."""
    at = height.copy()
    for _ in range(200):
        moved = False
        for i in range(len(at) - 1):
            short = gap - (at[i + 1] - at[i])
            if short > 1e-9:
                at[i] -= short / 2
                at[i + 1] += short / 2
                moved = True
        if not moved:
            break
    return np.minimum(at, 1.0 - gap * np.arange(len(at))[::-1])
