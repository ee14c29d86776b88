"""What the scenarios of a study are drawn from, and drawing them: `draw(network, uncertainty, n)`.

Scenarios come from today's spread of loads (the default), from distributions of loads and
generators that a Gaussian copula correlates, or from a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from gridshift.arguments import whole_number
from gridshift.arrays import Int, Real
from gridshift.errors import ScenarioError
from gridshift.grid.generation import Participants, generators, with_columns
from gridshift.grid.network import Network
from gridshift.grid.scenarios import (
    LoadScenarios,
    Scenarios,
    named_rng,
    sample_loads,
    scenarios,
)
from gridshift.memory import require_memory
from gridshift.study.description import UncertaintyError, require_one_of
from gridshift.study.distributions import Fixed
from gridshift.study.generation import (
    Balance,
    Limit,
    SetPoint,
    participants,
    with_set_points,
)
from gridshift.study.groups import (
    Area,
    Correlation,
    Group,
    Places,
    areas_of,
    members,
    mixing,
    powers_of,
)
from gridshift.study.sampling import Sampling, unit_points
from gridshift.study.scenario_table import ScenarioTable, read_scenario_table
from gridshift.study.spread import SpreadOfLoads


@dataclass(frozen=True, kw_only=True)
class Uncertainty:
    """What a study's scenarios are drawn from."""

    loads: SpreadOfLoads | tuple[Group, ...] | None = None
    """Of groups with the same element the last one counts; loads in none keep their nominal power.
    None: a `SpreadOfLoads`, or the table."""
    generation: tuple[Group, ...] = ()
    areas: Mapping[str, Area] = field(default_factory=dict)
    """None: those of the grid."""
    correlation: tuple[Correlation, ...] = ()
    """Each of other elements."""
    sampling: Sampling = "random"
    set_points: tuple[SetPoint, ...] = ()
    balance: Balance | None = None
    """None: the slack takes every difference."""
    limits: tuple[Limit, ...] = ()
    """Of the generators that balance."""
    table: ScenarioTable | None = None

    @property
    def spread_of_loads(self) -> SpreadOfLoads | None:
        """Today's spread, where loads have neither distributions nor a table."""
        if self.loads is None:
            return None if self.table is not None else SpreadOfLoads()
        return self.loads if isinstance(self.loads, SpreadOfLoads) else None

    def __post_init__(self) -> None:
        require_one_of(self.sampling, Sampling, "sampling", "sampling")
        drawn = bool(self.generation) or isinstance(self.loads, tuple)
        if self.table is not None and (drawn or self.loads is not None):
            told = "scenarios come from it; leave out what loads or generation are drawn from"
            raise UncertaintyError(("table",), told)
        if not drawn and self.sampling != "random":
            told = f"{self.sampling} needs distributions; give loads or generation one"
            raise UncertaintyError(("sampling",), told)
        if not drawn and self.correlation:
            told = "it needs distributions; give loads or generation one"
            raise UncertaintyError(("correlation",), told)
        if self.limits and self.balance is None:
            told = "limits are for generators that balance; say which in generation.balance"
            raise UncertaintyError(("generation", "limit"), told)


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Scenarios, and the grid that their columns belong to."""

    network: Network
    """With the set-points of the study, and its varying and balancing generators as further demands
    of the other sign; the grid itself where there is nothing of the kind."""
    loads: LoadScenarios | Scenarios
    generators: tuple[str, ...] = ()
    """Labels of the generators among the demands: the last ones."""
    to_slack: Real | None = None
    """(R,) change of power, p.u., that balancing left to the slack (losses come on top); None where
    nothing was asked to balance."""
    table_rows: Int | None = None
    """(R,) rows of the table, from 0."""

    @property
    def num_rows(self) -> int:
        """R, the number of scenarios."""
        return self.loads.num_rows

    def require_exact(self, method: str) -> None:
        """Pass if a method that predicts from loads may be used.

        Raises:
            ScenarioError: generation varies.
        """
        if self.generators:
            raise ScenarioError(
                f"generation varies ({self.generators[0]} and {len(self.generators) - 1} more) and "
                f"'{method}' predicts from loads alone; solve exactly, by method 'newton'"
            )


def draw(
    network: Network, uncertainty: Uncertainty, num_rows: int | None = None, *, seed: int = 0,
    part: int = 0,
) -> Drawn:  # fmt: skip
    """Scenarios of a grid, the same for the same name of the grid, description, number and seed.

    Args:
        num_rows: scenarios; of a table fewer than it has are taken at random, None takes all.
        part: number of the piece, for scenarios that are drawn piece by piece; not of a table.

    Raises:
        UncertaintyError: what doesn't fit this grid: elements it doesn't have, generators that
            can't do what is asked of them; it tells the key.
        ScenarioError, MemoryNeededError: as in `sample_loads`.

    Warns:
        GridshiftWarning: Sobol points whose number is no power of two.
    """
    if num_rows is not None:
        num_rows = whole_number(num_rows, "the number of scenarios", ScenarioError)
    network = with_set_points(network, uncertainty.set_points)
    if uncertainty.table is not None:
        return _given(network, uncertainty, num_rows, seed)
    if num_rows is None:
        told = "say how many; only a table has a number of its own"
        raise UncertaintyError(("scenarios",), told)
    spread = uncertainty.spread_of_loads
    if spread is not None and not uncertainty.generation and uncertainty.balance is None:
        rng = named_rng(network.name, "scenarios", draw=part, seed=seed)
        loads = scenarios(network, rng, num_rows, spread=spread.spread, regime=spread.regime)
        return Drawn(network=network, loads=loads)
    return _sampled(network, uncertainty, num_rows, seed, part)


def _given(network: Network, uncertainty: Uncertainty, num_rows: int | None, seed: int) -> Drawn:
    """Scenarios of a table."""
    assert uncertainty.table is not None
    known = [*generators(network)]
    try:
        given = read_scenario_table(uncertainty.table, network, known)
    except UncertaintyError as error:
        raise error.within("table") from None
    rows = given.rows(num_rows, named_rng(network.name, "table rows", seed=seed))
    columns = _Columns.of(
        network, uncertainty, [name for name in known if name in given.labels], len(rows)
    )
    grid, num_loads = columns.grid, network.num_loads
    for column, label in enumerate(grid.load_labels[: columns.count]):
        given.fill(
            columns.p[:, column], columns.q[:, column], label, rows,
            nominal=complex(grid.load_power[column]), sign=1 if column < num_loads else -1,
        )  # fmt: skip
    return columns.balanced(rows)


def _sampled(
    network: Network, uncertainty: Uncertainty, num_rows: int, seed: int, part: int
) -> Drawn:
    """Scenarios of distributions, of the generators' alone or of loads as well."""
    known = generators(network)
    bus_of = dict(zip(network.load_labels, network.load_bus.tolist(), strict=True))
    bus_of |= {label: found.bus for label, found in known.items()}
    places = Places(bus_of=bus_of, areas=areas_of(network, uncertainty.areas))
    of = members(uncertainty.generation, [*known], places, key=("generation", "varying"))
    columns = _Columns.of(network, uncertainty, [name for name in known if name in of], num_rows)
    if isinstance(uncertainty.loads, tuple):
        of |= members(uncertainty.loads, network.load_labels, places, key=("loads", "group"))
    spread = uncertainty.spread_of_loads
    if spread is not None:
        rng = named_rng(network.name, "scenarios", draw=part, seed=seed)
        loads = sample_loads(network, rng, num_rows, spread=spread.spread, regime=spread.regime)
        columns.p[:, : network.num_loads] = loads.load_p
        columns.q[:, : network.num_loads] = loads.load_q
    rng = named_rng(network.name, "uncertainty", draw=part, seed=seed)
    _draw_groups(columns, of, uncertainty, places, rng)
    return columns.balanced()


