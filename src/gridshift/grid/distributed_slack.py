"""Distributed slack: generators share what the schedule leaves open, row by row.

With the imbalance t of a row (losses and change of demand, p.u.) each generator that takes part
gives its schedule and its share of t. One that reaches an active limit stays there, and the others
share the rest; what nobody can give is left to the slack bus. One unknown more for each row, so t
is found by secant steps around the power flow: the slack bus gives what the equations leave, and
that must be its own schedule and share.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from gridshift.arguments import shown
from gridshift.arrays import Bool, Complex, Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.equations import branch_loading, branch_powers
from gridshift.grid.generation import Participants, with_columns
from gridshift.grid.network import Network
from gridshift.grid.prepared import prepare
from gridshift.grid.scenarios import LoadScenarios
from gridshift.grid.solution import BatchSolution, RowStatus
from gridshift.grid.voltage_dependence import drawn

ShareBy = Literal["generation", "headroom", "given"]

TIGHTER = 0.1
"""Tolerance of the power flow inside, as a multiple of the one asked for: the slack's power sums
up the mismatch of all buses."""
MOST_ROUNDS = 20
"""Power flows of a row; 3 or 4 are usual, more where generators reach limits."""
STEEPEST = 4.0
"""Slope of the slack's surplus by the imbalance, about -1, is taken from the last two rounds if it
is within this factor."""


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
    slack_power: Mapping[str, float]
    """Schedule of the generators at the slack bus, p.u."""

    @classmethod
    def of(cls, network: Network, by: ShareBy) -> "SlackShares":
        """The shares of this grid.

        Args:
            network: the grid, also for outages in which generators are lost.
            by: `generation`, by the scheduled power; `headroom`, by what active limits leave in
                the direction that is needed; `given`, as the source says.

        The schedule of the slack bus is what the source says for `given`, as in pandapower (an
        external grid has 0); otherwise what it gives in this grid at nominal demand.

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
        power = network.gen_p.copy()
        at_slack = network.gen_bus == network.slack[0]
        if by != "given":
            voltage = prepare(network).require_solved().voltage
            given = _given_at_slack(network, voltage[None], network.load_power.real[None])
            power[at_slack] = given / at_slack.sum()
        kinds = [label.partition(":")[0] for label in network.gen_labels]
        machine = np.isin(kinds, ("gen", "ext_grid"))
        if by == "given":
            size = _given_weights(network, machine)
        elif by == "generation":
            size = np.where(machine, np.maximum(power, 0), 0)
        else:
            size = machine.astype(float)
        if not size.any():
            raise GridshiftError(f"no generator of {network.name} {_LACKS[by]}")
        rows = np.flatnonzero(size)
        low, high = network.gen_p_min[rows], network.gen_p_max[rows]
        _check_limits(network, rows, needed=by == "headroom")
        return cls(
            labels=tuple(network.gen_labels[row] for row in rows), low=low, high=high,
            size=None if by == "headroom" else size[rows],
            slack_power={
                network.gen_labels[row]: float(power[row]) for row in np.flatnonzero(at_slack)
            },
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


def _given_at_slack(network: Network, voltage: Complex, load_p: Real) -> Real:
    """(R,) active power that the generators at the slack bus give, p.u.

    Sums run over columns in one order, so that a row doesn't depend on how many there are.
    """
    bus = int(network.slack[0])
    e, f = voltage.real, voltage.imag
    row = network.admittance[[bus]].tocoo()
    power = np.full(len(voltage), -network.bus_fixed[bus].real)
    for column, y in zip(row.coords[1], row.data, strict=True):
        power += e[:, bus] * (y.real * e[:, column] - y.imag * f[:, column])
        power += f[:, bus] * (y.real * f[:, column] + y.imag * e[:, column])
    rates = drawn(
        network, np.ones(network.num_loads, complex), network.v_start
    )  # set-points are in it
    for load in np.flatnonzero(network.load_bus == bus):
        power += load_p[:, load] * rates[load].real
    return power


class _Shared:
    """The shares in one topology: `SlackShares` without the generators that it lacks."""

    def __init__(self, network: Network, shares: SlackShares):
        row_of = {label: row for row, label in enumerate(network.gen_labels)}
        left = [k for k, label in enumerate(shares.labels) if label in row_of]
        if not left:
            told = f"none of the generators that share the imbalance of {network.name} is left"
            raise GridshiftError(told)
        at_slack = [shares.labels[k] in shares.slack_power for k in left]
        order = np.array(left)[np.argsort(at_slack, kind="stable")]
        self.num_moved = len(left) - sum(at_slack)
        labels = tuple(shares.labels[k] for k in order)
        self.rows = np.array([row_of[label] for label in labels], np.int64)
        schedule = network.gen_p.copy()
        self.slack_rows = np.flatnonzero(network.gen_bus == network.slack[0])
        for row in self.slack_rows:
            schedule[row] = shares.slack_power[network.gen_labels[row]]
        self.schedule, self.network = schedule, network
        power = schedule[self.rows]
        self.participants = Participants(
            labels=labels, power=power, low=np.minimum(shares.low[order], power),
            high=np.maximum(shares.high[order], power),
            size=None if shares.size is None else shares.size[order],
        )  # fmt: skip
        self.wide = _widened(network, labels[: self.num_moved])

    def demands(self, loads: LoadScenarios, moved: Real) -> LoadScenarios:
        """What the engine is given: generators that move are demands of the other sign."""
        moving = slice(self.num_moved)
        columns = -(self.participants.power[moving] + moved[:, moving])
        return LoadScenarios(
            load_p=np.concatenate([loads.load_p, columns], 1),
            load_q=np.concatenate([loads.load_q, np.zeros_like(columns)], 1),
        )

    def slack_target(self, moved: Real, rest: Real) -> Real:
        """(R,) schedule and share of the slack bus."""
        power = rest + self.schedule[self.slack_rows].sum()
        for column in range(self.num_moved, moved.shape[1]):
            power += moved[:, column]
        return power

    def generation(self, moved: Real, rest: Real) -> Real:
        """(R, G) active power of every generator; several at the slack bus share `rest`."""
        power = np.tile(self.schedule, (len(moved), 1))
        power[:, self.rows] += moved
        power[:, self.slack_rows] += (rest / len(self.slack_rows))[:, None]
        return power

    def first_imbalance(self, load_p: Real) -> Real:
        """(R,) as at nominal demand, with another demand."""
        intact = self.network.intact
        prepared, nominal = prepare(intact), intact.load_power.real
        given = 0.0
        if prepared.solved:
            given = _given_at_slack(intact, prepared.voltage[None], nominal[None])[0]
        return (given - self.schedule[self.slack_rows].sum() - nominal.sum()) + load_p.sum(1)


_WIDENED: "weakref.WeakKeyDictionary[Network, dict[tuple[str, ...], Network]]"
_WIDENED = weakref.WeakKeyDictionary()
"""Grids whose generators are columns of demand; what is prepared for them is kept with them."""


def _widened(network: Network, labels: tuple[str, ...]) -> Network:
    if not labels:  # the slack bus alone; a value must not refer to its key
        return network
    known = _WIDENED.setdefault(network, {})
    if labels not in known:
        intact = network.intact
        known[labels] = (
            with_columns(network, labels) if intact is network else
            replace(
                (wide := _widened(intact, labels)), branch_in_service=network.branch_in_service,
                outage_of=wide, outaged=network.outaged,
            )
        )  # fmt: skip
    return known[labels]


def solve_distributed(
    network: Network, loads: LoadScenarios, shares: SlackShares,
    solve_rows: Callable[[Network, LoadScenarios], BatchSolution], *,
    limit: float, powers: bool, loading: bool,
) -> BatchSolution:  # fmt: skip
    """Rows whose imbalance is shared.

    Args:
        network: a topology.
        loads: demands, R rows, checked.
        shares: who shares it.
        solve_rows: the power flow, with a tolerance of `TIGHTER` times `limit`.
        limit: largest mismatch, p.u., of the slack bus's share as well.
        powers: return branch powers.
        loading: return branch loading.
    """
    shared = _Shared(network, shares)
    imbalance = shared.first_imbalance(loads.load_p)
    known = np.full((2, loads.num_rows), np.nan)  # imbalance and surplus of the last round
    found, left = None, np.arange(loads.num_rows)
    for _ in range(MOST_ROUNDS):
        demand = loads.rows(left)
        moved, rest = shared.participants.moved(imbalance[left])
        solution = solve_rows(shared.wide, shared.demands(demand, moved))
        if found is None:
            found = replace(solution, network=network)
        else:
            _take(found, left, solution)
        given = _given_at_slack(network, solution.voltage, demand.load_p)
        surplus = given - shared.slack_target(moved, rest)
        found.mismatch[left] = np.fmax(found.mismatch[left], np.abs(surplus))
        on = solution.solved & (np.abs(surplus) > limit)
        left, surplus = left[on], surplus[on]
        if not len(left):
            break
        now = imbalance[left]
        with np.errstate(all="ignore"):
            slope = (surplus - known[1, left]) / (now - known[0, left])
        usual = (slope < -1 / STEEPEST) & (slope > -STEEPEST)
        known[:, left] = now, surplus
        imbalance[left] = now - surplus / np.where(usual, slope, -1.0)
    assert found is not None
    found.status[left] = RowStatus.NO_CONVERGENCE
    found.voltage[left] = np.nan
    if found.at_limit is not None:
        found.at_limit[left] = 0
    generation = shared.generation(*shared.participants.moved(imbalance))
    generation[~found.solved] = np.nan
    return replace(
        found, gen_p=generation,
        powers=branch_powers(network, found.voltage) if powers else None,
        loading=branch_loading(network, found.voltage) if loading else None,
    )  # fmt: skip


def _take(found: BatchSolution, rows: Int, solution: BatchSolution) -> None:
    """Put rows that were solved again into their places."""
    for name in ("voltage", "status", "mismatch"):
        getattr(found, name)[rows] = getattr(solution, name)
    found.iterations[rows] += solution.iterations
    if found.at_limit is not None and solution.at_limit is not None:
        found.at_limit[rows] = solution.at_limit
