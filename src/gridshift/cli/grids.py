"""`gridshift cases` and `gridshift solve`: grids, their outages, exact power flow."""

import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from gridshift.cli.group import command
from gridshift.cli.kernels import watch_compiler
from gridshift.cli.output import emit, progress, table
from gridshift.threads import usable_cores

if TYPE_CHECKING:
    from gridshift.grid.contingency import Assessment
    from gridshift.grid.network import Network
    from gridshift.grid.scenarios import Injections, Scenarios

grid_argument = click.argument("grid", metavar="GRID")
outage_option = click.option(
    "--outage", default="", metavar="A,B", help="Elements out of service, for instance line:9."
)
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
    help="Root random seed.",
)  # fmt: skip
spread_option = click.option(
    "--spread", default=0.2, show_default=True,
    help="Every load of every row varies by up to plus or minus this share.",
)  # fmt: skip
drawn_spread_option = click.option(
    "--spread", default=0.2, show_default=True,
    help="Largest share by which loads vary up and down. Each row draws its own share from 0.05 to "
    "this, but half of the rows to learn from take this; below 0.05 all rows do.",
)  # fmt: skip
BLOCK_BYTES = 1 << 28
"""Scenarios that `solve` draws and solves at a time, with their results."""


@command(
    keys={
        "cases": "built-in grids, a list of `name` and `source`; without CASE only",
        "grid": "name of the grid; this and the rest with CASE only",
        "source": "program, with its version, that a built-in grid is from; otherwise as `origin`",
        "origin": "where it was read from",
        "base_mva": "base of per-unit powers, MVA",
        "num_buses": "buses",
        "num_loads": "loads",
        "num_generators": "generators at voltage-controlled buses",
        "num_branches": "two-ports of lines and transformers",
        "slack": "slack buses",
        "demand_mw": "nominal active demand, MW",
        "demand_mvar": "nominal reactive demand, Mvar",
        "num_voltage_limits": "buses with a voltage limit",
        "num_ratings": "branches with a rating",
        "elements": "list of `element`, `buses`, `in_service`, `rating_mva` (at 1 p.u. voltage)",
        "outages": "with --outages: list of `outage`, `islands`, `cut_off` (buses), `mw_cut_off` "
        "(demand), `mw_generation_cut_off` (scheduled)",
    },
    examples=[
        "gridshift cases",
        "gridshift cases case30",
        "gridshift cases case30 --outages --json",
    ],
)
@click.argument("case", metavar="[CASE]", required=False)
@click.option("--outages", is_flag=True, help="List every single outage and what it cuts off.")
def cases(case: str | None, outages: bool, as_json: bool) -> None:
    """List the built-in grids and their source, or what one grid consists of.

    CASE is a built-in name, a pandapower JSON file or a MATPOWER .m file. Built-in grids are
    pandapower's, some of which are not the ones of the same name in MATPOWER. With --outages each
    element that can be switched is listed with the buses and the demand that its loss cuts off.
    """
    if case is None:
        if outages:
            raise click.UsageError("--outages needs a CASE, for instance: cases case30 --outages")
        _list_cases(as_json)
        return
    from gridshift.grid.readers import builtin_names, builtin_source, read_grid

    network = read_grid(case)
    payload = {
        "grid": network.name,
        "source": builtin_source() if case in builtin_names() else network.origin,
        **_summary(network),
        "elements": _elements(network),
    }
    if outages:
        payload["outages"] = _outages(network)
    emit(payload, lambda console: _print_case(console, payload), as_json=as_json)


def _list_cases(as_json: bool) -> None:
    from gridshift.grid.readers import builtin_names, builtin_source

    source = builtin_source()
    names = sorted(builtin_names(), key=lambda name: not name.startswith("case"))
    payload = {"cases": [{"name": name, "source": source} for name in names]}

    def render(console) -> None:
        from rich.columns import Columns

        console.print(Columns(names, column_first=True, padding=(0, 3)))
        console.print(
            f"\n{len(names)} built-in grids of {source}; MATPOWER's of the same name may differ "
            "(docs/matpower-cases.md). A file works as well.",
            style="dim",
        )

    emit(payload, render, as_json=as_json)


def _summary(network: "Network") -> dict[str, Any]:
    import numpy as np

    demand = network.load_power.sum() * network.base_mva
    limited = ~np.isnan(network.bus_v_min) | ~np.isnan(network.bus_v_max)
    return {
        "origin": network.origin,
        "base_mva": network.base_mva,
        "num_buses": network.num_buses,
        "num_loads": network.num_loads,
        "num_generators": len(network.gen_bus),
        "num_branches": network.num_branches,
        "slack": [network.bus_labels[bus] for bus in network.slack],
        "demand_mw": demand.real,
        "demand_mvar": demand.imag,
        "num_voltage_limits": int(limited.sum()),
        "num_ratings": int(network.branch_rated.sum()),
    }


def _elements(network: "Network") -> list[dict[str, Any]]:
    found = []
    for label, branches in network.elements.items():
        rows = list(branches)
        ends = dict.fromkeys([*network.branch_from[rows], *network.branch_to[rows]])
        rated = network.branch_rated[rows].all()
        found.append(
            {
                "element": label,
                "buses": [network.bus_labels[bus] for bus in ends],
                "in_service": bool(network.branch_in_service[rows].any()),
                "rating_mva": network.branch_rating[rows].min() * network.base_mva
                if rated
                else None,
            }
        )
    return found


