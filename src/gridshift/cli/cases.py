"""`gridshift cases`: the built-in grids, and what one grid consists of."""

from typing import TYPE_CHECKING, Any

import click

from gridshift.cli.group import command
from gridshift.cli.output import emit, table

if TYPE_CHECKING:
    from gridshift.grid.network import Network


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
    """List the built-in grids, or what one grid consists of.

    CASE is a built-in name, a pandapower JSON file or a MATPOWER .m file. Built-in grids are
    pandapower's, some of which are not the ones of the same name in MATPOWER. With --outages each
    element that can be switched is listed with the buses and the demand that its loss cuts off.
    """
    if case is None:
        if outages:
            raise click.UsageError("--outages needs a CASE, for instance: cases case30 --outages")
        _list_cases(as_json)
        return
    from gridshift.grid.readers import builtin_source, read_grid

    network = read_grid(case)
    payload = {
        "grid": network.name,
        "source": builtin_source() if case.isidentifier() else network.origin,
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
