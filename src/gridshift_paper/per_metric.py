"""Figures 4 and 12: frozen against ICW for each physical quantity, on three grids."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridshift.errors import GridshiftError
from gridshift.study.figures import BLUE, GREY, ORANGE, STYLE
from gridshift.study.text import real
from gridshift_paper.accuracy_studies import NO_DROPOUT, REFERENCES, VARIANTS
from gridshift_paper.artefacts import Artefact, Rows, Table, mean_and_spread
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import (
    by_seed,
    listed,
    mean,
    num_seeds,
    picked,
    ratio_by_seed,
    spread,
    verdict,
)

QUANTITIES = {
    "overall": "overall", "p_slack": "P slack", "q_gen": "Q gen", "v": "|V|", "theta": "θ",
}  # fmt: skip
AXIS_LABELS = {
    "overall": "overall", "p_slack": r"$P_\mathrm{slack}$", "q_gen": r"$Q_g$", "v": r"$|V|$",
    "theta": r"$\theta$",
}  # fmt: skip
PAPER_FACTORS = {
    "N-1": {
        ("case30", "overall"): 13, ("case118", "overall"): 15, ("case300", "overall"): 6,
        ("case30", "v"): 25, ("case300", "q_gen"): 17,
    },
    "N-2": {
        ("case30", "overall"): 28, ("case118", "overall"): 18, ("case300", "overall"): 8,
        ("case30", "q_gen"): 54, ("case30", "v"): 47,
    },
}  # fmt: skip
"""Frozen / ICW that the text gives for Fig. 4 (section IV) and for its N-2 companion (appendix)."""
PAPER_CONTEXT = {"case30": 400, "case118": 400, "case300": 4_000}
"""Rows of context in Fig. 4; the table of context sizes in the paper has fewer for case300."""
COLOURS = (BLUE, ORANGE)
PRINT: dict[Any, Any] = STYLE | {"font.size": 8, "axes.titlesize": 8.5}


def _zca(rows: Rows, topology: str) -> pd.DataFrame:
    return picked(rows["variants"], backbone="mlp", transform="zca", topology=topology)


def _sizes(frame: pd.DataFrame, grid: str) -> list[int]:
    found = picked(frame, grid=grid, statistics="ctx")
    return sorted(set(found["num_context"].tolist())) if len(found) else []


def _frozen(frame: pd.DataFrame, grid: str, quantity: str) -> pd.Series:
    return by_seed(frame, quantity, grid=grid, statistics="frozen")


def _icw(frame: pd.DataFrame, grid: str, quantity: str, num_context: int) -> pd.Series:
    return by_seed(frame, quantity, grid=grid, statistics="ctx", num_context=num_context)


def factor(frame: pd.DataFrame, grid: str, quantity: str, num_context: int) -> float:
    """Mean error of the frozen surrogate over that of ICW."""
    icw = _icw(frame, grid, quantity, num_context)
    return mean(_frozen(frame, grid, quantity)) / mean(icw)


def _tables(rows: Rows, topology: str) -> Sequence[Table]:
    frame, cells = _zca(rows, topology), []
    for grid in GRIDS.values():
        for size in _sizes(frame, grid.name):
            for quantity, label in QUANTITIES.items():
                theirs = PAPER_FACTORS[topology].get((grid.name, quantity))
                frozen = mean(_frozen(frame, grid.name, quantity))
                icw = mean_and_spread(_icw(frame, grid.name, quantity, size))
                ours = factor(frame, grid.name, quantity, size)
                theirs = theirs if _as_in_paper(frame, grid.name, size) else None
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


def _as_in_paper(frame: pd.DataFrame, grid: str, size: int) -> bool:
    """Whether this context stands where the paper's does: the largest one of its grid."""
    return size == max(_sizes(frame, grid))


def _draw(rows: Rows, topology: str) -> Figure:
    frame = _zca(rows, topology)
    grids = [grid for grid in GRIDS.values() if _sizes(frame, grid.name)]
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
    sizes = _sizes(frame, grid)
    at, width = np.arange(len(QUANTITIES)), 0.8 / (1 + len(sizes))
    left = at - 0.4 + width / 2
    frozen = np.array([mean(_frozen(frame, grid, q)) for q in QUANTITIES])
    axes.bar(left, frozen, width, color=GREY, label="frozen")
    for number, (size, colour) in enumerate(zip(sizes, COLOURS, strict=False), 1):
        series = [_icw(frame, grid, q, size) for q in QUANTITIES]
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


