"""Statistics of many scenarios against limits: block by block, parts put together in any order.

Counts, sums, extremes and histograms of a fixed size are whole numbers, so the parts of a study,
whoever counted them and in whatever order they come, give the same bits. Of each scenario seven
numbers are kept, so that its worst voltage and loading have exact quantiles.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gridshift.arrays import Complex, Int, Real
from gridshift.grid.kernels.lanes import Lanes
from gridshift.grid.kernels.statistics import (
    LOADING_BINS,
    MOST_ROWS,
    NUM_BINS,
    NUM_OF_SCENARIO,
    VOLTAGE_BINS,
    shares_below,
    tally,
)
from gridshift.grid.kernels.whole import FRACTION, QUANTUM
from gridshift.grid.network import Network
from gridshift.grid.topology import chord_lanes
from gridshift.grid.workspace import interleaved

HALF_WIDTH = 0.05
"""Stands for the half width of the voltage band, p.u., where there is one limit only or no band."""
SCENARIO_BYTES = NUM_OF_SCENARIO * 8
"""Memory that each scenario takes while its outage is counted."""
_LANES = Lanes(chord_lanes(0))


class Limits(NamedTuple):
    """Limits of a grid as the kernel reads them; E branches are those with a rating."""

    low: Real
    """(B,) lower limits; below every voltage where there is none."""
    high: Real
    per_half_width: Real
    """(B,) inverse of half the width of the band, 0 at buses without limits."""
    rated: Int
    """(E,) which branches they are."""
    branch_bus: Int
    """(2 E,) from and to bus of each."""
    admittance: Real
    """(8 E,) real and imaginary parts of the four admittances; 0 out of service."""
    inverse_square: Real
    """(2 E,) of the ratings of both ends."""
    by_power: bool
    emergency: Real
    """(E,) loading that is the emergency rating, at least 1; inf without one."""

    @classmethod
    def of(cls, network: Network) -> "Limits":
        """The limits of a network as it is; `without` gives those of an outage of it."""
        low, high, rated = network.bus_v_min, network.bus_v_max, rated_branches(network)
        limited = ~(np.isnan(low) & np.isnan(high))
        y = np.where(network.branch_in_service[:, None], network.branch_y, 0)[rated]
        return cls(
            low=np.nan_to_num(low, nan=-np.inf),
            high=np.nan_to_num(high, nan=np.inf),
            per_half_width=np.where(limited, 1 / half_width(network), 0.0),
            rated=rated,
            branch_bus=np.stack([network.branch_from, network.branch_to], 1)[rated].ravel(),
            admittance=interleaved(y),
            inverse_square=1 / np.square(network.branch_rating[rated].ravel()),
            by_power=network.rating_kind == "power",
            emergency=network.branch_emergency[rated],
        )

    def without(self, network: Network) -> "Limits":
        """The same limits where branches of this network are out and buses stand apart."""
        gone = ~network.branch_in_service[self.rated]
        y = np.where(gone[:, None], 0.0, self.admittance.reshape(-1, 8))
        found = self._replace(admittance=y.ravel())
        if not network.apart:
            return found
        per_half_width = self.per_half_width.copy()
        per_half_width[[*network.apart]] = 0.0
        return found._replace(per_half_width=per_half_width)

    def moved(self, network: Network) -> "Limits":
        """The same limits with the admittances of this network."""
        y = np.where(network.branch_in_service[:, None], network.branch_y, 0)[self.rated]
        return self._replace(admittance=interleaved(y))


def rated_branches(network: Network) -> Int:
    """Branches whose loading is counted, in service or not."""
    return np.flatnonzero(network.branch_rated)


def half_width(network: Network) -> Real:
    """(B,) half the width of the voltage band, p.u."""
    half = (network.bus_v_max - network.bus_v_min) / 2
    return np.where(np.isfinite(half) & (half > 0), half, HALF_WIDTH)


class Counts(NamedTuple):
    """What is added up, all of it whole numbers. Sums have two words: ones and quanta."""

    bus_sums: Int
    """(B, 4, 2) magnitude, distance outside the limits, real and imaginary part."""
    bus_extremes: Int
    """(B, 2) smallest and largest magnitude."""
    under: Int
    over: Int
    branch_sums: Int
    """(E, 2, 2) loading, loading beyond 1."""
    branch_extremes: Int
    overloaded: Int
    emergency: Int
    """(E,) loadings beyond the emergency rating."""
    bus_bins: np.ndarray
    """(B, bins) histogram of magnitudes."""
    branch_bins: np.ndarray
    """(E, bins) histogram of loadings."""

    @classmethod
    def empty(cls, buses: int, branches: int) -> "Counts":
        """Nothing counted yet."""
        none = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        return cls(
            bus_sums=np.zeros((buses, 4, 2), np.int64),
            bus_extremes=np.full((buses, 2), none),
            under=np.zeros(buses, np.int64),
            over=np.zeros(buses, np.int64),
            branch_sums=np.zeros((branches, 2, 2), np.int64),
            branch_extremes=np.full((branches, 2), none),
            overloaded=np.zeros(branches, np.int64),
            emergency=np.zeros(branches, np.int64),
            bus_bins=np.zeros((buses, NUM_BINS), np.int32),
            branch_bins=np.zeros((branches, NUM_BINS), np.int32),
        )


class Workspace(NamedTuple):
    """Room for a block of lanes."""

    tile: Real
    """Voltages, lanes last."""
    row: Int
    """Row of the scenarios that each lane is."""
    live: Int
    """All bits set in the lanes that count."""
    place: Int
    column: Real
    scenario: Real

    @classmethod
    def new(cls, num_buses: int, width: int) -> "Workspace":
        """Room for one block; without buses for lanes of voltages that lie elsewhere."""
        row, live, place = np.zeros((3, width), np.int64)
        return cls(
            tile=np.zeros(2 * num_buses * width),
            row=row,
            live=live,
            place=place,
            column=np.zeros(width),
            scenario=np.zeros(NUM_OF_SCENARIO * width),
        )


class Distribution(NamedTuple):
    """Mean and upper quantiles of one number of each scenario; NaN if there are none."""

    mean: float
    p95: float
    p99: float
    max: float
    tail: float
    """Mean of the worst twentieth, rounded up: the conditional value at risk at 95 %."""

    @classmethod
    def of(cls, values: Real) -> "Distribution":
        """Of values in any order; the order doesn't touch the bits."""
        n = len(values)
        if not n:
            return cls(mean=np.nan, p95=np.nan, p99=np.nan, max=np.nan, tail=np.nan)
        values = np.sort(values)
        return cls(
            mean=float(values.mean()),
            p95=float(values[-(n // 20) - 1]),
            p99=float(values[-(n // 100) - 1]),
            max=float(values[-1]),
            tail=float(values[n * 19 // 20 :].mean()),
        )


@dataclass(eq=False)
class Statistics:
    """Statistics of the scenarios added so far, B buses and E branches with a rating."""

    limits: Limits
    counts: Counts = field(init=False)
    num_rows: int = 0
    _scenarios: list[Real] = field(default_factory=list)
    _work: Workspace | None = None

    def __post_init__(self) -> None:
        self.counts = Counts.empty(len(self.limits.low), len(self.limits.branch_bus) // 2)

    def add(self, voltage: Real, limits: Limits | None = None) -> None:
        """Add rows (n, 2 B) of real and imaginary parts, all of them finite.

        Args:
            voltage: the rows.
            limits: `Limits.moved`, if the rows have other admittances.
        """
        limits = limits or self.limits
        self._work = self._work or Workspace.new(len(self.limits.low), _LANES.width)
        for first in range(0, len(voltage), MOST_ROWS):
            rows = voltage[first : first + MOST_ROWS]
            scenarios = np.empty((NUM_OF_SCENARIO, len(rows)))
            tally(_LANES, limits, rows, self._work, self.counts, scenarios)
            self._scenarios.append(scenarios)
        self.num_rows += len(voltage)

    def take(self, scenarios: Real) -> None:
        """Take the numbers (7, n) of scenarios that a kernel has added to `counts`."""
        self._scenarios.append(scenarios)
        self.num_rows += scenarios.shape[1]

    def add_complex(self, voltage: Complex, limits: Limits | None = None) -> None:
        """Add rows (n, B) as `add`; those that are not finite are left out."""
        finite = np.isfinite(voltage).all(1)
        kept = voltage if finite.all() else voltage[finite]
        self.add(np.ascontiguousarray(kept).view(np.float64), limits)

    def merge(self, others: Iterable["Statistics"]) -> "Statistics":
        """This one with what others of the same limits have counted; the order doesn't matter."""
        for other in others:
            mine, theirs = self.counts, other.counts
            for name in ("bus_sums", "branch_sums"):
                total = getattr(mine, name)
                total += getattr(theirs, name)
                total[..., 0] += total[..., 1] >> FRACTION
                total[..., 1] &= (1 << FRACTION) - 1
            for name in ("under", "over", "overloaded", "emergency", "bus_bins", "branch_bins"):
                total = getattr(mine, name)
                total += getattr(theirs, name)
            for name in ("bus_extremes", "branch_extremes"):
                total, more = getattr(mine, name), getattr(theirs, name)
                np.minimum(total[:, 0], more[:, 0], out=total[:, 0])
                np.maximum(total[:, 1], more[:, 1], out=total[:, 1])
            self._scenarios += other._scenarios
            self.num_rows += other.num_rows
        return self

    def stored(self) -> dict[str, np.ndarray]:
        """Everything that was counted, as arrays; `of_stored` makes it again."""
        return {**self.counts._asdict(), "scenarios": self.scenarios()}

    @classmethod
    def of_stored(cls, limits: Limits, values: Mapping[str, np.ndarray]) -> "Statistics":
        """Statistics of arrays that `stored` gave, of scenarios that were held to these limits.

        Raises:
            KeyError, ValueError: they are of another grid.
        """
        statistics = cls(limits)
        for name, empty in statistics.counts._asdict().items():
            if values[name].shape != empty.shape or values[name].dtype != empty.dtype:
                raise ValueError(f"{name} has shape {values[name].shape}, not {empty.shape}")
            empty[...] = values[name]
        scenarios = np.asarray(values["scenarios"], float)
        statistics._scenarios.append(scenarios)
        statistics.num_rows = scenarios.shape[1]
        return statistics

    def scenarios(self) -> Real:
        """(7, R) the numbers of each scenario, see `kernels.statistics.tally`, in no order."""
        return np.concatenate([np.empty((NUM_OF_SCENARIO, 0)), *self._scenarios], axis=1)

    def mean(self, sums: Int) -> Real:
        """Mean over scenarios of sums (..., 2) of whole quanta; NaN if there are none."""
        return (sums[..., 0] + sums[..., 1] * QUANTUM) / (self.num_rows or np.nan)

    def mean_voltage(self) -> Complex:
        """(B,) mean complex voltage."""
        return self.mean(self.counts.bus_sums[:, 2]) + 1j * self.mean(self.counts.bus_sums[:, 3])

    def voltages(self, shares: tuple[float, ...]) -> Real:
        """(B, 2 + shares) least and largest magnitude, and those that shares don't exceed."""
        return self._spread(self.counts.bus_bins, self.counts.bus_extremes, VOLTAGE_BINS, shares)

    def loadings(self, shares: tuple[float, ...]) -> Real:
        """(E, 2 + shares) least and largest loading, and those that shares don't exceed."""
        counts = self.counts
        return self._spread(counts.branch_bins, counts.branch_extremes, LOADING_BINS, shares)

    def _spread(
        self, bins: np.ndarray, extremes: Int, binning: tuple[float, int], shares: tuple[float, ...]
    ) -> Real:
        out = np.full((len(bins), 2 + len(shares)), np.nan)
        if self.num_rows:
            out[:, :2] = extremes * QUANTUM
            shares_below(
                _LANES, bins, extremes, binning, self.num_rows, np.array(shares), out[:, 2:]
            )
        return out


def statistics_bytes(network: Network) -> int:
    """Memory that the statistics of one outage take, whatever the number of scenarios, B."""
    entries = network.num_buses + len(rated_branches(network))
    return entries * (4 * NUM_BINS + 12 * 8)