def _draw_groups(
    columns: "_Columns", of: Mapping[str, Group], uncertainty: Uncertainty, places: Places,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Fill the columns of the elements that are in a group."""
    grid = columns.grid
    labels = [label for label in grid.load_labels[: columns.count] if label in of]
    varying = [label for label in labels if not isinstance(of[label].distribution, Fixed)]
    more = [label for label in varying if of[label].reactive == "independent"]
    known = {*grid.load_labels[: columns.num_loads]}
    num_loads = sum(label in known for label in varying)
    mixed = mixing(uncertainty.correlation, varying, num_loads, places)
    num_rows, num_mixed = len(columns.p), mixed.num_columns
    _require_room(grid, num_rows, 2 * num_mixed + 3 * len(varying) + 2 * len(more))
    u = unit_points(num_rows, num_mixed + len(more), sampling=uncertainty.sampling, rng=rng)
    u_p = dict(zip(varying, mixed.mixed(u[:, :num_mixed]).T, strict=True))
    u_q = dict(zip(more, u[:, num_mixed:].T, strict=True))
    column_of = {label: column for column, label in enumerate(grid.load_labels)}
    for group in {id(group): group for group in of.values()}.values():
        mine = [label for label in labels if of[label] is group]
        at = np.array([column_of[label] for label in mine])
        columns.p[:, at], columns.q[:, at] = powers_of(
            group,
            grid.load_power[at],
            signs=np.where(at < columns.num_loads, 1, -1),
            base_mva=grid.base_mva,
            u=_stacked(mine, u_p, num_rows),
            u_reactive=_stacked(mine, u_q, num_rows),
        )
        if not np.isfinite(columns.p[:, at] + columns.q[:, at]).all():
            told = f"{group.distribution} of {mine[0]} gives factors that are no finite numbers"
            raise UncertaintyError((), told)


def _stacked(labels: Sequence[str], u: Mapping[str, Real], num_rows: int) -> Real:
    """(R, n) numbers of these elements; what is fixed needs none."""
    return np.stack([u.get(label, np.zeros(num_rows)) for label in labels], axis=1)


def _require_room(network: Network, num_rows: int, num_columns: int) -> None:
    needed = 8 * num_rows * num_columns
    require_memory(needed, f"{num_rows:,} scenarios of {network.name}", count=num_rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Columns:
    """Powers to fill in, nominal to begin with, and the generators that then balance them."""

    grid: Network
    num_loads: int
    count: int
    """Columns to fill in: loads and varying generators. What is behind them balances."""
    p: Real
    """(R, columns) p.u., of generators negative."""
    q: Real
    balancing: Participants | None
    moved: tuple[str, ...]
    """Generators among the grid's demands: those that vary, then those that balance."""

    @classmethod
    def of(
        cls, network: Network, uncertainty: Uncertainty, varying: Sequence[str], num_rows: int
    ) -> "_Columns":
        """The columns of a grid in which these generators vary."""
        balancing = None
        if uncertainty.balance is not None:
            balancing = participants(
                network, uncertainty.balance, uncertainty.limits, varying=varying
            )
        moved = (*varying, *(() if balancing is None else balancing.labels))
        grid, count = with_columns(network, moved), network.num_loads + len(varying)
        _require_room(grid, num_rows, 3 * len(grid.load_labels))
        shape = (num_rows, len(grid.load_labels))
        p, q = np.empty(shape), np.empty(shape)
        p[:], q[:] = grid.load_power.real, grid.load_power.imag
        return cls(
            grid=grid, num_loads=network.num_loads, count=count, p=p, q=q, balancing=balancing,
            moved=moved,
        )  # fmt: skip

    def balanced(self, table_rows: Int | None = None) -> Drawn:
        """The scenarios, with what balances them."""
        p, q, left = self.p, self.q, None
        if self.balancing is not None:
            change = p[:, : self.count].sum(1) - self.grid.load_power.real[: self.count].sum()
            steps, left = self.balancing.moved(change)
            p[:, self.count :] -= steps
        return Drawn(
            network=self.grid,
            loads=LoadScenarios(load_p=p, load_q=q),
            generators=self.moved,
            to_slack=left,
            table_rows=table_rows,
        )
