"""What became of the rows of one topology."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from gridshift.arguments import how_many
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import NotConvergedError
from gridshift.grid.network import Network


class Told(IntEnum):
    """What is a number in arrays and a name in tables and JSON."""

    @property
    def text(self) -> str:
        """The name in lower case."""
        return self.name.lower()


class Origin(Told):
    """Where a row comes from of states that were repaired."""

    PREDICTED = 0
    """As it was given."""
    REPAIRED = 1
    """By chord steps from what was given."""
    SOLVED = 2
    """By the solver, from the nominal point."""
    MARKED = 3
    """Nowhere: no solution was found, the row is NaN."""


class RowStatus(Told):
    """What became of one row; the one taxonomy of the product."""

    SOLVED = 0
    NO_CONVERGENCE = 1
    SINGULAR = 2
    IMPLAUSIBLE = 3
    """A root of the equations, but not the operating one: no path of rising demand leads to it."""
    ISLANDED = 4
    NOT_RUN = 5
    UNSETTLED_LIMITS = 6
    """Buses change between their set-point and their reactive limit without end."""
    UNSETTLED_CONTROLS = 7
    """Tap changers or shunts move without end."""


@dataclass(frozen=True, kw_only=True)
class BatchSolution:
    """Voltages of R scenarios on one topology. A row that failed is NaN and says why."""

    network: Network
    voltage: Complex
    """(R, B) complex bus voltages; NaN in every row whose status is not SOLVED."""
    status: Int
    """(R,) values of `RowStatus`."""
    iterations: Int
    """(R,)"""
    mismatch: Real
    """(R,) largest specified active or reactive power mismatch, p.u.; NaN where not run."""
    reason: str = ""
    """Why rows were not run, in words; empty if all were."""
    powers: Real | None = None
    """(R, E, 4) active and reactive power into each branch at its from and its to end, if asked."""
    loading: Real | None = None
    """(R, E) larger loading of a branch's two ends as a fraction of its rating, if asked."""
    at_limit: NDArray[np.int8] | None = None
    """(R, B) where generators are at a reactive limit and the bus is not held at its set-point: 1
    at the upper limit, -1 at the lower one; None if limits were not asked for."""
    gen_p: Real | None = None
    """(R, G) active power of each generator, p.u., if the slack is distributed."""
    positions: Real | None = None
    """(R, C) position of each of `Network.controls`, as the source counts; None if they were not
    asked for."""

    @property
    def solved(self) -> Bool:
        """(R,)"""
        return self.status == RowStatus.SOLVED

    def counts(self) -> dict[str, int]:
        """Number of rows per status, those that occur only, 'solved' always."""
        found = {s.text: int((self.status == s).sum()) for s in RowStatus}
        return {k: v for k, v in found.items() if v or k == RowStatus.SOLVED.text}

    def take_rows(self, rows: Int, other: "BatchSolution") -> None:
        """Put another solution, of these rows solved again, into their places; iterations add up.

        What one of the two lacks is left as it is.
        """
        for name in _BY_ROW:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None:
                mine[rows] = theirs
        self.iterations[rows] += other.iterations

    def require_converged(self) -> "BatchSolution":
        """This solution, if every row is solved.

        Raises:
            NotConvergedError: with the first row numbers that are not.
        """
        failed = np.flatnonzero(~self.solved)
        if len(failed):
            shown = ", ".join(map(str, failed[:5])) + (", ..." if len(failed) > 5 else "")
            raise NotConvergedError(
                f"{len(failed)} of {how_many(len(self.status), 'row')} have no solution (rows "
                f"{shown}): " + ", ".join(f"{v} {k}" for k, v in self.counts().items() if v)
            )
        return self


_BY_ROW = ("voltage", "status", "mismatch", "powers", "loading", "at_limit", "gen_p")
