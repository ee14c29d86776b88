"""`gridshift solve`: exact power flow for many load scenarios of one topology."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridshift.cli.bases import usable
from gridshift.cli.folders import require_writable
from gridshift.cli.group import command
from gridshift.cli.kernels import watch_compiler
from gridshift.cli.options import GRID_KEY, grid_argument, outage_option, seed_option, spread_option
from gridshift.cli.output import emit, progress, table
from gridshift.threads import usable_cores

if TYPE_CHECKING:
    from gridshift.grid.network import Network
    from gridshift.grid.scenarios import LoadScenarios, Scenarios

BLOCK_BYTES = 1 << 28
"""Scenarios that `solve` draws and solves at a time, with their results."""


@command(
    keys=GRID_KEY
    | {
        "outage": "elements out of service, empty for the intact grid",
        "num_rows": "scenarios",
        "status": "number of rows per status, for instance `solved`",
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
    ],
)
@grid_argument
@outage_option
@click.option("--scenarios", default=1000, show_default=True, help="Number of load scenarios.")
@spread_option
@seed_option
@click.option(
    "--threads", type=click.IntRange(1, 1024), help="Threads to use.  [default: all cores]"
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR",
    help="Folder for the state at nominal demand, as CSV.",
)  # fmt: skip
def solve(
    grid: str, outage: str, scenarios: int, spread: float, seed: int, threads: int | None,
    out: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Exact AC power flow for many load scenarios of one topology.

    Rows without a solution are counted by reason. The exit code is 1 if they are the majority.
    """
    from gridshift.errors import NotConvergedError
    from gridshift.grid.contingency import outage_text
    from gridshift.grid.powerflow import solve as solve_rows
    from gridshift.grid.readers import read_grid
    from gridshift.grid.scenarios import named_rng
    from gridshift.grid.scenarios import scenarios as drawn_when_needed

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
    solve_rows(found.network, loads.rows(slice(2)), threads=threads)
    warm_up_s = nominal_s + time.perf_counter() - began
    counts, worst, wall_s = _solved_in_blocks(found.network, loads, threads)
    payload = {
        "grid": network.name, "outage": text, "num_rows": scenarios, "status": counts,
        "worst_mismatch": worst,
        "worst_mismatch_mva": None if worst is None else worst * network.base_mva,
        "warm_up_s": warm_up_s,
        "compile_s": compiler.seconds - compiled, "wall_s": wall_s,
        "us_per_row": wall_s / scenarios * 1e6, "threads": threads,
        "files": [] if out is None else _state_files(found.network, out),
    }  # fmt: skip

    def render(console) -> None:
        compile_s = payload["compile_s"]
        rows = [
            *((f"rows {name.replace('_', ' ')}", num) for name, num in payload["status"].items()),
            ("worst mismatch (MVA)", payload["worst_mismatch_mva"]),
            (f"time on {threads} threads (s)", wall_s),
            ("time per row (µs)", payload["us_per_row"]),
            ("warm-up before (s)", payload["warm_up_s"]),
            *([("of it compiling, once per machine (s)", compile_s)] if compile_s else []),
        ]
        title = (
            f"{network.name}, {text or 'intact'}: {scenarios:,} scenarios, "
            f"loads ±{100 * spread:.3g}%"
        )
        console.print(table(title, ("", ">"), rows))
        if payload["files"]:
            console.print(*payload["files"], sep="\n", soft_wrap=True)

    emit(payload, render, as_json=as_json)
    if 2 * counts["solved"] < scenarios:
        raise NotConvergedError(
            f"{scenarios - counts['solved']} of {scenarios} rows have no solution; "
            f"a spread below {spread:g} leaves more"
        )


def _state_files(network: "Network", folder: Path) -> list[str]:
    """Write the state at nominal demand."""
    from gridshift.exchange.state import write_state
    from gridshift.grid.powerflow import nominal

    return [str(path) for path in write_state(nominal(network), folder)]


def _solved_in_blocks(
    network: "Network", loads: "Scenarios | LoadScenarios", threads: int
) -> tuple[dict[str, int], float | None, float]:
    """Rows per status, the worst mismatch of solved ones, and the seconds that solving took."""
    from gridshift.grid.powerflow import RowStatus
    from gridshift.grid.powerflow import solve as solve_rows

    counts: Counter[str] = Counter()
    worst, seconds = None, 0.0
    size = max(1024, BLOCK_BYTES // (8 * (4 * network.num_loads + 2 * network.num_buses)))
    with progress("solving", loads.num_rows, unit="rows") as done:
        for first in range(0, loads.num_rows, size):
            part = loads.rows(slice(first, first + size))
            began = time.perf_counter()
            solution = solve_rows(network, part, threads=threads)
            seconds += time.perf_counter() - began
            counts += solution.counts()
            if len(mismatch := solution.mismatch[solution.solved]):
                worst = max(worst or 0.0, mismatch.max())
            if size < loads.num_rows:
                done(first + part.num_rows)
    order = [status.text for status in RowStatus]
    found = {name: counts[name] for name in order if counts[name] or name == "solved"}
    return found, worst, seconds
