"""What whitening assumes (Proposition 1), and what its regularisation does (equation 7)."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.stats import ortho_group

from gridshift.adapt.surrogate import fit_output_transform
from gridshift.arrays import Real
from gridshift.learn.moments import EPS, Moments, Spectrum, inverse_square_root
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Count, Frame, Note, Numbers, Rows
from gridshift_paper.context_sweep import QUANTITIES, SIZES, prefixes
from gridshift_paper.networks import coefficient_of_determination
from gridshift_paper.protocol import (
    GRIDS,
    Experiment,
    Scale,
    adapted,
    errors_of,
    errors_where_given,
    trained,
)
from gridshift_paper.records import Key, Record, Study, crossed, on_outage
from gridshift_paper.selection import by_seed, mean, measured, picked
from gridshift_paper.spectra import BOTH

NUM_ROTATIONS = 200
"""Whiteners drawn at random that the optimal one is held against."""
EPSILONS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
WITHOUT = 0.0
"""eps of the z-score that the paper's remark 3 has: none inside the root."""


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
        "ZCA": inverse_square_root(covariance),
        "ZCA, angles in degrees": inverse_square_root(in_degrees) * degrees,
        "ZCA of correlations": _zca_cor(covariance),
        "Cholesky": np.asarray(np.linalg.inv(np.linalg.cholesky(regular)), float),
        "PCA": _pca(covariance),
        "one random rotation": rotation @ inverse_square_root(covariance),
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


def _measure(experiment: Experiment) -> list[Record]:
    """A row for each whitener of the training rows, with the error of adapting by it."""
    base, context = Moments.of(experiment.training().y), Moments.of(experiment.context().y)
    test = experiment.test()
    centred = experiment.exact_base(test) - base.mean
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
            **errors_where_given(test, y_hat),
        })  # fmt: skip
    half, back = base.spectrum.power(0.5), base.spectrum.power(-0.5)
    transport = back @ Spectrum.of(half @ context.covariance @ half).power(0.5, 0) @ back
    moved = centred @ transport.T + context.mean
    rows.append({"whitener": "optimal transport", **errors_where_given(test, moved)})
    rng = np.random.default_rng(experiment.seed)
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
    keys=lambda scale: on_outage(scale, *BOTH, seed=scale.seeds),
    measure=_measure,
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


def _scan_keys(scale: Scale) -> Iterator[Key]:
    """Around exact solutions with three seeds, and around a trained network with one."""
    for grid in scale.grids_of(*GRIDS):
        yield from crossed(grid=[grid], base=["exact"], transform=["zca"], eps=EPSILONS,
                           seed=scale.seeds)  # fmt: skip
    for grid in scale.grids_of(*GRIDS):
        yield from crossed(grid=[grid], base=["mlp"], transform=["zca"], eps=EPSILONS,
                           seed=scale.seeds[:1])  # fmt: skip
    yield from crossed(grid=scale.grids_of("case30"), base=["exact", "mlp"],
                       transform=["zscore"], eps=[WITHOUT, 1e-6], seed=scale.seeds[:1])  # fmt: skip


def _scan(experiment: Experiment, *, base: str, transform: str, eps: float) -> list[Record]:
    """Errors of adaptation with this regularisation of base and context, as the paper's tables."""
    grid, scale = experiment.grid, experiment.scale
    config = replace(experiment.config(transform=transform), eps=eps)
    start = trained(grid, config) if base == "mlp" else None
    fitted = fit_output_transform(transform, experiment.training().y, eps)
    rows: list[Record] = []
    if start is not None:
        fresh = experiment.context(scale.num_test)
        r2 = coefficient_of_determination(
            start.transform.forward(fresh.y), start.predict_whitened(fresh.x)
        )
        rows.append({"topology": "base", "n": 0, "r2": r2, **errors_of(start, fresh)})
    for topology in ("N-1",) if grid in SIZES else ("N-1", "N-2"):
        there = replace(experiment, outage=GRIDS[grid].topologies[topology])
        test, contexts = there.test(), [(scale.num_context, there.context())]
        for n, context in prefixes(there, "unshuffled") if grid in SIZES else contexts:
            if start is None:
                y_hat = there.perfect_icw(context, test, fitted)
            else:
                y_hat = adapted("icw" if transform == "zca" else transform, start, context)
                y_hat = y_hat.predict(test.x)
            rows.append({"topology": topology, "n": n, **errors_where_given(test, y_hat)})
    return rows


EPS_SCAN = Study(
    name="eps-scan",
    about="errors of adaptation by the regularisation of the covariance, around exact solutions "
    "and trained networks; z-score with and without",
    keys=_scan_keys,
    measure=_scan,
)


