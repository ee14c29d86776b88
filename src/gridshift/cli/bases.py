"""What a command starts from: a topology, and a base, trained if it isn't there yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridshift.cli.output import Done, progress

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method
    from gridshift.grid.contingency import Assessment
    from gridshift.grid.kernels.events import CompileTimes
    from gridshift.grid.network import Network

NOTICE = "compiling kernels (once per machine)"


@cache
def watch_compiler() -> "CompileTimes":
    """Seconds of compiling from now on, a minute at most once per machine; the first is told."""
    from gridshift.grid.kernels.events import CompileTimes

    return CompileTimes(lambda: click.echo(NOTICE, err=True))


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


def found_base(
    method: "Method", network: "Network", folder: Path | None, *, num_context: int, spread: float,
    seed: int, base_name: str | None = None,
) -> "tuple[Base, str | None]":  # fmt: skip
    """What a method starts from for this topology, and where it came from; None: from nowhere.

    Raises as `trial.base.base_for`, before anything is trained.
    """
    from gridshift.adapt.cache import is_kept
    from gridshift.adapt.surrogate_config import base_config
    from gridshift.trial.base import base_for

    if folder is not None and base_name is not None:
        raise click.UsageError("--base is what to train, and --surrogate is trained; give one")
    config = base_config(base_name or method.default_base, spread=spread, seed=seed)
    kept = not config.closed_form or is_kept(network, config)
    with _training(f" for {method.name}") as watch:
        base = base_for(
            method, network, num_context=num_context, spread=spread, seed=seed, base=base_name,
            folder=folder, progress=watch,
        )  # fmt: skip
    if folder is not None:
        return base, "given"
    if not method.uses_surrogate:
        return base, None
    return base, "trained" if watch.called or not kept else "reused"


class _Watch:
    """Shows a training's progress; `called` tells whether there was any."""

    def __init__(self, done: Done):
        self.done, self.called = done, False

    def __call__(self, step: int, num_steps: int, loss: float) -> None:
        self.called = True
        self.done(step, num_steps)


@contextmanager
def _training(purpose: str = "") -> Iterator[_Watch]:
    from gridshift.adapt.surrogate_config import PRODUCT_TRAINING

    with progress(f"training{purpose}", PRODUCT_TRAINING.num_steps, unit="step") as done:
        yield _Watch(done)
