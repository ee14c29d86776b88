"""Tables and comments about the spectrum of a context's covariance."""

import numpy as np
import pandas as pd

from gridshift.learn.diagnostics import spectrum_deviation
from gridshift.learn.moments import EPS
from gridshift.study.text import real
from gridshift_paper.artefacts import Rows, Table
from gridshift_paper.context_tables import landmarks
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import picked

PAPER_RANK = {"case30": "12-15", "case118": "15-20"}
"""Appendix H: 'effective rank'."""
LEADING = 5
"""Eigenvalues that the tables call leading; the paper names no number."""


def spectrum_of(covariance: pd.DataFrame, grid: str, seed: int | None = None) -> pd.DataFrame:
    """(index by n) eigenvalues, largest first; of the first seed that has any by default."""
    part = picked(covariance, grid=grid, what="eigenvalue")
    if not len(part):
        return pd.DataFrame()
    part = part[part.seed == (part.seed.min() if seed is None else seed)]
    return part.pivot(index="index", columns="n", values="eigenvalue")


def tabulate_spectra(rows: Rows) -> list[Table]:
    """What 'effective rank' can mean, at the paper's size of the context."""
    covariance, body = rows["covariance"], []
    for grid, told in PAPER_RANK.items():
        spectrum = spectrum_of(covariance, grid)
        if not len(spectrum):
            continue
        chosen = landmarks(spectrum.columns[:-1])[1]
        values = spectrum[chosen].to_numpy()
        share = values / values.sum()
        positive = share[share > 0]
        entropy = float(np.exp(-(positive * np.log(positive)).sum()))
        body.append(
            [
                GRIDS[grid].label, len(values), told, entropy,
                int((share.cumsum() < 0.99).sum()) + 1, int((share.cumsum() < 0.9999).sum()) + 1,
                int((values > EPS).sum()), float(np.log10(values[0] / values[19])),
            ]
        )  # fmt: skip
    if not body:
        return []
    columns = ["grid", ">d", ">effective\nrank, paper", ">exp(entropy)", ">99 %\nof variance",
               ">99.99 %", f">above {EPS:g}", ">decades\nto 20th"]  # fmt: skip
    return [Table(title="Directions of the covariance of 400 cases", columns=columns, rows=body)]


def comment_on_spectra(rows: Rows) -> list[str]:
    """Is the whitener decided by the leading eigenpairs?"""
    said = []
    for grid in PAPER_RANK:
        spectrum = spectrum_of(rows["covariance"], grid)
        if not len(spectrum):
            continue
        chosen = landmarks(spectrum.columns[:-1])[1]
        values = spectrum[chosen].to_numpy()
        weight = 1 / np.sqrt(values + EPS)
        said.append(
            f"{GRIDS[grid].label}: the whitener weighs a direction with 1 / sqrt(s + eps), "
            f"{real(weight[0])} for the first and {real(weight[-1])} for the last, so small "
            "eigenvalues decide it, down to eps, and not the leading ones as the paper says. What "
            "adaptation takes of a context is the inverse, sqrt(s + eps), which the leading ones "
            f"do decide. {int((values > EPS).sum())} of {len(values)} are above eps."
        )
    return said


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


def comment_on_deviations(rows: Rows) -> list[str]:
    """Are leading eigenvalues within 5 %, and is the reference converged?"""
    said = []
    for grid in PAPER_RANK:
        spectra = _spectra(rows["covariance"], grid)
        if not spectra:
            continue
        *sizes, far = spectra[0].columns
        first, close, last = sizes[0], sizes[-2], sizes[-1]
        lead, near = _leading(spectra, first, last), _leading(spectra, close, last)
        other = _leading(spectra, last, far)
        said.append(
            f"{GRIDS[grid].label}: at {first:,} cases the {LEADING} leading eigenvalues are within "
            f"{lead:.0f} % of those at {last:,} (paper: 5 %). Those at {close:,} are within "
            f"{near:.1f} %, which shows no convergence, as three quarters of the rows are "
            f"the same; those at {last:,} are within {other:.0f} % of those at {far:,} other "
            "cases."
        )
    return said
