"""Figures 4 and 12: frozen against ICW for each physical quantity, on three grids."""

from collections.abc import Sequence
from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridshift.pictures import BLUE, GREY, ORANGE
from gridshift_paper import rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import Claim, Frame, Note, Numbers, Rows
from gridshift_paper.figures import BARS, PRINT, dress, panels
from gridshift_paper.printed import printed
from gridshift_paper.protocol import GRIDS
from gridshift_paper.rules import NAN
from gridshift_paper.selection import by_seed, listed, mean, mean_ratio, num_seeds, picked, spread
from gridshift_paper.variants import NO_DROPOUT, REFERENCES, VARIANTS

QUANTITIES = {
    "overall": "overall", "p_slack": "P slack", "q_gen": "Q gen", "v": "|V|", "theta": "θ",
}  # fmt: skip
AXIS_LABELS = ("overall", r"$P_\mathrm{slack}$", r"$Q_g$", r"$|V|$", r"$\theta$")
PAPER_FACTORS = printed("factors")


def _errors(rows: Rows, topology: str, grid: str, quantity: str, size: int = 0) -> Frame:
    """Error by seed of ICW with this context, of the frozen surrogate without one."""
    return by_seed(
        rows["variants"], quantity, backbone="mlp", transform="zca", topology=topology, grid=grid,
        num_context=size, statistics="ctx" if size else "frozen",
    )  # fmt: skip


def _sizes(rows: Rows, topology: str, grid: str) -> list[int]:
    found = picked(rows["variants"], backbone="mlp", transform="zca", topology=topology, grid=grid,
                   statistics="ctx")  # fmt: skip
    return sorted(set(found["num_context"].tolist())) if len(found) else []


Factors = dict[tuple[str, str, int], float]
"""Grid, quantity and size of the context to frozen over ICW."""


def factors(rows: Rows, topology: str) -> Factors:
    """All that were measured; sizes ascend."""
    return {
        (grid, quantity, size): mean(_errors(rows, topology, grid, quantity))
        / mean(_errors(rows, topology, grid, quantity, size))
        for grid in GRIDS
        for size in _sizes(rows, topology, grid)
        for quantity in QUANTITIES
    }


def _named(found: Factors) -> dict[str, float]:
    return {
        ("" if quantity == "overall" else f"{QUANTITIES[quantity]} of ")
        + f"{GRIDS[grid].label} at {size:,} rows": value
        for (grid, quantity, size), value in found.items()
    }


def _largest_contexts(rows: Rows, topology: str, *quantities: str) -> dict[str, float]:
    """Factors with the paper's context, the largest one of a grid; NaN where there is none."""
    last = {
        (grid, quantity): value for (grid, quantity, _), value in factors(rows, topology).items()
    }
    return {
        f"{grid.label}, {QUANTITIES[q]}": last.get((name, q), NAN)
        for name, grid in GRIDS.items() for q in quantities
    }  # fmt: skip


def _tables(topology: str, rows: Rows) -> Sequence[Table]:
    paper = PAPER_FACTORS[topology]
    outages = [g.single if topology == "N-1" else f"({g.double})" for g in GRIDS.values()]
    seeds = num_seeds(picked(rows["variants"], backbone="mlp", transform="zca", topology=topology))
    return [Table(
        f"Error of each quantity, {topology} Most, MLP",
        ("grid", ">context", "quantity", ">frozen", ">ICW", ">factor", ">paper"),
        [(GRIDS[grid].label, size, QUANTITIES[quantity],
          mean(_errors(rows, topology, grid, quantity)),
          mean_and_spread(_errors(rows, topology, grid, quantity, size)), ours,
          paper.get((grid, quantity)) if size == max(_sizes(rows, topology, grid)) else None)
         for (grid, quantity, size), ours in factors(rows, topology).items()],
        f"p.u., θ in radians; {seeds} seeds; outages {', '.join(outages)}. The paper gives factors "
        "of some quantities only.",
    )]  # fmt: skip


def _draw(topology: str, rows: Rows) -> Figure:
    grids = [grid for grid in GRIDS if _sizes(rows, topology, grid)]
    with mpl.rc_context({**PRINT, "axes.titlesize": 8.5}):
        figure, axes_of = panels(grids, f"rows of {topology} with ZCA", (7.2, 2.6), sharey=True)
        handles = {}
        for axes, grid in zip(axes_of, grids, strict=True):
            _panel(axes, rows, topology, grid)
            axes.set_title(GRIDS[grid].label)
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                handles[label] = handle
        axes_of[0].set_ylabel("mean absolute error, p.u. or rad")
        figure.legend(handles.values(), handles.keys(), loc="outside upper right", ncols=3)
        return figure


