"""Outage by outage: where ICW wins (ours), and what closing the shift goes with (Fig. 14, 15).

The figures have MMD_Y - MMD_Z against (e_k - e_base) / e_base, one point an outage. MMD_Y is the
distance of the outage's outputs from the intact grid's, MMD_Z that of the whitened ones.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from gridshift.pictures import BLUE, GREY, RED
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table
from gridshift_paper.claims import PAPER, Claim, Count, Frame, Note, Numbers, Rows
from gridshift_paper.figures import (
    COLOURS,
    DASHED,
    FINE,
    draw_panels,
    method_handles,
    number_ticks,
    plain_ticks,
)
from gridshift_paper.outages import (
    OUTAGES,
    OUTAGES_300,
    OUTAGES_FIT,
    OUTAGES_PRODUCT,
    TENFOLD,
    TERCILES,
    frame_of,
    grids_of,
    intact,
    num_unsolvable,
    of_300,
    outages,
    outages_by_seed,
    terciles,
)
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import count, measured

SOME = 0.1
"""Size of a correlation from which there is one."""
QUANTITIES = {
    "closed": "closed, MMD_Y - MMD_Z",
    "mmd_y": "shift, MMD_Y",
    "mmd_z": "left, MMD_Z",
    "share": "closed / MMD_Y",
}
COLUMNS = {"overall": "overall", "v": "|V|", "theta": "theta"}
NAMES = {
    "frozen": "frozen", "residual": "residual(ctx)", "zscore": "z-score(ctx)", "icw": "ICW",
    "icw-paired": "paired ICW", TENFOLD: "ICW, n × 10", "perfect": "perfect ICW",
    "perfect-residual": "perfect residual", "perfect-zscore": "perfect z-score",
    "context-mean": "context mean",
}  # fmt: skip
DUELS = (
    ("icw", "frozen"), ("icw", "residual"), ("icw", "zscore"), ("icw", "context-mean"),
    ("icw-paired", "frozen"), ("icw-paired", "residual"), ("icw-paired", "zscore"),
    ("icw-paired", "icw"), (TENFOLD, "frozen"), ("perfect", "frozen"),
    ("perfect", "perfect-residual"), ("perfect", "perfect-zscore"),
)  # fmt: skip
"""Counted: outages on which the first has the smaller error."""


def gaps_by_seed(frame: Frame) -> Frame:
    """Index (seed, outage): what was closed, and by how much the error of ICW grew."""
    distance, error = outages_by_seed(frame, "mmd"), outages_by_seed(frame, "overall")
    base = intact(frame, "overall")
    gap = pd.DataFrame({"mmd_y": distance["frozen"], "mmd_z": distance["icw"]})
    gap["closed"] = gap.mmd_y - gap.mmd_z
    gap["share"] = gap.closed / gap.mmd_y
    for name, method in (("increase", "icw"), ("increase_tenfold", TENFOLD)):
        gap[name] = error[method].div(base[method], level="seed") - 1
    return gap.dropna()


def gaps(frame: Frame) -> Frame:
    """Mean over seeds, index outage; `excluded`: the hardest, that the paper would leave out."""
    gap = gaps_by_seed(frame).groupby("outage").mean()
    hardest = gap.increase.nlargest(PAPER.num_excluded[frame.grid.iloc[0]]).index
    return gap.assign(excluded=gap.index.isin(hardest))


def correlation(gap: Frame, name: str, *, ranks: bool = False, of: str = "increase") -> float:
    """Pearson's correlation of a quantity with the increase of ICW's error, or Spearman's."""
    pair = gap[[name, of]]
    pair = pair.rank() if ranks else pair
    return float(np.corrcoef(pair[name], pair[of])[0, 1]) if len(pair) > 2 else np.nan


