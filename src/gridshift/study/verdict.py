"""What an outage adds to the intact grid."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.network import Network
from gridshift.study.row import OutageRow

LIKELY = 0.5
NOTICEABLE = 0.01
"""Rise of the probability of a violation, at one bus or branch, from which an outage adds one."""


def bus_probability(of: OutageRow) -> Real:
    """(B,) share of scenarios outside either voltage limit; NaN where there is none."""
    under, over = of.bus_under, of.bus_over
    both = np.fmax(under, 0) + np.fmax(over, 0)
    both[np.isnan(under) & np.isnan(over)] = np.nan
    return both


def branch_probability(of: OutageRow) -> Real:
    """(E,) share of scenarios with an overload; NaN without a rating."""
    return of.branch_overload_probability


def limit_probability(row: OutageRow) -> float:
    """Share of scenarios in which some limit is exceeded; NaN if nothing was studied.

    Where the row has no share of its own, the larger of that of voltages and that of overloads,
    which is the least that it can be.
    """
    own = getattr(row, "violation_probability", float("nan"))
    return float(own if own == own else np.fmax(row.any_voltage, row.any_overload))


def worst_place(row: OutageRow) -> tuple[str, float]:
    """The branch or bus with the larger part in the severity, and how often its limit is exceeded.

    An empty label if there is none.
    """
    bus = row.worst_bus, row.worst_bus_probability
    branch = row.worst_branch, row.worst_branch_probability
    first, second = (bus, branch) if row.voltage_excess > row.overload_excess else (branch, bus)
    return first if first[0] else second


class Rise(NamedTuple):
    """Where an outage raises the probability of a violation most."""

    is_bus: bool
    at: int
    """Bus or branch; -1 if it rises nowhere."""
    before: float
    """Share of scenarios of the intact grid; NaN where it has no limit."""
    after: float

    def label(self, network: Network) -> str:
        """Of the bus or branch; empty if it rises nowhere."""
        labels = network.bus_labels if self.is_bus else network.branch_labels
        return labels[self.at] if self.at >= 0 else ""

    @property
    def size(self) -> float:
        """How much of the probability the outage adds, 0 to 1."""
        return self.after - float(np.nan_to_num(self.before)) if self.at >= 0 else 0.0


def largest_rises(rows: Sequence[OutageRow], intact: OutageRow) -> list[Rise]:
    """Of each outage the bus or branch whose violations become more likely by most."""
    before_bus, before_branch = bus_probability(intact), branch_probability(intact)

    def of(row: OutageRow) -> Rise:
        found = Rise(True, -1, 0.0, 0.0)
        for is_bus, share, before in (
            (True, bus_probability, before_bus),
            (False, branch_probability, before_branch),
        ):
            after = share(row)
            if len(after):
                rise = np.fmax(after, 0) - np.fmax(before, 0)
                at = int(rise.argmax())
                if rise[at] > found.size:
                    found = Rise(is_bus, at, float(before[at]), float(after[at]))
        return found

    return [of(row) for row in rows]
