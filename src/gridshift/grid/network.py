"""`Network`: a grid as frozen per-unit arrays; an outage makes a new one with the same layout."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy.sparse as sp

from gridshift.arguments import outage_labels
from gridshift.arrays import Bool, Complex, Int, Real, make_read_only
from gridshift.errors import OutageError
from gridshift.grid.pi_model import bus_admittance

if TYPE_CHECKING:
    from gridshift.grid.controls import Control


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
    bus_consumed: Real = field(default_factory=lambda: np.zeros(()))
    """(B,) active power that elements summed in `bus_fixed` draw (motors, wards, charging storage),
    where others at the bus may give as much; not used by the power flow. 0 if not given."""
    bus_v_set: Real
    """(B,) magnitude set-point at PV and slack buses, NaN at PQ buses."""
    v_start: Complex
    """(B,) the source's own starting point, set-points already in it."""

    load_labels: tuple[str, ...]
    load_bus: Int
    load_power: Complex
    """(L,) nominal demand at 1 p.u., positive when consumed."""
    load_current: Complex = field(default_factory=lambda: np.zeros((), complex))
    """(L,) share of constant current in P and (imaginary) in Q, see `voltage_dependence`."""
    load_impedance: Complex = field(default_factory=lambda: np.zeros((), complex))

    gen_labels: tuple[str, ...]
    gen_bus: Int
    """(G,) always a PV or slack bus; other generation is in `bus_fixed`."""
    gen_p: Real
    """(G,) scheduled active power, positive when produced; the slack's share is not used."""
    gen_q_min: Real = field(default_factory=lambda: np.full((), -np.inf))
    """(G,) least reactive power, positive when produced; -inf where there is no limit."""
    gen_q_max: Real = field(default_factory=lambda: np.full((), np.inf))
    """(G,) most reactive power. Limits count only where a solution is asked to keep them."""
    gen_p_min: Real = field(default_factory=lambda: np.full((), -np.inf))
    """(G,) least active power, positive when produced; -inf where there is no limit."""
    gen_p_max: Real = field(default_factory=lambda: np.full((), np.inf))
    gen_weight: Real = field(default_factory=lambda: np.zeros(()))
    """(G,) share of each generator in a distributed slack, as the source gives it; not normalised.
    It and active limits count only where a solution is asked for a distributed slack."""

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
    branch_emergency: Real = field(default_factory=lambda: np.full((), np.inf))
    """(E,) emergency rating (MATPOWER's RATE_C) by the rating, at least 1; inf: none."""

    controls: "tuple[Control, ...]" = ()
    """Tap changers, shunts and phase shifters that hold a voltage or a flow, where a solution is
    asked to move them."""

    names: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What the source calls its elements, by label; those without a name of their own are not
    there. Names and positions are for people: not part of the digest, not used by any number."""
    areas: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The source's area of each bus that has one (pandapower's zone, MATPOWER's BUS_AREA), by
    label; like names, not part of the digest."""
    bus_xy: Real = field(default_factory=lambda: np.full((), np.nan), repr=False)
    """(B, 2) where buses are drawn, to the east and to the north; NaN where the source says
    nothing."""

    outage_of: "Network | None" = field(default=None, repr=False)
    """The network that this one is an outage of; None for the one that was read."""
    outaged: tuple[str, ...] = ()
    """Elements taken out by `without`, sorted."""
    apart: tuple[int, ...] = ()
    """Buses that `supplied.standing_apart` has taken out of the equations, ascending."""

    def __post_init__(self) -> None:
        gens, branches = (len(self.gen_bus),), (self.num_branches,)
        shapes = {"bus_consumed": (self.num_buses,), "bus_xy": (self.num_buses, 2)}
        shapes |= {"branch_emergency": branches} | dict.fromkeys(LOAD_SHARES, (self.num_loads,))
        shapes |= dict.fromkeys(GENERATOR_LIMITS, gens)
        for name, shape in shapes.items():
            if not getattr(self, name).ndim:  # one number for all, as the defaults are
                object.__setattr__(self, name, np.full(shape, getattr(self, name)))
        make_read_only(self)

    @property
    def num_buses(self) -> int:
        """B, those without supply included."""
        return len(self.bus_kind)

    @property
    def num_loads(self) -> int:
        """L, the number of demands of a scenario."""
        return len(self.load_bus)

    @property
    def num_branches(self) -> int:
        """E, those out of service included."""
        return len(self.branch_from)

    @cached_property
    def intact(self) -> "Network":
        """The network as read, whose sparsity pattern serves every outage.

        An outage of it in which numbers were replaced as well stands for itself.
        """
        read = self.outage_of
        if read is None or any(getattr(self, n) is not getattr(read, n) for n in _SHARED):
            return self
        return read

    @cached_property
    def removed_branches(self) -> tuple[int, ...]:
        """Branches that this network lacks and the network as read has, ascending."""
        gone = self.intact.branch_in_service & ~self.branch_in_service
        return tuple(np.flatnonzero(gone).tolist())

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
    def controlled(self) -> Int:
        """Slack and PV buses, whose voltage magnitude is set, ascending."""
        return np.flatnonzero(self.bus_kind != BusKind.PQ)

    @cached_property
    def non_slack(self) -> Int:
        """PV and PQ buses, whose voltage angle is solved for, ascending."""
        return np.flatnonzero(self.bus_kind != BusKind.SLACK)

    @cached_property
    def scheduled_gen(self) -> Int:
        """Generators whose active power is an input: those that are not at a slack bus."""
        return np.flatnonzero(~np.isin(self.gen_bus, self.slack))

    @cached_property
    def elements(self) -> dict[str, tuple[int, ...]]:
        """Branches of each switchable element, in the source's order."""
        rows: dict[str, list[int]] = {}
        for branch, label in enumerate(self.branch_labels):
            if label:
                rows.setdefault(label, []).append(branch)
        return {label: tuple(branches) for label, branches in rows.items()}

    @cached_property
    def bus_rows(self) -> dict[str, int]:
        """Row of each bus by its label."""
        return {label: row for row, label in enumerate(self.bus_labels)}

    @cached_property
    def admittance(self) -> sp.csr_array:
        """(B, B) bus admittance matrix. The pattern covers all branches, in service or not."""
        y = np.where(self.branch_in_service[:, None], self.branch_y, 0)
        return bus_admittance(self.branch_from, self.branch_to, y, self.bus_shunt)

    @cached_property
    def scheduled(self) -> Complex:
        """(B,) power injected by everything but the loads; slack active power is not meaningful."""
        power = self.bus_fixed.copy()
        np.add.at(power, self.gen_bus, self.gen_p)
        return power

    @cached_property
    def bus_demand(self) -> Real:
        """(B,) nominal active power drawn, p.u.: by loads, by generators with a negative schedule,
        by what `bus_fixed` sums up, and by conductances to ground at 1 p.u."""
        fixed = np.maximum(self.bus_consumed, -self.bus_fixed.real)
        return fixed + np.maximum(0, self.bus_shunt.real) + self._drawn(+1)

    @cached_property
    def bus_generation(self) -> Real:
        """(B,) nominal active power given, p.u.; what is drawn at the same bus doesn't cancel it.

        The slack's share is not in it.
        """
        fixed = self.bus_fixed.real + np.maximum(self.bus_consumed, -self.bus_fixed.real)
        fixed[fixed < 1e-12 * (1 + self.bus_consumed)] = 0  # what rounding leaves
        return fixed + np.maximum(0, -self.bus_shunt.real) + self._drawn(-1)

    def _drawn(self, sign: int) -> Real:
        """(B,) what loads and generators with power of this sign draw, or give for -1."""
        found = np.zeros(self.num_buses)
        np.add.at(found, self.load_bus, np.maximum(0, sign * self.load_power.real))
        scheduled = np.where(self.bus_kind[self.gen_bus] == BusKind.SLACK, 0, self.gen_p)
        np.add.at(found, self.gen_bus, np.maximum(0, -sign * scheduled))
        return found

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
        on.setflags(write=False)
        out = tuple(sorted({*self.outaged, *outage}))
        return self.but(branch_in_service=on, outage_of=self.intact, outaged=out)

    def but(self, **changes: object) -> "Network":
        """As `dataclasses.replace`, and faster: nothing is checked."""
        left = object.__new__(Network)
        vars(left).update({name: getattr(self, name) for name in _FIELDS} | changes)
        return left

    def cut_off_buses(self) -> Int:
        """Buses without a path to a slack bus, ascending; those that stand apart don't count."""
        from gridshift.grid.kernels.graph import unreachable  # numba, which reading doesn't need

        on = self.branch_in_service.copy()  # a kernel is compiled for arrays that can be written
        found = unreachable(self.branch_from, self.branch_to, on, self.bus_kind == BusKind.SLACK)
        return np.setdiff1d(found, self.apart) if self.apart else found

    @cached_property
    def tolerance_base(self) -> float:
        """Power, p.u., that tolerances are multiples of; the same in MVA on whatever base.

        The nominal apparent power of all loads, generators and fixed injections together, rounded
        up to a power of ten MVA, and at most 100 MVA: there a tolerance of 1e-8 is 1 W.
        """
        power = np.abs(self.load_power).sum() + np.abs(self.bus_fixed).sum()
        mva = float(power + np.abs(self.gen_p).sum()) * self.base_mva
        size = 10.0 ** np.ceil(np.log10(mva)) if np.isfinite(mva) and mva > 0 else 1.0
        return float(np.clip(size, 1e-9, 100.0) / self.base_mva)

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of every number that decides results; equal for equal grids.

        What decides them only on request is in `limits_digest` and `slack_digest`.
        """
        state = hashlib.sha256()
        for f in fields(self):
            value = getattr(self, f.name)
            # Where a later field says nothing, the digest is that of a grid without it.
            silent = (f.name in ("bus_consumed", *LOAD_SHARES) and not value.any()) or (
                f.name == "branch_emergency" and np.isinf(value).all()
            )
            known = f.name not in ("bus_xy", *GENERATOR_LIMITS) and not silent
            if isinstance(value, np.ndarray) and known:
                state.update(f.name.encode())
                state.update(np.ascontiguousarray(value).tobytes())
        labels = self.bus_labels, self.load_labels, self.gen_labels, self.branch_labels
        state.update(repr((self.base_mva, *labels, self.rating_kind)).encode())
        return state.hexdigest()

    @property
    def limits_digest(self) -> str:
        """Hexadecimal digest of the reactive limits of generators."""
        return self._digest_of("gen_q_min", "gen_q_max")

    @property
    def slack_digest(self) -> str:
        """Hexadecimal digest of what a distributed slack goes by: active limits and shares."""
        return self._digest_of("gen_p_min", "gen_p_max", "gen_weight")

    def _digest_of(self, *names: str) -> str:
        return hashlib.sha256(b"".join(getattr(self, one).tobytes() for one in names)).hexdigest()


GENERATOR_LIMITS = ("gen_q_min", "gen_q_max", "gen_p_min", "gen_p_max", "gen_weight")
"""Fields of each generator that count only on request: limits, and shares in the slack."""
LOAD_SHARES = ("load_current", "load_impedance")
_SHARED = (
    "bus_kind", "bus_shunt", "bus_fixed", "bus_v_set", "v_start", "load_bus", "load_power",
    "gen_bus", "gen_p", "branch_from", "branch_to", "branch_y", "branch_rating", *GENERATOR_LIMITS,
    *LOAD_SHARES,
)  # fmt: skip
"""What an outage has in common with the network it is an outage of: what solving depends on."""
_FIELDS = tuple(one.name for one in fields(Network))