def gap_tables(grid: str, rows: Rows) -> Sequence[Table]:
    """Correlations with the increase of ICW's error, and the hardest outages."""
    gap = gaps(frame_of(rows, OUTAGES, grid))
    kept = gap[~gap.excluded]
    hardest = gap[gap.excluded].sort_values("increase", ascending=False)
    left = f">without\n{len(hardest)}"
    return (
        Table("Correlation with the relative increase of ICW's error, "
              f"{len(gap)} outages of {grid}",
              ("with", ">Pearson,\nall", left, ">Spearman,\nall", left),
              [(label, *(correlation(part, name, ranks=ranks) for ranks in (False, True)
                         for part in (gap, kept))) for name, label in QUANTITIES.items()],
              "Means over seeds. The paper's claim is a negative correlation in the first row; it "
              "gives no number."),
        Table("Outages that the paper would leave out: the largest increases",
              ("outage", ">increase", ">MMD_Y", ">MMD_Z", ">closed"),
              [(outage, row.increase, row.mmd_y, row.mmd_z, row.closed)
               for outage, row in hardest.iterrows()]),
    )  # fmt: skip


def draw_gap(grid: str, rows: Rows) -> Figure:
    """What is closed of the distance against the increase of ICW's error, one point an outage."""
    gap = gaps(frame_of(rows, OUTAGES, grid))
    kept, left_out = gap[~gap.excluded], gap[gap.excluded]

    def panel(axes: Axes, _: str) -> None:
        axes.axhline(0, color=GREY, lw=0.8)
        axes.scatter(kept.closed, kept.increase, s=14, color=BLUE, alpha=0.75, lw=0)
        axes.scatter(left_out.closed, left_out.increase, s=22, ec=RED, fc="none", lw=1.2,
                     label=f"paper would leave out ({len(left_out)})")  # fmt: skip
        if gap.increase.max() > 2:  # so that the hardest can be shown and the others told apart
            axes.set_yscale("symlog", linthresh=1)
            number_ticks(axes.yaxis, [-0.5, 0, 0.5, 1, 2, 5, 10, 20, 50])
            axes.yaxis.set_minor_locator(NullLocator())
            axes.axhline(1, color=GREY, lw=0.8, ls=DASHED)
            axes.text(0.01, 1, "logarithmic above", fontsize=FINE, color=GREY, va="bottom",
                      transform=axes.get_yaxis_transform())  # fmt: skip

    r, without = (f"{correlation(part, 'closed'):.2f}".replace("-", "−") for part in (gap, kept))
    title = f"{GRIDS[grid].label}, {len(gap)} outages: r = {r} ({without} without)"
    return draw_panels(
        {grid: title}, panel, "outages", 2.7, x=r"$\Delta$MMD = MMD$_Y$ − MMD$_Z$",
        y=r"$(e_k - e_\mathrm{base})\,/\,e_\mathrm{base}$", grid="both", legend="lower right",
    )  # fmt: skip


def frames(rows: Rows) -> Mapping[str, Frame]:
    """Rows of each grid that was measured; case300's of two networks."""
    return {
        f"{grid}, width 1,024" if study is OUTAGES_FIT else grid: frame_of(rows, study, grid)
        for study in dict.fromkeys((OUTAGES, OUTAGES_300, of_300(rows)))
        for grid in grids_of(rows, study)
    }


def wins(frame: Frame, column: str, one: str, other: str) -> tuple[int, int, list[int]]:
    """Outages won by the mean over seeds, of how many, and won at each seed."""
    mean = outages(frame, column)[[one, other]].dropna()
    seeds = outages_by_seed(frame, column)[[one, other]].dropna()
    at_seeds = (seeds[one] < seeds[other]).groupby("seed").sum()
    return int((mean[one] < mean[other]).sum()), len(mean), at_seeds.tolist()


def _count(frame: Frame, column: str, one: str, other: str) -> str:
    """'111/166 (109–114)'."""
    won, number, at_seeds = wins(frame, column, one, other)
    low, high = min(at_seeds), max(at_seeds)
    return f"{won}/{number} ({low if low == high else f'{low}–{high}'})"


