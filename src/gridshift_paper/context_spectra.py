"""Tables and comments about the spectrum of a context's covariance."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from gridshift.learn.diagnostics import spectrum_deviation
from gridshift.learn.moments import EPS
from gridshift.study.text import real
from gridshift_paper.artefacts import Claim, Rows, Table
from gridshift_paper.context_tables import landmarks
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import picked

PAPER_RANK = {"case30": "12-15", "case118": "15-20"}
"""Appendix H: 'effective rank'."""
PAPER_DECADES = (3, 5)
"""Appendix H: orders of magnitude that the spectrum falls over the first 10 to 20 indices."""
PAPER_DEVIATION = 5
"""Fig. 19: per cent that leading eigenvalues of 100 cases are within."""
LEADING = 5
"""Eigenvalues that the tables call leading; the paper names no number."""


def spectrum_of(covariance: pd.DataFrame, grid: str, seed: int | None = None) -> pd.DataFrame:
    """(index by n) eigenvalues, largest first; of the first seed that has any by default."""
    part = picked(covariance, grid=grid, what="eigenvalue")
    if not len(part):
        return pd.DataFrame()
    part = part[part.seed == (part.seed.min() if seed is None else seed)]
    return part.pivot(index="index", columns="n", values="eigenvalue")


def ranks_of(values: np.ndarray) -> dict[str, float]:
    """What 'effective rank' can mean: name to number of directions."""
    share = values / values.sum()
    positive = share[share > 0]
    return {
        "exp(entropy)": float(np.exp(-(positive * np.log(positive)).sum())),
        "99 % of variance": int((share.cumsum() < 0.99).sum()) + 1,
        "99.99 % of variance": int((share.cumsum() < 0.9999).sum()) + 1,
        f"above {EPS:g}": int((values > EPS).sum()),
    }


def _chosen(rows: Rows) -> dict[str, np.ndarray]:
    """Spectrum of each grid at the paper's size of the context, largest first."""
    spectra = {grid: spectrum_of(rows["covariance"], grid) for grid in PAPER_RANK}
    return {
        grid: spectrum[landmarks(spectrum.columns[:-1])[1]].to_numpy()
        for grid, spectrum in spectra.items()
        if len(spectrum)
    }


def _decades(values: np.ndarray) -> float:
    return float(np.log10(values[0] / values[19]))


def tabulate_spectra(rows: Rows) -> list[Table]:
    """What 'effective rank' can mean, at the paper's size of the context."""
    body = [
        [GRIDS[grid].label, len(values), PAPER_RANK[grid], *ranks_of(values).values(),
         _decades(values)]
        for grid, values in _chosen(rows).items()
    ]  # fmt: skip
    if not body:
        return []
    columns = ["grid", ">d", ">effective\nrank, paper", ">exp(entropy)", ">99 %\nof variance",
               ">99.99 %", f">above {EPS:g}", ">decades\nto 20th"]  # fmt: skip
    return [Table(title="Directions of the covariance of 400 cases", columns=columns, rows=body)]


def comment_on_spectra(rows: Rows) -> Iterator[str | Claim]:
    """How fast is the spectrum's fall, and is the whitener decided by the leading eigenpairs?"""
    chosen = _chosen(rows)
    for grid, values in chosen.items():
        low, high = map(int, PAPER_RANK[grid].split("-"))
        ranks = ranks_of(values)
        fitting = [name for name, rank in ranks.items() if low <= rank <= high]
        yield Claim(
            says=f"the covariance of {grid} has an effective rank of {low} to {high}",
            holds=bool(fitting),
            ours=", ".join(f"{rank:.3g} by {name}" for name, rank in ranks.items())
            + "; the paper doesn't define it.",
        )
    if not chosen:
        return
    falls = {grid: _decades(values) for grid, values in chosen.items()}
    low, high = PAPER_DECADES
    yield Claim(
        says=f"the spectrum decays by {low} to {high} orders of magnitude over the first 10 to 20 "
        "indices",
        holds=all(low - 0.5 <= fall <= high + 0.5 for fall in falls.values()),
        ours=", ".join(f"{fall:.1f} to the 20th on {grid}" for grid, fall in falls.items()) + ".",
    )
    weights = {grid: 1 / np.sqrt(values + EPS) for grid, values in chosen.items()}
    told = [
        f"on {grid} {real(weight[0])} for the first and {real(weight[-1])} for the last"
        for grid, weight in weights.items()
    ]
    yield Claim(
        says="the whitening matrix is dominated by the leading eigenpairs",
        holds=all(weight[0] > weight[-1] for weight in weights.values()),
        ours=f"it weighs a direction with 1 / sqrt(s + eps), {', '.join(told)}: small eigenvalues "
        "decide it, down to eps. What adaptation takes of a context is the inverse, which the "
        "leading ones do decide.",
    )


