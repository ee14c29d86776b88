"""Table V: is the sinh-arcsinh map lossless?"""

from functools import partial
from typing import Any, cast

import numpy as np

from gridshift.arrays import Real
from gridshift.learn.third_moment import (
    STEEPEST,
    SinhArcsinh,
    SkewCorrected,
    fit_cornish_fisher,
    fit_zca_sas,
)
from gridshift_paper import rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import Claim, Note, Numbers, Rows
from gridshift_paper.printed import printed
from gridshift_paper.protocol import GRIDS, Scale, context_rows, rows_for_test, training_rows
from gridshift_paper.records import Record, Study, crossed
from gridshift_paper.selection import measured

PAPER_ROUND_TRIP = printed("round_trip")
MACHINE_PRECISION = 1e-12
"""Below this a round trip in double precision, over numbers up to about 10, is one of rounding."""


def _round_trip(z: Real, transform: SkewCorrected, y: Real) -> dict[str, float]:
    """Errors of there and back, in z (paper) with double and single precision, and in y."""
    errors = {"_y": np.abs(transform.inverse(transform.forward(y)) - y)}
    for name, precision in (("", np.float64), ("_single", np.float32)):
        given: Any = z.astype(precision)
        sas = SinhArcsinh(skew=cast(Any, transform.skew.astype(precision)))
        errors[name] = np.abs(sas.inverse(sas.forward(given)) - given)
    means = {f"mean{name}": float(error.mean()) for name, error in errors.items()}
    return means | {f"max{name}": float(error.max()) for name, error in errors.items()}


def _measure(scale: Scale, *, grid: str, outage: str, seed: int) -> list[Record]:
    trained_on = training_rows(scale, grid, seed=seed).y
    context = context_rows(grid, outage, scale.num_context, seed=seed).y
    validation = rows_for_test(grid, "", scale.num_test, seed=seed).y
    rows = []
    for name, fitted_on, y in (
        ("training", trained_on, trained_on),
        ("context", context, context),
        ("validation", trained_on, validation),
    ):
        transform = fit_zca_sas(fitted_on)
        z = transform.whitening.forward(y)
        parabola = fit_cornish_fisher(transform.whitening.forward(fitted_on))
        folded = parabola.folded(z)
        lost = np.abs(parabola.inverse(parabola.forward(z)) - z)
        rows.append(
            {
                "set": name, "rows": len(y), **_round_trip(z, transform, y),
                "largest_skew": float(np.abs(transform.skew).max()),
                "ended": int((np.abs(transform.skew) > STEEPEST - 1e-6).sum()),
                "folded": float(folded.mean()), "folded_rows": float(folded.any(1).mean()),
                "folded_max": float(lost.max()),
            }
        )  # fmt: skip
    return rows


ROUND_TRIP = Study(
    name="round-trip",
    about="errors of the sinh-arcsinh map and its inverse on solved cases",
    keys=lambda scale: crossed(
        grid=scale.grids_of("case30"), outage=[GRIDS["case30"].double], seed=scale.seeds
    ),
    measure=_measure,
)


def tables(rows: Rows) -> tuple[Table, Table]:
    """There and back, beside the parabola that folds."""
    frame, body, folds = measured(rows, "round-trip"), [], []
    for name, paper in PAPER_ROUND_TRIP.items():
        part = frame[frame["set"] == name]
        kind = "max" if name == "validation" else "mean"
        errors = [mean_and_spread(part[f"{kind}{column}"]) for column in ("", "_single", "_y")]
        body.append([f"{name}, {'largest' if kind == 'max' else 'mean'}", paper, *errors])
        shares = (100 * part.folded, 100 * part.folded_rows, part.folded_max)
        folds.append([name, *map(mean_and_spread, shares)])
    return (
        Table("Round trip |SAS^-1(SAS(z)) - z|",
              ["rows", ">paper", ">z, float64", ">z, float32", ">y, float64"], body),
        Table("The Cornish-Fisher parabola on the same rows",
              ["rows", ">entries beyond\nthe fold, %", ">rows with one, %", ">largest error"],
              folds),
    )  # fmt: skip


def _largest(columns: dict[str, str], rows: Rows) -> Numbers:
    """Names of numbers to the columns whose largest value they are."""
    frame = measured(rows, "round-trip")
    return {name: float(frame[column].max()) for name, column in columns.items()}


ARTEFACTS = (
    Artefact(
        "round-trip", "Table V", "invertibility of the sinh-arcsinh map", (ROUND_TRIP,), tables,
        findings=(
            Claim("the round trip of the sinh-arcsinh map is at machine precision",
                  "largest error in double precision", partial(_largest, {"": "max"}),
                  rules.below(MACHINE_PRECISION),
                  beside=Note("In single precision", partial(_largest, {"": "max_single"}))),
            Note("Largest |e|, in outputs that eps keeps narrow: the map is nearly straight there",
                 partial(_largest, {"": "largest_skew", "coordinates at the largest allowed":
                                    "ended"})),
        ),
    ),
)  # fmt: skip
