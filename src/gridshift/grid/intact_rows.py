"""Scenarios solved on the intact grid, from where the same scenarios start on its outages."""

from threading import Lock

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.engine import NOWHERE, Engine
from gridshift.grid.network import Network
from gridshift.grid.prepared import Prepared, prepare
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.topology import settled
from gridshift.grid.workspace import FromIntact

MOST_BYTES = 1 << 29
"""What is kept of scenarios: of so many, the first ones."""


def from_nominal(prepared: Prepared) -> FromIntact:
    """Rows start from the topology's nominal point, as nothing else is known of them."""
    return NOWHERE


class IntactRows:
    """Solves the scenarios of a study on its intact grid, each block once, when it is asked for.

    Scenarios beyond `MOST_BYTES` are left out, whoever asks: then the numbers of a row depend on
    the study alone.
    """

    def __init__(self, network: Network):
        self._network = network
        self._engine = Engine.of(network)
        self._known: dict[tuple[int, int], FromIntact] = {}
        self._lock = Lock()

    def start(
        self, prepared: Prepared, loads: LoadScenarios, rows: slice, threads: int = 1
    ) -> FromIntact:
        """Where these scenarios start on an outage of the grid.

        Args:
            prepared: the topology; the intact one and one of another grid start from their nominal
                point.
            loads: demands of the scenarios, R rows.
            rows: which of the study's they are.
            threads: that solve them, the first time.
        """
        topology, before = prepared.topology, prepare(self._network)
        known = topology.solved() and before.solved and prepared.engine is self._engine
        known = known and topology is not before.topology
        if not known or rows.stop > num_kept(self._network, rows.stop):
            return NOWHERE
        with self._lock:
            which = rows.start, rows.stop
            if which not in self._known:
                self._known[which] = self._solved(before, loads, threads)
            found = self._known[which]
        nominal, was = topology.point.voltage, before.topology.point.voltage
        turn = nominal.view(np.complex128) / was.view(np.complex128)
        return found._replace(turn=turn.view(np.float64), apart=topology.apart)

    def _solved(self, before: Prepared, loads: LoadScenarios, threads: int) -> FromIntact:
        """Rows of chord steps; those that these don't settle are at the nominal point."""
        engine, width = self._engine, self._engine.lanes.width
        found = engine.chord_rows(before.topology, loads.load_p, loads.load_q, threads=threads)
        voltage = found.voltage
        voltage[~settled(found.mismatch, found.retained, 1e-8 * engine.unit)] = (
            before.topology.point.voltage
        )
        order = np.lexsort((found.mismatch, found.steps))
        filled = np.append(order, np.full(-len(order) % width, order[-1]))

        def in_lanes(values: Real) -> Real:
            return values[filled].reshape(-1, width, values.shape[1]).transpose(0, 2, 1).ravel()

        power = engine.injected(loads.load_p, loads.load_q)
        return FromIntact(in_lanes(voltage), in_lanes(power), np.empty(0), order, NOWHERE.apart)


def num_kept(network: Network, num_rows: int) -> int:
    """How many of a study's scenarios are kept, the first ones."""
    return min(num_rows, MOST_BYTES // (32 * network.num_buses))


def kept_bytes(network: Network, num_rows: int) -> int:
    """Memory that a study's scenarios take here, twice while they are put into lanes."""
    return 64 * network.num_buses * num_kept(network, num_rows)
