"""`gridshift identify`: which outage explains solved cases."""

from pathlib import Path

import click

from gridshift.arguments import how_many
from gridshift.cli.bases import found_base, usable
from gridshift.cli.group import command
from gridshift.cli.options import (
    GRID_KEY,
    drawn_options,
    grid_argument,
    outage_option,
    start_options,
)
from gridshift.cli.output import emit, table

TOP = 10
"""Candidates that the table shows."""


@command(
    keys=GRID_KEY
    | {
        "outage": "elements that were out when the cases were drawn; used for nothing else",
        "base": "what the candidates compensate",
        "num_context": "solved cases",
        "num_solves": "solves that this took, failed ones included",
        "candidates": "list, the best first: `outage` (several joined by ' or ' if nothing tells "
        "them apart: parallel circuits), `buses` that it touches, `left_out_mae` (mean error over "
        "all outputs of each case by a fit to the others, p.u. and rad)",
        "decided": "the outage that is sure; null if the cases can't tell",
        "alike": "those that can't be told from the first, itself included",
        "doubt": "bound on the probability of such a left-out error by chance",
        "reason": "in words",
    },
    examples=[
        "gridshift identify case14 --outage line:2 --context 20",
        "gridshift identify case14 --outage line:2 --surrogate base14",
        "gridshift identify case14 --outage line:6 --context 15 --base linear --spread 0.3 "
        "--seed 1 --json",
    ],
)
@grid_argument
@outage_option
@click.option(
    "--context", default=20, show_default=True, help="Solved cases of the unknown topology."
)
@drawn_options
@start_options
def identify(
    grid: str, outage: str, context: int, spread: float, seed: int, base_name: str | None,
    surrogate: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Find the single outage that explains solved cases best.

    Cases of --outage are drawn and solved; which one it was isn't told. Every line and transformer
    whose loss keeps the grid connected is tried: the base is compensated at the buses that it
    touches, and the errors on cases left out are compared.
    """
    from gridshift.adapt.compensation import changed_buses, identify_outage
    from gridshift.adapt.methods import METHODS
    from gridshift.adapt.surrogate import Surrogate
    from gridshift.grid.contingency import cut_off_buses, outage_text
    from gridshift.grid.outage_list import select_outages
    from gridshift.grid.readers import read_grid
    from gridshift.learn.identification import check_identifiable
    from gridshift.trial.cases import Cases

    check_identifiable(context)
    network = read_grid(grid)
    left = usable(network, outage).network
    method = METHODS["compensation"]
    base, _ = found_base(
        method, left, surrogate, num_context=context, spread=spread, seed=seed, base_name=base_name
    )
    assert isinstance(base, Surrogate), "compensation starts from one"
    cases = Cases(left, num_context=context, spread=spread, seed=seed).context
    every = select_outages(network, "all")
    kept = [o for o, cut in zip(every, cut_off_buses(network, every), strict=True) if not len(cut)]
    found = identify_outage(base, network, cases.x, cases.y, kept)
    by_name = {outage_text(one): one for one in kept}

    def buses(name: str) -> list[str]:
        touched, _ = changed_buses(network.without(by_name[name.split(" or ")[0]]), network)
        return [network.bus_labels[bus] for bus in touched]

    payload = {
        "grid": network.name, "outage": outage, "base": method.base_name(base),
        "num_context": len(cases), "num_solves": cases.num_solves,
        "candidates": [
            {"outage": name, "buses": buses(name), "left_out_mae": mae}
            for name, mae in found.ranking
        ],
        "decided": found.name, "alike": found.alike, "doubt": found.doubt, "reason": found.reason,
    }  # fmt: skip

    def render(console) -> None:
        rows = [
            (one["outage"], ", ".join(one["buses"]), one["left_out_mae"])
            for one in payload["candidates"][:TOP]
        ]
        title = f"{len(rows)} of {how_many(len(found.ranking), 'outage')} of {network.name}, "
        title += f"{how_many(len(cases), 'case')}"
        console.print(table(title, ("outage", "touches", ">error left out"), rows))
        console.print(found.reason if found.name else f"undecided: {found.reason}")

    emit(payload, render, as_json=as_json)
