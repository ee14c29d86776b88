"""Figures of a study, as inline SVG."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gridshift.arrays import Real
from gridshift.pictures import BLUE, GREY, ORANGE, STYLE, as_svg
from gridshift.study.row import OutageRow
from gridshift.study.screening import Screening

NUM_BARS = 20
"""Outages in the severity chart."""
NUM_COLUMNS = 36
"""Buses or branches at most in a heat map."""


def severity_chart(study: Screening) -> str | None:
    """Bars of the worst outages, by what makes up their severity; None if nothing is exceeded."""
    rows = [row for row in _ranked_by_limits(study) if row.severity > 0][:NUM_BARS]
    if not rows:
        return None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.2, 0.9 + 0.22 * len(rows)), layout="constrained")
        axes = figure.subplots()
        at, left = np.arange(len(rows)), np.zeros(len(rows))
        share = np.array([1 - row.unsolved for row in rows])
        parts = (
            ("voltages outside limits", BLUE, share * _values(rows, "voltage_excess")),
            ("overloads", ORANGE, share * _values(rows, "overload_excess")),
        )
        for label, colour, size in parts:
            if size.max() > 0:
                axes.barh(at, size, left=left, color=colour, height=0.72, label=label)
            left += size
        unsolved = np.maximum(0, np.array([row.severity for row in rows]) - left)
        if unsolved.max() > 0:
            label = "scenarios without a solution"
            axes.barh(at, unsolved, left=left, color=GREY, height=0.72, label=label)
        intact = study.intact["severity"]
        if intact > 0:
            axes.axvline(intact, color="#111827", lw=1, ls=(0, (4, 3)), label="intact grid")
        axes.set_yticks(at, [row.outage for row in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel("severity: expected sum of limit violations, as shares of their limits")
        axes.grid(axis="x")
        axes.tick_params(length=0)
        figure.legend(loc="outside upper left", ncols=4, handlelength=1.2)
        return as_svg(figure, "severity")


def voltage_heat_map(study: Screening) -> str | None:
    """Probability of a voltage outside limits, outage by bus; None if there is none."""
    rows = [row for row in _ranked_by_limits(study) if len(row.bus_under)]
    under, over = _matrix(rows, "bus_under"), _matrix(rows, "bus_over")
    labels = [_short(label) for label in study.network.bus_labels]
    return _heat_map(
        rows, under + over, labels, "bus", "share of scenarios outside limits", "Blues"
    )


def overload_heat_map(study: Screening) -> str | None:
    """Probability of an overload, outage by branch; None if there is none."""
    rows = [row for row in _ranked_by_limits(study) if len(row.branch_overload_probability)]
    labels = list(study.network.branch_labels)
    matrix = _matrix(rows, "branch_overload_probability")
    return _heat_map(rows, matrix, labels, "branch", "share of scenarios overloaded", "Oranges")


def holdout_figure(study: Screening) -> str | None:
    """Error of each outage on its hold-out, and exact against predicted limit violations."""
    rows = [row for row in study.rows if np.isfinite(row.mae["overall"])]
    if not rows:
        return None
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10.2, 3.4), layout="constrained")
        errors, excess = figure.subplots(1, 2, width_ratios=[1.35, 1])
        number = np.arange(1, len(rows) + 1)
        for key, colour, marker, label in (
            ("v", BLUE, "o", "voltage, p.u."),
            ("theta", ORANGE, "s", "angle, rad"),
            ("overall", "#111827", "_", "all outputs"),
        ):
            values = np.array([row.mae[key] for row in rows])
            size = 26 if marker == "_" else 9
            errors.scatter(number, values, s=size, color=colour, marker=marker, label=label, lw=1)
        errors.set_yscale("log")
        errors.set_xlabel("outage, by rank")
        errors.xaxis.set_major_locator(MaxNLocator(integer=True))
        errors.set_title("Mean absolute error")
        errors.grid(axis="y")
        errors.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 0.99), handletextpad=0.2)
        exact, predicted = (
            _values(rows, "holdout_excess"),
            _values(rows, "holdout_excess_predicted"),
        )
        top = max(1e-3, exact.max(), predicted.max()) * 1.05
        excess.plot([0, top], [0, top], color=GREY, lw=1, zorder=1)
        excess.scatter(exact, predicted, s=14, color=BLUE, alpha=0.8, lw=0, zorder=2)
        excess.set_xlabel("exact")
        excess.set_ylabel("predicted")
        excess.set_title("Limit violations on the hold-out")
        excess.set_xlim(-0.02 * top, top)
        excess.set_ylim(-0.02 * top, top)
        excess.grid()
        return as_svg(figure, "holdout")


def _ranked_by_limits(study: Screening) -> list[OutageRow]:
    """Outages that have a state to look at: not islanded, not without a nominal solution."""
    return [row for row in study.rows if row.num_scenarios > 0]


def _values(rows: Sequence[OutageRow], name: str) -> Real:
    return np.nan_to_num(np.array([getattr(row, name) for row in rows], float))


def _matrix(rows: Sequence[OutageRow], name: str) -> Real:
    return np.nan_to_num(np.array([getattr(row, name) for row in rows], float))


def _short(label: str) -> str:
    return label if len(label) <= 12 else label[:11] + "…"


def _heat_map(
    rows: Sequence[OutageRow],
    probability: Real,
    labels: Sequence[str],
    axis: str,
    title: str,
    colours: str,
) -> str | None:
    if not len(rows) or not probability.size or probability.max() <= 0:
        return None
    shown_rows = np.flatnonzero(probability.max(1) > 0)[:NUM_BARS]
    heaviest = np.argsort(-probability[shown_rows].sum(0), kind="stable")[:NUM_COLUMNS]
    columns = np.sort(heaviest[probability[shown_rows][:, heaviest].max(0) > 0])
    picture = probability[np.ix_(shown_rows, columns)]
    with mpl.rc_context(STYLE):
        size = (min(10.2, 3.2 + 0.42 * len(columns)), 1.5 + 0.19 * len(shown_rows))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(picture, cmap=colours, vmin=0, vmax=1, aspect="auto")
        axes.set_xticks(
            range(len(columns)), [str(labels[c]) for c in columns], rotation=90, fontsize=7.5
        )
        axes.set_yticks(range(len(shown_rows)), [rows[r].outage for r in shown_rows], fontsize=7.5)
        axes.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
        axes.set_yticks(np.arange(len(shown_rows) + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="#E5E7EB", lw=0.6)
        axes.tick_params(which="both", length=0)
        axes.set_xlabel(axis)
        axes.set_ylabel("outage")
        for spine in axes.spines.values():
            spine.set_visible(False)
        bar = figure.colorbar(image, ax=axes, fraction=0.04, pad=0.015, label=title)
        bar.outline.set_visible(False)  # type: ignore[operator]
        return as_svg(figure, axis)
