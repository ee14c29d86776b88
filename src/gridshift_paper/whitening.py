"""What whitening assumes, and what a context lacks: Proposition 1, and the tail of the spectrum."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.stats import ortho_group

from gridshift.arrays import Real
from gridshift.learn.moments import EPS, Moments, Spectrum
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import Claim, Count, Note, Numbers, Rows
from gridshift_paper.protocol import (
    GRIDS,
    Scale,
    context_rows,
    errors_where_given,
    exact_base,
    rows_for_test,
    training_rows,
)
from gridshift_paper.records import Record, Study, crossed
from gridshift_paper.selection import by_seed, mean, measured, picked
from gridshift_paper.spectra import NUM_DRAWS, REFERENCE, context_keys, reference_moments

BOTH = ("case30", "case118")
NUM_ROTATIONS = 200
"""Whiteners drawn at random that the optimal one is held against."""
LEADING = 20
"""Directions that count as leading: the paper's largest effective rank."""


def _power(covariance: Real, exponent: float) -> Real:
    return Spectrum.of(covariance).power(exponent, EPS)


def _zca_cor(covariance: Real) -> Real:
    """P^(-1/2) V^(-1/2): it correlates each z with its own y the most (Kessy et al. 2018)."""
    regular = covariance + EPS * np.eye(len(covariance))
    deviation = np.sqrt(np.diag(regular))
    correlation = regular / np.outer(deviation, deviation)
    return Spectrum.of(correlation).power(-0.5, 0) / deviation


def _pca(covariance: Real) -> Real:
    """Principal axes, each with its largest entry positive, as a sign has to be chosen."""
    spectrum = Spectrum.of(covariance)
    axes = spectrum.vectors
    axes = axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(len(axes))])
    return (axes / np.sqrt(spectrum.values + EPS)).T


def _whiteners(covariance: Real, degrees: Real) -> dict[str, Real]:
    """Ways to whiten rows of this covariance; `degrees`: units of y in which angles are degrees."""
    regular = covariance + EPS * np.eye(len(covariance))
    in_degrees = np.outer(degrees, degrees) * covariance
    rotation = ortho_group.rvs(len(covariance), random_state=np.random.default_rng(0))
    return {
        "ZCA": _power(covariance, -0.5),
        "ZCA, angles in degrees": _power(in_degrees, -0.5) * degrees,
        "ZCA of correlations": _zca_cor(covariance),
        "Cholesky": np.asarray(np.linalg.inv(np.linalg.cholesky(regular)), float),
        "PCA": _pca(covariance),
        "one random rotation": rotation @ _power(covariance, -0.5),
    }


def _distortion(whitener: Real, covariance: Real) -> float:
    """E |W (y - mean) - (y - mean)|^2, what equation 6 of the paper minimises."""
    off = whitener - np.eye(len(whitener))
    return float(np.trace(off @ covariance @ off.T))


def _own(whitener: Real, covariance: Real) -> Real:
    """(d,) correlation of each z with its own y; 0 where z is constant."""
    cross = whitener @ covariance
    variance = np.einsum("ij,ij->i", cross, whitener)
    product = np.sqrt(np.maximum(variance, 0) * np.diag(covariance))
    return np.divide(np.diag(cross), product, where=variance > 1e-9, out=np.zeros(len(cross)))


