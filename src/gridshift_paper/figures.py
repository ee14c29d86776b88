"""How the paper's pictures are drawn: one style, one way to panels, and what several show."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter
from numpy.typing import ArrayLike

from gridshift import pictures
from gridshift.pictures import BLUE, GREY, ORANGE
from gridshift_paper.claims import Frame, Undecided
from gridshift_paper.selection import mean, spread

NARROW, WIDE = 3.5, 7.2
"""Inches of one column of the paper, and of both."""
STYLE: dict[Any, Any] = pictures.STYLE | {
    "font.size": 8, "axes.titlesize": 8, "axes.titleweight": "normal", "legend.fontsize": 7.5,
}  # fmt: skip
COLOURS = {"frozen": GREY, "icw": ORANGE, "icw-paired": BLUE}
NAMES = {"frozen": "frozen", "icw": "ICW", "icw-paired": "paired ICW"}
DASHED = (0, (4, 3))
FINE = 6.5
"""Points of numbers inside a panel."""
PAPERS: dict[str, Any] = {"marker": "D", "mfc": "white", "mec": "black", "ls": "", "ms": 4.5,
                          "zorder": 6}  # fmt: skip
"""How the paper's own values are drawn."""
STAR: dict[str, Any] = {"marker": "*", "ms": 9, "ls": "", "mec": "white", "mew": 0.6, "zorder": 5}
"""How ICW is drawn in a plane of cost and error."""


def draw_panels(
    titles: Mapping[Any, str], draw: Callable[[Axes, Any], None], needs: str, height: float, *,
    x: str = "", y: str = "", log: str = "", grid: str = "y", legend: str = "", columns: int = 3,
    handles: Sequence[Any] = (), narrow: bool = False, **how: Any,
) -> Figure:  # fmt: skip
    """One panel beside the other, all dressed the same, in the style of the caller.

    Args:
        titles: what each panel shows, by what `draw` is told.
        draw: gets axes, and the key of the title.
        needs: what has to be measured for it.
        height: inches.
        x: label of each horizontal axis.
        y: label of the first vertical axis.
        log: axes that are logarithmic: 'x', 'y', 'xy'.
        grid: axes that have grid lines: 'x', 'y', 'both'.
        legend: where below or above all panels the legend is; empty: there is none.
        columns: of the legend.
        handles: of the legend, before those that the panels have labels of.
        narrow: one column wide; a single panel always is.
        how: further arguments of `Figure.subplots`.

    Raises:
        Undecided: there is nothing to show.
    """
    if not titles:
        raise Undecided(f"nothing measured yet: {needs}")
    width = NARROW if narrow or len(titles) == 1 else WIDE
    figure = Figure(figsize=(width, height), layout="constrained")
    axes_of = figure.subplots(1, len(titles), squeeze=False, **how)[0]
    for axes, (key, title) in zip(axes_of, titles.items(), strict=True):
        dress(axes, x, log=log, grid=grid)
        axes.set_title(title)
        draw(axes, key)
    if y:
        axes_of[0].set_ylabel(y)
    if legend:
        shared_legend(figure, legend, columns, handles)
    return figure


def shared_legend(
    figure: Figure, where: str, columns: int, handles: Sequence[Any] = (), **how: Any
) -> None:
    """Of these handles and of all that the axes have labels of, each label once."""
    shown = {handle.get_label(): handle for handle in handles}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            shown.setdefault(label, handle)
    loc: Any = f"outside {where}"
    figure.legend(shown.values(), shown.keys(), loc=loc, ncols=columns, **how)


def dress(axes: Axes, x: str = "", y: str = "", *, log: str = "", grid: str = "y") -> None:
    """Labels, scales and grid of an axes."""
    axes.set(xlabel=x, ylabel=y)
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    axes.grid(axis=grid)  # type: ignore[arg-type]


def boxes(axes: Axes, values: Frame, at: int = 0) -> None:
    """A box for each method: quartiles and whiskers, and each value as a faint dot."""
    for place, method in enumerate(NAMES, at):
        one, colour = values[method].dropna(), COLOURS[method]
        beside = np.random.default_rng(0).uniform(-0.27, 0.27, len(one))
        axes.scatter(place + beside, one, s=4, color=colour, alpha=0.35, lw=0, zorder=2)
        line = {"color": "#111827", "lw": 0.9}
        axes.boxplot(
            one, positions=[place], widths=0.66, showfliers=False, patch_artist=True, zorder=3,
            boxprops={"fc": "none", "ec": colour, "lw": 1.2}, medianprops={**line, "lw": 1.5},
            whiskerprops={"color": colour, "lw": 1}, capprops={"color": colour, "lw": 1},
        )  # fmt: skip


def finish_boxes(axes: Axes, label: str, names: Sequence[str], at: Sequence[float] = ()) -> None:
    """A logarithmic axis with numbers as they are, and names below groups of boxes."""
    axes.set(yscale="log", ylabel=label)
    plain_ticks(axes.yaxis, axes.get_ylim())
    name_ticks(axes, names, at)


def name_ticks(axes: Axes, names: Sequence[str], at: Sequence[float] | None = None) -> None:
    """Names instead of numbers on the horizontal axis, from 0 unless it is said where."""
    axes.set_xticks(range(len(names)) if at is None else at, names)
    axes.tick_params(axis="x", length=0)


def plain_ticks(axis: Axis, limits: tuple[float, float]) -> None:
    """Numbers as they are, on an axis of too few powers of ten to read values from."""
    low, high = limits
    if high < 50 * low:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else (1, 2, 3, 5, 7)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def number_ticks(axis: Axis, at: Sequence[float]) -> None:
    """These numbers as they are, and no others."""
    axis.set_major_locator(FixedLocator(at))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def errorbars(axes: Axes, at: ArrayLike, values: Sequence[Frame], **style: Any) -> None:
    """The mean of each cell's values over seeds, and one deviation to either side of it."""
    style = {"marker": "o", "ms": 5, "capsize": 2} | style
    axes.errorbar(at, [mean(cell) for cell in values], [spread(cell) for cell in values], **style)


def star(axes: Axes, cost: float, errors: Frame, colour: str, **how: Any) -> None:
    """A point of ICW in a plane of cost and error, with one deviation over seeds."""
    errorbars(axes, [cost], [errors], color=colour, marker="", lw=1)
    axes.plot(cost, mean(errors), color=colour, **(STAR | how))


def band(
    axes: Axes, at: ArrayLike, values: Sequence[Frame], line: str = "-", *,
    above_tenth: bool = False, **style: Any,
) -> None:  # fmt: skip
    """The same as a curve and a band, which ends at a tenth of the mean if so asked.

    A band can't reach below zero on a logarithmic axis.
    """
    middle, width = (np.array([number(cell) for cell in values]) for number in (mean, spread))
    axes.plot(at, middle, line, **({"marker": "o", "ms": 3, "lw": 1.2} | style))
    if width.any():
        low = np.maximum(middle - width, middle / 10) if above_tenth else middle - width
        axes.fill_between(at, low, middle + width, color=style["color"], alpha=0.2, lw=0)


def method_handles(*methods: str) -> list[Line2D]:
    """For a legend of methods, all of them if none is named."""
    return [
        Line2D([], [], color=COLOURS[m], marker="o", ls="", ms=5, label=NAMES[m])
        for m in methods or NAMES
    ]
