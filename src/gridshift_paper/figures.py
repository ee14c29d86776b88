"""What the pictures of several items share: axes, boxes over outages, bands over seeds, legends."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from gridshift.pictures import BLUE, GREY, ORANGE, STYLE
from gridshift_paper.claims import Frame, Undecided

COLOURS = {"frozen": GREY, "icw": ORANGE, "icw-paired": BLUE}
NAMES = {"frozen": "frozen", "icw": "ICW", "icw-paired": "paired ICW"}
SMALL = 8
PRINT: dict[Any, Any] = STYLE | {"font.size": SMALL}
PAPERS: dict[str, Any] = {"marker": "D", "mfc": "white", "mec": "black", "ls": "", "ms": 4.5,
                          "zorder": 6}  # fmt: skip
"""How the paper's own values are drawn."""


def panels(shown: Sequence[object], needs: str, size: tuple[float, float], **how: Any) -> Any:
    """A figure and its axes, one for each thing shown.

    Args:
        shown: what there is to show.
        needs: what has to be measured for it.
        size: inches.
        how: further arguments of `Figure.subplots`.

    Raises:
        Undecided: there is nothing to show.
    """
    if not len(shown):
        raise Undecided(f"nothing measured yet: {needs}")
    figure = Figure(figsize=size, layout="constrained")
    return figure, figure.subplots(1, len(shown), squeeze=False, **how)[0]


def dress(
    axes: Axes, x: str = "", y: str = "", *, title: str = "", log: str = "", grid: str = "y",
    size: float | None = None, ticks: float | None = SMALL,
) -> None:  # fmt: skip
    """Labels, scales and grid of an axes; `size` is that of labels, `ticks` that of numbers."""
    if "x" in log:
        axes.set_xscale("log")
    if "y" in log:
        axes.set_yscale("log")
    style: dict[str, Any] = {"fontsize": size} if size else {}
    if x:
        axes.set_xlabel(x, **style)
    if y:
        axes.set_ylabel(y, **style)
    if title:
        axes.set_title(title, fontsize=SMALL, fontweight="normal")
    if ticks:
        axes.tick_params(labelsize=ticks)
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
    dress(axes, y=label, log="y", size=SMALL, ticks=None)
    plain_ticks(axes.yaxis, axes.get_ylim())
    axes.set_xticks(at, names, fontsize=SMALL)
    axes.tick_params(axis="x", length=0)
    axes.tick_params(axis="y", labelsize=SMALL)


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


def mean_with_band(
    axes: Axes, at: Sequence[float], mean: Sequence[float], spread: Sequence[float],
    line: str = "-", *, above_tenth: bool = False, alpha: float = 0.2, **style: Any,
) -> None:  # fmt: skip
    """A curve, and one deviation to either side of it, not below a tenth if so asked."""
    middle, width = np.array(mean), np.array(spread)
    axes.plot(at, middle, line, **style)
    if width.any():
        low = np.maximum(middle - width, middle / 10) if above_tenth else middle - width
        axes.fill_between(at, low, middle + width, color=style["color"], alpha=alpha, lw=0)


def method_legend(figure: Figure, methods: Iterable[str] = tuple(NAMES), *more: Line2D) -> None:
    """The methods above the picture."""
    handles = [
        Line2D([], [], color=COLOURS[m], marker="o", ls="", ms=5, label=NAMES[m]) for m in methods
    ]
    figure.legend(handles=[*handles, *more], loc="outside upper center", fontsize=SMALL,
                  ncols=3 if len(handles) == 3 and not more else 2,
                  handletextpad=0.3 if len(handles) == 3 else 0.1)  # fmt: skip