def _measure(scale: Scale, *, grid: str, outage: str, seed: int) -> list[Record]:
    """A row for each whitener of the training rows, with the error of adapting by it."""
    base = Moments.of(training_rows(scale, grid, seed=seed).y)
    context = Moments.of(context_rows(grid, outage, scale.num_context, seed=seed).y)
    test = rows_for_test(grid, outage, scale.num_test, seed=seed)
    centred = exact_base(grid, test) - base.mean
    degrees = np.ones(len(base.mean))
    degrees[test.layout.y_slices["theta"]] = np.rad2deg(1)
    new, rows = _whiteners(context.covariance, degrees), []
    for name, whitener in _whiteners(base.covariance, degrees).items():
        y_hat = centred @ (np.linalg.solve(new[name], whitener)).T + context.mean
        own, cov = _own(whitener, base.covariance), whitener @ base.covariance @ whitener.T
        rows.append({
            "whitener": name, "distortion": _distortion(whitener, base.covariance),
            "own_mean": float(own.mean()), "own_least": float(own.min()),
            "least_variance": float(np.linalg.eigvalsh(cov)[0]),
            **errors_where_given(test, y_hat)[0],
        })  # fmt: skip
    half, back = _power(base.covariance, 0.5), _power(base.covariance, -0.5)
    transport = back @ Spectrum.of(half @ context.covariance @ half).power(0.5, 0) @ back
    moved = centred @ transport.T + context.mean
    rows.append({"whitener": "optimal transport", **errors_where_given(test, moved)[0]})
    rng = np.random.default_rng(seed)
    drawn = [_distortion(ortho_group.rvs(len(base.mean), random_state=rng) @ back,
                         base.covariance) for _ in range(NUM_ROTATIONS)]  # fmt: skip
    rows.append({
        "whitener": "random rotations", "distortion": min(drawn), "largest": max(drawn),
        "better": sum(one < rows[0]["distortion"] for one in drawn), "of": len(drawn),
        "rank": base.spectrum.rank, "outputs": len(base.mean),
        "regular": base.spectrum.effective_rank(EPS),
    })  # fmt: skip
    return rows


PROPOSITION = Study(
    name="proposition",
    about="whiteners of the training rows: what they distort, and how adapting by them goes",
    keys=lambda scale: (key for grid in scale.grids_of(*BOTH)
                        for key in crossed(grid=[grid], outage=[GRIDS[grid].double],
                                           seed=scale.seeds)),
    measure=_measure,
)  # fmt: skip


def _measure_tail(scale: Scale, *, grid: str, outage: str, seed: int, draw: int) -> list[Record]:
    """Errors around exact solutions as parts of a context's moments are replaced by known ones."""
    base = Moments.of(training_rows(scale, grid, seed=seed).y)
    context = Moments.of(context_rows(grid, outage, scale.num_context, seed=seed, draw=draw).y)
    known = reference_moments(grid, outage, REFERENCE * scale.num_context)
    test = rows_for_test(grid, outage, scale.num_test, seed=seed)
    z = (exact_base(grid, test) - base.mean) @ _power(base.covariance, -0.5)
    axes = known.spectrum.vectors[:, -LEADING:]
    lead = axes @ axes.T
    rest = np.eye(len(lead)) - lead
    few, many = context.covariance, known.covariance
    mixed = {
        "context": (context.mean, few),
        "mean known": (known.mean, few),
        "leading directions known": (context.mean, lead @ many @ lead + rest @ few @ rest),
        "tail known": (context.mean, few - rest @ few @ rest + rest @ many @ rest),
        "covariance known": (context.mean, many),
        "both known": (known.mean, many),
    }
    return [
        {"known": name, **errors_where_given(test, z @ _power(_lifted(cov), 0.5) + mean_)[0]}
        for name, (mean_, cov) in mixed.items()
    ]


def _lifted(covariance: Real) -> Real:
    """The nearest covariance: none of its eigenvalues below zero."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.maximum(values, 0)) @ vectors.T


TAIL = Study(
    name="tail",
    about="error of ICW around exact solutions as parts of a context's moments become known",
    keys=lambda scale: context_keys(scale, *BOTH, num_draws=NUM_DRAWS),
    measure=_measure_tail,
)


def proposition_tables(rows: Rows) -> Iterator[Table]:
    """What each whitener distorts, and the error of adapting by it."""
    frame = measured(rows, PROPOSITION.name)
    for grid in BOTH:
        part = picked(frame, grid=grid)
        lines = [
            (name, *(mean(one[column]) if one[column].notna().any() else None for column in
                     ("distortion", "own_mean", "own_least", "least_variance")),
             mean_and_spread(one.overall))
            for name, one in part[part.whitener != "random rotations"].groupby(
                "whitener", sort=False)
        ]  # fmt: skip
        yield Table(
            f"Whiteners of the training rows, {grid}",
            ["whitener", ">E|Wy - y|²", ">mean r\nof z, y", ">least r", ">least\nvariance",
             ">error,\nN-2 Most"], lines,
            "r: correlation of an output with its own whitened one; least variance: smallest "
            "eigenvalue of W S W', which is 1 for a whitener; error: overall, adapting exact "
            "solutions by this whitener of training rows and of 400 cases.",
        )  # fmt: skip


def tail_tables(rows: Rows) -> Iterator[Table]:
    """Errors as parts of the moments become known."""
    frame = measured(rows, TAIL.name)
    yield Table(
        "Overall MAE, N-2 Most, ICW around exact solutions, 400 cases",
        ["known of 20,000 cases", *(f">{grid}" for grid in BOTH)],
        [(name, *(mean_and_spread(picked(part, grid=grid).groupby("seed").overall.mean())
                  for grid in BOTH)) for name, part in frame.groupby("known", sort=False)],
        f"Means of {NUM_DRAWS} contexts a seed. Leading: the first {LEADING} principal directions.",
    )  # fmt: skip


def _over_zca(column: str, rows: Rows) -> Numbers:
    """Of each whitener over ZCA's; case30 and case118."""
    frame = measured(rows, PROPOSITION.name)
    return {
        f"{name}, {grid}": mean(by_seed(one, column)) / mean(
            by_seed(frame, column, grid=grid, whitener="ZCA"))
        for grid in BOTH
        for name, one in picked(frame, grid=grid).groupby("whitener", sort=False)
        if name != "ZCA" and one[column].notna().any()
    }  # fmt: skip


