"""What the paper says of the distance between topologies, and whether our rows say so too."""

# pandas comes without types that could be checked
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from collections.abc import Iterator

import numpy as np
import pandas as pd

from gridshift.study.text import real
from gridshift_paper.artefacts import Claim, Rows
from gridshift_paper.selection import all_near, mean, near
from gridshift_paper.shift_tables import (
    MOMENTS,
    PAPER_DROP,
    PAPER_FLOOR,
    PAPER_MMD,
    PAPER_ROUND_TRIP,
    at_level,
    mmd_drop,
)

MACHINE_PRECISION = 1e-12
"""Below this a round trip in double precision, over numbers up to about 10, is one of rounding."""
DISJOINT = 0.9
"""MMD from which the two topologies' values of an output hardly overlap."""


def comment_on_shift(rows: Rows) -> Iterator[str | Claim]:
    """Whether the paper's factor comes out, and what it depends on."""
    distances, drawn = rows["distances"], rows["histograms"]
    if len(distances):
        ours = mmd_drop(distances)
        own, context = (mmd_drop(distances, moments=m) for m in ("same rows", "context"))
        yield Claim(
            says=f"ICW lowers the joint MMD {PAPER_DROP} times at loads of ±50 %",
            holds=near(mean(ours), PAPER_DROP),
            ours=f"{real(mean(ours))} times ({real(ours.min())} to {real(ours.max())} over seeds) "
            "when each topology's moments are of as many other rows as the surrogate is trained "
            "on.",
        )
        yield (
            f"The factor says more about the rows than about the shift: {real(mean(own))} times "
            "with moments of the very rows compared, which takes their sampling error out as well, "
            f"and {real(mean(context))} times with a context, as deployed."
        )
    if len(drawn):
        raw, whitened = (
            drawn[drawn.space == space].groupby("entry").mmd.first()
            for space in ("raw", "whitened")
        )
        yield Claim(
            says="the three outputs that move most are nearly disjoint between the topologies, and "
            "collapse onto each other after ICW",
            holds=raw.min() > DISJOINT and (whitened < raw / 10).all(),
            ours=f"their own MMD is {real(raw.min())} to {real(raw.max())}, then "
            f"{real(whitened.min())} to {real(whitened.max())}.",
        )


def comment_on_moments(rows: Rows) -> Iterator[str | Claim]:
    """Do two moments suffice, and is the residue noise?"""
    distances = rows["distances"]
    if not len(distances):
        return

    def at(level: str, column: str = "mmd", moments: str = "many") -> float:
        return mean(at_level(distances, level, moments=moments)[column])

    def place(value: float) -> str:
        return "below" if value < low else "above" if value > high else "inside"

    low, high = (at("mean, covariance", c, "same rows") for c in ("null_low", "null_high"))
    two, many, context = (at("mean, covariance", moments=m) for m in MOMENTS)
    third, zscore = (at(level, moments="same rows") for level in ("and skewness", "mean, variance"))
    yield _on_fall(distances)
    yield Claim(
        says=f"the last of these is at the sampling noise floor, 1 / sqrt(N) = {PAPER_FLOOR}, and "
        "indistinguishable from noise",
        holds=two <= high,
        ours=f"{real(two)} with moments of the rows compared is {place(two)} the band that random "
        f"deals give, {real(low)} to {real(high)}; {real(many)} with those of many other rows is "
        f"{place(many)} it, and {real(context)} with those of a context, as deployed, "
        f"{place(context)}: the error of the context.",
    )
    yield Claim(
        says="z-score normalisation reduces MMD less than ZCA does",
        holds=zscore > two,
        ours=f"it leaves {real(zscore)}, ZCA {real(two)}, with moments of the rows compared.",
    )
    yield Claim(
        says="matching the third moment can't lower MMD any further",
        holds=third >= two,
        ours=f"it leaves {real(third)}: z_s isn't centred again, and e is uncertain in narrow "
        "outputs.",
    )
    before, after = at("nothing", "mardia_outage"), at("mean, covariance", "mardia_outage")
    yield Claim(
        says="Mardia's skewness is unchanged by ICW, as by every nonsingular affine map",
        holds=abs(after - before) < 1e-3 * abs(before),
        ours=f"that of the outage's rows is {real(before)} before and {real(after)} after.",
    )


def _on_fall(distances: pd.DataFrame) -> Claim:
    """The paper tells neither whose moments it takes nor whether loads are the same."""
    paper, readings = list(PAPER_MMD.values()), {}
    for loads, drawn in (("same", "the same loads"), ("independent", "loads of their own")):
        for moments, said in MOMENTS.items():
            cells = [
                at_level(distances, level, moments=moments, loads=loads) for level in PAPER_MMD
            ]
            if all(map(len, cells)):
                readings[f"{drawn} and moments of {said}"] = [mean(cell["mmd"]) for cell in cells]
    off = {name: abs(np.log(np.divide(found, paper))).max() for name, found in readings.items()}
    told = [
        f"{', '.join(map(real, readings[name]))} with {name}"
        for name in (min(off, key=off.__getitem__), max(off, key=off.__getitem__))
    ]
    return Claim(
        says=f"MMD falls from {paper[0]} to {paper[1]} with the mean and to {paper[2]} with mean "
        "and covariance",
        holds=any(all_near(found, paper) for found in readings.values()),
        ours="it depends on rows and on those that moments are of, which the paper doesn't tell: "
        f"{told[0]} is nearest to the paper's, {told[1]} farthest.",
    )


def comment_on_round_trip(rows: Rows) -> Iterator[str | Claim]:
    """Is the map lossless?"""
    frame = rows["round-trip"]
    if not len(frame):
        return
    worst = float(frame["max"].max())
    yield Claim(
        says="the round trip of the sinh-arcsinh map is at machine precision",
        holds=worst < MACHINE_PRECISION,
        ours=f"{real(worst)} at most in double precision and {real(frame['max_single'].max())} in "
        f"single; the paper's {PAPER_ROUND_TRIP['training']:g} lies between.",
    )
    yield (
        f"The parabola folds {real(100 * frame.folded.max())} % of the entries at most and then "
        f"misses by up to {real(frame.folded_max.max())}."
        if frame.folded.any()
        else "No entry lies beyond the parabola's fold at 3 / g, so it would have lost nothing on "
        "these outputs either."
    )
    yield (
        f"|e| goes up to {real(frame.largest_skew.max())}, in outputs that eps keeps narrow: the "
        f"map is nearly straight over them. {int(frame.ended.sum())} ask for more than "
        "the largest |e|."
    )
