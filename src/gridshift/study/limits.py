"""The limits that a study counts against: the grid's own, the user's, ratings from a table.

Limits have names: voltages have a lower and an upper one, branches a normal and an emergency
rating.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gridshift.arguments import how_many, shown, some_of
from gridshift.arrays import Bool, Real
from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.study.description import UncertaintyError, nearest

UNITS = ("mva", "ka")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits as a study file gives them; None: the grid's own.

    Raises:
        UncertaintyError: a factor that is not positive, a season that is not there, or one beside
            a factor.
    """

    v_min: float | None = None
    """Of every bus, p.u."""
    v_max: float | None = None
    rating_mva: float | None = None
    """Of branches that the grid gives none."""
    ratings: str | None = None
    """Table of normal and emergency ratings by element; a file beside the study file."""
    emergency_factor: float | None = None
    """Second limit of each branch that the table gives none, as a multiple of its rating."""
    seasonal_factor: float | None = None
    """What all ratings are multiplied by."""
    seasons: Mapping[str, float | str] = field(default_factory=dict)
    """By name what all ratings are multiplied by then, or the table of ratings that holds then."""
    season: str | None = None
    """The one that is studied."""

    def __post_init__(self) -> None:
        for name, value in self.seasons.items():
            if not isinstance(value, str) and not 0 < value < float("inf"):
                told = f"{value:g} must be a positive number, or the name of a table of ratings"
                raise UncertaintyError(("seasons", name), told)
        if self.season is not None and self.seasonal_factor is not None:
            told = f"season {shown(self.season)} is chosen already; leave one of them out"
            raise UncertaintyError(("seasonal_factor",), told)
        self.options()

    def options(self, season: str | None = None) -> dict[str, Any]:
        """The limits by the names of `ScreenConfig`, in this season or else in that chosen here.

        Raises:
            UncertaintyError: there is no such season.
        """
        season = self.season if season is None else season
        told: dict[str, Any] = {
            "v_min": self.v_min, "v_max": self.v_max, "rating_mva": self.rating_mva,
            "ratings": self.ratings, "emergency_rating": self.emergency_factor,
            "seasonal_factor": self.seasonal_factor, "season": season,
        }  # fmt: skip
        if season is None:
            return told
        if season not in self.seasons:
            near = nearest(season, [*self.seasons])
            raise UncertaintyError(
                ("season",), f"no season {shown(season)} in limits.seasons{near}"
            )
        value = self.seasons[season]
        return told | {"ratings" if isinstance(value, str) else "seasonal_factor": value}


@dataclass(frozen=True, kw_only=True)
class Rating:
    """What a table says of an element; None where it says nothing."""

    normal_mva: float | None = None
    """MVA at 1 p.u. voltage."""
    emergency_mva: float | None = None
    normal_ka: float | None = None
    """At both ends, which then have one nominal voltage."""
    emergency_ka: float | None = None


def read_ratings(path: str | os.PathLike[str]) -> Mapping[str, Rating]:
    """Ratings by element from a CSV or parquet table, read once while the file stays the same.

    Columns are `element` and any of `normal_mva`, `emergency_mva`, `normal_ka`, `emergency_ka`;
    an empty cell says nothing.

    Raises:
        GridshiftError: no such table, other columns, an element that is there twice, or values
            that are no ratings.
    """
    try:
        state = os.stat(path)
    except OSError as error:
        raise GridshiftError(f"cannot read ratings {path}: {error.strerror}") from None
    return _read_ratings(os.fspath(path), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=8)
def _read_ratings(path: str, *_: int) -> Mapping[str, Rating]:
    from gridshift.exchange.tables import read_table

    table = read_table(path)
    known = [f"{limit}_{unit}" for unit in UNITS for limit in ("normal", "emergency")]
    names = [name for name in table.column_names if name in known]
    other = [name for name in table.column_names if name not in (*known, "element")]
    if other or not names or "element" not in table.column_names:
        raise GridshiftError(
            f"{path} has the columns {', '.join(table.column_names)}; ratings are in columns "
            f"element and some of {', '.join(known)}"
        )
    found: dict[str, Rating] = {}
    for row, given in enumerate(table.to_pylist(), 1):
        label = str(given["element"]).strip()
        values = {name: given[name] for name in names if given[name] is not None}
        for name, value in values.items():
            if not (isinstance(value, int | float) and 0 < value < float("inf")):
                raise GridshiftError(
                    f"{path}, row {row}: {name} {value!r} of {label} must be a positive number; "
                    "leave the cell empty where there is none"
                )
        if label in found:
            raise GridshiftError(f"{path}, row {row}: {label} is there twice")
        found[label] = Rating(**values)
    return found