def _panel(axes: Axes, rows: Rows, topology: str, grid: str) -> None:
    sizes = _sizes(rows, topology, grid)
    at, width = np.arange(len(QUANTITIES)), 0.8 / (1 + len(sizes))
    left = at - 0.4 + width / 2
    frozen = np.array([mean(_errors(rows, topology, grid, q)) for q in QUANTITIES])
    axes.bar(left, frozen, width, color=GREY, label="frozen")
    for number, (size, colour) in enumerate(zip(sizes, (BLUE, ORANGE), strict=False), 1):
        series = [_errors(rows, topology, grid, q, size) for q in QUANTITIES]
        height = np.array([mean(s) for s in series])
        axes.bar(left + number * width, height, width, yerr=[spread(s) for s in series],
                 color=colour, label=f"ICW, {size:,} context rows", **BARS)  # fmt: skip
        tops = np.maximum(frozen, height) * 1.25 * 1.55 ** (len(sizes) - number)
        for x, top, factor in zip(at, tops, frozen / height, strict=True):
            axes.text(float(x), top, f"{factor:.2g}×", ha="center", fontsize=6.5, color=colour)
    axes.set_xticks(at, AXIS_LABELS)
    axes.tick_params(axis="x", length=0)
    dress(axes, log="y", ticks=None)
    axes.set_ylim(1e-4, max(axes.get_ylim()[1], 6 * frozen.max()))


def _quoted(topology: str, what: str, *quantities: str) -> Claim:
    """The factors that the text quotes."""
    paper = {f"{GRIDS[grid].label}, {QUANTITIES[q]}": float(told)
             for (grid, q), told in PAPER_FACTORS[topology].items() if q in quantities}  # fmt: skip
    told = listed([f"{value:g} times ({name})" for name, value in paper.items()])

    def ours(rows: Rows) -> Numbers:
        found = _largest_contexts(rows, topology, *quantities)
        return {name: found[name] for name in paper}

    return Claim(f"on {topology} Most ICW reduces the {what}: {told}", "frozen over ICW", ours,
                 rules.REACHES, paper)  # fmt: skip


def _span(rows: Rows) -> Numbers:
    found = [*_largest_contexts(rows, "N-1", "overall").values(),
             *_largest_contexts(rows, "N-2", "overall").values()]  # fmt: skip
    return {"smallest": float(np.min(found)), "largest": float(np.max(found))}


def _growth(rows: Rows) -> Numbers:
    single, double = factors(rows, "N-1"), factors(rows, "N-2")
    return _named({key: double[key] / single[key] for key in double if key in single})


def _ceiling(topology: str, rows: Rows) -> Numbers:
    """What the overall factor would be with a better surrogate, and with one without error."""
    better = picked(rows["no-dropout"], topology=topology, statistics="ctx")
    exact = picked(rows["references"], topology=topology, reference="zca")
    return {
        f"{GRIDS[grid].label} at {size:,} rows, {name}": mean_ratio(
            _errors(rows, topology, grid, "overall"),
            by_seed(level, "overall", grid=grid, num_context=size),
        )
        for grid in GRIDS
        for size in _sizes(rows, topology, grid)
        for name, level in (("without dropout", better), ("exact", exact))
    }


def _failed(topology: str, rows: Rows) -> Numbers:
    frozen = picked(rows["variants"], topology=topology, grid="case300", statistics="frozen")
    return {"in all seeds": int(frozen["num_test_failed"].sum())} if len(frozen) else {}


FINDINGS = {
    "N-1": (
        Claim("the improvement holds at every system size and across all four quantities",
              "frozen over ICW", lambda rows: _named(factors(rows, "N-1")), rules.above(1)),
    ),
    "N-2": (
        Claim("over all grids, N-1 and N-2, ICW reduces the overall error 6 to 28 times over the "
              "frozen surrogate",
              "frozen over ICW", _span, rules.REACHES, {"smallest": 6, "largest": 28}, "abstract"),
        Claim("single quantities improve up to 54 times under N-2", "largest frozen over ICW",
              lambda rows: {"": max(factors(rows, "N-2").values(), default=NAN)}, rules.REACHES,
              54, "abstract"),
        Claim("improvement factors on N-2 Most are uniformly larger than on N-1 Most",
              "factor on N-2 Most over that on N-1 Most", _growth, rules.at_least(1)),
    ),
}  # fmt: skip

ARTEFACTS = tuple(
    Artefact(
        f"per-metric-{topology.replace('-', '').lower()}", place,
        f"Error of each quantity, frozen and ICW, on {topology} Most",
        (VARIANTS, REFERENCES, NO_DROPOUT), partial(_tables, topology), partial(_draw, topology),
        (_quoted(topology, "overall error", "overall"),
         _quoted(topology, "error of single quantities", "q_gen", "v"), *FINDINGS[topology],
         Note("Frozen over ICW, overall, with a better fit to the intact grid: by a network "
              "trained without dropout, and by exact solutions", partial(_ceiling, topology)),
         Note("300-Bus: 400 rows are fewer than its 600 outputs, so the covariance is singular. "
              "Test rows without a solution, left out", partial(_failed, topology))),
    )
    for topology, place in (("N-1", "Fig. 4"), ("N-2", "Fig. 12"))
)  # fmt: skip
