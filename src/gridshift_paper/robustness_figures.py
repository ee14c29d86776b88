"""Pictures of sweeps over all outages of a grid."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from gridshift.errors import GridshiftError
from gridshift.study.figures import BLUE, GREY, ORANGE, RED
from gridshift.study.text import real
from gridshift_paper.artefacts import Rows
from gridshift_paper.protocol import GRIDS
from gridshift_paper.robustness_frames import (
    TERCILES,
    Frame,
    frame_of,
    intact,
    largest_grid,
    outages,
    terciles,
)
from gridshift_paper.robustness_gap import correlation, gaps
from gridshift_paper.robustness_studies import OUTAGES, PAIRS
from gridshift_paper.robustness_wins import frames

COLOURS = {"frozen": GREY, "icw": ORANGE, "icw-paired": BLUE}
NAMES = {"frozen": "frozen", "icw": "ICW", "icw-paired": "paired ICW"}
SMALL = 8


def draw_consistency(rows: Rows) -> Figure:
    """Boxes over all outages, |V| and theta; dotted: ICW on the intact grid."""
    grid = largest_grid(frame_of(rows, OUTAGES))
    frame = frame_of(rows, OUTAGES, grid)
    figure = Figure(figsize=(3.5, 2.8), layout="constrained")
    for axes, column, label in zip(
        figure.subplots(1, 2), ("v", "theta_deg"),
        ("MAE of $|V|$ (p.u.)", r"MAE of $\theta$ (degrees)"), strict=True,
    ):  # fmt: skip
        error = outages(frame, column)
        for at, method in enumerate(NAMES):
            _box(axes, at, error[method], COLOURS[method])
        level = intact(frame, column)["icw"].mean()
        axes.axhline(level, color=ORANGE, ls=":", lw=1.2, zorder=1)
        _finish(axes, label, ())
    dotted = Line2D([], [], color=ORANGE, ls=":", lw=1.2, label="ICW on the intact grid")
    _legend(figure, dotted)
    return figure


def draw_balance(rows: Rows) -> Figure:
    """Worst-bus mismatch by thirds of the frozen error, a panel for each grid."""
    frame = frame_of(rows, OUTAGES)
    grids = [grid for grid in ("case30", "case118") if grid in set(frame.grid)]
    figure = Figure(figsize=(3.6 * len(grids), 2.7), layout="constrained")
    for axes, grid in zip(figure.subplots(1, len(grids), squeeze=False)[0], grids, strict=True):
        part = frame[frame.grid == grid]
        group = terciles(outages(part, "overall")["frozen"])
        _boxes_by_third(axes, outages(part, "worst_median"), group, "Worst-bus mismatch (p.u.)")
        axes.set_title(f"{GRIDS[grid].label}\n", fontsize=SMALL, fontweight="normal")
    _legend(figure)
    return figure


def draw_pairs(rows: Rows) -> Figure:
    """Overall error of every pair of outages, by thirds of the frozen error."""
    error = outages(frame_of(rows, PAIRS), "overall")
    figure = Figure(figsize=(3.5, 2.7), layout="constrained")
    axes = figure.subplots()
    _boxes_by_third(axes, error, terciles(error["frozen"]), "Overall MAE (p.u., rad)")
    _legend(figure)
    return figure


def draw_gap(grid: str, rows: Rows) -> Figure:
    """What is closed of the distance against the increase of ICW's error, one point an outage."""
    gap = gaps(frame_of(rows, OUTAGES, grid))
    figure = Figure(figsize=(3.5, 2.7), layout="constrained")
    axes = figure.subplots()
    kept, left_out = gap[~gap.excluded], gap[gap.excluded]
    axes.axhline(0, color=GREY, lw=0.8)
    axes.scatter(kept.closed, kept.increase, s=14, color=BLUE, alpha=0.75, lw=0)
    axes.scatter(left_out.closed, left_out.increase, s=22, ec=RED, fc="none", lw=1.2,
                 label=f"paper would leave out ({len(left_out)})")  # fmt: skip
    axes.set_xlabel(r"$\Delta$MMD = MMD$_Y$ − MMD$_Z$", fontsize=SMALL)
    axes.set_ylabel(r"$(e_k - e_\mathrm{base})\,/\,e_\mathrm{base}$", fontsize=SMALL)
    if gap.increase.max() > 2:  # so that the hardest can be shown and the others told apart
        axes.set_yscale("symlog", linthresh=1)
        axes.yaxis.set_major_locator(FixedLocator([-0.5, 0, 0.5, 1, 2, 5, 10, 20, 50]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    axes.set_title(
        f"{GRIDS[grid].label}, {len(gap)} outages: r = {correlation(gap, 'closed'):.2f} "
        f"({correlation(kept, 'closed'):.2f} without)".replace("-0", "−0"),
        fontsize=SMALL, fontweight="normal",
    )  # fmt: skip
    axes.tick_params(labelsize=SMALL)
    axes.grid()
    figure.legend(fontsize=SMALL, handletextpad=0.1, loc="outside lower right")
    return figure


def draw_wins(rows: Rows) -> Figure:
    """Error after adaptation over the frozen error, against the frozen error."""
    measured = frames(rows)
    if not measured:
        raise GridshiftError("nothing measured yet: run the studies outages and outages-300")
    figure = Figure(figsize=(7.2, 2.7), layout="constrained")
    all_axes = figure.subplots(1, len(measured), sharey=True, squeeze=False)[0]
    for axes, (grid, frame) in zip(all_axes, measured.items(), strict=True):
        error = outages(frame, "overall")
        lost = {}
        for method in ("icw", "icw-paired"):
            ratio = error[method] / error["frozen"]
            lost[method] = int((ratio >= 1).sum())
            axes.scatter(error["frozen"], ratio, s=11, color=COLOURS[method], alpha=0.65, lw=0)
        axes.axhline(1, color="#111827", lw=0.9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        _plain_ticks(axes.xaxis, axes.get_xlim())
        axes.set_title(
            f"{GRIDS[grid].label}, {len(error)} outages: worse on\n{lost['icw']} (ICW), "
            f"{lost['icw-paired']} (paired ICW)", fontsize=SMALL, fontweight="normal",
        )  # fmt: skip
        axes.set_xlabel("Overall MAE, frozen (p.u., rad)", fontsize=SMALL)
        axes.tick_params(labelsize=SMALL)
        axes.grid()
    all_axes[0].set_ylabel("Overall MAE, adapted / frozen", fontsize=SMALL)
    figure.legend(handles=_keys(("icw", "icw-paired")), loc="outside upper center", ncols=2,
                  fontsize=SMALL, handletextpad=0.1)  # fmt: skip
    return figure


def _boxes_by_third(axes: Axes, values: Frame, group: Frame, label: str) -> None:
    """Three boxes, one a method, for each third of the outages; the median factor above them."""
    for third, name in enumerate(TERCILES):
        part = values[group == name]
        if not len(part):
            continue
        for number, method in enumerate(NAMES):
            _box(axes, 4 * third + number, part[method], COLOURS[method])
        factor = (part["frozen"] / part["icw"]).median()
        axes.annotate(f"{real(factor)}×", (4 * third + 1, 1.01), xycoords=("data", "axes fraction"),
                      ha="center", fontsize=SMALL)  # fmt: skip
    _finish(axes, label, TERCILES, at=[4 * third + 1 for third in range(3)])
    axes.set_xlabel("third of the outages, by frozen error", fontsize=SMALL)


def _plain_ticks(axis: Axis, limits: tuple[float, float]) -> None:
    """Numbers as they are, on an axis of too few powers of ten to read values from."""
    low, high = limits
    if high < 50 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else (1, 2, 3, 5, 7)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def _legend(figure: Figure, *more: Line2D) -> None:
    figure.legend(handles=[*_keys(NAMES), *more], loc="outside upper center",
                  ncols=2 if more else 3, fontsize=SMALL, handletextpad=0.3)  # fmt: skip


def _box(axes: Axes, at: float, values: Frame, colour: str) -> None:
    """Quartiles and whiskers of the values, and each of them as a faint dot."""
    values = values.dropna()
    beside = np.random.default_rng(0).uniform(-0.27, 0.27, len(values))
    axes.scatter(at + beside, values, s=4, color=colour, alpha=0.35, lw=0, zorder=2)
    line = {"color": "#111827", "lw": 0.9}
    axes.boxplot(
        values, positions=[at], widths=0.66, showfliers=False, patch_artist=True, zorder=3,
        boxprops={"fc": "none", "ec": colour, "lw": 1.2}, medianprops={**line, "lw": 1.5},
        whiskerprops={"color": colour, "lw": 1}, capprops={"color": colour, "lw": 1},
    )  # fmt: skip


def _finish(axes: Axes, label: str, names: Sequence[str], at: Sequence[float] = ()) -> None:
    axes.set_yscale("log")
    _plain_ticks(axes.yaxis, axes.get_ylim())
    axes.set_ylabel(label, fontsize=SMALL)
    axes.set_xticks(at, names, fontsize=SMALL)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=SMALL)
    axes.grid(axis="y")


def _keys(methods: Sequence[str] | Mapping[str, str]) -> list[Line2D]:
    return [
        Line2D([], [], color=COLOURS[m], marker="o", ls="", ms=5, label=NAMES[m]) for m in methods
    ]