def _better(rows: Rows) -> Numbers:
    part = picked(measured(rows, PROPOSITION.name), whitener="random rotations")
    return {grid: Count(int(one.better.sum()), int(one.of.sum()))
            for grid, one in part.groupby("grid")}  # fmt: skip


def _definite(rows: Rows) -> Numbers:
    part = picked(measured(rows, PROPOSITION.name), whitener="random rotations")
    return {f"{grid}, {what}": Count(int(one[column].min()), int(one.outputs.min()))
            for grid, one in part.groupby("grid")
            for what, column in (("rank", "rank"), ("eigenvalues above eps", "regular"))
            }  # fmt: skip


def _share(known: str, rows: Rows, grid: str = "case118") -> float:
    """Share of what knowing both moments takes off the error that knowing this part does."""
    part = measured(rows, TAIL.name, grid=grid).groupby("known").overall.mean()
    return float((part["context"] - part[known]) / (part["context"] - part["both known"]))


ARTEFACTS = (
    Artefact(
        "proposition", "Prop. 1", "The optimal whitener, checked by numbers", (PROPOSITION,),
        proposition_tables,
        findings=(
            Claim("among whiteners of the covariance ZCA changes the centred outputs the least",
                  "random rotations of it that change them less", _better, rules.at_most(0),
                  where="Proposition 1",
                  beside=Note("What others change over what ZCA does; the best and the worst "
                              "differ little, as outputs have variances far below 1",
                              partial(_over_zca, "distortion"))),
            Note("What it assumes, a positive definite covariance, isn't there, as the grid ties "
                 "outputs; for S + eps I it holds, W S W' is no identity where eps decides. "
                 "Directions", _definite),
            Claim("the optimal whitener keeps each whitened coordinate aligned with its physical "
                  "one, better than other whiteners",
                  "mean correlation of z with its own y, over ZCA's",
                  partial(_over_zca, "own_mean"), rules.at_most(1), where="section III",
                  why="It depends on the units: with angles in degrees, or all outputs scaled by "
                  "their deviation, another matrix is optimal, and correlates more."),
            Note("Error of adapting by another whitener, over ZCA's: the proposition says nothing "
                 "of it, and a rotation that is the same for both topologies cancels",
                 partial(_over_zca, "overall")),
        ),
    ),
    Artefact(
        "tail", "section IV", "Which part of its moments a context of 400 cases lacks", (TAIL,),
        tail_tables,
        findings=(
            Claim("on case118 the improvement that 400 cases leave sits in the tail eigenvalues",
                  "share of it that knowing the tail brings",
                  lambda rows: {"": _share("tail known", rows)}, rules.above(0.5),
                  where="section IV-F",
                  beside=Note("By knowing other parts", lambda rows: {
                      name: _share(name, rows)
                      for name in ("mean known", "leading directions known", "covariance known")}),
                  why="The mean and the leading directions decide the error."),
        ),
    ),
)  # fmt: skip
