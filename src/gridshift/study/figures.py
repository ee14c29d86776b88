"""Pictures of a study, as matplotlib axes."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import SymLogNorm

from gridshift.arrays import Real
from gridshift.errors import OutageError
from gridshift.grid.names import described, described_outage
from gridshift.pictures import BLUE, GREY, ORANGE, RED, STYLE
from gridshift.study.positions import positions
from gridshift.study.risk import LOST_SUPPLY
from gridshift.study.row import OutageRow
from gridshift.study.verdict import branch_probability, bus_probability

if TYPE_CHECKING:
    from gridshift.study.screening import Screening

NUM_COLUMNS = 36
"""Buses or branches at most in a heat map."""
SHADES = "OrRd"
INTACT = {"color": GREY, "marker": "o", "ls": "none", "mfc": "none", "ms": 4, "label": "intact"}


def plot_ranking(study: "Screening", *, num: int = 20, axes: Axes | None = None) -> Axes:
    """Bars of the worst outages that have a state to look at, by what makes up their severity."""
    rows = [row for row in study.rows if row.num_scenarios > 0 and row.severity > 0][:num]
    with _style():
        axes = _axes(axes, (8, 1.2 + 0.24 * max(1, len(rows))))
        at, left = np.arange(len(rows)), np.zeros(len(rows))
        share = np.array([1 - row.unsolved for row in rows])
        for label, colour, name in (
            ("voltages outside limits", BLUE, "voltage_excess"),
            ("overloads", ORANGE, "overload_excess"),
        ):
            size = share * np.nan_to_num([getattr(row, name) for row in rows])
            if size.any():
                axes.barh(at, size, left=left, color=colour, height=0.72, label=label)
            left = left + size
        unsolved = np.maximum(0, np.array([row.severity for row in rows]) - left)
        if unsolved.any():
            axes.barh(at, unsolved, left=left, color=GREY, height=0.72, label="without a solution")
        if study.intact["severity"] > 0:
            axes.axvline(study.intact["severity"], color="#111827", lw=1, ls="--", label="intact")
        axes.set_yticks(at, [row.outage for row in rows])
        axes.set_ylim(max(1, len(rows)) - 0.4, -0.6)
        axes.set_xlabel("severity: expected sum of limit violations")
        axes.grid(axis="x")
        if rows:
            axes.legend(loc="lower right")
        else:
            axes.set_title("No outage exceeds a limit")
    return axes


def plot_map(study: "Screening", *, axes: Axes | None = None) -> Axes:
    """The grid, each branch coloured by the severity that losing it adds to the intact grid's."""
    network = study.network
    xy, _ = positions(network)
    worst = np.full(network.num_branches, np.nan)
    for row in study.rows:
        for label in row.outage.split(","):
            for branch in network.elements.get(label, ()):
                more = max(0.0, row.severity - study.intact["severity"])
                worst[branch] = np.fmax(worst[branch], more)
    lines = xy[np.stack([network.branch_from, network.branch_to], 1)]
    studied, lost = ~np.isnan(worst), worst >= LOST_SUPPLY / 2
    with _style():
        axes = _axes(axes, (8, 7))
        axes.add_collection(LineCollection(list(lines[~studied]), colors="#D1D5DB", linewidths=0.6))
        order = np.flatnonzero(studied & ~lost)
        order = order[np.argsort(worst[order], kind="stable")]
        top = max(1e-3, float(worst[order].max(initial=0)))
        drawn = LineCollection(
            list(lines[order]), cmap=SHADES, linewidths=1.6,
            norm=SymLogNorm(top / 1e3, vmin=0, vmax=top),
        )  # fmt: skip
        drawn.set_array(worst[order])
        axes.add_collection(drawn)
        axes.add_collection(LineCollection(list(lines[lost]), colors="#7C3AED", linewidths=2.4))
        axes.plot(*xy.T, ls="none", marker="o", ms=2, color="#374151")
        axes.set_aspect("equal")
        axes.autoscale()
        axes.set_axis_off()
        axes.set_title(f"{network.name}: what losing each branch adds")
        axes.figure.colorbar(
            drawn, ax=axes, shrink=0.6, label="severity added (violet: loss of supply)"
        )
    return axes


def plot_outage(
    study: "Screening", outage: str, *, num: int = 15, axes: "tuple[Axes, Axes] | None" = None
) -> tuple[Axes, Axes]:
    """Voltages of the buses and loadings of the branches that an outage affects most.

    Voltages: least to largest, 5 % to 95 % quantile, mean; loadings: mean, 95 and 99 % quantile,
    largest; circles: the mean of the intact grid.

    Raises:
        OutageError: the study has no such outage, or no state of it.
    """
    row = study.row(outage)
    if not row.num_scenarios:
        raise OutageError(f"{outage} has no state to plot: {row.reason or row.status}")
    with _style():
        if axes is None:
            from matplotlib import pyplot

            figure, pair = pyplot.subplots(
                1, 2, figsize=(11, 1.4 + 0.26 * num), layout="constrained"
            )
            figure.suptitle(described_outage(study.network, outage))
            axes = (pair[0], pair[1])
        _voltages(study, row, num, axes[0])
        _loadings(study, row, num, axes[1])
    return axes


