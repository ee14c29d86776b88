"""Figures of cost: error against seconds, and ratios against gradient steps."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullFormatter

from gridshift.errors import GridshiftError
from gridshift.study.figures import BLUE, GREEN, GREY, ORANGE, RED
from gridshift_paper.artefacts import Rows
from gridshift_paper.cost_points import Point, closed_form, contexts_of, curve
from gridshift_paper.cost_tables import TARGET_LABELS, band_ratios

WAYS = {
    ("fine-tune", "no-norm"): ("fine-tuned, raw y", ORANGE, "o"),
    ("fine-tune", "zscore"): ("fine-tuned, z-score", RED, "s"),
    ("scratch", "zscore"): ("from scratch, z-score", GREEN, "^"),
}
BY_CONTEXT = {400: BLUE, 1_000: ORANGE, 2_000: GREEN}
LINES = {"no-norm": ("-", "o"), "zscore": ("--", "s")}
STAR = {"marker": "*", "ms": 12, "ls": "", "mec": "white", "mew": 0.6, "zorder": 5}


def draw_position(rows: Rows) -> Figure:
    """Overall error against seconds on 30-bus and 118-bus N-2, 400 context rows."""
    shown = [grid for grid in ("case30", "case118") if contexts_of(rows, grid)]
    if not shown:
        raise GridshiftError("nothing measured yet: run the studies closed-form, gradient-curves")
    figure = Figure(figsize=(7.2 if len(shown) > 1 else 3.5, 3.1), layout="constrained")
    for axes, grid in zip(np.atleast_1d(figure.subplots(1, len(shown))), shown, strict=True):
        for (kind, target), (label, colour, marker) in WAYS.items():
            points = curve(rows, "overall", grid, kind=kind, target=target, num_context=400)
            _plot(axes, points, colour, marker, label)
        _levels(axes, rows, "overall", grid, 400)
        icw = closed_form(rows, "overall", "icw", grid, 400)
        axes.errorbar(icw.cost_s, icw.error, icw.deviation, color=BLUE, capsize=2, lw=1)
        axes.plot(icw.cost_s, icw.error, color=BLUE, label="ICW", **STAR)
        _log_axes(axes, "overall MAE")
        axes.set_title(f"{grid}, N-2 Most", fontsize=9)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    columns = 3 if len(shown) > 1 else 2
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=8)
    return figure


def draw_fine_tuning(rows: Rows) -> Figure:
    """|V| error against seconds on 30-bus N-2: a panel for each backbone, a colour a context."""
    shown = [b for b in ("mlp", "pfgnn") if contexts_of(rows, "case30", b)]
    if not shown:
        raise GridshiftError("nothing measured yet: run the studies closed-form, gradient-curves")
    figure = Figure(figsize=(7.2 if len(shown) > 1 else 3.5, 3.1), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(shown)))
    for letter, axes, backbone in zip("ab", panels, shown, strict=False):
        _by_context(axes, rows, "case30", backbone)
        _log_axes(axes, "|V| MAE (p.u.)")
        axes.set_title(f"({letter}) {'MLP' if backbone == 'mlp' else 'PFGNN'}", fontsize=9)
    _context_legend(figure, contexts_of(rows, "case30"), columns=3 if len(shown) > 1 else 2)
    return figure


def draw_cost_300(rows: Rows) -> Figure:
    """|V| error against seconds on 300-bus N-1, by context, bands of one deviation over seeds."""
    contexts = contexts_of(rows, "case300")
    if not contexts:
        raise GridshiftError("nothing measured yet: run the studies closed-form, gradient-curves")
    figure = Figure(figsize=(3.5, 3.6), layout="constrained")
    axes = figure.subplots()
    _by_context(axes, rows, "case300", "mlp", frozen=True)
    _log_axes(axes, "|V| MAE (p.u.)")
    _context_legend(figure, contexts, frozen=True, columns=2)
    return figure


def _by_context(
    axes: Axes, rows: Rows, grid: str, backbone: str, *, frozen: bool = False
) -> None:  # fmt: skip
    for num in contexts_of(rows, grid, backbone):
        colour = BY_CONTEXT.get(num, GREY)
        for target, (line, marker) in LINES.items():
            points = curve(
                rows, "v", grid, backbone, kind="fine-tune", target=target, num_context=num
            )
            _plot(axes, points, colour, marker, "", line)
        icw = closed_form(rows, "v", "icw", grid, num, backbone)
        axes.errorbar(icw.cost_s, icw.error, icw.deviation, color=colour, capsize=2, lw=1)
        axes.plot(icw.cost_s, icw.error, color=colour, **STAR)
        if frozen:
            level = closed_form(rows, "v", "frozen", grid, num, backbone)
            axes.plot(icw.cost_s, level.error, "o", color=colour, mfc="none", ms=5)
    if not frozen:
        _levels(axes, rows, "v", grid, 400, backbone)


def draw_band(rows: Rows) -> Figure:
    """Ratio of errors by gradient steps: outages grey, median and quartiles blue, parity dashed."""
    shown = {t: r for t in TARGET_LABELS if len(r := band_ratios(rows, t))}
    if not shown:
        raise GridshiftError("nothing measured yet: run the study band-30")
    figure = Figure(figsize=(7.2 if len(shown) > 1 else 3.5, 2.8), layout="constrained")
    panels = np.atleast_1d(figure.subplots(1, len(shown), sharey=True))
    for axes, (target, ratios) in zip(panels, shown.items(), strict=True):
        at, ticks = np.arange(ratios.shape[1]), [f"{steps:,}" for steps in ratios.columns]
        for values in ratios.to_numpy():
            axes.plot(at, values, color=GREY, lw=0.6, alpha=0.45)
        low, mid, high = ratios.quantile([0.25, 0.5, 0.75]).to_numpy()
        axes.fill_between(at, low, high, color=BLUE, alpha=0.25, lw=0, label="quartiles")
        axes.plot(at, mid, color=BLUE, marker="o", ms=3, lw=1.6, label="median")
        axes.axhline(1, color="black", lw=0.8, ls=(0, (4, 3)))
        axes.set_yscale("log")
        axes.set_xticks(at, ["frozen", *ticks[1:]], rotation=45, ha="right")
        axes.set_xlabel("gradient steps of fine-tuning")
        axes.set_title(f"targets: {TARGET_LABELS[target]}", fontsize=9)
        axes.tick_params(labelsize=8)
        axes.grid(axis="y")
    panels[0].set_ylabel("MAE of ICW / MAE of\nfine-tuning")
    locations = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10]
    panels[0].yaxis.set_major_locator(FixedLocator(locations))
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].yaxis.set_minor_formatter(NullFormatter())
    panels[0].legend(fontsize=8, loc="lower right")
    return figure


def _plot(
    axes: Axes, points: Sequence[Point], colour: str, marker: str, label: str, line: str = "-"
) -> None:  # fmt: skip
    if not points:
        return
    cost = [point.cost_s for point in points]
    mean = np.array([point.error for point in points])
    spread = np.array([point.deviation for point in points])
    axes.plot(cost, mean, line, marker=marker, color=colour, ms=3.5, lw=1.2, label=label)
    if spread.any():
        # a band around a mean can't reach below zero on a logarithmic axis
        low = np.maximum(mean - spread, mean / 10)
        axes.fill_between(cost, low, mean + spread, color=colour, alpha=0.18, lw=0)


def _levels(
    axes: Axes, rows: Rows, quantity: str, grid: str, num: int, backbone: str = "mlp"
) -> None:
    for method, label, line in (
        ("frozen", "frozen", (0, (4, 3))),
        ("context-mean", "mean of the context", (0, (1, 2))),
    ):
        level = closed_form(rows, quantity, method, grid, num, backbone)
        axes.axhline(level.error, color=GREY, lw=1, ls=line, label=label)


def _log_axes(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("cost of one adaptation (s, one thread)")
    axes.set_ylabel(label)
    axes.tick_params(labelsize=8)
    axes.grid(axis="both")


def _context_legend(
    figure: Figure, contexts: Sequence[int], *, frozen: bool = False, columns: int = 3
) -> None:
    handles = [
        Line2D([], [], color=BY_CONTEXT.get(num, GREY), lw=3, label=f"{num:,} context rows")
        for num in contexts
    ]
    handles += [
        Line2D([], [], color="black", ls=line, marker=marker, ms=3.5, lw=1.2,
               label=f"fine-tuned, {TARGET_LABELS[target]}")
        for target, (line, marker) in LINES.items()
    ]  # fmt: skip
    handles.append(Line2D([], [], color="black", label="ICW", **STAR))
    if frozen:
        handles.append(Line2D([], [], color="black", marker="o", mfc="none", ls="", label="frozen"))
    else:
        handles += [
            Line2D([], [], color=GREY, lw=1, ls=(0, (4, 3)), label="frozen"),
            Line2D([], [], color=GREY, lw=1, ls=(0, (1, 2)), label="mean of the context"),
        ]
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, fontsize=8)
