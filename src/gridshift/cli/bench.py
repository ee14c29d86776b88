"""`gridshift bench`: the engine against other programs."""

from dataclasses import asdict

import click

from gridshift.cli.group import command
from gridshift.cli.options import GRID_KEY, grid_argument, seed_option, spread_option
from gridshift.cli.output import emit, table


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
        "phases": "with --phases: list of `name`, `ns` (per row and call), `fma` and `bytes` "
        "(per row)",
        "share": "with --phases: share of the time by phase, 0 to 1",
        "left_to_newton": "with --phases: rows that chord steps leave to Newton",
        "num_outages": "study: outages that keep the grid in one piece",
        "threads": "study: that sweep and engine run on",
        "sweep_s": "study: wall time of the sweep, s, rows kept on disk; the fastest round",
        "engine_s": "study: of preparing and solving the same rows alone",
        "ratio_to_engine": "study: the first over the second, median over rounds",
        "lightsim2grid": "study: name of its fastest mode that keeps all rows; there "
        "`ratio_to_lightsim2grid` counts statistics in numpy, one core each",
        "lightsim2grid_s": "study: its time for the same rows on one core, from a few outages",
        "machine": "processor, instruction set, versions; with --phases its measured peak",
    },
    examples=[
        "gridshift bench solve case14 --scenarios 64 --rounds 2",
        "gridshift bench solve case14 --spread 0.1 --seed 1 --scenarios 64 --rounds 1 --phases "
        "--json",
        "gridshift bench study case14 --scenarios 64 --rounds 1",
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
@click.option("--phases", is_flag=True, help="Measure each kernel and the machine's peak as well.")
def bench(
    what: str, grid: str, scenarios: int, spread: float, seed: int, rounds: int, phases: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Time exact power flow against other programs, in turns: one topology, or a whole study.

    Those that aren't installed or can't solve the grid are left out, and it is said why. Nothing
    else should run meanwhile. 'make bench' measures all grids.
    """
    from gridshift.bench.machine import describe, measure
    from gridshift.bench.solve import compare
    from gridshift.bench.tables import machine_line, peers_table, rates_table, shares_table

    if what == "study":
        _study(grid, scenarios, spread, seed, rounds, as_json)
        return
    found = compare(
        grid, num_rows=scenarios, spread=spread, seed=seed, rounds=rounds, phases=phases
    ).as_dict()
    found["machine"] = measure() if phases else describe()

    def render(console) -> None:
        tables = [peers_table(found)]
        if phases:
            tables += [shares_table([found]), rates_table([found], found["machine"])]
        for number, one in enumerate(tables):
            console.print(
                *[""] * bool(number), table(one.title, one.columns, one.rows, note=one.note)
            )
        console.print(machine_line(found["machine"]), style="dim")

    emit(found, render, as_json=as_json)


def _study(grid: str, scenarios: int, spread: float, seed: int, rounds: int, as_json: bool) -> None:
    """The exact study beside the engine alone."""
    from gridshift.bench.machine import describe
    from gridshift.bench.study import study_time
    from gridshift.bench.tables import machine_line

    found = asdict(study_time(grid, num_rows=scenarios, spread=spread, seed=seed, rounds=rounds))
    found |= {"spread": spread, "rounds": rounds, "machine": describe()}
    names = ("sweep_s", "engine_s", "ratio_to_engine", "ratio_to_lightsim2grid")
    title = (
        f"{found['grid']}: {found['num_outages']:,} outages, {scenarios:,} scenarios each, "
        f"{found['threads']} threads"
    )

    def render(console) -> None:
        columns = tuple(f">{name.replace('_', ' ')}" for name in names)
        console.print(table(title, columns, [tuple(found[name] for name in names)]))
        console.print(machine_line(found["machine"]), style="dim")

    emit(found, render, as_json=as_json)
