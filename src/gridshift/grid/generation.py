"""Generators whose active power can be told row by row, and who shares a change of demand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gridshift.arrays import Real
from gridshift.grid.after_outage import static_supply
from gridshift.grid.network import LOAD_SHARES, Network

ShareBy = Literal["generation", "headroom", "given"]
"""How generators share the imbalance of a grid with a distributed slack: see `slack_shares`."""


@dataclass(frozen=True, kw_only=True)
class Generator:
    """Something whose active power can be told: not what stands at a slack bus."""

    bus: int
    power: complex
    """Nominal, p.u., positive when produced; the reactive part of a generator that holds a voltage
    is not its own to tell, and 0."""
    row: int | None
    """In the table of generators; None for what `Network.bus_fixed` sums up."""


def generators(network: Network) -> dict[str, Generator]:
    """What a study can let vary, by label: `gen:2`, and `static:7` for all other supply of bus 7.

    The two ends of a DC line can't be told apart from each other, so they aren't among them.
    """
    found = {
        label: Generator(bus=int(bus), power=complex(p), row=row)
        for row, (label, bus, p) in enumerate(
            zip(network.gen_labels, network.gen_bus, network.gen_p, strict=True)
        )
        if bus not in network.slack and label.startswith("gen:")
    }
    return found | {
        label: Generator(bus=bus, power=power, row=None)
        for label, (bus, power) in static_supply(network).items()
    }


def with_columns(network: Network, labels: Sequence[str]) -> Network:
    """The same grid with these generators as demands of the other sign, behind its loads.

    What is solved for nominal demand is the same; what is generated is still known as such
    (`bus_generation`). The engine needs nothing new.
    """
    if not labels:
        return network
    known = generators(network)
    columns = [known[label] for label in labels]
    gen_p, fixed = network.gen_p.copy(), network.bus_fixed.copy()
    for column in columns:
        if column.row is None:
            fixed[column.bus] -= column.power
        else:
            gen_p[column.row] = 0
    return replace(
        network,
        gen_p=gen_p,
        bus_fixed=fixed,
        load_labels=(*network.load_labels, *labels),
        load_bus=np.append(network.load_bus, [column.bus for column in columns]),
        load_power=np.append(network.load_power, [-column.power for column in columns]),
        **{name: np.append(getattr(network, name), np.zeros(len(columns))) for name in LOAD_SHARES},
        outage_of=None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Participants:
    """Generators that balance a grid, p.u."""

    labels: tuple[str, ...]
    power: Real
    """(n,) scheduled."""
    low: Real
    high: Real
    size: Real | None
    """(n,) weights; None: by headroom."""
    slack: float = 0.0
    """Weight of the slack."""

    def moved(self, change: Real) -> tuple[Real, Real]:
        """(R, n) by how much each goes up for (R,) more demand, and (R,) what is left to the slack.

        A generator that reaches its limit stays there; the others share the rest by their weights.
        """
        if self.size is not None and np.isinf([*self.low, *self.high]).all():
            total = self.size.sum() + self.slack
            return change[:, None] * (self.size / total), change * (self.slack / total)
        low, high = (
            np.append(self.low - self.power, -np.inf),
            np.append(self.high - self.power, np.inf),
        )
        room = np.where(change[:, None] > 0, high[:-1], -low[:-1])
        size = room if self.size is None else np.broadcast_to(self.size, room.shape)
        weights = np.column_stack([size, np.full(len(change), self.slack)])
        moved = np.zeros(weights.shape)
        for _ in range(len(self.labels) + 1):
            rest = change - moved.sum(1)
            free = np.where(rest[:, None] > 0, moved < high, moved > low) * weights
            total = free.sum(1)
            step = np.divide(rest, total, out=np.zeros_like(rest), where=total > 0)
            if not step.any():
                break
            moved = np.clip(moved + step[:, None] * free, low, high)
        return moved[:, :-1], change - moved[:, :-1].sum(1)
