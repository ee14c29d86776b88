"""Files that say which columns of a table belong to which bus.

    branches = [["5", "8"], ["3", "4"]]          # optional: which pairs of buses are joined

    [buses]
    "5" = ["theta_5", "v_5"]                     # angle in rad, magnitude
    "8" = {angle_deg = "va_8", magnitude = "vm_8"}

as TOML, or the same as JSON; `learn/touching.py` says what a bus may have.
"""

import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gridshift.errors import StorageError, TableError

ENDINGS = (".toml", ".json")
KEYS = ("buses", "branches")


@dataclass(frozen=True, kw_only=True)
class BusColumns:
    """Buses with their columns, and which of them are joined, if that is known."""

    source: str
    """What to call it in messages."""
    buses: dict[str, Any]
    branches: list[tuple[str, str]] | None = None

    def between(self, pairs: Sequence[str]) -> "BusColumns":
        """The buses of these pairs alone ('5,8'), joined as the pairs say.

        Raises:
            TableError: a pair isn't of two known buses.
        """
        branches = []
        for pair in pairs:
            ends = [name.strip() for name in pair.split(",")]
            if len(ends) != 2 or ends[0] == ends[1]:
                raise TableError(f"--between {pair!r} is not two buses, as in --between 5,8")
            if unknown := [name for name in ends if name not in self.buses]:
                raise TableError(f"no bus {unknown[0]!r} in {self.source}")
            branches.append((ends[0], ends[1]))
        named = {name: self.buses[name] for pair in branches for name in pair}
        return replace(self, buses=named, branches=branches)


def read_buses(path: Path) -> BusColumns:
    """The content of such a file.

    Raises:
        StorageError: it can't be read.
        TableError: it is of another form.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not in UTF-8") from error
    try:
        found = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        said = str(error).splitlines()[0]
        raise TableError(
            f"{path} is no {path.suffix[1:].upper()} that can be read: {said}"
        ) from error
    if not isinstance(found, dict) or not isinstance(found.get("buses"), dict):
        raise TableError(f"{path} has no 'buses', a table from each bus to its columns")
    if unknown := found.keys() - {*KEYS}:
        raise TableError(f"{path} has a key {min(unknown)!r}; known are {', '.join(KEYS)}")
    buses = {name: _checked(name, columns, path) for name, columns in found["buses"].items()}
    return BusColumns(
        source=str(path), buses=buses, branches=_branches(found.get("branches"), path)
    )


def _checked(name: str, columns: Any, path: Path) -> Any:
    values = columns.values() if isinstance(columns, dict) else columns
    listed = isinstance(columns, (dict, list))
    if not listed or not values or not all(isinstance(each, str) for each in values):
        raise TableError(
            f'bus {name} of {path} has {str(columns)[:40]!r}, not its columns; write ["theta_5", '
            '"v_5"], or {angle = ..., magnitude = ...}'
        )
    return columns


def _branches(found: Any, path: Path) -> list[tuple[str, str]] | None:
    if found is None:
        return None
    pairs = found if isinstance(found, list) else [found]
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2:
            raise TableError(f"branches of {path} has {str(pair)[:40]!r}, not two buses")
    return [(str(i), str(j)) for i, j in pairs]
