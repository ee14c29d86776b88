"""Generation in a study: set-points, generators whose power varies, and who balances the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.generation import Participants, generators
from gridshift.grid.network import Network
from gridshift.study.description import Key, UncertaintyError, chosen, finite, require_one_of

By = Literal["given", "size", "headroom"]


@dataclass(frozen=True, kw_only=True)
class SetPoint:
    """What generators hold throughout a study."""

    elements: tuple[str, ...]
    """Labels or patterns."""
    vm_pu: float | None = None
    """Magnitude of the voltage at their buses, p.u."""
    p_mw: float | None = None
    """Scheduled active power of each, MW."""

    def __post_init__(self) -> None:
        if self.vm_pu is None and self.p_mw is None:
            raise UncertaintyError((), "a set-point gives vm_pu, p_mw or both")
        if self.p_mw is not None:
            finite(self.p_mw, "p_mw")
        if self.vm_pu is not None and not 0.5 <= finite(self.vm_pu, "vm_pu") <= 1.5:
            raise UncertaintyError(("vm_pu",), f"{self.vm_pu:g} must lie between 0.5 and 1.5 p.u.")


def with_set_points(network: Network, set_points: Sequence[SetPoint]) -> Network:
    """The grid with other set-points of its generators; the last one given counts.

    Raises:
        UncertaintyError: no such generator, a power for one at a slack bus, or different voltages
            for one bus.
    """
    if not set_points:
        return network
    row_of = {label: row for row, label in enumerate(network.gen_labels)}
    gen_p, v_set, v_start = network.gen_p.copy(), network.bus_v_set.copy(), network.v_start.copy()
    voltage: dict[int, tuple[float, str]] = {}
    for number, given in enumerate(set_points):
        key: Key = ("generation", "set_point", number)
        labels = chosen(given.elements, row_of, key=(*key, "elements"), what="generators")
        for label in labels:
            bus = int(network.gen_bus[row_of[label]])
            if given.p_mw is not None:
                if bus in network.slack:
                    told = f"{label} stands at a slack bus and takes what the grid leaves"
                    raise UncertaintyError((*key, "p_mw"), f"{told}; its power isn't given")
                gen_p[row_of[label]] = given.p_mw / network.base_mva
            if given.vm_pu is not None:
                other, of = voltage.setdefault(bus, (given.vm_pu, label))
                if other != given.vm_pu and of != label:
                    told = f"{label} and {of} hold {network.bus_labels[bus]}; give both one voltage"
                    raise UncertaintyError((*key, "vm_pu"), told)
                voltage[bus] = (given.vm_pu, label)
    for bus, (magnitude, _) in voltage.items():
        v_set[bus] = magnitude
        v_start[bus] *= magnitude / abs(v_start[bus])
    return replace(network, gen_p=gen_p, bus_v_set=v_set, v_start=v_start, outage_of=None)


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much generators may be moved to when they balance the system."""

    elements: tuple[str, ...]
    p_min_mw: float
    p_max_mw: float

    def __post_init__(self) -> None:
        if finite(self.p_max_mw, "p_max_mw") < finite(self.p_min_mw, "p_min_mw"):
            told = f"{self.p_max_mw:g} must not be less than p_min_mw, which is {self.p_min_mw:g}"
            raise UncertaintyError(("p_max_mw",), told)


@dataclass(frozen=True, kw_only=True)
class Balance:
    """Who makes up for the difference between drawn and nominal power; losses are the slack's."""

    by: By = "size"
    """`given` by `weights`; by `size`: the upper limit where there is one, else the scheduled
    power; by `headroom`: what the limits leave in the direction that is needed."""
    elements: tuple[str, ...] = ()
    """Generators that take part, if not `given`."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Of each generator, if `given`; one at a slack bus stands for what the slack takes."""

    def __post_init__(self) -> None:
        require_one_of(self.by, By, "by", "balance by")
        if self.by == "given":
            if not self.weights or self.elements:
                raise UncertaintyError(
                    ("weights",), "balance by 'given' needs weights, no elements"
                )
        elif self.weights or not self.elements:
            raise UncertaintyError(
                ("elements",), f"balance by '{self.by}' needs elements, no weights"
            )
        for label, weight in self.weights.items():
            if finite(weight, "weights") < 0:
                told = f"{label} has {weight:g}; a weight is at least 0"
                raise UncertaintyError(("weights",), told)
        if self.weights and not sum(self.weights.values()) > 0:
            raise UncertaintyError(("weights",), "all are 0; give at least one that is greater")


def participants(
    network: Network, balance: Balance, limits: Sequence[Limit], *, varying: Sequence[str] = ()
) -> Participants:
    """Who balances this grid.

    Args:
        limits: of the generators; those without are taken as far as needed.
        varying: generators whose power is drawn, so that they can't take part.

    Raises:
        UncertaintyError: no such generator; one that is drawn as well; a schedule outside the
            limits; no limits for a balance by headroom; no size.
    """
    known = generators(network)
    key: Key = ("generation", "balance", "weights" if balance.by == "given" else "elements")
    at_slack = {
        label for label, bus in zip(network.gen_labels, network.gen_bus, strict=True)
        if bus in network.slack
    }  # fmt: skip
    if balance.by == "given":
        labels = chosen([*balance.weights], [*known, *at_slack], key=key, what="generators")
        if patterns := [label for label in balance.weights if label not in labels]:
            raise UncertaintyError(key, f"{patterns[0]!r} must be one generator, no pattern")
    else:
        labels = chosen(balance.elements, known, key=key, what="generators that can be moved")
    slack = sum(float(balance.weights[label]) for label in labels if label in at_slack)
    labels = [label for label in labels if label in known]
    if both := [label for label in labels if label in varying]:
        raise UncertaintyError(key, f"{both[0]} both varies and balances; let it do one of them")
    low, high = _limits(network, limits, labels)
    power = np.array([known[label].power.real for label in labels])
    size = None
    if balance.by == "given":
        size = np.array([float(balance.weights[label]) for label in labels])
    elif balance.by == "size":
        size = np.where(np.isfinite(high), high, power)
        if (size <= 0).any():
            told = f"{labels[int(size.argmin())]} has no size; give it a limit, or weights to all"
            raise UncertaintyError(key, told)
    elif not np.isfinite(high - low).all():
        label = labels[int(np.isfinite(high - low).argmin())]
        raise UncertaintyError(key, f"{label} has no limits, which its headroom follows from")
    return Participants(
        labels=tuple(labels), power=power, low=low, high=high, size=size, slack=slack
    )


def _limits(network: Network, limits: Sequence[Limit], labels: Sequence[str]) -> tuple[Real, Real]:
    """(n,) least and most power of these generators, p.u.; infinite where there is no limit."""
    low, high = np.full(len(labels), -np.inf), np.full(len(labels), np.inf)
    known = generators(network)
    for number, limit in enumerate(limits):
        key: Key = ("generation", "limit", number)
        moved = chosen(limit.elements, known, key=(*key, "elements"), what="generators")
        moved = [label for label in moved if label in labels]
        if not moved:
            told = "none of them balances the system, which is what limits are for"
            raise UncertaintyError((*key, "elements"), told)
        for label in moved:
            mw = known[label].power.real * network.base_mva
            if not limit.p_min_mw <= mw <= limit.p_max_mw:
                told = f"{label} is scheduled to give {mw:g} MW, outside {limit.p_min_mw:g} to "
                raise UncertaintyError(key, told + f"{limit.p_max_mw:g} MW")
            at = labels.index(label)
            low[at], high[at] = (b / network.base_mva for b in (limit.p_min_mw, limit.p_max_mw))
    return low, high