def _comments(rows: Rows, topology: str) -> Iterator[str]:
    frame = _zca(rows, topology)
    ours = {
        (grid, quantity, size): factor(frame, grid, quantity, size)
        for grid in GRIDS for size in _sizes(frame, grid) for quantity in QUANTITIES
    }  # fmt: skip
    if not ours:
        return
    told = []
    for grid in GRIDS:
        for size in _sizes(frame, grid):
            theirs = PAPER_FACTORS[topology][grid, "overall"]
            told.append(f"{GRIDS[grid].label} {ours[grid, 'overall', size]:.1f} at {size:,} rows")
            if _as_in_paper(frame, grid, size):
                told[-1] += f" (paper {theirs})"
    yield f"Overall improvement over the frozen surrogate: {'; '.join(told)}."
    worse = [key for key, value in ours.items() if value < 1]
    names = [f"{QUANTITIES[q]} of {GRIDS[g].label} at {n:,} rows ({ours[g, q, n]:.2g})"
             for g, q, n in worse]  # fmt: skip
    tail = "" if not worse else f": ICW is worse than doing nothing for {listed(names)}"
    yield (
        "The paper: the improvement holds at every system size and across all four quantities. "
        f"This {verdict(not worse)}{tail}."
    )
    yield from _on_ceiling(rows, topology)
    yield from _on_300(frame)
    if topology == "N-2":
        yield from _on_growth(rows, ours)


def _on_ceiling(rows: Rows, topology: str) -> Iterator[str]:
    """What the factor would be with a better surrogate, and with one without error."""
    frame, told = _zca(rows, topology), []
    better = picked(rows["no-dropout"], topology=topology)
    exact = picked(rows["references"], topology=topology, reference="zca")
    for grid in GRIDS.values():
        for size in _sizes(frame, grid.name):
            context = {"grid": grid.name, "num_context": size}
            frozen = _frozen(frame, grid.name, "overall")
            levels = [by_seed(better, "overall", statistics="ctx", **context),
                      by_seed(exact, "overall", **context)]  # fmt: skip
            factors = [mean(ratio_by_seed(frozen, level)) for level in levels]
            known = [f"{value:.1f}" if value == value else "–" for value in factors]
            told.append(f"{grid.label} at {size:,} rows {known[0]} and {known[1]}")
    yield (
        "The factor depends on how well the surrogate fits the intact grid. Without dropout, and "
        f"around exact solutions of the intact grid, it would be: {'; '.join(told)}."
    )


def _on_300(frame: pd.DataFrame) -> Iterator[str]:
    sizes = _sizes(frame, "case300")
    if len(sizes) < 2:
        return
    few, many = (mean(_icw(frame, "case300", "overall", n)) for n in sizes)
    failed = int(picked(frame, grid="case300", statistics="frozen")["num_test_failed"].sum())
    yield (
        f"300-Bus: {sizes[0]:,} rows are fewer than its 600 outputs, so that its covariance is "
        f"singular; {sizes[1]:,} bring the error from {real(few)} to {real(many)}. {failed} test "
        f"rows in {num_seeds(frame)} seeds have no solution; they are left out."
    )


def _on_growth(rows: Rows, ours: dict[tuple[str, str, int], float]) -> Iterator[str]:
    single = _zca(rows, "N-1")
    smaller = [
        f"{QUANTITIES[q]} of {GRIDS[g].label} at {n:,} rows ({factor(single, g, q, n):.2g}, then "
        f"{value:.2g})"
        for (g, q, n), value in ours.items() if value < factor(single, g, q, n)
    ]  # fmt: skip
    tail = f": smaller for {listed(smaller)}" if smaller else ""
    yield (
        "The paper: improvement factors are uniformly larger than on N-1 Most. This "
        f"{verdict(not smaller)}{tail}."
    )


def _artefact(name: str, topology: str, paper: str) -> Artefact:
    return Artefact(
        name=name,
        kind="figure",
        paper=paper,
        title=f"Error of each quantity, frozen and ICW, on {topology} Most",
        studies=(VARIANTS, REFERENCES, NO_DROPOUT),
        tables=partial(_tables, topology=topology),
        draw=partial(_draw, topology=topology),
        comments=lambda rows: tuple(_comments(rows, topology)),
    )


PER_METRIC_N1 = _artefact("per-metric-n1", "N-1", "Fig. 4")
PER_METRIC_N2 = _artefact("per-metric-n2", "N-2", "Fig. 12")
