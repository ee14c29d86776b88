"""Tables about the distance between topologies, and about the map that inverts."""

# pandas comes without types that could be checked
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import pandas as pd

from gridshift.study.text import real
from gridshift_paper.artefacts import Rows, Table, mean_and_spread
from gridshift_paper.protocol import SPREAD, WIDE_SPREAD
from gridshift_paper.selection import mean, picked

PAPER_MMD = {"nothing": 0.923, "mean": 0.045, "mean, covariance": 0.029}
"""Fig. 9 and appendix A: case30, N-2 Most, ±20 %, 1,000 rows."""
PAPER_FLOOR = 0.032
"""'Sampling noise floor' of the same, 1 / sqrt(1,000)."""
PAPER_DROP = 28.9
"""Caption of Fig. 3: factor of the joint MMD at ±50 %, 4,000 rows."""
PAPER_ROUND_TRIP = {"training": 1.88e-9, "context": 1.97e-9, "validation": 2.4e-7}
"""Table V: the first two are means, the last is the largest."""

MOMENTS = {
    "same rows": "the rows compared",
    "many": "as many others as trained on",
    "context": "a context",
}
"""From which rows moments are taken."""


def mmd_drop(
    distances: pd.DataFrame, *, moments: str = "many", loads: str = "independent",
    column: str = "mmd",
) -> pd.Series:  # fmt: skip
    """Factor by which whitening lowers the joint MMD at ±50 %, one a seed (paper: 28.9).

    Args:
        distances: rows of the study `distances`.
        moments: one of `MOMENTS`.
        loads: 'same' on both topologies, or 'independent'.
        column: 'mean_coordinate' for the mean over each output's own MMD.
    """
    chosen = picked(distances, spread=WIDE_SPREAD, moments=moments, loads=loads)
    if not len(chosen):
        return pd.Series(dtype=float)
    table = chosen.pivot(index="seed", columns="level", values=column)
    return table["nothing"] / table["mean, covariance"]


def at_level(
    distances: pd.DataFrame, level: str, *, spread: float = SPREAD, moments: str = "many",
    loads: str = "independent",
) -> pd.DataFrame:  # fmt: skip
    """Rows of one level, one a seed."""
    return picked(distances, level=level, spread=spread, moments=moments, loads=loads)


def tabulate_shift(rows: Rows) -> list[Table]:
    """The factor of the caption, for every way to take moments, and the outputs drawn."""
    distances, drawn = rows["distances"], rows["histograms"]
    tables = []
    if len(distances):
        body = []
        for loads in ("independent", "same"):
            for moments, said in MOMENTS.items():
                joint, each = (
                    mmd_drop(distances, moments=moments, loads=loads, column=column)
                    for column in ("mmd", "mean_coordinate")
                )
                told = PAPER_DROP if (loads, moments) == ("independent", "many") else None
                body.append([loads, said, told, mean_and_spread(joint), mean_and_spread(each)])
        note = (
            "Spread ±50 %. Joint: MMD of all outputs before over after; each: the mean over "
            "outputs of each one's own MMD. The paper doesn't say from which rows its moments are."
        )
        columns = ["loads", "moments of", ">paper", ">joint, times", ">each, times"]
        tables.append(Table(title="How much closer ICW brings the topologies",
                            columns=columns, rows=body, note=note))  # fmt: skip
    if len(drawn):
        one = drawn.drop_duplicates(["space", "order", "topology"])
        table = one[one.topology == "intact"].pivot(
            index=["order", "entry"], columns="space", values="mmd"
        )
        body = [[entry, row.raw, row.whitened] for (_, entry), row in table.iterrows()]  # type: ignore[misc]
        tables.append(Table(title="MMD of the outputs in the picture",
                            columns=["output", ">raw", ">whitened"], rows=body))  # fmt: skip
    return tables


def tabulate_moments(rows: Rows) -> list[Table]:
    """MMD at each level; the paper's beside it."""
    distances = rows["distances"]
    if not len(distances):
        return []
    levels = list(dict.fromkeys(distances.level))
    tables = []
    for loads in ("independent", "same"):
        body = []
        for level in levels:
            cells = [at_level(distances, level, moments=m, loads=loads) for m in MOMENTS]
            body.append([level, PAPER_MMD.get(level), *(mean_and_spread(c["mmd"]) for c in cells)])
        floor = at_level(distances, "mean, covariance", loads=loads)
        note = (
            f"Dealing the whitened rows to two samples at random gives "
            f"{real(mean(floor.null_low))} to {real(mean(floor.null_high))} in 95 of 100 cases; "
            f"the paper's noise floor is {PAPER_FLOOR}."
        )
        columns = ["matched", ">paper", *(f">{said}" for said in ("same rows", "many", "context"))]
        title = f"MMD, loads {'of their own' if loads == 'independent' else 'the same'}, ±20 %"
        tables.append(Table(title=title, columns=columns, rows=body, note=note))
    return tables


def tabulate_round_trip(rows: Rows) -> list[Table]:
    """There and back, beside the parabola that folds."""
    frame = rows["round-trip"]
    if not len(frame):
        return []
    body, folds = [], []
    for name, paper in PAPER_ROUND_TRIP.items():
        part = frame[frame["set"] == name]
        kind = "max" if name == "validation" else "mean"
        errors = [mean_and_spread(part[f"{kind}{column}"]) for column in ("", "_single", "_y")]
        body.append([f"{name}, {'largest' if kind == 'max' else 'mean'}", paper, *errors])
        shares = (100 * part.folded, 100 * part.folded_rows, part.folded_max)
        folds.append([name, *(mean_and_spread(share) for share in shares)])
    return [
        Table(
            title="Round trip |SAS^-1(SAS(z)) - z|",
            columns=["rows", ">paper", ">z, float64", ">z, float32", ">y, float64"],
            rows=body,
        ),
        Table(
            title="The Cornish-Fisher parabola on the same rows",
            columns=["rows", ">entries beyond\nthe fold, %", ">rows with one, %",
                     ">largest error"],
            rows=folds,
        ),
    ]  # fmt: skip
