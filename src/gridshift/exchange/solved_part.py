"""Solved cases on their way into files."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridshift.arrays import Bool, Complex, Int
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
    grids: Complex
    """(K, E, 4) admittances of the branches of each grid, as if in service."""
    grid: Int
    """(T,) grid of each topology."""
    on: Bool
    """(T, E) branches in service."""
    topology: Int
    """(N,) topology of each case."""
    alike: bool
    """Whether all cases of the data set have the grid's own branches, which are then the one
    topology."""

    @cached_property
    def two_ports(self) -> Complex:
        """(T, E, 4) admittances of the branches of each topology, 0 where out of service."""
        return np.where(self.on[:, :, None], self.grids[self.grid], 0)

    @property
    def num_cases(self) -> int:
        """N"""
        return len(self.drawn)
