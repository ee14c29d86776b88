"""Who shares the imbalance of a grid with a distributed slack, and by what rule.

With the imbalance t of a row (what demand and losses take beyond the schedule, p.u.) each generator
that takes part gives its schedule and its share of t. One that reaches an active limit stays there,
and the others share the rest; what nobody can give is left to the slack bus.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, get_args

import numpy as np

from gridshift.arguments import shown
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.generation import ShareBy
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare
from gridshift.grid.voltage_dependence import drawn


@dataclass(frozen=True, kw_only=True, eq=False)
class SlackShares:
    """Who shares the imbalance of a grid and its outages, and how; get it with `of`."""

    labels: tuple[str, ...]
    """Generators that take part."""
    low: Real
    """(n,) active limits, p.u.; infinite where there is none."""
    high: Real
    size: Real | None
    """(n,) participation factors, not normalised; None: by headroom."""
    schedule: Mapping[str, float]
    """Of the generators that take part and of those at the slack bus, p.u.; it counts after any
    outage, whatever the network says that the outage has left."""
    losses: float
    """What all that is given exceeds all loads by at nominal demand, p.u.; where rows start."""

    @classmethod
    def of(cls, network: Network, by: ShareBy) -> "SlackShares":
        """The shares of this grid.

        Args:
            network: the grid, also for outages in which generators are lost.
            by: `generation`, by the scheduled power; `headroom`, by what active limits leave in
                the direction that is needed; `given`, as the source says.

        The schedule of the slack bus is what the source says for `given`, as in pandapower (an
        external grid has 0); otherwise what it gives in this grid at nominal demand. Generators
        whose power is drawn scenario by scenario (columns of demand) take no part.

        Raises:
            GridshiftError: no such rule, not one slack bus, or no factors by this rule.
            NotConvergedError: nominal demand has no solution, which a schedule follows from.
        """
        if by not in get_args(ShareBy):
            told = f"no distributed slack by {shown(by)}; choose {', '.join(get_args(ShareBy))}"
            raise GridshiftError(told)
        if len(network.slack) != 1:
            told = f"a distributed slack needs one slack bus; {network.name} has "
            raise GridshiftError(told + f"{len(network.slack)}")
        prepared, power = prepare(network), network.gen_p.copy()
        if by != "given":
            prepared.require_solved()
        at_slack = network.gen_bus == network.slack[0]
        given = power[at_slack].sum()
        if prepared.solved:
            given = given_at_slack(
                network, prepared.voltage[None], network.load_power.real[None]
            )[0]  # fmt: skip
        if by != "given":
            power[at_slack] = given / at_slack.sum()
        kinds = [label.partition(":")[0] for label in network.gen_labels]
        drawn = np.isin(network.gen_labels, network.load_labels)
        machine = np.isin(kinds, ("gen", "ext_grid")) & ~drawn
        if by == "given":
            size = np.where(drawn, 0, _given_weights(network, machine | drawn))
        elif by == "generation":
            size = np.where(machine, np.maximum(power, 0), 0)
        else:
            size = machine.astype(float)
        if not size.any():
            raise GridshiftError(f"no generator of {network.name} {_LACKS[by]}")
        rows = np.flatnonzero(size)
        _check_limits(network, rows, needed=by == "headroom")
        supplied = network.bus_fixed.real.sum() + network.gen_p[~at_slack].sum() + given
        return cls(
            labels=tuple(network.gen_labels[row] for row in rows),
            low=network.gen_p_min[rows], high=network.gen_p_max[rows],
            size=None if by == "headroom" else size[rows],
            schedule={
                network.gen_labels[row]: float(power[row])
                for row in np.flatnonzero(at_slack | (size > 0))
            },
            losses=float(supplied - network.load_power.real.sum()),
        )  # fmt: skip


_LACKS = {
    "given": "has a participation factor (slack_weight, APF); choose generation or headroom",
    "generation": "is scheduled to give power; choose headroom",
    "headroom": "can take part; leave the distributed slack out",
}


def _given_weights(network: Network, machine: Bool) -> Real:
    """(G,) participation factors of the source, if they can be followed."""
    weight = network.gen_weight
    wrong = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)) | ((weight != 0) & ~machine))
    if len(wrong):
        row = wrong[0]
        told = f"{network.gen_labels[row]} of {network.name} has the participation factor "
        told += f"{weight[row]:g}; it must be " + ("at least 0" if machine[row] else "0 there")
        raise GridshiftError(told)
    return weight


def _check_limits(network: Network, rows: Int, *, needed: bool) -> None:
    low, high = network.gen_p_min[rows], network.gen_p_max[rows]
    crossed, unknown = ~(low <= high), ~np.isfinite(high - low)
    if crossed.any():
        first = int(crossed.argmax())
        limits = " to ".join(f"{p[first] * network.base_mva:g}" for p in (low, high))
        raise GridshiftError(
            f"{network.gen_labels[rows[first]]} of {network.name} can give {limits} MW, which is "
            "no range; correct it, or leave the distributed slack out"
        )
    if needed and unknown.any():
        raise GridshiftError(
            f"{network.gen_labels[rows[int(unknown.argmax())]]} of {network.name} lacks an active "
            "limit (min_p_mw and max_p_mw, PMIN and PMAX), which headroom follows from; choose "
            "generation or given"
        )


def slack_entries(network: Network) -> tuple[Int, Complex]:
    """Columns and values of the slack bus's row of the admittance matrix, without those that are 0.

    Summed branch by branch: the matrix of a topology is made only where something else needs it.
    """
    bus = int(network.slack[0])
    on, y = network.branch_in_service, network.branch_y
    row = {bus: complex(network.bus_shunt[bus])}
    for here, there, own, other in (
        (network.branch_from, network.branch_to, 0, 1),
        (network.branch_to, network.branch_from, 3, 2),
    ):
        for branch in np.flatnonzero((here == bus) & on).tolist():
            row[bus] += complex(y[branch, own])
            at = int(there[branch])
            row[at] = row.get(at, 0) + complex(y[branch, other])
    return np.array([*row], np.int64), np.array([*row.values()], complex)


def given_at_slack(network: Network, voltage: Complex, load_p: Real) -> Real:
    """(R,) active power that the generators at the slack bus give, p.u.

    Sums run over columns in one order, so that a row doesn't depend on how many there are.
    """
    bus = int(network.slack[0])
    e, f = voltage.real, voltage.imag
    power = np.full(len(voltage), -network.bus_fixed[bus].real)
    for column, y in zip(*slack_entries(network), strict=True):
        power += e[:, bus] * (y.real * e[:, column] - y.imag * f[:, column])
        power += f[:, bus] * (y.real * f[:, column] + y.imag * e[:, column])
    # what loads draw there depends on the set-point alone
    rates = drawn(network, np.ones(network.num_loads, complex), network.v_start)
    for load in np.flatnonzero(network.load_bus == bus):
        power += load_p[:, load] * rates[load].real
    return power


class _Way(NamedTuple):
    """How n generators share an imbalance of one sign: each gives min(weight * f, room)."""

    weight: Real
    room: Real
    """(n,) p.u., infinite without a limit."""
    lines: Real
    """(J, 2) whose largest is f, see `common_factor`."""


def common_factor(weight: Real, room: Real) -> Real:
    """(J, 2) lines, value at 0 and slope, whose largest is f, where the sum of min(weight f, room)
    is a given amount.

    As the amount grows generators reach their room one after the other, and f grows faster.
    """
    takes = (weight > 0) & (room > 0)
    weight, room = weight[takes], room[takes]
    reach = room / weight
    order = np.argsort(reach, kind="stable")
    left = np.cumsum(weight[order][::-1])[::-1]
    lines, at, amount = [], 0.0, 0.0
    for end, total in zip(reach[order].tolist(), left.tolist(), strict=True):
        if end > at:
            lines.append((at - amount / total, 1 / total))
            at, amount = end, amount + (end - at) * total
    return np.array(lines).reshape(-1, 2)


class SharedSchedule:
    """What generators of a grid are to give: `SlackShares` without those that it lacks."""

    def __init__(self, network: Network, shares: SlackShares):
        row_of = {label: row for row, label in enumerate(network.gen_labels)}
        slack = network.slack[0]
        left = [k for k, label in enumerate(shares.labels) if label in row_of]
        at_slack = [network.gen_bus[row_of[shares.labels[k]]] == slack for k in left]
        order = np.array(left, np.int64)[np.argsort(at_slack, kind="stable")]
        self.num_moved = len(left) - sum(at_slack)
        """Generators that take part and don't stand at the slack bus: the first ones."""
        self.labels = tuple(shares.labels[k] for k in order)
        self.rows = np.array([row_of[label] for label in self.labels], np.int64)
        self.buses = network.gen_bus[self.rows]
        self.slack_rows = np.flatnonzero(network.gen_bus == slack)
        self.power = np.array(
            [shares.schedule.get(label, p) for label, p
             in zip(network.gen_labels, network.gen_p, strict=True)], float
        )  # fmt: skip
        """(G,) schedule."""
        power = self.power[self.rows]
        up = np.maximum(shares.high[order], power) - power
        down = power - np.minimum(shares.low[order], power)
        size = None if shares.size is None else shares.size[order]
        self.ways = tuple(
            _Way(weight := room if size is None else size, room, common_factor(weight, room))
            for room in (up, down)
        )
        """How the generators that take part go up, and how they go down."""
        scheduled = network.bus_fixed.real.sum() + self.power.sum()
        self._beyond = shares.losses - float(scheduled)

    def first_imbalance(self, load_p: Real) -> Real:
        """(R,) with the losses of nominal demand."""
        return self._beyond + load_p.sum(1)

    def moved(self, imbalance: Real) -> tuple[Real, Real]:
        """(R, n) by how much each goes up, and (R,) what is left to the slack bus."""
        moved = np.zeros((len(imbalance), len(self.labels)))
        for sign, (weight, room, lines) in zip((1, -1), self.ways, strict=True):
            amount = np.maximum(sign * imbalance, 0)
            factor = np.zeros(len(amount))
            for offset, slope in lines:
                np.maximum(factor, offset + slope * amount, out=factor)
            moved += sign * np.minimum(weight * factor[:, None], room)
        return moved, imbalance - moved.sum(1)

    def of_slack(self, moved: Real, rest: Real) -> Real:
        """(R,) what the slack bus is to give."""
        power = rest + self.power[self.slack_rows].sum()
        for column in range(self.num_moved, moved.shape[1]):
            power += moved[:, column]
        return power

    def generation(self, imbalance: Real) -> Real:
        """(R, G) active power of every generator; several at the slack bus share what is left."""
        moved, rest = self.moved(imbalance)
        power = np.tile(self.power, (len(moved), 1))
        power[:, self.rows] += moved
        power[:, self.slack_rows] += (rest / len(self.slack_rows))[:, None]
        return power


def scheduled_near(network: Network, shares: SlackShares) -> Network:
    """The grid with the schedule that nominal demand leads to, for one that lacks generators.

    What rows give doesn't depend on it, only where they start from: `SlackShares.schedule` counts.
    """
    known = SharedSchedule(network, shares)
    imbalance = known.first_imbalance(network.load_power.real[None])
    power = known.generation(imbalance)[0]
    return replace(network, gen_p=power, outage_of=None)