def win_tables(rows: Rows) -> Iterator[Table]:
    """Who is better on how many outages, and where ICW is worse than the frozen surrogate."""
    lines = []
    for grid, frame in frames(rows).items():
        yield Table(
            f"{grid}: outages on which the first is better, by the mean over seeds",
            ("first", "against", ">overall", ">|V|", ">theta"),
            [(NAMES[one], NAMES[other], *(_count(frame, c, one, other) for c in COLUMNS))
             for one, other in DUELS if {one, other} <= set(frame.method)],
            f"In brackets: at single seeds (of {frame.seed.nunique()}), fewest to most.",
        )  # fmt: skip
        error = outages(frame, "overall")
        group, base = terciles(error["frozen"]), intact(frame, "overall").mean()
        for method in ("icw", TENFOLD, "icw-paired"):
            lost, ratio = error[method] >= error["frozen"], error["frozen"] / error[method]
            lines.append(
                (grid, NAMES[method], *(int(lost[group == name].sum()) for name in TERCILES),
                 base[method], error["frozen"].quantile(1 / 3), ratio.median(), ratio.min())
            )  # fmt: skip
    yield Table(
        "Outages on which adapting is worse than doing nothing (overall), by thirds of the frozen "
        "error",
        ("grid", "method", ">low", ">mid", ">high", ">error,\nintact", ">frozen,\nlow",
         ">median\nfactor", ">smallest"), lines,
        "'Frozen, low': the largest frozen error of the low third. Factor: frozen over adapted; "
        "n × 10: ten times the context.",
    )  # fmt: skip


def draw_wins(rows: Rows) -> Figure:
    """Error after adaptation over the frozen error, against the frozen error."""
    found = {frame.grid.iloc[0]: (name, frame) for name, frame in frames(rows).items()}
    errors = {grid: outages(frame, "overall") for grid, (_, frame) in found.items()}
    methods, titles = ("icw", "icw-paired"), {}
    for grid, error in errors.items():
        icw, paired = (int((error[method] >= error["frozen"]).sum()) for method in methods)
        name = found[grid][0].replace(grid, GRIDS[grid].label)
        titles[grid] = (f"{name}, {len(error)} outages:\nworse on {icw} (ICW), "
                        f"{paired} (paired ICW)")  # fmt: skip

    def panel(axes: Axes, grid: str) -> None:
        frozen = errors[grid]["frozen"]
        for method in methods:
            ratio = errors[grid][method] / frozen
            axes.scatter(frozen, ratio, s=11, color=COLOURS[method], alpha=0.65, lw=0)
        axes.axhline(1, color="#111827", lw=0.9)
        plain_ticks(axes.xaxis, axes.get_xlim())

    return draw_panels(
        titles, panel, "run the studies outages and outages-300-fit", 2.7, log="xy", grid="both",
        x="Overall MAE, frozen (p.u., rad)", y="Overall MAE, adapted / frozen",
        legend="upper center", handles=method_handles(*methods), sharey=True,
    )  # fmt: skip


def _correlations(grid: str, rows: Rows, of: str = "increase") -> Numbers:
    """Of what is closed with the increase of ICW's error, with all outages and without some."""
    gap = gaps(frame_of(rows, OUTAGES, grid))
    return {
        f"{'by ranks' if ranks else 'r'}, {which}": correlation(part, "closed", ranks=ranks, of=of)
        for ranks in (False, True)
        for which, part in (("all outages", gap), ("without the hardest", gap[~gap.excluded]))
    }


def _at_seeds(grid: str, rows: Rows) -> Numbers:
    by_seed = gaps_by_seed(frame_of(rows, OUTAGES, grid)).groupby("seed")
    return {f"r at seed {seed}": correlation(part, "closed") for seed, part in by_seed}


