"""Tables and comments about the distance between topologies, and about the map that inverts."""

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


def comment_on_shift(rows: Rows) -> list[str]:
    """Whether the paper's factor comes out, and what it depends on."""
    distances = rows["distances"]
    if not len(distances):
        return []
    ours = mmd_drop(distances)
    own, context = (mmd_drop(distances, moments=m) for m in ("same rows", "context"))
    return [
        f"Whitening brings the joint MMD down {real(mean(ours))} times ({real(ours.min())} to "
        f"{real(ours.max())} over seeds) when each topology's moments are of as many other rows "
        f"as the surrogate is trained on; the paper has {PAPER_DROP} times.",
        f"The factor says more about the rows than about the shift: {real(mean(own))} times with "
        "moments of the very rows compared, which takes their sampling error out as well, and "
        f"{real(mean(context))} times with a context, as deployed.",
    ]


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


def comment_on_moments(rows: Rows) -> list[str]:
    """Do two moments suffice, and is the residue noise?"""
    distances = rows["distances"]
    if not len(distances):
        return []

    def at(level: str, column: str = "mmd", moments: str = "many") -> float:
        return mean(at_level(distances, level, moments=moments)[column])

    def place(value: float) -> str:
        return "below" if value < low else "above" if value > high else "inside"

    two, low, high = (at("mean, covariance", c) for c in ("mmd", "null_low", "null_high"))
    own, context = (at("mean, covariance", moments=m) for m in ("same rows", "context"))
    third, zscore = at("and skewness"), at("mean, variance")
    before, after = at("nothing", "mardia_outage"), at("mean, covariance", "mardia_outage")
    raw = at("nothing")
    return [
        f"Without matching, MMD is {real(raw)} (paper {PAPER_MMD['nothing']}), the mean "
        f"takes {real(1 - at('mean') / raw)} of it, so nearly all of the operator shift "
        "is a shift of the mean.",
        f"The noise floor is not 1 / sqrt(N) = {PAPER_FLOOR} but the band that random deals give, "
        f"{real(low)} to {real(high)}: it depends on the kernel.",
        f"Two moments end at {real(own)} when they are those of the rows compared, {place(own)} "
        "that band, as fitting takes some of their sampling error out too; at "
        f"{real(two)} with moments of many other rows, {place(two)} it; and at {real(context)} "
        f"with a context, {place(context)} it: the residue of ICW as deployed is the sampling "
        "error of its context.",
        f"Matching skewness on top changes MMD to {real(third)}, because z_s isn't centred again "
        "and e is uncertain in narrow outputs; standardising each output instead of whitening "
        f"gives {real(zscore)}, {'more' if zscore > two else 'not more'} (the paper says more).",
        f"Mardia's skewness of the outage's rows is {real(before)} before and {real(after)} after "
        "whitening: nothing affine changes it (section III).",
    ]


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


def comment_on_round_trip(rows: Rows) -> list[str]:
    """Is the map lossless?"""
    frame = rows["round-trip"]
    if not len(frame):
        return []
    return [
        f"The map inverts to {real(frame['max'].max())} in z in double precision and to "
        f"{real(frame['max_single'].max())} in single precision; the paper's "
        f"{PAPER_ROUND_TRIP['training']:g} lies between, and says nothing about its precision.",
        f"The parabola folds {real(100 * frame.folded.max())} % of the entries at most and then "
        f"misses by up to {real(frame.folded_max.max())}."
        if frame.folded.any()
        else "No entry lies beyond the parabola's fold at 3 / g, so it would have lost nothing on "
        "these outputs either.",
        f"|e| goes up to {real(frame.largest_skew.max())}, in outputs that eps keeps narrow: the "
        f"map is nearly straight over them. {int(frame.ended.sum())} ask for more than "
        "the largest |e|.",
    ]