def with_limits(
    network: Network,
    *,
    v_min: float | None = None,
    v_max: float | None = None,
    rating_mva: float | None = None,
    ratings: Mapping[str, Rating] | None = None,
    emergency_rating: float | None = None,
    seasonal_factor: float = 1.0,
) -> Network:
    """The network with the user's limits: voltages at every bus, ratings of branches.

    Args:
        network: a grid or an outage of it.
        v_min: lower limit of every bus, p.u.; None keeps the grid's own.
        v_max: upper limit of every bus, p.u.; None keeps the grid's own.
        rating_mva: rating of the branches whose own is missing or a placeholder, MVA at 1 p.u.
            voltage; None leaves them unrated.
        ratings: of some elements, in the place of all others; those that this network lacks are
            passed over.
        emergency_rating: of the branches that `ratings` gives none, as a multiple of their rating;
            None keeps the grid's own.
        seasonal_factor: what all ratings are multiplied by, those of the table included.

    Raises:
        GridshiftError: limits that are not positive numbers, or the lower above the upper, be it
            the grid's own.
    """
    for name, value in (("v_min", v_min), ("v_max", v_max), ("rating_mva", rating_mva)):
        if value is not None and not (np.isfinite(value) and value > 0):
            raise GridshiftError(f"{name} {value} must be a positive number")
    if v_min is not None and v_max is not None and v_min >= v_max:
        raise GridshiftError(f"v_min {v_min} must be below v_max {v_max}, for instance 0.94, 1.06")
    low = network.bus_v_min if v_min is None else np.full(network.num_buses, v_min)
    high = network.bus_v_max if v_max is None else np.full(network.num_buses, v_max)
    crossed = np.flatnonzero(low > high)
    if len(crossed):
        at, b = network.bus_labels[crossed[0]], crossed[0]
        raise GridshiftError(
            "the lower voltage limit is above the upper one at "
            f"{how_many(len(crossed), 'bus', 'buses')}, "
            f"{low[b]:g} above {high[b]:g} at {at}: the limit that isn't given is the grid's own; "
            "give both"
        )
    rating, rated = network.branch_rating, network.branch_rated
    emergency = network.branch_emergency
    if rating_mva is not None:
        rating = np.where(rated[:, None], rating, rating_mva / network.base_mva)
        rated = np.ones_like(rated)
    if emergency_rating is not None:
        emergency = np.full(network.num_branches, float(emergency_rating))
    if ratings:
        rating, rated, emergency = _of_table(network, ratings, rating, rated, emergency)
    return replace(
        network, bus_v_min=low, bus_v_max=high, branch_rating=rating * seasonal_factor,
        branch_rated=rated, branch_emergency=emergency,
    )  # fmt: skip


def _of_table(
    network: Network, ratings: Mapping[str, Rating], rating: Real, rated: Bool, emergency: Real
) -> tuple[Real, Bool, Real]:
    """Ratings (E, 2), whether there is one, and emergency ratings as multiples, by a table."""
    rating, rated, emergency = rating.copy(), rated.copy(), emergency.copy()
    for label, given in ratings.items():
        for branch in network.elements.get(label, ()):
            normal = _per_unit(network, branch, label, given.normal_mva, given.normal_ka)
            most = _per_unit(network, branch, label, given.emergency_mva, given.emergency_ka)
            if normal is not None:
                rating[branch], rated[branch] = normal, True
            if most is None:
                continue
            if not rated[branch]:
                raise GridshiftError(f"{label} has an emergency rating but no normal one; give it")
            times = most / rating[branch].max()
            if times < 1 - 1e-9:
                raise GridshiftError(
                    f"the emergency rating of {label} is below its normal one, {times:.3g} times it"
                )
            emergency[branch] = max(1.0, times)
    return rating, rated, emergency


def _per_unit(
    network: Network, branch: int, label: str, mva: float | None, ka: float | None
) -> float | None:
    """A rating that is given in one unit, p.u.; None if in none."""
    if ka is None:
        return None if mva is None else mva / network.base_mva
    if mva is not None:
        raise GridshiftError(f"{label} has ratings in MVA and in kA; give one of them")
    ends = network.bus_kv[[network.branch_from[branch], network.branch_to[branch]]]
    if not ends[0] == ends[1] > 0:
        raise GridshiftError(
            f"a rating of {label} in kA is not clear, as its ends have {ends[0]:g} and "
            f"{ends[1]:g} kV; give it in MVA"
        )
    return float(np.sqrt(3) * ends[0] * ka / network.base_mva)


def check_ratings(network: Network, ratings: Mapping[str, Rating], source: str) -> None:
    """Pass if every rating is of an element of this grid.

    Raises:
        GridshiftError: some are not.
    """
    unknown = [label for label in ratings if label not in network.elements]
    if unknown:
        raise GridshiftError(
            f"{source} rates {some_of(unknown)}, which {network.name} doesn't have; "
            f"list its elements with 'gridshift cases {network.name} --outages'"
        )


def limit_notes(network: Network) -> list[str]:
    """What cannot be said about this grid because it lacks limits or ratings, in sentences."""
    notes = []
    unlimited = int((np.isnan(network.bus_v_min) & np.isnan(network.bus_v_max)).sum())
    if unlimited:
        some = f"{unlimited:,} of {network.num_buses:,} buses have no"
        which = "no bus has" if unlimited == network.num_buses else some
        notes.append(
            f"{network.name}: {which} voltage limits, so no violations are counted there; "
            "give limits (--v-min, --v-max) to count them"
        )
    unrated = int((~network.branch_rated).sum())
    if unrated == network.num_branches:
        notes.append(
            f"{network.name}: no branch has a rating, so there are no overload statistics; "
            "give a default rating (--rating, in MVA) to get them"
        )
    elif unrated:
        notes.append(
            f"{network.name}: {unrated:,} of {network.num_branches:,} branches have no rating; "
            "their overloads are not counted unless a default rating is given (--rating, in MVA)"
        )
    return notes
