"""Solved cases on their way into files."""

from dataclasses import dataclass

from gridshift.arrays import Complex, Int
from gridshift.grid.network import Network
from gridshift.grid.quantities import Quantities


@dataclass(frozen=True, kw_only=True, eq=False)
class SolvedPart:
    """N solved cases of a grid and its outages, numbered on from each other."""

    network: Network
    """The grid; its own branches count only where all cases have them."""
    quantities: Quantities
    """N rows."""
    first: int
    """Number of the first case in the data set, from 0."""
    drawn: Int
    """(N,) numbers of the scenarios as they were drawn, those without a solution counted."""
    seconds: float
    """Time that one case took to be solved, s."""
    two_ports: Complex
    """(T, E, 4) admittances of the branches of each topology, 0 where out of service."""
    topology: Int
    """(N,) topology of each case."""
    alike: bool
    """Whether all cases of the data set have the grid's own branches, which are then the one
    topology."""

    @property
    def num_cases(self) -> int:
        """N"""
        return len(self.drawn)
