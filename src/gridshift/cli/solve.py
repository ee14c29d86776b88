"""`gridshift solve`: exact power flow for many load scenarios of one topology."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.cli.bases import usable, watch_compiler
from gridshift.cli.folders import require_writable
from gridshift.cli.group import command
from gridshift.cli.options import (
    GRID_KEY,
    controls_option,
    distributed_slack_option,
    grid_argument,
    outage_option,
    path_option,
    q_limits_option,
    seed_option,
    spread_option,
    threads_option,
)
from gridshift.cli.output import emit, progress, table
from gridshift.threads import usable_cores

if TYPE_CHECKING:
    from gridshift.grid.generation import ShareBy
    from gridshift.grid.network import Network
    from gridshift.grid.powerflow import BatchSolution
    from gridshift.grid.scenarios import LoadScenarios, Scenarios

    Solving = Callable[[Network, LoadScenarios], BatchSolution]

BLOCK_BYTES = 1 << 28
"""Scenarios that `solve` draws and solves at a time, with their results."""


@command(
    keys=GRID_KEY
    | {
        "outage": "elements out of service, empty for the intact grid",
        "num_rows": "scenarios",
        "status": "number of rows per status, for instance `solved`",
        "num_rows_at_limits": "with --q-limits: solved rows with a generator at a limit; else null",
        "at_limits": "with --q-limits: share of the solved rows by bus whose generators are at a "
        "limit, the most frequent first; else null",
        "distributed_slack": "by what generators share losses and changes of demand; else null",
        "generation_mw": "with --distributed-slack: mean active power over the solved rows of each "
        "generator that takes part, MW; else null",
        "controls": "with --controls: by tap changer or shunt its position in the file (`start`), "
        "the lowest, mean and highest over the solved rows (`least`, `mean`, `most`), and the "
        "share of these rows in which it has moved (`moved`); else null",
        "worst_mismatch": "largest power mismatch of a solved row, p.u.",
        "worst_mismatch_mva": "the same in MW or Mvar",
        "warm_up_s": "time for the nominal point and two rows beforehand, s, compiling included",
        "compile_s": "time in which kernels compiled, s: 0 from the second run on a machine on",
        "wall_s": "time for all rows, s; reading the grid and the warm-up are not in it",
        "us_per_row": "the same per row, µs",
        "threads": "threads used",
        "files": "with --out: the files written",
    },
    writes={"out": ("buses.csv", "generators.csv", "branches.csv")},
    examples=[
        "gridshift solve case30",
        "gridshift solve case30 --outage line:9,line:28 --scenarios 200 --spread 0.5 --seed 1 "
        "--threads 1",
        "gridshift solve case14 --out state14 --json",
        "gridshift solve case14 --q-limits",
        "gridshift solve case14 --distributed-slack generation",
        "gridshift solve case14 --controls",
    ],
)
@grid_argument
@outage_option
@click.option("--scenarios", default=1000, show_default=True, help="Number of load scenarios.")
@spread_option
@seed_option
@q_limits_option
@distributed_slack_option
@controls_option
@threads_option
@path_option("--out", help="Folder for the state at nominal demand, as CSV.")
def solve(
    grid: str, outage: str, scenarios: int, spread: float, seed: int, q_limits: bool,
    distributed_slack: "ShareBy | None", controls: bool, threads: int | None, out: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Exact AC power flow for load scenarios of one topology.

    Rows without a solution are counted by reason. The exit code is 1 if they are the majority.
    """
    from gridshift.errors import NotConvergedError
    from gridshift.grid.contingency import outage_text
    from gridshift.grid.powerflow import solve as solve_rows
    from gridshift.grid.readers import read_grid
    from gridshift.grid.scenarios import named_rng
    from gridshift.grid.scenarios import scenarios as drawn_when_needed
    from gridshift.grid.slack_shares import SlackShares

    if out is not None:
        require_writable(out)
    network = read_grid(grid)
    compiler = watch_compiler()
    began, compiled = time.perf_counter(), compiler.seconds
    found = usable(network, outage)
    nominal_s = time.perf_counter() - began
    text = outage_text(found.outage)
    rng = named_rng(network.name, "solve", outage=text, seed=seed)
    loads = drawn_when_needed(network, rng, scenarios, spread=spread, regime="fixed")
    threads = threads or usable_cores()
    began = time.perf_counter()
    shares = None if distributed_slack is None else SlackShares.of(network, distributed_slack)
    solving = partial(
        solve_rows, threads=threads, q_limits=q_limits, distributed_slack=shares, controls=controls
    )
    solving(found.network, loads.rows(slice(2)))
    warm_up_s = nominal_s + time.perf_counter() - began
    rows = _solved_in_blocks(found.network, loads, solving)
    generation = None if shares is None else rows.generation(found.network, shares.labels)
    moved = rows.controls(found.network) if controls else None
    counts, worst, wall_s = rows.counts, rows.worst, rows.seconds
    payload = {
        "grid": network.name, "outage": text, "num_rows": scenarios, "status": counts,
        "num_rows_at_limits": rows.num_at_limits if q_limits else None,
        "at_limits": rows.at_limits(network) if q_limits else None,
        "distributed_slack": distributed_slack, "generation_mw": generation,
        "controls": moved, "worst_mismatch": worst,
        "worst_mismatch_mva": None if worst is None else worst * network.base_mva,
        "warm_up_s": warm_up_s,
        "compile_s": compiler.seconds - compiled, "wall_s": wall_s,
        "us_per_row": wall_s / scenarios * 1e6, "threads": threads,
        "files": [] if out is None else _state_files(found.network, solving, out),
    }  # fmt: skip

    def render(console) -> None:
        compile_s = payload["compile_s"]
        lines = [
            *((f"rows {name.replace('_', ' ')}", num) for name, num in payload["status"].items()),
            *([("rows with a generator at a limit", rows.num_at_limits)] if q_limits else []),
            *([("most often", _most(rows.at_limits(network)))] if rows.num_at_limits else []),
            *((f"mean of {name} (MW)", mw) for name, mw in _largest(generation)),
            *((f"positions of {name}", text) for name, text in _most_moved(moved)),
            ("worst mismatch (MVA)", payload["worst_mismatch_mva"]),
            (f"time on {how_many(threads, 'thread')} (s)", wall_s),
            ("time per row (µs)", payload["us_per_row"]),
            ("warm-up before (s)", payload["warm_up_s"]),
            *([("of it compiling, once per machine (s)", compile_s)] if compile_s else []),
        ]
        title = (
            f"{network.name}, {text or 'intact'}: {how_many(scenarios, 'scenario')}, "
            f"loads ±{100 * spread:.3g}%"
        )
        console.print(table(title, ("", ">"), lines))
        if payload["files"]:
            console.print(*payload["files"], sep="\n", soft_wrap=True)

    emit(payload, render, as_json=as_json)
    if 2 * counts["solved"] < scenarios:
        raise NotConvergedError(
            f"{scenarios - counts['solved']:,} of {how_many(scenarios, 'row')} have no solution; "
            f"a spread below {spread:g} leaves more"
        )


