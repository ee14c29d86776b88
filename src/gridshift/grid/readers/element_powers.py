"""Powers of single elements, as a file gives them, before they are summed by bus."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gridshift.arguments import some_of
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridshiftWarning


@dataclass(frozen=True, kw_only=True)
class ElementPowers:
    """Elements that draw or give power, N of them."""

    labels: Sequence[str]
    bus: Int
    """(N,) row of the bus, -1 where the element is left out with its bus."""
    at: Sequence[str]
    """Label of the bus in the file."""
    power: Complex
    """(N,) MVA, positive when produced; NaN where the element takes what the grid leaves."""

    def only(self, which: Bool) -> "ElementPowers":
        """The chosen elements."""
        rows = np.flatnonzero(which).tolist()
        return ElementPowers(
            labels=[self.labels[i] for i in rows],
            bus=self.bus[rows],
            at=[self.at[i] for i in rows],
            power=self.power[rows],
        )


def joined(tables: Sequence[ElementPowers]) -> ElementPowers:
    """All elements, table after table."""
    return ElementPowers(
        labels=[label for table in tables for label in table.labels],
        bus=np.concatenate([np.zeros(0, np.int64), *(table.bus for table in tables)]),
        at=[label for table in tables for label in table.at],
        power=np.concatenate([np.zeros(0, complex), *(table.power for table in tables)]),
    )


def consumed(elements: ElementPowers, num_buses: int) -> Real:
    """(B,) MW that the elements draw: what others at the same bus give doesn't cancel it."""
    found = np.zeros(num_buses)
    draws = (elements.bus >= 0) & (elements.power.real < 0)
    np.add.at(found, elements.bus[draws], -elements.power.real[draws])
    return found


def warn_of_left_out(elements: ElementPowers, name: str, why: str) -> None:
    """One warning that names what is left out with its buses, and the MW by kind.

    Args:
        elements: those of `bus` -1 are told about.
        why: what is the matter with their buses, "their buses ...".
    """
    lost = elements.only(elements.bus < 0)
    if not lost.labels:
        return
    groups: dict[tuple[str, str], list[int]] = {}
    for row, (label, mw) in enumerate(zip(lost.labels, lost.power.real, strict=True)):
        does = "drawing" if mw < 0 else "producing" if mw > 0 else ""
        groups.setdefault((label.partition(":")[0], does), []).append(row)
    told = []
    for (kind, does), rows in groups.items():
        mw = f" {does} {np.abs(lost.power.real[rows]).sum():,.1f} MW" if does else ""
        told.append(f"{len(rows)} {kind}{mw} ({some_of([lost.labels[row] for row in rows])})")
    buses = some_of(list(dict.fromkeys(lost.at)))
    warnings.warn(
        f"{name}: left out are {', '.join(told)}; {why} ({buses})", GridshiftWarning, stacklevel=5
    )