def deviation(spectrum: pd.DataFrame, n: int, reference: int) -> np.ndarray:
    """(d,) relative deviation of the eigenvalues of n cases from those of the reference."""
    return spectrum_deviation(spectrum[n].to_numpy(), spectrum[reference].to_numpy())


def _spectra(covariance: pd.DataFrame, grid: str) -> list[pd.DataFrame]:
    """Spectra of every seed that has any."""
    part = picked(covariance, grid=grid, what="eigenvalue")
    seeds = sorted(set(part["seed"])) if len(part) else []
    return [spectrum_of(covariance, grid, seed) for seed in seeds]


def _leading(spectra: list[pd.DataFrame], n: int, reference: int) -> float:
    """Largest deviation of a leading eigenvalue over seeds, per cent."""
    return 100 * max(float(np.abs(deviation(s, n, reference)[:LEADING]).max()) for s in spectra)


def _others(spectra: list[pd.DataFrame], n: int, reference: int) -> float:
    """Median deviation of the others above eps, per cent."""
    found = []
    for spectrum in spectra:
        decided = spectrum[reference].to_numpy()[LEADING:] > EPS
        found.append(np.abs(deviation(spectrum, n, reference)[LEADING:])[decided])
    return 100 * float(np.median(np.concatenate(found)))


def tabulate_deviations(rows: Rows) -> list[Table]:
    """Largest and typical deviations, against the larger context and against other rows."""
    tables = []
    for grid in PAPER_RANK:
        spectra = _spectra(rows["covariance"], grid)
        if not spectra:
            continue
        *sizes, far = spectra[0].columns
        body = [
            [n, 100 * float(np.sqrt(2 / n))]
            + [part(spectra, n, to) for to in (sizes[-1], far) for part in (_leading, _others)]
            for n in sizes
        ]
        tables.append(Table(
            title=f"{GRIDS[grid].label}: deviation of eigenvalues, %", rows=body,
            columns=[">N", ">sqrt(2/N)", f">first {LEADING}, largest\nto N max", ">others, median",
                     f">first {LEADING}, largest\nto 10 N max", ">others, median"],
            note="Paper: leading eigenvalues within 5 % at N = 100. sqrt(2/N) is the standard "
                 "deviation of one of a normal sample. Others: those above eps.",
        ))  # fmt: skip
    return tables


def comment_on_deviations(rows: Rows) -> Iterator[Claim]:
    """Are leading eigenvalues within 5 %, and is the reference converged?"""
    spectra = {grid: _spectra(rows["covariance"], grid) for grid in PAPER_RANK}
    spectra = {grid: found for grid, found in spectra.items() if found}
    if not spectra:
        return
    leads, told, others, reference = [], [], [], []
    for grid, found in spectra.items():
        *sizes, far = found[0].columns
        first, close, last = sizes[0], sizes[-2], sizes[-1]
        leads.append(_leading(found, first, last))
        told.append(f"{leads[-1]:.0f} % on {grid} (of {last:,}, from {first:,})")
        others.append(_leading(found, last, far))
        reference.append(
            f"on {grid} those at {close:,} are within {_leading(found, close, last):.1f} %, but "
            f"those at {last:,} only within {others[-1]:.0f} % of those at {far:,} other cases"
        )
    yield Claim(
        says=f"leading eigenvalues are within {PAPER_DEVIATION} % of the reference at N = 100",
        holds=max(leads) <= PAPER_DEVIATION,
        ours=f"the {LEADING} leading ones are within {' and '.join(told)}.",
    )
    yield Claim(
        says="eigenvalues at 1,500 cases hardly deviate from those at 2,000, which confirms that "
        "reference as converged",
        holds=max(others) <= PAPER_DEVIATION,
        ours=f"{'; '.join(reference)}: three quarters of the rows are the same.",
    )