def _most(at_limits: dict[str, float]) -> str:
    """The generator buses that are most often at a limit, with their shares of the rows."""
    shown = [f"{label} {100 * share:.3g}%" for label, share in [*at_limits.items()][:3]]
    return ", ".join(shown)


def _most_moved(moved: dict[str, dict[str, float]] | None) -> list[tuple[str, str]]:
    """The controls that move in most rows, and where to."""
    order = sorted((moved or {}).items(), key=lambda pair: -pair[1]["moved"])[:5]
    return [
        (name, f"{one['least']:g} to {one['most']:g}, {one['start']:g} in the file")
        for name, one in order
    ]


def _largest(generation: dict[str, float] | None) -> list[tuple[str, float]]:
    """The generators that give most."""
    return sorted((generation or {}).items(), key=lambda pair: -pair[1])[:5]


@dataclass
class _Rows:
    """What has become of the rows solved so far."""

    counts: Counter[str] = field(default_factory=Counter)
    worst: float | None = None
    seconds: float = 0.0
    num_at_limits: int = 0
    at_bus: Any = 0
    """(B,) rows with a bus's generators at a limit."""
    given: Any = 0
    """(G,) active power of generators summed over solved rows, p.u."""
    positions: list[Any] = field(default_factory=list)
    """(n, C) of controls in solved rows, part by part."""

    def add(self, solution: "BatchSolution") -> None:
        """Count some rows."""
        self.counts += solution.counts()
        if len(mismatch := solution.mismatch[solution.solved]):
            self.worst = max(self.worst or 0.0, mismatch.max())
        if solution.at_limit is not None:
            self.num_at_limits += int(solution.at_limit.any(1).sum())
            self.at_bus = self.at_bus + (solution.at_limit != 0).sum(0)

        if solution.gen_p is not None:
            self.given = self.given + solution.gen_p[solution.solved].sum(0)

        if solution.positions is not None:
            self.positions.append(solution.positions[solution.solved])

    def controls(self, network: "Network") -> dict[str, dict[str, float]]:
        """Where each control is over the solved rows."""
        if not self.counts["solved"]:
            return {}
        found = {}
        for c, one in enumerate(network.controls):
            at = [part[:, c] for part in self.positions if len(part)]
            start = float(one.first + one.by * one.start)
            count = sum(len(part) for part in at)
            found[one.label] = {
                "start": start, "least": float(min(part.min() for part in at)),
                "mean": float(sum(part.sum() for part in at)) / count,
                "most": float(max(part.max() for part in at)),
                "moved": float(sum((part != start).sum() for part in at)) / count,
            }  # fmt: skip
        return found

    def generation(self, network: "Network", labels: Sequence[str]) -> dict[str, float]:
        """Mean active power of these generators, MW, as far as the topology has them."""
        solved = self.counts["solved"]
        return {
            label: float(power) * network.base_mva / solved
            for label, power in zip(network.gen_labels, self.given, strict=True)
            if label in labels
        } if solved else {}  # fmt: skip

    def at_limits(self, network: "Network") -> dict[str, float]:
        """Share of the solved rows by bus, the largest first."""
        solved = self.counts["solved"]
        if not self.num_at_limits:
            return {}
        order = sorted(range(network.num_buses), key=lambda bus: -self.at_bus[bus])
        return {
            network.bus_labels[bus]: int(self.at_bus[bus]) / solved
            for bus in order if self.at_bus[bus]
        }  # fmt: skip


def _state_files(network: "Network", solving: "Solving", folder: Path) -> list[str]:
    """Write the state at nominal demand."""
    from gridshift.exchange.state import write_state
    from gridshift.grid.scenarios import nominal_loads

    return [str(path) for path in write_state(solving(network, nominal_loads(network)), folder)]


def _solved_in_blocks(
    network: "Network", loads: "Scenarios | LoadScenarios", solving: "Solving"
) -> _Rows:
    """Solve all rows, as many at a time as memory allows."""
    from gridshift.grid.powerflow import RowStatus

    rows = _Rows()
    size = max(1024, BLOCK_BYTES // (8 * (4 * network.num_loads + 2 * network.num_buses)))
    with progress("solving", loads.num_rows, unit="row") as done:
        for first in range(0, loads.num_rows, size):
            part = loads.rows(slice(first, first + size))
            began = time.perf_counter()
            solution = solving(network, part)
            rows.seconds += time.perf_counter() - began
            rows.add(solution)
            if size < loads.num_rows:
                done(first + part.num_rows)
    order = [status.text for status in RowStatus]
    counts = rows.counts
    rows.counts = Counter({n: counts[n] for n in order if counts[n] or n == "solved"})
    return rows
