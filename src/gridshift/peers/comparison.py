"""The engine against other programs on one topology, side by side in one run."""

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from gridshift.adapt.datasets import require_rows
from gridshift.grid.engine import Engine
from gridshift.grid.equations import worst_mismatch
from gridshift.grid.scenarios import LoadScenarios, named_rng, sample_loads
from gridshift.peers.case import Case
from gridshift.peers.clock import Timing, in_turns, pinned
from gridshift.peers.peer import Peer, Solved
from gridshift.peers.roster import PEERS


@dataclass(frozen=True, kw_only=True)
class PeerTime:
    """One program's time and answers."""

    name: str
    us_per_row: float
    """Median over rounds of its thread's CPU time."""
    us_per_row_wall: float
    us_per_row_range: tuple[float, float]
    """Fastest and slowest round."""
    num_rows: int
    num_converged: int
    iterations: float
    """Mean over converged rows; 0 where it doesn't tell."""
    max_dv: float
    """Largest voltage difference to gridshift over rows that both solve, p.u."""
    worst_mismatch: float
    """Of its converged rows, p.u., by the equations and not by its own account."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One grid, one number of scenarios."""

    grid: str
    num_buses: int
    num_rows: int
    spread: float
    tol: float
    rounds: int
    lanes: int
    peers: tuple[PeerTime, ...]
    """The first one is gridshift's `solve`."""
    left_out: dict[str, str]
    """Peers that can't solve this grid, and why."""

    @property
    def us_per_row(self) -> float:
        """Time of gridshift's `solve`, µs of CPU time a row."""
        return self.peers[0].us_per_row

    @property
    def fastest_lightsim2grid(self) -> PeerTime | None:
        """The fastest of its modes that loses no row which another of its modes solves."""
        modes = [p for p in self.peers if p.name.startswith("lightsim2grid")]
        most = max((p.num_converged for p in modes), default=0)
        keeping = [p for p in modes if p.num_converged == most]
        return min(keeping, key=lambda p: p.us_per_row, default=None)

    @property
    def ratio_to_lightsim2grid(self) -> float | None:
        """How many times longer that mode takes; None where it can't solve the grid."""
        other = self.fastest_lightsim2grid
        return other.us_per_row / self.us_per_row if other else None

    def as_dict(self) -> dict[str, Any]:
        """Everything for JSON, the two figures that sum it up included."""
        other = self.fastest_lightsim2grid
        return {
            **asdict(self),
            "us_per_row": self.us_per_row,
            "ratio_to_lightsim2grid": self.ratio_to_lightsim2grid,
            "fastest_lightsim2grid": other.name if other else None,
        }


def compare(
    source: str,
    *,
    num_rows: int = 400,
    spread: float = 0.2,
    seed: int = 0,
    tol: float = 1e-8,
    rounds: int = 7,
    peers: tuple[Peer, ...] = PEERS,
) -> Comparison:
    """Time every peer that can solve the grid on the same rows, in turns on one core.

    Args:
        spread: half width of the load factors.
        peers: programs; gridshift's `solve` first.
    """
    case = Case.of(source)
    network = case.network
    require_rows(network, num_rows)
    rng = named_rng(network.name, "bench", seed=seed)
    rows = sample_loads(network, rng, num_rows, spread=spread, regime="fixed")
    with pinned():
        runs, given = {}, {}
        left_out = {p.name: why for p in peers if (why := p.why_not(case))}
        for peer in peers:
            if peer.name not in left_out:
                given[peer.name] = rows.rows(slice(0, peer.most_rows))
                runs[peer.name] = peer.prepare(
                    case, given[peer.name].load_p, given[peer.name].load_q, tol
                )
        ours = _kept(runs[peers[0].name]())
        answers = {
            name: _answers(case, given[name], ours, ours if name == peers[0].name else run())
            for name, run in runs.items()
        }
        times = in_turns(runs, rounds=rounds)
    return Comparison(
        grid=network.name, num_buses=network.num_buses, num_rows=num_rows, spread=spread, tol=tol,
        rounds=rounds, lanes=Engine.of(network).lanes.width,
        peers=tuple(_peer_time(name, times[name], given[name].num_rows, answers[name])
                    for name in runs),
        left_out=left_out,
    )  # fmt: skip


def _kept(found: Solved) -> Solved:
    """A copy: a program may write the next answer where this one is."""
    return Solved(found.voltage.copy(), found.converged.copy(), found.iterations.copy())


def _answers(case: Case, rows: LoadScenarios, ours: Solved, found: Solved) -> dict[str, Any]:
    done = np.flatnonzero(found.converged)
    both = done[ours.converged[done]]
    off = worst_mismatch(case.network, found.voltage[done], rows.load_power[done])
    return {
        "num_converged": len(done),
        "iterations": float(found.iterations[done].mean()) if len(done) else 0.0,
        "max_dv": float(np.abs(found.voltage[both] - ours.voltage[both]).max(initial=0.0)),
        "worst_mismatch": float(off.max(initial=0.0)),
    }


def _peer_time(name: str, timing: Timing, num_rows: int, answers: dict[str, Any]) -> PeerTime:
    return PeerTime(
        name=name,
        us_per_row=timing.cpu_s / num_rows * 1e6,
        us_per_row_wall=median(timing.wall) / num_rows * 1e6,
        us_per_row_range=(min(timing.cpu) / num_rows * 1e6, max(timing.cpu) / num_rows * 1e6),
        num_rows=num_rows,
        **answers,
    )
