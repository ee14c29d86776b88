"""Does what holds for two outages hold for all? (section "Robustness Across the Full Contingency
Set", appendices on pairs of outages, on distance against error, and on physical validity)"""

from collections.abc import Sequence
from functools import partial

from gridshift.study.text import real
from gridshift_paper.artefacts import Artefact, Rows, Table, mean_and_spread
from gridshift_paper.protocol import GRIDS
from gridshift_paper.robustness_claims import (
    PAPER_BALANCE,
    PAPER_NUM_PAIRS,
    PAPER_PAIRS_MEDIAN,
    PAPER_PAIRS_WORST,
    PAPER_SOLVER,
    balance_comments,
    balances,
    consistency_comments,
    pair_comments,
    severity,
)
from gridshift_paper.robustness_figures import (
    draw_balance,
    draw_consistency,
    draw_gap,
    draw_pairs,
    draw_wins,
)
from gridshift_paper.robustness_frames import (
    LABELS,
    TERCILES,
    frame_of,
    intact,
    largest_grid,
    measured,
    outages,
    outages_by_seed,
    terciles,
)
from gridshift_paper.robustness_gap import gap_comments, gap_tables
from gridshift_paper.robustness_studies import OUTAGES, OUTAGES_300, PAIRS
from gridshift_paper.robustness_wins import win_comments, win_tables

SHOWN = {"frozen": "frozen", "icw": "ICW", "icw-paired": "paired"}
PAPER_ICW_INTACT = {"v": 2.0e-4, "theta_deg": 1.3e-1}
"""Table III, case118, ICW on the intact grid: the dotted line of Fig. 5, given no number there."""


def consistency_tables(rows: Rows) -> Sequence[Table]:
    if not measured(rows, OUTAGES):
        return ()
    grid = largest_grid(frame_of(rows, OUTAGES))
    frame = frame_of(rows, OUTAGES, grid)
    lines = []
    for column in ("v", "theta_deg"):
        errors, base = outages(frame, column), intact(frame, column)
        for method, label in (SHOWN | {"perfect": "perfect"}).items():
            values, level = errors[method], float(base[method].mean())
            paper = PAPER_ICW_INTACT[column] if method == "icw" and grid == "case118" else None
            lines.append(
                (LABELS[column], label, level, paper, *values.quantile([0.25, 0.5, 0.75]),
                 values.max(), values.max() / level)
            )  # fmt: skip
    told = f"{len(outages(frame, 'v'))} of {GRIDS[grid].num_single} single-line outages of {grid}"
    return (
        Table(
            title=f"Error over {told}, mean over seeds",
            columns=("", "method", ">intact", ">paper:\nintact", ">lower\nquarter", ">median",
                     ">upper\nquarter", ">largest", ">ratio"),
            rows=lines,
            note="'Paired' is icw-paired, 'perfect' ICW around exact solutions of the intact grid; "
            "'intact' is the error on the intact grid, 'ratio' the largest over it.",
        ),
    )  # fmt: skip


def balance_tables(rows: Rows) -> Sequence[Table]:
    lines, levels = [], []
    for grid, factor in balances(rows).items():
        frame = frame_of(rows, OUTAGES, grid)
        worst, group = outages(frame, "worst_median"), severity(frame)
        for name in factor.index:
            part = worst[group == name]
            median = part.median()
            lines.append(
                (grid, name, *(median[method] for method in (*SHOWN, "perfect")), factor[name],
                 PAPER_BALANCE[name], median["frozen"] / median["icw"])
            )  # fmt: skip
        solver = frame[frame.method == "solver"]
        levels.append(
            f"{grid} ({len(worst)} of {GRIDS[grid].num_single} outages) median "
            f"{real(solver.worst_median.median())}, largest "
            f"{real(solver.worst_max.max())}"
        )
    if not lines:
        return ()
    return (
        Table(
            title="Worst-bus mismatch, p.u., by thirds of single-line outages by frozen error",
            columns=("grid", "third", ">frozen", ">ICW", ">paired\nICW", ">perfect\nICW",
                     ">median\nfactor", ">paper", ">factor of\nmedians"),
            rows=lines,
            note="Root of dP² + dQ² at the worst bus but the slack, reactive power of generators "
            "as predicted; median over test rows, then over outages; factor: frozen over ICW. "
            "'Perfect ICW' starts from exact solutions of the intact grid. Rows of the solver: "
            f"{'; '.join(levels)} (paper: about {real(PAPER_SOLVER)}).",
        ),
    )  # fmt: skip


