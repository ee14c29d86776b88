"""What a comparison will train before it measures, and about how long that takes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridshift.cli.output import duration

if TYPE_CHECKING:
    from gridshift.adapt.method import Method
    from gridshift.grid.network import Network


def tell_trainings(
    methods: "Sequence[Method]",
    network: "Network",
    folder: Path | None,
    spread: float,
    seed: int = 0,
    base_name: str | None = None,
) -> None:
    """Say on standard error what isn't kept yet and will be trained; nothing if there is nothing.

    The time is that of a few steps of each network here and now, times its number of steps;
    regressions take seconds.
    """
    from gridshift.adapt.cache import is_kept
    from gridshift.adapt.surrogate import seconds_per_step
    from gridshift.adapt.surrogate_config import base_config
    from gridshift.errors import SurrogateMismatchError

    own = [method.name for method in methods if method.base is not None]
    wanted = {}
    for method in methods:
        if method.base is None and method.uses_surrogate and folder is None:
            start = base_config(base_name or method.default_base, spread=spread, seed=seed)
            try:
                config = method.surrogate_config(start)
            except SurrogateMismatchError:  # a row of the table says so
                continue
            wanted.setdefault((config.transform, config.backbone.name), (config, []))[1].append(
                method.name
            )
    missing = [
        (config, names)
        for config, names in wanted.values()
        if not config.closed_form and not is_kept(network, config)
    ]
    if missing:
        seconds = sum(
            seconds_per_step(network, config) * config.training.num_steps for config, _ in missing
        )
        named = ", ".join(_named(config, names) for config, names in missing)
        what = "a surrogate" if len(missing) == 1 else f"{len(missing)} surrogates"
        click.echo(f"training first, about {duration(seconds)}: {what} ({named})", err=True)
    if own:
        click.echo(
            f"training first, unless kept already: models of their own of {', '.join(own)}; their "
            "bars tell how long",
            err=True,
        )


def _named(config, names: list[str]) -> str:
    kind = config.transform + ("" if config.backbone.name == "mlp" else f" {config.backbone.name}")
    more = f" and {len(names) - 1} more" if len(names) > 2 else ""
    return f"{kind} for {names[0] if more else ' and '.join(names)}{more}"
