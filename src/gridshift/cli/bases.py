"""What a command starts from: names of rosters, and bases, trained if they aren't there yet."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gridshift.cli.output import Done, progress
from gridshift.errors import GridshiftError

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method
    from gridshift.adapt.surrogate import Surrogate
    from gridshift.grid.network import Network

AUTO = "auto"
"""Name of the method that measures all others and takes the cheapest."""


class Roster(click.ParamType):
    """A name in one of the library's rosters, which is loaded only when a value is given."""

    name = "name"

    def __init__(
        self, module: str, attribute: str, *also: str, never: Mapping[str, str] | None = None
    ):
        """`also`: more names; `never`: names of other commands, and why not here."""
        self.module, self.attribute, self.also = module, attribute, also
        self.never = never or {}

    def convert(self, value, param, ctx) -> str:
        if why := self.never.get(value):
            raise GridshiftError(why)
        names = [*dict.fromkeys((*getattr(import_module(self.module), self.attribute), *self.also))]
        if value not in names:
            self.fail(f"no {value!r}; choose from {', '.join(names)}", param, ctx)
        return value


method_option = click.option(
    "--method", type=Roster("gridshift.adapt.methods", "METHODS", "newton", AUTO), default="icw",
    show_default=True,
    help="How to adapt (`gridshift methods`); newton solves all exactly, auto measures and "
    "takes the cheapest.",
)  # fmt: skip
surrogate_option = click.option(
    "--surrogate", type=click.Path(path_type=Path), metavar="DIR",
    help="Use this surrogate instead of training or re-using one.",
)  # fmt: skip


def found_surrogate(
    network: "Network", folder: Path | None, *, spread: float, seed: int
) -> "Surrogate":
    """The surrogate in the folder, or the one of this spread and seed."""
    from gridshift.trial.base import surrogate_for

    with _training() as watch:
        return surrogate_for(network, spread=spread, seed=seed, folder=folder, progress=watch)


def found_base(
    method: "Method", network: "Network", folder: Path | None, *, num_context: int, spread: float,
    seed: int,
) -> "tuple[Base, str | None]":  # fmt: skip
    """What a method starts from for this topology, and where it came from; None: from nowhere.

    Raises as `trial.base.base_for`, before anything is trained.
    """
    from gridshift.trial.base import base_for

    with _training(f" for {method.name}") as watch:
        base = base_for(
            method, network, num_context=num_context, spread=spread, seed=seed, folder=folder,
            progress=watch,
        )  # fmt: skip
    if folder is not None:
        return base, "given"
    if not method.uses_surrogate:
        return base, None
    return base, "trained" if watch.called else "reused"


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

    with progress(f"training{purpose}", PRODUCT_TRAINING.num_steps, unit="steps") as done:
        yield _Watch(done)
