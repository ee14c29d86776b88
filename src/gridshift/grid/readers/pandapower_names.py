"""What a pandapower network calls its elements, and where it draws its buses."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.names import own_name
from gridshift.grid.readers.pandapower_arrays import Assembled
from gridshift.grid.readers.pandapower_tables import TABLES


def element_names(net, bus_labels: Sequence[str]) -> dict[str, str]:
    """Names by label; fused buses have those of all of them."""
    found: dict[str, str] = {}
    for kind in TABLES:
        table = net.get(kind)
        if hasattr(table, "columns") and "name" in table:
            for index, given in zip(table.index, table["name"], strict=True):
                label = f"{kind}:{index}"
                if name := own_name(given, label):
                    found[label] = name
    for label in bus_labels:
        if "+" in label:
            members = [f"bus:{n}" for n in label.removeprefix("bus:").split("+")]
            names = dict.fromkeys(found[m] for m in members if m in found)
            if names:
                found[label] = " + ".join(names)
    return found


def bus_zones(net, bus_labels: Sequence[str]) -> dict[str, str]:
    """Column `zone` of the bus table by label; fused buses have that of the first of them."""
    if "zone" not in net["bus"]:
        return {}
    zones = {f"{index}": own_name(zone, "") for index, zone in net["bus"]["zone"].items()}
    first = ((label, label.removeprefix("bus:").partition("+")[0]) for label in bus_labels)
    return {label: zone for label, bus in first if (zone := zones.get(bus, ""))}


def bus_positions(net, grid: Assembled) -> Real:
    """(B, 2) of each assembled bus: the mean of those that are fused; NaN where none is given.

    From the column `geo` of the bus table, GeoJSON points, or the table `bus_geodata` of networks
    before pandapower 3.
    """
    total, count = np.zeros((len(grid.kind), 2)), np.zeros(len(grid.kind))
    for bus, place in _given(net).items():
        if 0 <= bus < len(grid.bus_of) and grid.bus_of[bus] >= 0 and np.isfinite(place).all():
            total[grid.bus_of[bus]] += place
            count[grid.bus_of[bus]] += 1
    with np.errstate(invalid="ignore"):
        return total / count[:, None]


def _given(net) -> dict[int, tuple[float, float]]:
    places: dict[int, tuple[float, float]] = {}
    old, bus = net.get("bus_geodata"), net["bus"]
    if hasattr(old, "columns") and {"x", "y"} <= set(old.columns):
        for index, x, y in zip(old.index, old["x"], old["y"], strict=True):
            _enter(places, index, (x, y))
    if "geo" in bus:
        for index, point in zip(bus.index, bus["geo"], strict=True):
            if isinstance(point, str):
                try:
                    point = json.loads(point)
                except ValueError:
                    continue
            if isinstance(point, dict):
                _enter(places, index, point.get("coordinates"))
    return places


def _enter(places: dict[int, tuple[float, float]], index: Any, place: Any) -> None:
    """What is no pair of numbers is no position; a drawing can do without."""
    try:
        x, y = (float(part) for part in place[:2])
        places[int(index)] = x, y
    except (TypeError, ValueError, OverflowError):
        pass