def pair_tables(rows: Rows) -> Sequence[Table]:
    if not measured(rows, PAIRS):
        return ()
    frame = frame_of(rows, PAIRS)
    error, seeds = outages(frame, "overall"), outages_by_seed(frame, "overall")
    group, number = terciles(error["frozen"]), len(error)
    ratio, by_seed = error["frozen"] / error["icw"], seeds["frozen"] / seeds["icw"]
    paired = error["frozen"] / error["icw-paired"]
    lines = []
    for name in TERCILES:
        part = error[group == name].median()
        lines.append(
            (name, int((group == name).sum()), *(part[method] for method in SHOWN),
             ratio[group == name].median(), ratio[group == name].min(),
             int((ratio[group == name] < 1).sum()), paired[group == name].min())
        )  # fmt: skip
    medians, worst = by_seed.groupby("seed").median(), by_seed.groupby("seed").quantile(0.01)
    return (
        Table(
            title=f"Overall error on {number} pairs of outages of case30, loads ±50 %",
            columns=("third", ">pairs", ">frozen", ">ICW", ">paired\nICW", ">factor",
                     ">smallest\nfactor", ">ICW\nworse", ">smallest,\npaired"),
            rows=lines,
            note="Medians over pairs of means over seeds; factor: frozen over ICW, its median.",
        ),
        Table(
            title="Factor over all pairs",
            columns=("", ">ours", ">paper", ">mean ± over seeds"),
            rows=(
                ("pairs", number, PAPER_NUM_PAIRS, ""),
                ("median", ratio.median(), PAPER_PAIRS_MEDIAN, mean_and_spread(medians)),
                ("worst percentile", ratio.quantile(0.01), PAPER_PAIRS_WORST,
                 mean_and_spread(worst)),
                ("smallest", ratio.min(), None, mean_and_spread(by_seed.groupby("seed").min())),
            ),
        ),
    )  # fmt: skip


ARTEFACTS: tuple[Artefact, ...] = (
    Artefact(
        name="consistency", kind="figure", paper="Fig. 5", studies=(OUTAGES,),
        title="errors over all single-line outages of case118", tables=consistency_tables,
        draw=draw_consistency, comments=consistency_comments,
    ),
    Artefact(
        name="n2-pairs", kind="figure", paper="Fig. 13", studies=(PAIRS,),
        title="every pair of outages of case30 at loads of ±50 %", tables=pair_tables,
        draw=draw_pairs, comments=pair_comments,
    ),
    *(
        Artefact(
            name=f"mmd-gap-{grid.removeprefix('case')}", kind="figure", paper=figure,
            studies=(OUTAGES,), title=f"distance closed against increase of error, {grid}",
            tables=partial(gap_tables, grid), draw=partial(draw_gap, grid),
            comments=partial(gap_comments, grid),
        )
        for grid, figure in (("case30", "Fig. 14"), ("case118", "Fig. 15"))
    ),
    Artefact(
        name="physical-validity", kind="figure", paper="Fig. 16", studies=(OUTAGES,),
        title="power balance of predictions over all single-line outages", tables=balance_tables,
        draw=draw_balance, comments=balance_comments,
    ),
    Artefact(
        name="win-counts", kind="figure", paper="", studies=(OUTAGES, OUTAGES_300),
        title="outage by outage, which method is the better one", tables=win_tables,
        draw=draw_wins, comments=win_comments,
    ),
)  # fmt: skip
