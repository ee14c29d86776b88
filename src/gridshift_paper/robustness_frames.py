"""Rows of a sweep as tables of outages by methods."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from gridshift.errors import GridshiftError
from gridshift.study.text import real
from gridshift_paper.artefacts import Rows
from gridshift_paper.records import Study

Frame = Any
"""A frame or series of pandas, which comes without types that could be checked."""
TERCILES = ("low", "mid", "high")
LABELS = {"v": "|V|, p.u.", "theta_deg": "theta, °", "overall": "overall"}


def frame_of(rows: Rows, study: Study, grid: str | None = None) -> Frame:
    """Rows of a study, of one grid if it is given; `theta_deg` is added.

    Seeds that were measured on fewer outages than others of the grid are left out: a mean over
    seeds is one over the same seeds for every outage.

    Raises:
        GridshiftError: there are none.
    """
    frame = rows.get(study.name, pd.DataFrame())
    if len(frame) and grid is not None:
        frame = frame[frame.grid == grid]
    if not len(frame):
        where = f" on {grid}" if grid else ""
        raise GridshiftError(f"nothing measured yet: run the study {study.name}{where}")
    return _complete(frame).assign(theta_deg=lambda kept: np.rad2deg(kept.theta))


def _complete(frame: Frame) -> Frame:
    num_outages = frame.groupby(["grid", "seed"]).outage.nunique()
    most = num_outages.groupby("grid").transform("max")
    complete = num_outages.index[num_outages == most]
    return frame[pd.MultiIndex.from_frame(frame[["grid", "seed"]]).isin(complete)]


def measured(rows: Rows, study: Study, grid: str | None = None) -> bool:
    """Whether there are rows of the study, of one grid if it is given."""
    frame = rows.get(study.name, pd.DataFrame())
    return bool(len(frame)) and (grid is None or grid in set(frame.grid))


def largest_grid(frame: Frame) -> str:
    """The grid of the paper's figure, case118, or what there is at a smaller scale."""
    grids = set(frame.grid)
    return "case118" if "case118" in grids else sorted(grids)[0]


def outages_by_seed(frame: Frame, column: str) -> Frame:
    """Index (seed, outage), a column for each method; the intact grid is left out."""
    out = frame[frame.outage != ""]
    return out.pivot(index=["seed", "outage"], columns="method", values=column)


def outages(frame: Frame, column: str) -> Frame:
    """Mean over seeds; index outage, a column for each method."""
    return outages_by_seed(frame, column).groupby("outage").mean()


def intact(frame: Frame, column: str) -> Frame:
    """On the intact grid; index seed, a column for each method."""
    return frame[frame.outage == ""].pivot(index="seed", columns="method", values=column)


def terciles(error: Frame) -> pd.Series:
    """Group of each outage, from the mildest to the hardest third by this error."""
    thirds = np.minimum(3 * np.argsort(np.argsort(error.to_numpy())) // len(error), 2)
    return pd.Series(pd.Categorical.from_codes(thirds, TERCILES), index=error.index)


def in_words(names: Sequence[str], most: int = 6) -> str:
    """'line:1, line:2 and 3 more'."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def span(values: Frame) -> str:
    """'2.1e-4 to 3e-4', or one number if both are the same."""
    low, high = real(float(np.min(values))), real(float(np.max(values)))
    return low if low == high else f"{low} to {high}"


def count_span(counts: Sequence[int]) -> str:
    """'36–38', or '38' if all are the same."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low}–{high}"
