"""The paper's numbers, all in one file: `printed.toml`, which says where in the paper each is."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


def printed(name: str) -> Any:
    """A number of the paper, or a table of them: keys as the file has them, whole numbers as such.

    Raises:
        KeyError: the file has no such name.
    """
    return _plain(_all()[name])


@cache
def _all() -> dict[str, Any]:
    return tomllib.loads((files("gridshift_paper") / "printed.toml").read_text(encoding="utf-8"))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_key(name): _plain(one) for name, one in value.items()}
    return tuple(_plain(one) for one in value) if isinstance(value, list) else value


def _key(name: str) -> Any:
    """'400' is 400, and 'mlp / 400' is ('mlp', 400)."""
    first, *others = (int(part) if part.isdigit() else part for part in name.split(" / "))
    return (first, *others) if others else first
