"""Groups of elements that vary: their distribution, their area, and how they go together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gridshift.arguments import shown
from gridshift.arrays import Complex, Int, Real
from gridshift.grid.names import bus_parts
from gridshift.grid.network import Network
from gridshift.study.description import (
    Key,
    UncertaintyError,
    chosen,
    finite,
    nearest,
    require_one_of,
)
from gridshift.study.distributions import Distribution
from gridshift.study.sampling import Mixing, area_mixing, matrix_mixing

Reactive = Literal["follows", "independent", "fixed"]
CorrelationKind = Literal["common", "area", "matrix"]
WIDEST = 1.0
"""Standard deviation, as a share of the nominal power or of a larger mean, beyond which per cent or
MW are meant."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """Elements with one distribution, each drawn by itself."""

    distribution: Distribution
    """Of the factor on the active power."""
    elements: tuple[str, ...] = ()
    """Labels or patterns such as `load:1*`; empty: all that `type` and `area` leave."""
    type: str | None = None
    """What labels begin with: `load`, `gen`, `static` ..."""
    area: str | None = None
    reactive: Reactive = "follows"
    """`follows`: at the nominal power factor; `independent`: a factor of its own from the same
    distribution; `fixed`: at its nominal value."""
    base_mw: float | None = None
    """What the factor multiplies, such as the installed capacity; None: the nominal power."""

    def __post_init__(self) -> None:
        require_one_of(self.reactive, Reactive, "reactive", "way")
        if self.base_mw is not None and finite(self.base_mw, "base_mw") <= 0:
            raise UncertaintyError(("base_mw",), f"{self.base_mw:g} must be greater than 0")
        sd, mean = (getattr(self.distribution, name, 1.0) for name in ("sd", "mean"))
        if self.base_mw is None and sd > WIDEST * max(1.0, abs(mean)):
            told = f"{sd:g} is a standard deviation of {sd:,.0%} of the nominal power"
            told += "; a share of it is meant, for instance 0.1; for MW say base_mw = 1"
            raise UncertaintyError(("sd",), told.replace("%", " %", 1))


@dataclass(frozen=True, kw_only=True)
class Area:
    """Buses, by label or pattern, by nominal voltage, or by both."""

    buses: tuple[str, ...] = ("*",)
    """A bus that is made of several, `bus:3+4`, answers to each of their labels."""
    kv_min: float = 0.0
    kv_max: float = float("inf")

    def rows(self, network: Network, key: Key) -> Int:
        """The buses of this grid, ascending."""
        names = bus_parts(network) | network.bus_rows
        found = chosen(self.buses, names, key=(*key, "buses"), what="buses")
        rows = np.unique([names[label] for label in found]).astype(np.int64)
        kv = network.bus_kv[rows]
        rows = rows[(kv >= self.kv_min) & (kv <= self.kv_max)]
        if not len(rows):
            told = f"no bus from {self.kv_min:g} to {self.kv_max:g} kV among them"
            raise UncertaintyError(key, told)
        return rows


def areas_of(network: Network, described: Mapping[str, Area]) -> dict[str, Int]:
    """Buses of the areas that a study describes, or, where it describes none, of the grid's own.

    Raises:
        UncertaintyError: an area of buses that this grid doesn't have.
    """
    if described:
        return {name: area.rows(network, ("areas", name)) for name, area in described.items()}
    rows: dict[str, list[int]] = {}
    for label, name in network.areas.items():
        rows.setdefault(name, []).append(network.bus_rows[label])
    return {name: np.array(sorted(found)) for name, found in rows.items()}


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """Gaussian copula of active powers; `rho` is the correlation of the normal scores.

    The rank correlation of the powers is 6 / pi * arcsin(rho / 2), a little less.
    """

    kind: CorrelationKind
    """`common`: one factor behind all; `area`: `rho` in an area, `between` otherwise; `matrix`."""
    elements: tuple[str, ...] = ()
    """Labels or patterns; empty: all loads that vary. For a matrix, labels in its order."""
    rho: float = 0.0
    between: float = 0.0
    matrix: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        require_one_of(self.kind, CorrelationKind, "kind", "kind")
        if self.kind == "matrix":
            try:
                matrix = np.array(self.matrix, float)
            except (TypeError, ValueError):
                told = "give rows of numbers, all of the same length"
                raise UncertaintyError(("matrix",), told) from None
            matrix_mixing(
                self.elements, matrix, {label: i for i, label in enumerate(self.elements)}
            )
        else:
            between = self.rho if self.kind == "common" else self.between
            area_mixing([], rho=finite(self.rho, "rho"), between=finite(between, "between"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Where elements stand."""

    bus_of: Mapping[str, int]
    areas: Mapping[str, Int]
    """Buses of each area."""

    def area_of(self, label: str) -> str | None:
        """The area of an element.

        Raises:
            UncertaintyError: its bus is in more than one.
        """
        found = [name for name, buses in self.areas.items() if self.bus_of[label] in buses]
        if len(found) > 1:
            told = f"{label} is in {' and '.join(found)}; areas that correlate must not overlap"
            raise UncertaintyError(("areas", found[1]), told)
        return found[0] if found else None


