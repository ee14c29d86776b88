"""`Network`: a grid as frozen per-unit arrays; an outage makes a new one with the same layout."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from gridshift.arguments import shown
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import OutageError


class BusKind(IntEnum):
    """What a bus specifies: both powers (PQ), active power and magnitude (PV), or the voltage."""

    PQ = 1
    PV = 2
    SLACK = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """A grid in per unit on `base_mva`, angles in radians; arrays are read-only.

    Axes: B buses, L loads, G generators at voltage-controlled buses, E branches. A branch is one
    two-port; an *element* is what a user can switch (`line:34`, `trafo:2`, `branch:12`) and owns
    one or more branches (a three-winding transformer owns three).
    """

    name: str
    origin: str
    base_mva: float

    bus_labels: tuple[str, ...]
    """Label of each bus, `bus:7`; fused buses show all of theirs, `bus:3+4`."""
    bus_kind: Int
    """(B,) values of `BusKind`."""
    bus_kv: Real
    """(B,) base voltage, kV line to line; 0 where the source gives none."""
    bus_v_min: Real
    """(B,) lower limit of the voltage magnitude, NaN where the source gives none."""
    bus_v_max: Real
    """(B,) upper limit, NaN where the source gives none."""
    bus_shunt: Complex
    """(B,) admittance to ground; power it draws at 1 p.u. is its conjugate."""
    bus_fixed: Complex
    """(B,) power injected by whatever is neither a load nor a generator of this table."""
    bus_v_set: Real
    """(B,) magnitude set-point at PV and slack buses, NaN at PQ buses."""
    v_start: Complex
    """(B,) the source's own starting point, set-points already in it."""

    load_labels: tuple[str, ...]
    load_bus: Int
    load_power: Complex
    """(L,) nominal demand, positive when consumed."""

    gen_labels: tuple[str, ...]
    gen_bus: Int
    """(G,) always a PV or slack bus; other generation is in `bus_fixed`."""
    gen_p: Real
    """(G,) scheduled active power, positive when produced; the slack's share is not used."""

    branch_labels: tuple[str, ...]
    """(E,) element that each branch belongs to; empty for one that cannot be switched."""
    branch_from: Int
    branch_to: Int
    branch_y: Complex
    """(E, 4) two-port admittances yff, yft, ytf, ytt, as if in service."""
    branch_in_service: Bool
    branch_rating: Real
    """(E, 2) limit at the from and the to end, p.u. current or apparent power; inf: none given."""
    branch_rated: Bool
    """(E,) whether the limit is a real one, not a placeholder for 'unlimited'."""
    rating_kind: Literal["current", "power"]

    base: "Network | None" = field(default=None, repr=False)
    """The network that this one is an outage of; None for the one that was read."""
    outaged: tuple[str, ...] = ()
    """Elements taken out by `without`, sorted."""

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def num_buses(self) -> int:
        return len(self.bus_kind)

    @property
    def num_loads(self) -> int:
        return len(self.load_bus)

    @property
    def num_branches(self) -> int:
        return len(self.branch_from)

    @cached_property
    def root(self) -> "Network":
        """The network as read, whose sparsity pattern serves every outage.

        An outage of it in which numbers were replaced as well stands for itself.
        """
        base = self.base
        if base is None or any(getattr(self, n) is not getattr(base, n) for n in _SHARED):
            return self
        return base

    @cached_property
    def slack(self) -> Int:
        """Slack buses, ascending."""
        return np.flatnonzero(self.bus_kind == BusKind.SLACK)

    @cached_property
    def pv(self) -> Int:
        """PV buses, ascending."""
        return np.flatnonzero(self.bus_kind == BusKind.PV)

    @cached_property
    def pq(self) -> Int:
        """PQ buses, ascending."""
        return np.flatnonzero(self.bus_kind == BusKind.PQ)

    @cached_property
    def elements(self) -> dict[str, tuple[int, ...]]:
        """Branches of each switchable element, in the source's order."""
        rows: dict[str, list[int]] = {}
        for branch, label in enumerate(self.branch_labels):
            if label:
                rows.setdefault(label, []).append(branch)
        return {label: tuple(branches) for label, branches in rows.items()}

    @cached_property
    def admittance(self) -> sp.csr_array:
        """(B, B) bus admittance matrix. The pattern covers all branches, in service or not."""
        on = self.branch_in_service[:, None]
        values = np.where(on, self.branch_y, 0)
        f, t, b = self.branch_from, self.branch_to, np.arange(self.num_buses)
        rows = np.concatenate([f, f, t, t, b])
        cols = np.concatenate([f, t, f, t, b])
        data = np.concatenate(
            [values[:, 0], values[:, 1], values[:, 2], values[:, 3], self.bus_shunt]
        )
        return sp.csr_array((data, (rows, cols)), shape=(self.num_buses, self.num_buses))

    @cached_property
    def scheduled(self) -> Complex:
        """(B,) power injected by everything but the loads; slack active power is not meaningful."""
        power = self.bus_fixed.copy()
        np.add.at(power, self.gen_bus, self.gen_p)
        return power

    def injected(self, load_power: Complex) -> Complex:
        """(..., B) bus injections, p.u., for demands `load_power` (..., L)."""
        at_bus = sp.csr_array(
            (np.ones(self.num_loads), (np.arange(self.num_loads), self.load_bus)),
            shape=(self.num_loads, self.num_buses),
        )
        return self.scheduled - load_power @ at_bus

    def without(self, outage: tuple[str, ...] | list[str]) -> "Network":
        """The network with these elements switched off; bus order and layout stay as they are.

        Raises:
            OutageError: an element is unknown or already out of service.
        """
        outage = tuple(dict.fromkeys(outage_labels(outage)))
        unknown = [label for label in outage if label not in self.elements]
        if unknown:
            raise OutageError(
                f"no element {', '.join(unknown)} in {self.name}; "
                f"list them with 'gridshift cases {self.name} --outages'"
            )
        on = self.branch_in_service.copy()
        for label in outage:
            rows = list(self.elements[label])
            if not on[rows].any():
                raise OutageError(f"{label} is already out of service in {self.name}")
            on[rows] = False
        return replace(
            self,
            branch_in_service=on,
            base=self.root,
            outaged=tuple(sorted({*self.outaged, *outage})),
        )

    def cut_off_buses(self) -> Int:
        """Buses without a path to any slack bus over branches in service, ascending."""
        on = self.branch_in_service
        graph = sp.coo_array(
            (np.ones(on.sum(), bool), (self.branch_from[on], self.branch_to[on])),
            shape=(self.num_buses, self.num_buses),
        )
        _, island = connected_components(graph, directed=False)
        return np.flatnonzero(~np.isin(island, island[self.slack]))

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of every number of the network; equal for equal grids."""
        state = hashlib.sha256()
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, np.ndarray):
                state.update(f.name.encode())
                state.update(np.ascontiguousarray(value).tobytes())
        state.update(
            repr(
                (
                    self.base_mva,
                    self.bus_labels,
                    self.load_labels,
                    self.gen_labels,
                    self.branch_labels,
                    self.rating_kind,
                )
            ).encode()
        )
        return state.hexdigest()


def outage_labels(outage: object) -> list[str]:
    """The labels of an outage that a caller gives.

    Raises:
        OutageError: a text, or something else than a collection of texts.
    """
    if isinstance(outage, str):
        raise OutageError(f"give the elements of an outage as a list, not as text: [{outage!r}]")
    labels: list[Any] = list(outage) if isinstance(outage, Iterable) else [outage]
    odd = [label for label in labels if not isinstance(label, str)]
    if odd:
        raise OutageError(
            f"{shown(odd[0])} names no element; an outage is a list of labels such as 'line:9'"
        )
    return labels


_SHARED = (
    "bus_kind", "bus_shunt", "bus_fixed", "bus_v_set", "v_start", "load_bus", "load_power",
    "gen_bus", "gen_p", "branch_from", "branch_to", "branch_y", "branch_rating",
)  # fmt: skip
"""What an outage has in common with the network it is an outage of: what solving depends on."""
