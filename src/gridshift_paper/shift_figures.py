"""Pictures of the distance between topologies."""

# pandas comes without types that could be checked
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter

from gridshift.errors import GridshiftError
from gridshift.study.figures import BLUE, GREEN, GREY, ORANGE, RED
from gridshift_paper.artefacts import Rows
from gridshift_paper.shift_tables import MOMENTS, PAPER_MMD, at_level

SYMBOLS = {"v": "$|V|$", "theta": r"$\theta$", "q_gen": "$Q_g$", "p_slack": "$P_s$"}
TOPOLOGIES = {"intact": ("intact grid", BLUE), "outage": ("N-2 Most", RED)}
SERIES = {"same rows": (GREEN, "v"), "many": (BLUE, "o"), "context": (ORANGE, "s")}


def entry_label(entry: str, unit: str) -> str:
    """'theta bus:7' as an axis says it."""
    quantity, element = entry.split(" ", 1)
    return f"{SYMBOLS[quantity]} of {element.replace(':', ' ')} ({unit})"


def draw_shift(rows: Rows) -> Figure:
    """Three outputs, raw on the left and whitened on the right, each on both topologies."""
    frame = rows["histograms"]
    if not len(frame):
        raise GridshiftError("nothing measured yet: run the study histograms")
    orders = sorted(set(frame.order))
    figure = Figure(figsize=(3.5, 1.0 + 1.15 * len(orders)), layout="constrained")
    grid = figure.subplots(len(orders), 2, squeeze=False)
    for order, axes_row in zip(orders, grid, strict=True):
        for space, axes in zip(("raw", "whitened"), axes_row, strict=True):
            part = frame[(frame.order == order) & (frame.space == space)]
            for topology, (label, colour) in TOPOLOGIES.items():
                bars = part[part.topology == topology]
                edges = np.append(bars.left, bars.right.iloc[-1])
                axes.stairs(bars.density, edges, fill=True, color=colour, alpha=0.3)
                axes.stairs(bars.density, edges, color=colour, lw=1, label=label)
            first = part.iloc[0]
            unit = first.unit if space == "raw" else "std. dev."
            axes.set_xlabel(entry_label(first.entry, unit), fontsize=8)
            axes.set_title(f"MMD {first.mmd:.2g}", fontsize=8, loc="right", fontweight="normal")
            axes.set_yticks([])
            axes.set_ylim(bottom=0)
            axes.tick_params(labelsize=7)
        axes_row[0].set_ylabel("density", fontsize=8)
    grid[0, 0].set_title("raw", fontsize=8)
    grid[0, 1].set_title("whitened", fontsize=8)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, fontsize=8)
    return figure


def draw_moments(rows: Rows) -> Figure:
    """MMD at each level, beside the paper's and the band that no shift at all would give."""
    frame = rows["distances"]
    if not len(frame):
        raise GridshiftError("nothing measured yet: run the study distances")
    levels = list(dict.fromkeys(frame.level))
    figure = Figure(figsize=(3.5, 3.3), layout="constrained")
    axes, at = figure.subplots(), np.arange(len(levels))
    bands = [at_level(frame, level) for level in levels]
    axes.fill_between(
        at, [b.null_low.mean() for b in bands], [b.null_high.mean() for b in bands],
        color=GREY, alpha=0.3, lw=0, label="no shift (95 %)",
    )  # fmt: skip
    for moments, (colour, marker) in SERIES.items():
        cells = [at_level(frame, level, moments=moments).mmd for level in levels]
        axes.errorbar(
            at, [c.mean() for c in cells], [c.std() if len(c) > 1 else 0 for c in cells],
            color=colour, marker=marker, ms=4, lw=1, capsize=2,
            label=f"moments of {MOMENTS[moments]}",
        )  # fmt: skip
    told = [(levels.index(level), value) for level, value in PAPER_MMD.items() if level in levels]
    axes.plot(*zip(*told, strict=True), "D", color="black", ms=5, mfc="none", label="paper")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(FixedLocator([0.02, 0.05, 0.1, 0.2, 0.5, 1]))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(0.015, 1.3)
    axes.set_xticks(at, [level.replace(", ", ",\n").replace("and ", "and\n") for level in levels])
    axes.tick_params(labelsize=8)
    axes.tick_params(axis="x", labelsize=7)
    axes.set_xlabel("matched between the topologies", fontsize=8)
    axes.set_ylabel("MMD of all outputs", fontsize=8)
    axes.grid(axis="y")
    figure.legend(loc="outside upper left", fontsize=7, labelspacing=0.2)
    return figure
