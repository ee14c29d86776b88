"""What a command starts from: names of rosters, and bases, trained if they aren't there yet."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gridshift.cli.assuring import AUTO
from gridshift.cli.output import progress
from gridshift.errors import GridshiftError

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method
    from gridshift.adapt.surrogate import Surrogate, SurrogateConfig
    from gridshift.grid.network import Network
    from gridshift.learn.training import Progress

T = TypeVar("T")


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


def base_surrogate(
    network: "Network", folder: Path | None, config: "SurrogateConfig"
) -> "Surrogate":
    """The surrogate in the folder, or the one of this configuration from the cache."""
    from gridshift.adapt.cache import cached_surrogate

    found, _ = _found(
        network, folder, config,
        lambda progress: cached_surrogate(network, config, progress=progress),
    )  # fmt: skip
    return found


def found_base(
    method: "Method", network: "Network", folder: Path | None, config: "SurrogateConfig"
) -> "tuple[Base, str]":
    """What a method starts from for this topology, and where it came from."""
    return _found(
        network, folder, config, lambda progress: method.start(network, config, progress=progress),
        purpose=f" for {method.name}",
    )  # fmt: skip


def _found(
    network: "Network", folder: Path | None, config: "SurrogateConfig",
    start: "Callable[[Progress], T]", *, purpose: str = "",
) -> "tuple[T | Surrogate, str]":  # fmt: skip
    from gridshift.adapt.surrogate import Surrogate

    if folder is not None:
        return Surrogate.load(folder, network), "given"
    came_from = "reused"

    def step(number: int, *_: object) -> None:
        nonlocal came_from
        came_from = "trained"
        done(number)

    with progress(f"training{purpose}", config.training.num_steps, unit="steps") as done:
        found = start(step)
    return found, came_from
