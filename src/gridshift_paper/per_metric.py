"""Figures 4 and 12: frozen against ICW for each physical quantity, on three grids."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridshift.errors import GridshiftError
from gridshift.study.figures import BLUE, GREY, ORANGE, STYLE
from gridshift_paper.accuracy_studies import NO_DROPOUT, REFERENCES, VARIANTS
from gridshift_paper.artefacts import Artefact, Rows, Table, mean_and_spread
from gridshift_paper.per_metric_claims import (
    PAPER_FACTORS,
    QUANTITIES,
    as_in_paper,
    comments,
    factor,
    frozen_errors,
    icw_errors,
    sizes_of,
    zca_rows,
)
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import (
    mean,
    num_seeds,
    spread,
)

AXIS_LABELS = {
    "overall": "overall", "p_slack": r"$P_\mathrm{slack}$", "q_gen": r"$Q_g$", "v": r"$|V|$",
    "theta": r"$\theta$",
}  # fmt: skip
COLOURS = (BLUE, ORANGE)
PRINT: dict[Any, Any] = STYLE | {"font.size": 8, "axes.titlesize": 8.5}


def _tables(rows: Rows, topology: str) -> Sequence[Table]:
    frame, cells = zca_rows(rows, topology), []
    for grid in GRIDS.values():
        for size in sizes_of(frame, grid.name):
            for quantity, label in QUANTITIES.items():
                theirs = PAPER_FACTORS[topology].get((grid.name, quantity))
                frozen = mean(frozen_errors(frame, grid.name, quantity))
                icw = mean_and_spread(icw_errors(frame, grid.name, quantity, size))
                ours = factor(frame, grid.name, quantity, size)
                theirs = theirs if as_in_paper(frame, grid.name, size) else None
                cells.append((grid.label, size, label, frozen, icw, ours, theirs))
    outages = ", ".join(grid.single if topology == "N-1" else f"({grid.double})"
                        for grid in GRIDS.values())  # fmt: skip
    return [
        Table(
            title=f"Error of each quantity, {topology} Most, MLP",
            columns=("grid", ">context", "quantity", ">frozen", ">ICW", ">factor", ">paper"),
            rows=cells,
            note=f"p.u., θ in radians; {num_seeds(frame)} seeds; outages {outages}. The paper "
            "gives factors of some quantities only.",
        )
    ]


def _draw(rows: Rows, topology: str) -> Figure:
    frame = zca_rows(rows, topology)
    grids = [grid for grid in GRIDS.values() if sizes_of(frame, grid.name)]
    if not grids:
        raise GridshiftError(f"nothing measured yet: no rows of {topology} Most with ZCA")
    with mpl.rc_context(PRINT):
        figure = Figure(figsize=(7.2, 2.6), layout="constrained")
        panels = figure.subplots(1, len(grids), sharey=True, squeeze=False)[0]
        for axes, grid in zip(panels, grids, strict=True):
            _panel(axes, frame, grid.name)
            axes.set_title(grid.label)
        panels[0].set_ylabel("mean absolute error, p.u. or rad")
        handles = {
            label: handle
            for axes in panels
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=3)
        return figure


def _panel(axes: Axes, frame: pd.DataFrame, grid: str) -> None:
    sizes = sizes_of(frame, grid)
    at, width = np.arange(len(QUANTITIES)), 0.8 / (1 + len(sizes))
    left = at - 0.4 + width / 2
    frozen = np.array([mean(frozen_errors(frame, grid, q)) for q in QUANTITIES])
    axes.bar(left, frozen, width, color=GREY, label="frozen")
    for number, (size, colour) in enumerate(zip(sizes, COLOURS, strict=False), 1):
        series = [icw_errors(frame, grid, q, size) for q in QUANTITIES]
        height = np.array([mean(s) for s in series])
        place = left + number * width
        axes.bar(
            place, height, width, yerr=[spread(s) for s in series], color=colour,
            label=f"ICW, {size:,} context rows",
            error_kw={"lw": 0.8, "ecolor": "#111827"},
        )  # fmt: skip
        tops = np.maximum(frozen, height) * 1.25 * 1.55 ** (len(sizes) - number)
        for x, top, quantity in zip(at, tops, QUANTITIES, strict=True):
            text = f"{factor(frame, grid, quantity, size):.2g}×"
            axes.text(float(x), top, text, ha="center", fontsize=6.5, color=colour)
    axes.set_yscale("log")
    axes.set_xticks(at, [AXIS_LABELS[q] for q in QUANTITIES])
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="y")
    axes.set_ylim(1e-4, max(axes.get_ylim()[1], 6 * frozen.max()))


def _artefact(name: str, topology: str, paper: str) -> Artefact:
    return Artefact(
        name=name,
        kind="figure",
        paper=paper,
        title=f"Error of each quantity, frozen and ICW, on {topology} Most",
        studies=(VARIANTS, REFERENCES, NO_DROPOUT),
        tables=partial(_tables, topology=topology),
        draw=partial(_draw, topology=topology),
        comments=lambda rows: tuple(comments(rows, topology)),
    )


PER_METRIC_N1 = _artefact("per-metric-n1", "N-1", "Fig. 4")
PER_METRIC_N2 = _artefact("per-metric-n2", "N-2", "Fig. 12")
