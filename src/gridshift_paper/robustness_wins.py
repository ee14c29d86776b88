"""Outage by outage: which method has the smaller error, over all outages of a grid."""

from collections.abc import Mapping, Sequence

from gridshift.study.text import real
from gridshift_paper.artefacts import Rows, Table
from gridshift_paper.protocol import GRIDS
from gridshift_paper.robustness_frames import (
    TERCILES,
    Frame,
    count_span,
    frame_of,
    in_words,
    intact,
    measured,
    outages,
    outages_by_seed,
    terciles,
)
from gridshift_paper.robustness_studies import OUTAGES, OUTAGES_300, TENFOLD, num_unsolvable

COLUMNS = {"overall": "overall", "v": "|V|", "theta": "theta"}
NAMES = {
    "frozen": "frozen", "residual": "residual(ctx)", "zscore": "z-score(ctx)", "icw": "ICW",
    "icw-paired": "paired ICW", TENFOLD: "ICW, n × 10", "perfect": "perfect ICW",
    "perfect-residual": "perfect residual", "perfect-zscore": "perfect z-score",
    "context-mean": "context mean",
}  # fmt: skip
PAIRS = (
    ("icw", "frozen"), ("icw", "residual"), ("icw", "zscore"), ("icw", "context-mean"),
    ("icw-paired", "frozen"), ("icw-paired", "residual"), ("icw-paired", "zscore"),
    ("icw-paired", "icw"), (TENFOLD, "frozen"), ("perfect", "frozen"),
    ("perfect", "perfect-residual"), ("perfect", "perfect-zscore"),
)  # fmt: skip
"""Counted: outages on which the first has the smaller error."""


def frames(rows: Rows) -> Mapping[str, Frame]:
    """Rows of each grid that was measured."""
    studies = {"case30": OUTAGES, "case118": OUTAGES, "case300": OUTAGES_300}
    return {
        grid: frame_of(rows, study, grid)
        for grid, study in studies.items()
        if measured(rows, study, grid)
    }


def wins(frame: Frame, column: str, one: str, other: str) -> tuple[int, int, list[int]]:
    """Outages won by the mean over seeds, of how many, and won at each seed."""
    mean = outages(frame, column)[[one, other]].dropna()
    seeds = outages_by_seed(frame, column)[[one, other]].dropna()
    at_seeds = (seeds[one] < seeds[other]).groupby("seed").sum()
    return int((mean[one] < mean[other]).sum()), len(mean), at_seeds.tolist()


def _count(frame: Frame, column: str, one: str, other: str) -> str:
    won, number, at_seeds = wins(frame, column, one, other)
    return f"{won}/{number} ({count_span(at_seeds)})"


def win_tables(rows: Rows) -> Sequence[Table]:
    tables = []
    for grid, frame in frames(rows).items():
        there = set(frame.method)
        seeds = frame.seed.nunique()
        tables.append(
            Table(
                title=f"{grid}: outages on which the first is better, by the mean over seeds",
                columns=("first", "against", ">overall", ">|V|", ">theta"),
                rows=[
                    (NAMES[one], NAMES[other], *(_count(frame, c, one, other) for c in COLUMNS))
                    for one, other in PAIRS
                    if {one, other} <= there
                ],
                note=f"In brackets: at single seeds (of {seeds}), fewest to most.",
            )
        )
    if tables:
        tables.append(_losses_table(rows))
    return tables


def _losses_table(rows: Rows) -> Table:
    """Where ICW is worse than the frozen surrogate, by severity."""
    lines = []
    for grid, frame in frames(rows).items():
        error = outages(frame, "overall")
        group, base = terciles(error["frozen"]), intact(frame, "overall").mean()
        for method in ("icw", TENFOLD, "icw-paired"):
            lost = error[method] >= error["frozen"]
            ratio = error["frozen"] / error[method]
            lines.append(
                (grid, NAMES[method], *(int(lost[group == name].sum()) for name in TERCILES),
                 base[method], error["frozen"].quantile(1 / 3), ratio.median(), ratio.min())
            )  # fmt: skip
    return Table(
        title="Outages on which adapting is worse than doing nothing (overall), by thirds of the "
        "frozen error",
        columns=("grid", "method", ">low", ">mid", ">high", ">error,\nintact",
                 ">frozen,\nlow", ">median\nfactor", ">smallest"),
        rows=lines,
        note="'Frozen, low': the largest frozen error of the low third. Factor: frozen over "
        "adapted; n × 10: ten times the context.",
    )  # fmt: skip


def win_comments(rows: Rows) -> Sequence[str]:
    said = []
    for grid, frame in frames(rows).items():
        error, base = outages(frame, "overall"), intact(frame, "overall").mean()
        counts = {column: wins(frame, column, "icw", "frozen")[:2] for column in COLUMNS}
        told = ", ".join(
            f"{won} of {number} ({COLUMNS[name]})" for name, (won, number) in counts.items()
        )
        lost = error.index[error["icw"] >= error["frozen"]]
        below = (error["frozen"][lost] <= base["icw"]).sum()
        said.append(
            f"{GRIDS[grid].label}: ICW beats the frozen surrogate on {told}."
            + (
                f" Of the {len(lost)} it loses overall ({in_words(lost.tolist(), 4)}), {below} "
                f"have a frozen error below what ICW makes on the intact grid, "
                f"{real(base['icw'])}, where nothing has shifted and the frozen surrogate makes "
                f"{real(base['frozen'])}."
                if len(lost)
                else ""
            )
        )
        said.append(_explanation(grid, frame))
    if measured(rows, OUTAGES_300):
        number = num_unsolvable("case300")
        said.append(
            f"case300: of the {GRIDS['case300'].num_single} outages that keep it in one piece, "
            f"{number} have no nominal solution; they are left out."
        )
    return said


def _explanation(grid: str, frame: Frame) -> str:
    """What the levels without sampling error and without network error say about the losses."""
    lost = {
        method: len(error) - int((error[method] < error["frozen"]).sum())
        for method in ("icw", TENFOLD, "perfect", "icw-paired")
        for error in (outages(frame, "overall")[[method, "frozen"]].dropna(),)
    }
    text = (
        f"{grid}: ICW loses {lost['icw']}, with ten times the context {lost[TENFOLD]}, around "
        f"exact base solutions instead of the network {lost['perfect']}, paired "
        f"{lost['icw-paired']}."
    )
    if "zscore" in set(frame.method):
        won = {
            (one, other): wins(frame, "overall", one, other)[:2]
            for one, other in (
                ("icw", "residual"), ("icw", "zscore"),
                ("perfect", "perfect-residual"), ("perfect", "perfect-zscore"),
            )
        }  # fmt: skip
        told = ", ".join(
            f"{NAMES[one]} beats {NAMES[other]} on {count} of {number}"
            for (one, other), (count, number) in won.items()
        )
        text += f" Simpler moments: {told}."
    return text
