"""Controllers of a pandapower network: read as data, never run.

Those of a network in memory are objects of pandapower's classes, those of a file what
`pandapower.to_json` wrote of them.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gridshift.grid.readers.pandapower_safety import CONTROLLERS


class Controller(NamedTuple):
    """What a controller says of itself."""

    kind: str
    values: Mapping[str, Any]
    level: float

    @property
    def elements(self) -> tuple[str, list[int]]:
        """Table and numbers of what it moves; none where it doesn't say."""
        given = self.values.get("element_index", self.values.get("shunt_index"))
        table = "shunt" if "shunt_index" in self.values else str(self.values.get("element", ""))
        try:
            return table, [int(one) for one in np.atleast_1d(_plain(given))]
        except (TypeError, ValueError):
            return table, []

    def number(self, name: str) -> float:
        """A value as a number; NaN if it is none."""
        try:
            return float(_plain(self.values.get(name)))
        except (TypeError, ValueError):
            return np.nan


def controllers(net: Any) -> list[Controller]:
    """The controllers in service, in the order of the table."""
    table = net.get(CONTROLLERS)
    if not hasattr(table, "columns") or "object" not in table:
        return []
    found = []
    for row in table.to_dict("records"):
        if row.get("in_service", True):
            kind, values = _described(row["object"])
            found.append(Controller(kind, values, _level(row.get("level"))))
    return found


def _described(one: Any) -> tuple[str, Mapping[str, Any]]:
    """Class and values of a controller, of which a file holds the text that `to_json` wrote."""
    if not isinstance(one, Mapping):
        return type(one).__name__, getattr(one, "__dict__", {})
    try:
        values = json.loads(one["_object"])
    except (KeyError, TypeError, ValueError):
        values = {}
    return str(one.get("_class")), values if isinstance(values, dict) else {}


def _level(given: Any) -> float:
    """The first of its levels."""
    try:
        return float(np.ravel(given)[0])
    except (IndexError, TypeError, ValueError):
        return 0.0


def _plain(value: Any) -> Any:
    """A number or a list of them out of what `to_json` makes of numpy's."""
    return value["_object"] if isinstance(value, Mapping) and "_object" in value else value