def plot_heat_map(
    study: "Screening",
    of: Literal["voltage", "loading"] = "voltage",
    *,
    num: int = 20,
    axes: Axes | None = None,
) -> Axes:
    """Probability of a violation: the worst outages against the buses or branches of most."""
    network = study.network
    by_bus = of == "voltage"
    labels = network.bus_labels if by_bus else network.branch_labels
    share = bus_probability if by_bus else branch_probability
    rows = [row for row in study.rows if row.num_scenarios > 0]
    matrix = np.nan_to_num(np.array([share(row) for row in rows]).reshape(len(rows), len(labels)))
    kept = np.flatnonzero(matrix.max(axis=1, initial=0) > 0)[:num]
    heaviest = np.argsort(-matrix[kept].sum(axis=0), kind="stable")[:NUM_COLUMNS]
    columns = np.sort(heaviest[matrix[kept][:, heaviest].max(axis=0, initial=0) > 0])
    with _style():
        axes = _axes(axes, (3.2 + 0.3 * len(columns), 1.8 + 0.22 * len(kept)))
        axes.set_title(f"share of scenarios with a violation of {of} limits")
        if not len(columns):
            axes.set_axis_off()
            axes.text(0.5, 0.5, "none", ha="center", transform=axes.transAxes)
            return axes
        image = axes.imshow(
            matrix[np.ix_(kept, columns)], cmap=SHADES, vmin=0, vmax=1, aspect="auto"
        )
        axes.set_xticks(range(len(columns)), [labels[c] for c in columns], rotation=90)
        axes.set_yticks(range(len(kept)), [rows[r].outage for r in kept])
        axes.tick_params(length=0)
        axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.015)
    return axes


def _voltages(study: "Screening", row: OutageRow, num: int, axes: Axes) -> None:
    before = study.intact_row.bus_voltage_mean
    rise = bus_probability(row) - np.nan_to_num(bus_probability(study.intact_row))
    move = np.nan_to_num(np.abs(row.bus_voltage_mean - before), nan=-1)
    at = np.lexsort((-move, -np.nan_to_num(rise, nan=-1)))[:num]
    y = np.arange(len(at))
    axes.hlines(y, row.bus_voltage_min[at], row.bus_voltage_max[at], color=BLUE, lw=1)
    axes.hlines(y, row.bus_voltage_p5[at], row.bus_voltage_p95[at], color=BLUE, lw=5, alpha=0.5)
    axes.plot(row.bus_voltage_mean[at], y, "o", color=BLUE, ms=4, label="mean")
    axes.plot(before[at], y, **INTACT)
    limited = study.limited
    for limit in (limited.bus_v_min, limited.bus_v_max):
        axes.plot(limit[at], y, "|", color=RED, ms=11, mew=2)
    _finish(axes, [described(study.network, study.network.bus_labels[b]) for b in at])
    axes.set_xlabel("voltage, p.u. (red: limits)")


def _loadings(study: "Screening", row: OutageRow, num: int, axes: Axes) -> None:
    tail: Real = 100 * np.stack([row.branch_loading, row.branch_loading_p95,
                                 row.branch_loading_p99, row.branch_loading_max], 1)  # fmt: skip
    order = np.argsort(-np.nan_to_num(tail[:, 2], nan=-1), kind="stable")
    at = order[~np.isnan(tail[order, 2])][:num]
    if not len(at):
        axes.set_axis_off()
        axes.set_title("no branch has a rating")
        return
    y = np.arange(len(at))
    axes.hlines(y, tail[at, 0], tail[at, 3], color=ORANGE, lw=1)
    axes.plot(tail[at, 0], y, "o", color=ORANGE, ms=4, label="mean")
    axes.plot(tail[at, 1], y, "|", color=ORANGE, ms=8, mew=2, label="95 %")
    axes.plot(tail[at, 2], y, "|", color=RED, ms=11, mew=2, label="99 %")
    axes.plot(100 * study.intact_row.branch_loading[at], y, **INTACT)
    axes.axvline(100, color=RED, lw=1)
    _finish(axes, [described(study.network, study.network.branch_labels[b]) for b in at])
    axes.set_xlabel("loading, % of the rating")


def _finish(axes: Axes, labels: list[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(length=0)
    axes.grid(axis="x")
    axes.legend(loc="best")


def _style() -> AbstractContextManager[Any]:
    return mpl.rc_context(STYLE)


def _axes(axes: Axes | None, size: tuple[float, float]) -> Axes:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]
