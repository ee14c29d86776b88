"""Scenarios of a data set, drawn and solved piece by piece."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gridshift.arrays import Bool, Complex, Int
from gridshift.grid.contingency import Outage, outage_text
from gridshift.grid.generation import generators
from gridshift.grid.network import Network
from gridshift.grid.powerflow import RowStatus, solve
from gridshift.grid.prepared import Prepared, prepare_all
from gridshift.grid.scenarios import LoadScenarios, named_rng
from gridshift.study.generation import Balance
from gridshift.study.uncertainty import Drawn, Uncertainty, draw
from gridshift.study.varied_grids import Variation, draw_outages

GRID_ROWS = 200
"""Scenarios that share one grid of other impedances and set-points."""
PIECE_BYTES = 1 << 25
"""Scenarios and voltages of a piece."""
MOST_ROWS = 20 * GRID_ROWS
TOGETHER = 64
"""Topologies that are prepared together."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SolvedRows:
    """R scenarios as they were drawn, solved if they have a solution."""

    first: int
    """Number of the first one, from 0."""
    loads: LoadScenarios
    voltage: Complex
    """(R, B)"""
    status: Int
    """(R,) values of `RowStatus`."""
    branch_y: tuple[Complex, ...]
    """(T,) admittances (E, 4) of the branches, as if in service; of a grid its topologies share."""
    on: Bool
    """(T, E) branches in service."""
    topology: Int
    """(R,)"""
    outages: tuple[str, ...]
    """(T,) texts of the outages."""
    seconds: float
    """Time that solving one row took, s."""

    @property
    def solved(self) -> Bool:
        """(R,)"""
        return self.status == RowStatus.SOLVED

    def rows(self, which: slice) -> "SolvedRows":
        """Some rows one behind the other."""
        start = which.indices(len(self.status))[0]
        return replace(
            self, first=self.first + start, loads=self.loads.rows(which),
            voltage=self.voltage[which], status=self.status[which], topology=self.topology[which],
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """Where the scenarios of a data set come from: any piece of it, in any order."""

    network: Network
    """The grid as read."""
    uncertainty: Uncertainty
    variation: Variation
    num_rows: int
    seed: int
    drawn: Drawn
    """The scenarios of a table as a whole; of other sources one, for its grid."""

    @classmethod
    def of(
        cls, network: Network, uncertainty: Uncertainty, variation: Variation, num_rows: int,
        *, seed: int, redispatch: bool,
    ) -> "Source":  # fmt: skip
        """The source of so many scenarios.

        Args:
            redispatch: share what loads differ from nominal among the generators by their
                schedules, where the uncertainty says nothing of generation; else it is the slack's.

        Raises:
            UncertaintyError: as in `draw`.
        """
        if redispatch and _nothing_generated(uncertainty):
            weights = {
                label: one.power.real for label, one in generators(network).items()
                if label.startswith("gen:") and one.power.real > 0
            }  # fmt: skip
            if weights:
                balance = Balance(by="given", weights=weights)
                uncertainty = replace(uncertainty, balance=balance)
        whole = num_rows if uncertainty.table is not None else 1
        found = draw(network, uncertainty, whole, seed=seed)
        return cls(
            network=network, uncertainty=uncertainty, variation=variation, num_rows=num_rows,
            seed=seed, drawn=found,
        )  # fmt: skip

    @property
    def piece_rows(self) -> int:
        """Scenarios of a piece: a multiple of those that share a grid."""
        network = self.drawn.network
        fit = PIECE_BYTES // (16 * (network.num_loads + network.num_buses))
        return max(1, min(MOST_ROWS, fit) // GRID_ROWS) * GRID_ROWS

    @property
    def alike(self) -> bool:
        """Whether all scenarios have the branches of the grid as read."""
        return not any(self.variation.outages) and not self.variation.impedance

    def solved(self, start: int, *, threads: int) -> Iterator[SolvedRows]:
        """The scenarios from a number on, solved, piece by piece."""
        size = self.piece_rows
        for piece in range(start // size, -(-self.num_rows // size)):
            first = piece * size
            rows = self._piece(piece, min(size, self.num_rows - first), threads)
            yield rows if first >= start else rows.rows(slice(start - first, None))

    def _piece(self, piece: int, num_rows: int, threads: int) -> SolvedRows:
        first = piece * self.piece_rows
        loads = self._loads(piece, num_rows)
        outages = draw_outages(
            self.network, self.variation.outages, num_rows, self._rng("data set outages", piece)
        )
        found = _Found(loads, self.network)
        began = time.perf_counter()
        size = GRID_ROWS if self.variation.of_grid else num_rows
        for at in range(0, num_rows, size):
            rng = self._rng("data set grids", (first + at) // GRID_ROWS)
            grid = self.variation.grid(self.drawn.network, rng)
            rows = np.arange(at, min(at + size, num_rows))
            found.solve(grid, outages, rows, threads)
        seconds = (time.perf_counter() - began) / num_rows
        return SolvedRows(
            first=first, loads=loads, voltage=found.voltage, status=found.status,
            branch_y=tuple(network.branch_y for network in found.networks),
            on=np.stack([network.branch_in_service for network in found.networks]),
            topology=found.topology, seconds=seconds,
            outages=tuple(outage_text(network.outaged) for network in found.networks),
        )  # fmt: skip

    def _loads(self, piece: int, num_rows: int) -> LoadScenarios:
        if self.uncertainty.table is not None:
            first = piece * self.piece_rows
            return self.drawn.loads.rows(slice(first, first + num_rows))
        found = draw(self.network, self.uncertainty, num_rows, seed=self.seed, part=piece)
        return found.loads.rows(slice(num_rows))

    def _rng(self, role: str, number: int) -> np.random.Generator:
        return named_rng(self.network.name, role, draw=number, seed=self.seed)


def _nothing_generated(uncertainty: Uncertainty) -> bool:
    """Whether a description leaves all generation at its schedule."""
    drawn = uncertainty.generation or uncertainty.table is not None
    return uncertainty.balance is None and not drawn


class _Found:
    """Solutions of a piece as they are found, topology by topology."""

    def __init__(self, loads: LoadScenarios, network: Network):
        rows = loads.num_rows
        self.loads = loads
        self.voltage = np.empty((rows, network.num_buses), complex)
        self.status, self.topology = np.empty(rows, np.int64), np.empty(rows, np.int64)
        self.networks: list[Network] = []

    def solve(self, grid: Network, outages: Sequence[Outage], rows: Int, threads: int) -> None:
        """Solve these rows of the piece, each after its outage of the grid."""
        rows_of: dict[Outage, list[int]] = defaultdict(list)
        for row in rows.tolist():
            rows_of[outages[row]].append(row)
        chosen = [*rows_of]
        for at in range(0, len(chosen), TOGETHER):
            some = chosen[at : at + TOGETHER]
            networks = [grid.without(outage) if outage else grid for outage in some]
            for outage, prepared in zip(some, prepare_all(networks), strict=True):
                self._take(prepared, rows_of[outage], threads)

    def _take(self, prepared: Prepared, rows: Sequence[int], threads: int) -> None:
        whole = len(rows) == self.loads.num_rows
        which = slice(None) if whole else np.array(rows)
        found = solve(prepared, self.loads.rows(which), threads=threads)
        self.topology[which] = len(self.networks)
        self.networks.append(prepared.network)
        self.status[which] = found.status
        if whole:
            self.voltage = found.voltage
        else:
            self.voltage[which] = found.voltage
