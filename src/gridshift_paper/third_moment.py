"""The third moment: is the sinh-arcsinh map lossless (Table V), and what decides its error?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np

from gridshift.arrays import Real
from gridshift.learn.moments import EPS
from gridshift.learn.third_moment import (
    STEEPEST,
    SinhArcsinh,
    SkewCorrected,
    fit_cornish_fisher,
    fit_sinh_arcsinh,
    fit_zca_sas,
)
from gridshift.learn.whitening import Affine, fit_zca
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Note, Numbers, Rows, Undecided
from gridshift_paper.protocol import QUANTITIES, Experiment, adapted, errors_where_given
from gridshift_paper.records import Record, Study, crossed, on_outage
from gridshift_paper.selection import by_seed, mean_ratio, measured, picked

DOMAINS = {"base": "base", "N-2": "N-2 Most"}
BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, STEEPEST)
"""Largest |e| that is allowed."""
RECENTRED = ("no", "mean", "mean and variance")
"""Moments of the bent outputs that are matched once more."""
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


def _measure(experiment: Experiment) -> list[Record]:
    trained_on, context = experiment.training().y, experiment.context().y
    validation = replace(experiment, outage="").test().y
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
    keys=lambda scale: on_outage(scale, "case30", seed=scale.seeds),
    measure=_measure,
)


def tables(rows: Rows) -> tuple[Table, Table]:
    """There and back, beside the parabola that folds."""
    frame, body, folds = measured(rows, "round-trip"), [], []
    for name, paper in PAPER.round_trip.items():
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


@dataclass(frozen=True, kw_only=True)
class Bent:
    """Whitening, sinh-arcsinh with a bound on |e|, and perhaps the moments of what comes out."""

    whitening: Affine
    skew: Real
    shift: Real
    scale: Real

    @classmethod
    def of(cls, y: Real, bound: float, recentred: str, eps: float) -> "Bent":
        """Fitted to rows (N, d)."""
        whitening = fit_zca(y, eps=eps)
        z = whitening.forward(y)
        skew = np.clip(fit_sinh_arcsinh(z).skew, -bound, bound)
        bent = SinhArcsinh(skew=skew).forward(z)
        zero, one = np.zeros_like(skew), np.ones_like(skew)
        shift = bent.mean(0) if recentred != "no" else zero
        scale = bent.std(0) + 1e-9 if "variance" in recentred else one
        return cls(whitening=whitening, skew=skew, shift=shift, scale=scale)

    def forward(self, y: Real) -> Real:
        """(N, d) of y (N, d)."""
        bent = SinhArcsinh(skew=self.skew).forward(self.whitening.forward(y))
        return (bent - self.shift) / self.scale

    def inverse(self, z: Real) -> Real:
        """(N, d) y of z (N, d)."""
        bent = z * self.scale + self.shift
        return self.whitening.inverse(SinhArcsinh(skew=self.skew).inverse(bent))


def _measure_third(experiment: Experiment, *, base: str) -> list[Record]:
    """Errors of level 3 by bound and recentring, then of level 2 (bound 0), on both topologies."""
    training = experiment.training().y
    start = experiment.base(transform="zca-sas") if base == "mlp" else None
    rows: list[Record] = []
    for topology, there in experiment.topologies():
        context, test = there.context(), there.test()
        exact = there.exact_base(test)
        if start is not None:
            y_hat = adapted("icw", experiment.base(), context).predict(test.x)
        else:
            y_hat = there.perfect_icw(context, test, fit_zca(training))
        level = {"bound": 0.0, "recentred": "no", "eps": EPS}
        rows.append(topology | level | errors_where_given(test, y_hat))
        scans = [*product(BOUNDS, RECENTRED, [EPS])]
        scans += [*product([STEEPEST], RECENTRED, [1e-8, 1e-4])] if base == "exact" else []
        for bound, recentred, eps in scans:
            known = STEEPEST if start else bound  # a network has learned what it was trained with
            old = Bent.of(training, known, recentred, eps)
            new = Bent.of(context.y, bound, recentred, eps)
            if start is None:
                z = old.forward(exact)
            else:
                z = (start.predict_whitened(test.x) - old.shift) / old.scale
            size = np.abs(new.skew)
            level = {
                "bound": bound,
                "recentred": recentred,
                "eps": eps,
                "median_skew": float(np.median(size)),
                "largest_skew": float(size.max()),
            }
            rows.append(topology | level | errors_where_given(test, new.inverse(z)))
    return rows


THIRD = Study(
    name="third-moment",
    about="error of level 3 by the bound of e, by recentring and by eps",
    keys=lambda scale: crossed(grid=scale.grids_of("case30"), base=["exact", "mlp"],
                               seed=scale.seeds),
    measure=_measure_third,
)  # fmt: skip


def _over_level_2(rows: Rows, base: str, topology: str, quantity: str, **level: object) -> float:
    part = picked(measured(rows, THIRD.name), base=base, topology=topology)
    return mean_ratio(by_seed(part, quantity, **level), by_seed(part, quantity, bound=0.0))


def third_tables(rows: Rows) -> Iterator[Table]:
    """Level 3 over level 2 by bound and recentring, and the size of e by eps."""
    measured(rows, THIRD.name)
    for base, label in (("exact", "exact base"), ("mlp", "MLP")):
        lines = []
        for bound, recentred in product(BOUNDS, RECENTRED):
            how = {"bound": bound, "recentred": recentred, "eps": EPS}
            cells = [_over_level_2(rows, base, t, q, **how)
                     for t, q in (("N-2", "overall"), ("N-2", "v"), ("base", "v"))]  # fmt: skip
            lines.append((f"{bound:g}", recentred, *cells))
        yield Table(
            f"Level 3 over level 2 by bound of |e| and recentring, {label}, case30",
            (">largest |e|", "recentred", ">N-2, overall", ">N-2, |V|", ">base, |V|"),
            [*lines, ("", "paper", 1 + PAPER.rise["MLP"], PAPER.voltage_ratio["N-2 Most"],
                      PAPER.voltage_ratio["base"])] if np.isfinite(lines[0][2]) else (),
        )  # fmt: skip
    part = picked(rows[THIRD.name], base="exact", topology="N-2", bound=STEEPEST, recentred="no")
    yield Table(
        "|e| of the context by eps, case30, N-2 Most", (">eps", ">median", ">largest"),
        [(f"{eps:g}", one.median_skew.mean(), one.largest_skew.max())
         for eps, one in part.groupby("eps")],
    )  # fmt: skip


def recentred(rows: Rows, *cells: tuple[str, str], base: str = "exact") -> Numbers:
    """Level 3, its mean matched once more, over level 2: of each topology and quantity."""
    how = {"bound": STEEPEST, "recentred": "mean", "eps": EPS}
    measured(rows, THIRD.name)
    return {f"{QUANTITIES[q]}, {DOMAINS[t]}": _over_level_2(rows, base, t, q, **how)
            for t, q in cells}  # fmt: skip


def nearest(rows: Rows) -> Numbers:
    """The setting whose rise on N-2 is nearest to the paper's, and its voltage ratios."""
    if not len(picked(measured(rows, THIRD.name), base="mlp")):
        raise Undecided("nothing measured yet: run the study third-moment")
    return {
        f"|e| up to {bound:g}, {recentred}": _over_level_2(
            rows, "mlp", "N-2", "overall", bound=bound, recentred=recentred, eps=EPS) - 1
        for bound, recentred in product(BOUNDS, RECENTRED)
    }  # fmt: skip


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
