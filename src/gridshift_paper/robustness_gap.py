"""Does closing more of the distance between topologies go with a smaller increase of error?

Figures 14 and 15: MMD_Y - MMD_Z against (e_k - e_base) / e_base, one point an outage. MMD_Y is the
distance of the outage's outputs from the intact grid's, MMD_Z that of the whitened ones.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from gridshift_paper.artefacts import Claim, Rows, Table
from gridshift_paper.robustness_frames import (
    Frame,
    frame_of,
    intact,
    measured,
    outages_by_seed,
    span,
)
from gridshift_paper.robustness_studies import OUTAGES, TENFOLD

PAPER_NUM_EXCLUDED = {"case30": 3, "case118": 1}
"""Appendix F: 'a small number of the hardest contingencies are excluded'."""
SOME = 0.1
"""Size of a correlation from which there is one."""
QUANTITIES = {
    "closed": "closed, MMD_Y - MMD_Z",
    "mmd_y": "shift, MMD_Y",
    "mmd_z": "left, MMD_Z",
    "share": "closed / MMD_Y",
}


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
    hardest = gap.increase.nlargest(PAPER_NUM_EXCLUDED[frame.grid.iloc[0]]).index
    return gap.assign(excluded=gap.index.isin(hardest))


def correlation(gap: Frame, name: str, *, ranks: bool = False, of: str = "increase") -> float:
    """Pearson's correlation of a quantity with the increase of ICW's error, or Spearman's."""
    pair = gap[[name, of]]
    pair = pair.rank() if ranks else pair
    return float(np.corrcoef(pair[name], pair[of])[0, 1]) if len(pair) > 2 else np.nan


def gap_tables(grid: str, rows: Rows) -> Sequence[Table]:
    if not measured(rows, OUTAGES, grid):
        return ()
    gap = gaps(frame_of(rows, OUTAGES, grid))
    kept = gap[~gap.excluded]
    lines = [
        (label, *(correlation(part, name, ranks=ranks) for ranks in (False, True)
                  for part in (gap, kept)))
        for name, label in QUANTITIES.items()
    ]  # fmt: skip
    hardest = gap[gap.excluded].sort_values("increase", ascending=False)
    return (
        Table(
            title=f"Correlation with the relative increase of ICW's error, {len(gap)} outages of "
            f"{grid}",
            columns=("with", ">Pearson,\nall", f">without\n{len(hardest)}", ">Spearman,\nall",
                     f">without\n{len(hardest)}"),
            rows=lines,
            note="Means over seeds. The paper's claim is a negative correlation in the first row; "
            "it gives no number.",
        ),
        Table(
            title="Outages that the paper would leave out: the largest increases",
            columns=("outage", ">increase", ">MMD_Y", ">MMD_Z", ">closed"),
            rows=[
                (outage, row.increase, row.mmd_y, row.mmd_z, row.closed)
                for outage, row in hardest.iterrows()
            ],
        ),
    )  # fmt: skip


def gap_comments(grid: str, rows: Rows) -> Iterator[str | Claim]:
    if not measured(rows, OUTAGES, grid):
        return
    frame = frame_of(rows, OUTAGES, grid)
    gap, by_seed = gaps(frame), gaps_by_seed(frame)
    kept = gap[~gap.excluded]
    every, without = correlation(gap, "closed"), correlation(kept, "closed")
    ranks = correlation(gap, "closed", ranks=True), correlation(kept, "closed", ranks=True)
    seeds = [correlation(part, "closed") for _, part in by_seed.groupby("seed")]
    found = (every, without, *ranks)
    opposite = ": the opposite is true" if all(value > SOME for value in found) else ""
    yield Claim(
        says=f"on {grid} outages of which ICW closes more of the shift have a smaller relative "
        "increase of its error",
        holds=all(value < -SOME for value in found),
        ours=f"r = {_told(every)} over all {len(gap)} outages and {_told(without)} without the "
        f"{int(gap.excluded.sum())} hardest, by ranks {_told(ranks[0])} and {_told(ranks[1])}; by "
        f"seed {', '.join(map(_told, seeds))}{opposite}.",
    )
    longer = [correlation(gap, "closed", of="increase_tenfold", ranks=r) for r in (False, True)]
    same = float(np.corrcoef(gap.closed, gap.mmd_y)[0, 1])
    yield (
        f"What is closed is the shift itself: r = {same:.3f} between MMD_Y - MMD_Z and MMD_Y, "
        f"because MMD_Z is {span(gap.mmd_z.quantile([0.05, 0.95]))} on nine of ten outages while "
        f"MMD_Y is {span(gap.mmd_y.quantile([0.05, 0.95]))}. So the axis tells how far an outage "
        f"moves the outputs, not how well they were put back. MMD_Z itself: "
        f"r = {_told(correlation(gap, 'mmd_z'))}, by ranks "
        f"{_told(correlation(gap, 'mmd_z', ranks=True))}."
    )
    yield (
        f"{(gap.increase < 0).sum()} of {len(gap)} increases are negative: e_base is the sampling "
        f"error of a context like every e_k. With ten times the context r = {_told(longer[0])}, by "
        f"ranks {_told(longer[1])}."
    )
    yield (
        "The paper leaves its hardest outages out because their increase is relative to a very "
        "small base-case error; but e_base is one number for all outages of a grid, so it can't "
        "single any out."
    )


def _told(correlated: float) -> str:
    return f"{correlated:.2f}" if np.isfinite(correlated) else "–"