def members(
    groups: Sequence[Group], labels: Sequence[str], places: Places, *, key: Key
) -> dict[str, Group]:
    """The group of each element that is in one; of several the last.

    Raises:
        UncertaintyError: a group without an element.
    """
    found: dict[str, Group] = {}
    for number, group in enumerate(groups):
        found |= dict.fromkeys(_elements(group, labels, places, (*key, number)), group)
    return found


def _elements(group: Group, labels: Sequence[str], places: Places, key: Key) -> list[str]:
    found = list(labels)
    if group.elements:
        found = chosen(group.elements, labels, key=(*key, "elements"), what="elements")
    if group.type is not None:
        types = sorted({label.partition(":")[0] for label in labels})
        if group.type not in types:
            told = f"no element of type {shown(group.type)}{nearest(group.type, types)}"
            raise UncertaintyError((*key, "type"), told)
        found = [label for label in found if label.partition(":")[0] == group.type]
    if group.area is not None:
        if group.area not in places.areas:
            told = f"no area {shown(group.area)}{nearest(group.area, [*places.areas])}"
            raise UncertaintyError((*key, "area"), told)
        buses = {*places.areas[group.area].tolist()}
        found = [label for label in found if places.bus_of[label] in buses]
    if not found:
        raise UncertaintyError(key, "no element fits all that it asks for")
    return found


def mixing(
    correlation: Sequence[Correlation], labels: Sequence[str], num_loads: int, places: Places
) -> Mixing:
    """How the normal scores of the elements that vary come about.

    Args:
        labels: (N,) the elements, loads first.
        num_loads: so many of them.

    Raises:
        UncertaintyError: an element that doesn't vary, or that two correlations take in.
    """
    own, weights = np.ones(len(labels)), [np.zeros((0, len(labels)))]
    row_of, taken = {label: row for row, label in enumerate(labels)}, dict[str, int]()
    for number, given in enumerate(correlation):
        key: Key = ("correlation", number, "elements")
        found = list(labels[:num_loads])
        if given.elements:
            found = chosen(given.elements, labels, key=key, what="elements that vary")
        if not found:
            raise UncertaintyError(key[:2], "no load varies; name elements that do")
        for label in found:
            if taken.setdefault(label, number) != number:
                told = f"{label} is correlated in entry {taken[label] + 1} already"
                raise UncertaintyError(key, told)
        if given.kind == "matrix":
            if odd := [label for label in given.elements if label not in row_of]:
                told = f"{odd[0]!r} must be one element that varies, no pattern"
                raise UncertaintyError(key, told)
            at = {label: row for row, label in enumerate(found)}
            part = matrix_mixing(given.elements, np.array(given.matrix), at)
        elif given.kind == "area":
            part = area_mixing(
                [places.area_of(label) for label in found], rho=given.rho, between=given.between
            )
        else:
            part = area_mixing(["all"] * len(found), rho=given.rho, between=given.rho)
        columns = [row_of[label] for label in found]
        own[columns] = part.own
        wide = np.zeros((len(part.weights), len(labels)))
        wide[:, columns] = part.weights
        weights.append(wide)
    return Mixing(own=own, weights=np.concatenate(weights))


def powers_of(
    group: Group, nominal: Complex, *, signs: Int, base_mva: float, u: Real, u_reactive: Real
) -> tuple[Real, Real]:
    """(R, n) active and reactive power of a group's n columns, as the grid's columns count them.

    Args:
        nominal: (n,) p.u.
        signs: (n,) 1 for demands, -1 for generators, whose columns are negative.
        u_reactive: (R, n) more of them, used if the reactive power is independent.
    """
    with np.errstate(all="ignore"):  # what isn't finite is refused by name
        factor = group.distribution.quantiles(u)
    p0, q0 = nominal.real, nominal.imag
    p = factor * (p0 if group.base_mw is None else signs * group.base_mw / base_mva)
    if group.reactive == "fixed":
        return p, np.broadcast_to(q0, p.shape)
    if group.reactive == "independent":
        return p, q0 * group.distribution.quantiles(u_reactive)
    if group.base_mw is None:
        return p, q0 * factor
    return p, q0 * np.divide(p, p0, out=np.ones_like(p), where=p0 != 0)