def _off_table_8(frame: Frame, grid: str) -> float:
    """Mean size of the logarithm, base 2, of ours over Table VIII's, all sizes and quantities."""
    means = picked(frame, topology="N-1").groupby("n")[list(QUANTITIES)].mean()
    ratios = [means.loc[n, q] / told[k] for n, told in PAPER.sweep[grid].items() if n in means.index
              for k, q in enumerate(QUANTITIES)]  # fmt: skip
    return float(np.abs(np.log2(ratios)).mean()) if ratios else rules.NAN


def _tables_of_scan(rows: Rows) -> Iterator[Table]:
    frame = measured(rows, EPS_SCAN.name)
    most = {grid: max(PAPER.sweep[grid]) for grid in SIZES}
    for base, label in (("exact", "exact base"), ("mlp", "network of appendix C, one seed")):
        lines, trained_ = [], base == "mlp"
        for eps, at in picked(frame, base=base, transform="zca").groupby("eps"):
            on_30 = [by_seed(at, "overall", grid="case30", topology=t) for t in ("N-2", "N-1")]
            off = [_off_table_8(picked(at, grid=grid), grid) for grid in SIZES]
            v = [mean(picked(at, grid=grid, n=n).v) for grid, n in most.items()]
            fit = [mean(by_seed(at, "r2", grid="case30"))] if trained_ else []
            lines.append((f"{eps:g}", *map(mean_and_spread, on_30), *off, *v, *fit))
        paper = (*PAPER.table_2["mlp"]["ICW"][2:], None, None,
                 *(PAPER.sweep[grid][n][2] for grid, n in most.items()),
                 *[PAPER.capacity[256][0]] * trained_)  # fmt: skip
        yield Table(
            f"Regularisation of the covariance, {label}",
            [">eps", ">case30,\nN-2", ">case30,\nN-1", ">off Table VIII,\n118", ">off,\n300",
             ">|V|, 118,\nmost cases", ">|V|, 300,\nmost cases", *[">R², case30"] * trained_],
            [*lines, ("paper", *paper)] if lines else (),
            "Off Table VIII: mean size of log2 of ours over the paper's over its 15 cells; 0 is "
            "the same, 1 is twice or half.",
        )  # fmt: skip
    part = picked(frame, transform="zscore", grid="case30")
    yield Table(
        "z-score without eps inside the root, case30, overall error",
        ["base", ">eps", ">N-2", ">N-1", ">paper, N-2", ">paper, N-1"],
        [(base, f"{eps:g}", *(mean(by_seed(one, "overall", topology=t)) for t in ("N-2", "N-1")),
          *PAPER.table_2["mlp"]["Z-Score(ctx)"][2:])
         for (base, eps), one in (part.groupby(["base", "eps"]) if len(part) else ())],
        "One seed, one context.",
    )  # fmt: skip


def _fits(grid: str, rows: Rows) -> Numbers:
    """How far errors around exact solutions are from Table VIII, by eps."""
    frame = picked(measured(rows, EPS_SCAN.name, grid=grid), base="exact", transform="zca")
    return {
        f"{eps:g}": _off_table_8(picked(frame, eps=eps), grid) for eps in sorted(set(frame.eps))
    }


def _aligned(pca: bool, rows: Rows) -> Numbers:
    """Mean correlation of z with its own y over ZCA's: of PCA, or of the other whiteners."""
    found = _over_zca("own_mean", rows)
    return {name: value for name, value in found.items() if name.startswith("PCA") == pca}


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
            Claim("the rotation back, by which the optimal whitener differs from PCA's, is what "
                  "keeps each whitened coordinate aligned with its physical one",
                  "mean correlation of z with its own y, PCA's over ZCA's",
                  partial(_aligned, True), rules.at_most(0.5), where="section III",
                  beside=Note("Other whiteners; which is the best depends on the units",
                              partial(_aligned, False))),
            Note("Error of adapting by another whitener, over ZCA's: the proposition says nothing "
                 "of it, and a rotation that is the same for both topologies cancels",
                 partial(_over_zca, "overall")),
        ),
    ),
    Artefact(
        "regularisation", "eq. 7", "What the regularisation of the covariance does", (EPS_SCAN,),
        _tables_of_scan,
        findings=(
            *(Note(f"{grid}, mean size of log2 of our errors around exact solutions over those of "
                   "Table VIII, by eps", partial(_fits, grid)) for grid in SIZES),
        ),
    ),
)  # fmt: skip