def _axis(grid: str, rows: Rows) -> Numbers:
    """What the horizontal axis is made of."""
    gap = gaps(frame_of(rows, OUTAGES, grid))
    return {
        "r between MMD_Y - MMD_Z and MMD_Y": float(np.corrcoef(gap.closed, gap.mmd_y)[0, 1]),
        **{f"MMD_{of}, {q:.0%} of outages below": gap[f"mmd_{of.lower()}"].quantile(q)
           for of in "ZY" for q in (0.05, 0.95)},
    }  # fmt: skip


def _negative(grid: str, rows: Rows) -> Numbers:
    gap = gaps(frame_of(rows, OUTAGES, grid))
    longer = _correlations(grid, rows, "increase_tenfold")
    return {"increases below 0": count(gap.increase < 0)} | {
        f"with ten times the context {name}": r for name, r in longer.items() if "all" in name
    }


def _on_gap(grid: str) -> tuple[Claim | Note, ...]:
    return (
        Claim(f"on {grid} outages of which ICW closes more of the shift have a smaller relative "
              "increase of its error",
              "correlation", partial(_correlations, grid), rules.below(-SOME), where="appendix F",
              beside=Note("With all outages", partial(_at_seeds, grid)),
              why="The paper leaves its hardest outages out because their increase is relative to "
              "a very small base-case error; but that is one number for all outages of a grid."),
        Note("What is closed is the shift itself, so the axis tells how far an outage moves the "
             "outputs, not how well they were put back", partial(_axis, grid)),
        Note("Increases are relative to the sampling error of a context, like every e_k",
             partial(_negative, grid)),
    )  # fmt: skip


def _losses(name: str, rows: Rows) -> Numbers:
    """Outages that ICW loses, and whether sampling or the network is the reason."""
    frame = frames(rows).get(name)
    if frame is None:
        return {}
    error, base = outages(frame, "overall"), intact(frame, "overall").mean()
    lost = error["frozen"][error["icw"] >= error["frozen"]]
    return {
        **{NAMES[m]: count(~(error[[m, "frozen"]].dropna().eval(f"`{m}` < frozen")))
           for m in ("icw", TENFOLD, "perfect", "icw-paired")},
        "of those that ICW loses, frozen error below ICW's on the intact grid":
        count(lost <= base["icw"]),
        "ICW's error there": base["icw"], "the frozen one there": base["frozen"],
    }  # fmt: skip


def _product(rows: Rows) -> Numbers:
    """Around the product's network, seed by seed; README quotes the first."""
    frame = measured(rows, OUTAGES_PRODUCT.name, grid="case118")
    errors = outages_by_seed(frame, "overall").dropna()
    lost = errors["icw"] >= errors["frozen"]
    return {f"seed {seed}": count(one) for seed, one in lost.groupby("seed")}


def _unsolvable(rows: Rows) -> Numbers:
    measured(rows, OUTAGES_300.name)
    return {"": Count(num_unsolvable("case300"), GRIDS["case300"].num_single)}


ARTEFACTS = (
    *(
        Artefact(f"mmd-gap-{grid.removeprefix('case')}", figure,
                 f"distance closed against increase of error, {grid}", (OUTAGES,),
                 partial(gap_tables, grid), partial(draw_gap, grid), _on_gap(grid))
        for grid, figure in (("case30", "Fig. 14"), ("case118", "Fig. 15"))
    ),
    Artefact(
        "win-counts", "", "outage by outage, which method is the better one",
        (OUTAGES, OUTAGES_300, OUTAGES_FIT, OUTAGES_PRODUCT), win_tables, draw_wins,
        (
            *(Note(f"{name}: outages on which it is worse than the frozen surrogate",
                   partial(_losses, name)) for name in (*GRIDS, "case300, width 1,024")),
            Note("case118, the product's network, without dropout, whose frozen error is smaller: "
                 "outages on which ICW is worse than it. README's number is of this network, the "
                 "one above of the paper's", _product),
            Note("case300: outages that keep it in one piece and have no nominal solution, left "
                 "out", _unsolvable),
        ),
    ),
)  # fmt: skip
