"""What a program of the comparison is asked for and answers."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.peers.case import Case

MAX_STEPS = 20
"""Newton steps that every program may take for a row."""
MAX_CHORD_STEPS = 60
"""The same for one that keeps its factors and takes no others."""


class Solved(NamedTuple):
    """What a program answers for R rows."""

    voltage: Complex
    """(R, B) in the order of the network's buses; what rows that failed hold is its own affair."""
    converged: Bool
    """(R,)"""
    iterations: Int
    """(R,) zeros where it doesn't tell."""


Run = Callable[[], Solved]


class Peer(ABC):
    """One program in one mode."""

    name: str
    module: str = "gridshift"
    most_rows: int | None = None
    """Rows beyond which timing takes too long; time per row doesn't depend on their number."""

    def why_not(self, case: Case) -> str:
        """Why this peer can't solve the case, in words; empty if it can."""
        if find_spec(self.module) is None:
            return f"{self.module} is not installed"
        return self._why_not(case)

    def available(self, case: Case) -> bool:
        """Whether this peer can solve the case."""
        return not self.why_not(case)

    def solve(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Solved:
        """Voltages of all rows; demands (R, L) in per unit."""
        return self.prepare(case, load_p, load_q, tol)()

    def _why_not(self, case: Case) -> str:
        return ""

    @abstractmethod
    def prepare(self, case: Case, load_p: Real, load_q: Real, tol: float) -> Run:
        """What the clock measures: a function that solves all rows from the nominal start."""