def _outages(network: "Network") -> list[dict[str, Any]]:
    from gridshift.grid.contingency import (
        cut_off_buses,
        demand_at,
        enumerate_outages,
        generation_at,
        outage_text,
    )

    candidates = enumerate_outages(network, "all")
    return [
        {
            "outage": outage_text(outage),
            "islands": len(buses) > 0,
            "cut_off": [network.bus_labels[bus] for bus in buses],
            "mw_cut_off": demand_at(network, buses),
            "mw_generation_cut_off": generation_at(network, buses),
        }
        for outage, buses in zip(candidates, cut_off_buses(network, candidates), strict=True)
    ]


def _print_case(console, payload: dict[str, Any]) -> None:
    kinds: dict[str, list[bool]] = {}
    for element in payload["elements"]:
        kinds.setdefault(element["element"].partition(":")[0], []).append(element["in_service"])
    rows = [
        ("source", None, payload["source"]),
        ("buses", payload["num_buses"], f"slack at {', '.join(payload['slack'])}"),
        ("loads", payload["num_loads"],
         f"{payload['demand_mw']:,.1f} MW, {payload['demand_mvar']:,.1f} Mvar"),
        ("generators", payload["num_generators"], "at voltage-controlled buses"),
        *((kind, len(on), f"{sum(on)} in service") for kind, on in kinds.items()),
        ("voltage limits", payload["num_voltage_limits"], "buses that have them"),
        ("ratings", payload["num_ratings"], "branches that have them"),
    ]  # fmt: skip
    console.print(table(f"{payload['grid']} ({payload['origin']})", ("what", ">number", ""), rows))
    if "outages" not in payload:
        return
    ends = {row["element"]: row for row in payload["elements"]}
    listed = []
    for row in payload["outages"]:
        element = ends[row["outage"]]
        between = " - ".join(bus.removeprefix("bus:") for bus in element["buses"])
        cut = ", ".join(bus.removeprefix("bus:") for bus in row["cut_off"])
        mw = f"{row['mw_cut_off']:,.1f}" if row["islands"] else None
        rating = element["rating_mva"]
        produced = f"{row['mw_generation_cut_off']:,.1f}" if row["islands"] else None
        listed.append((row["outage"], between, rating and f"{rating:,.1f}", mw, produced, cut))
    keeps = sum(not row["islands"] for row in payload["outages"])
    columns = (
        "outage", "buses", ">rating\n(MVA)", ">load cut\noff (MW)", ">generation\ncut off (MW)",
        "buses cut off",
    )  # fmt: skip
    console.print()
    console.print(
        table("outages of one element", columns, listed,
              note=f"{keeps} of {len(listed)} keep the grid connected")
    )  # fmt: skip


def usable(network: "Network", outage: str) -> "Assessment":
    """The assessment of an outage that can be studied; an empty text is the intact grid.

    Raises:
        OutageError: the text is not an outage of this grid.
        IslandingError: it cuts buses off.
        NotConvergedError: it leaves no nominal solution.
    """
    from gridshift.errors import IslandingError, NotConvergedError
    from gridshift.grid.contingency import assess, parse_outage

    watch_compiler()
    found = assess(network, parse_outage(network, outage) if outage else ())
    if found.cut_off:
        rest = "" if found.mw_cut_off > 0 else "; 'gridshift screen' solves what is left without it"
        raise IslandingError(
            f"outage {found.reason}{rest}; list the outages that keep the grid connected with "
            f"'gridshift cases {network.name} --outages'"
        )
    if not found.usable:
        raise NotConvergedError(f"{network.name}: {found.reason}")
    return found


@command(
    keys={
        "grid": "name of the grid",
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
    },
    examples=[
        "gridshift solve case30",
        "gridshift solve case30 --outage line:9,line:28 --scenarios 200 --spread 0.5 --seed 1 "
        "--threads 1",
        "gridshift solve case14 --json",
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
def solve(
    grid: str, outage: str, scenarios: int, spread: float, seed: int, threads: int | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Exact AC power flow for many load scenarios of one topology.

    Rows without a solution are counted by reason. The exit code is 1 if they are the majority.
    """
    from gridshift.errors import NotConvergedError
    from gridshift.grid.contingency import outage_text
    from gridshift.grid.powerflow import solve as solve_rows
    from gridshift.grid.readers import read_grid
    from gridshift.grid.scenarios import scenarios as drawn_when_needed
    from gridshift.grid.scenarios import stream

    network = read_grid(grid)
    compiler = watch_compiler()
    began, compiled = time.perf_counter(), compiler.seconds
    found = usable(network, outage)
    nominal_s = time.perf_counter() - began
    text = outage_text(found.outage)
    rng = stream(network.name, "solve", outage=text, seed=seed)
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

    emit(payload, render, as_json=as_json)
    if 2 * counts["solved"] < scenarios:
        raise NotConvergedError(
            f"{scenarios - counts['solved']} of {scenarios} rows have no solution; "
            f"a spread below {spread:g} leaves more"
        )


def _solved_in_blocks(
    network: "Network", loads: "Scenarios | Injections", threads: int
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
