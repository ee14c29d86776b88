"""`gridshift bench`: the engine against other programs."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.cli.group import command
from gridshift.cli.options import GRID_KEY, grid_argument, seed_option, spread_option
from gridshift.cli.output import emit, table

if TYPE_CHECKING:
    from rich.console import Group


@command(
    keys=GRID_KEY
    | {
        "num_buses": "buses",
        "num_rows": "scenarios",
        "spread": "half width of the load factors",
        "tol": "largest mismatch of a solved row, p.u.",
        "rounds": "turns that the medians are over",
        "lanes": "scenarios side by side in the engine's chord steps",
        "us_per_row": "time per row of gridshift's `solve`, µs of its thread's CPU time",
        "ratio_to_lightsim2grid": "how many times longer its fastest mode that keeps all rows "
        "takes; null where it can't solve the grid",
        "fastest_lightsim2grid": "name of that mode",
        "peers": "list of `name`, `us_per_row`, `us_per_row_wall`, `us_per_row_range`, `num_rows`, "
        "`num_converged`, `iterations`, `max_dv` (to gridshift, p.u.), `worst_mismatch` (p.u.)",
        "left_out": "why other programs can't solve this grid, by name",
        "num_outages": "study: outages that keep the grid in one piece",
        "threads": "study: that sweep and engine run on",
        "sweep_s": "study: wall time of the sweep, s, rows kept on disk; the fastest round",
        "engine_s": "study: of preparing and solving the same rows alone",
        "ratio_to_engine": "study: the first over the second, median over rounds",
        "lightsim2grid": "study: name of its fastest mode that keeps all rows; there "
        "`ratio_to_lightsim2grid` counts statistics in numpy, one core each",
        "lightsim2grid_s": "study: its time for the same rows on one core, from a few outages",
        "machine": "processor, instruction set, cores, versions",
    },
    examples=[
        "gridshift bench solve case14 --scenarios 64 --rounds 2",
        "gridshift bench solve case14 --spread 0.1 --seed 1 --scenarios 64 --rounds 1 --json",
        "gridshift bench study case14 --scenarios 64 --rounds 1 --json",
    ],
)
@click.argument("what", metavar="solve|study", type=click.Choice(["solve", "study"]))
@grid_argument
@click.option("--scenarios", default=400, show_default=True, help="Number of load scenarios.")
@spread_option
@seed_option
@click.option(
    "--rounds", type=click.IntRange(1, 1000), default=7, show_default=True,
    help="Turns; the median counts.",
)  # fmt: skip
def bench(
    what: str, grid: str, scenarios: int, spread: float, seed: int, rounds: int, as_json: bool,
) -> None:  # fmt: skip
    """Time exact power flow against other programs, in turns.

    It is of one topology, or a whole study. Programs that aren't installed or can't solve the grid
    are left out, and it is said why. Nothing else should run meanwhile. 'make bench', in a
    checkout, measures all grids and each phase of a step.
    """
    if what == "study":
        _study(grid, scenarios, spread, seed, rounds, as_json)
        return
    from gridshift.peers.comparison import compare
    from gridshift.peers.machine import describe, machine_line

    found = compare(grid, num_rows=scenarios, spread=spread, seed=seed, rounds=rounds).as_dict()
    found["machine"] = describe()

    def render(console) -> None:
        console.print(peers_table(found))
        console.print(machine_line(found["machine"]), style="dim")

    emit(found, render, as_json=as_json)


def peers_table(found: Mapping[str, Any]) -> "Group":
    """All programs on one grid, from what `Comparison.as_dict` found."""
    ours = found["us_per_row"]
    rows = [
        (p["name"], p["us_per_row"], p["us_per_row_range"][0], p["us_per_row_range"][1],
         p["us_per_row"] / ours, p["iterations"] or None, f"{p['num_converged']}/{p['num_rows']}")
        for p in found["peers"]
    ]  # fmt: skip
    notes = [
        "CPU time of one thread; ratio: to gridshift",
        *(f"{name}: {why}" for name, why in found["left_out"].items()),
    ]
    return table(
        title=f"{found['grid']}: {how_many(found['num_rows'], 'scenario')}, "
        f"loads ±{100 * found['spread']:.3g}%, mismatch below {found['tol']:g}",
        columns=("program", ">µs/row", ">from", ">to", ">ratio", ">steps", ">solved"),
        rows=rows,
        note="\n".join(notes),
    )


def _study(grid: str, scenarios: int, spread: float, seed: int, rounds: int, as_json: bool) -> None:
    """The exact study beside the engine alone."""
    from gridshift.peers.machine import describe, machine_line
    from gridshift.peers.study_time import study_time

    found = asdict(study_time(grid, num_rows=scenarios, spread=spread, seed=seed, rounds=rounds))
    found |= {"spread": spread, "rounds": rounds, "machine": describe()}
    names = ("sweep_s", "engine_s", "ratio_to_engine", "ratio_to_lightsim2grid")
    title = (
        f"{found['grid']}: {how_many(found['num_outages'], 'outage')}, "
        f"{how_many(scenarios, 'scenario')} each, "
        f"{how_many(found['threads'], 'thread')}"
    )

    def render(console) -> None:
        columns = tuple(f">{name.replace('_', ' ')}" for name in names)
        console.print(table(title, columns, [tuple(found[name] for name in names)]))
        console.print(machine_line(found["machine"]), style="dim")

    emit(found, render, as_json=as_json)
