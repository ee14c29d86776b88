"""`--method auto`: the choice of a method, asked for, measured and shown."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gridshift.arguments import how_many
from gridshift.cli.bases import found_base
from gridshift.cli.options import AUTO
from gridshift.cli.output import table

if TYPE_CHECKING:
    from gridshift.trial.cases import Cases
    from gridshift.trial.choice import Choice


def check_target(method: str, target_mae: float | None, certify: float | None) -> None:
    """Pass if what is asked for makes sense together.

    Raises:
        click.UsageError: auto without anything to keep, or a target for a fixed method.
    """
    if method == AUTO and target_mae is None and certify is None:
        raise click.UsageError(
            "--method auto needs something to keep: --target-mae, for instance 1e-4, or "
            "--certify, for instance 1e-6"
        )
    if method != AUTO and target_mae is not None:
        raise click.UsageError("--target-mae is for --method auto")
    for name, value in (("--certify", certify), ("--target-mae", target_mae)):
        if value is not None and not 0 < value < float("inf"):
            raise click.BadParameter(f"{value} is not a positive number", param_hint=name)


def chosen_method(
    cases: "Cases", folder: Path | None, base_name: str | None, *, num_rows: int,
    target_mae: float | None, certify: float | None,
) -> "Choice":  # fmt: skip
    """The cheapest method for one topology, measured on the context of its cases.

    Methods start from the surrogate in the folder, from the base of that name with the cases'
    spread and seed, or else from a regression where that will do, and from a network where not.
    """
    from gridshift.adapt.methods import METHODS, Context
    from gridshift.trial.choice import check_num_context, choose

    check_num_context(cases.num_context)
    given = folder is not None or base_name is not None
    bases = [
        found_base(
            METHODS["frozen"], cases.network, folder, num_context=cases.num_context,
            spread=cases.spread, seed=cases.seed, base_name=name,
        )[0]
        for name in ([base_name] if given else ["quadratic", "mlp"])
    ]  # fmt: skip
    return choose(
        bases, Context.of(cases.context), num_rows=num_rows, target_mae=target_mae, tol=certify,
        context_s=cases.data_s,
    )  # fmt: skip


def choice_json(choice: "Choice") -> dict[str, Any]:
    """The choice and its ledger as plain values."""
    return {
        "method": choice.chosen.name,
        "reason": choice.reason,
        "num_rows": choice.num_rows,
        "target_mae": choice.target_mae,
        "certify": choice.tol,
        "num_holdout": choice.num_holdout,
        "measuring_s": choice.measuring_s,
        "ledger": [asdict(line) for line in choice.ledger],
    }


def print_choice(console, choice: Mapping[str, Any]) -> None:
    """The ledger as a table, cheapest first, and the choice in a sentence."""
    columns = (
        "method", ">error", "keeps it", ">set-up\n(s)", ">µs/row", ">corrected\n(%)", ">total\n(s)",
    )  # fmt: skip
    rows = [
        (
            line["name"], line["mae"], line["meets"], line["setup_s"], line["us_per_row"],
            100 * line["corrected"], line["total_s"],
        )
        for line in choice["ledger"]
        if not line["problem"]
    ]  # fmt: skip
    title = (
        f"cost of {how_many(choice['num_rows'], 'row')}, measured on "
        f"{how_many(choice['num_holdout'], 'held-out case')}"
    )
    console.print(table(title, columns, rows, note=choice["reason"]))
    untried = [line for line in choice["ledger"] if line["problem"]]
    if untried:
        names = ", ".join(line["name"] for line in untried)
        console.print(f"not tried: {names}; 'gridshift compare' measures them", style="dim")
    console.print()
