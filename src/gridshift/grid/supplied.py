"""What an outage leaves connected to a slack bus, as a grid of its own."""

from dataclasses import dataclass, replace

import numpy as np

from gridshift.arrays import Int, Real
from gridshift.grid.controls import of_part
from gridshift.grid.network import GENERATOR_LIMITS, LOAD_SHARES, Network


@dataclass(frozen=True, kw_only=True, eq=False)
class SuppliedPart:
    """The supplied buses of a grid with all that hangs on them, B buses of the grid's and so on."""

    whole: Network
    network: Network
    """The part; labels and limits are those of the whole."""
    buses: Int
    """Rows of its buses in the whole, as `loads` and `branches` are of those."""
    loads: Int
    branches: Int

    def bus_values(self, values: Real) -> Real:
        """(B,) values of the part's buses in the whole's order, NaN where there is no supply."""
        return _spread(values, self.buses, self.whole.num_buses)

    def branch_values(self, values: Real) -> Real:
        """(E,) values of the part's branches in the whole's order, NaN elsewhere."""
        return _spread(values, self.branches, self.whole.num_branches)


def _spread(values: Real, rows: Int, size: int) -> Real:
    found = np.full(size, np.nan)
    found[rows] = values
    return found


def standing_apart(network: Network) -> Network:
    """The grid of which buses without supply stand apart: nothing leads to them, they draw nothing
    and keep their voltages. The rest is solved as any outage of the grid as read, and much faster
    than a part of its own; plain rows only, see `stream_rows`."""
    buses = network.cut_off_buses()
    ends = np.isin(network.branch_from, buses) | np.isin(network.branch_to, buses)
    left = network.but(branch_in_service=network.branch_in_service & ~ends)
    return without_limits_at(left, (*buses.tolist(),))


def without_limits_at(network: Network, apart: tuple[int, ...]) -> Network:
    """The network of which these buses stand apart, and so have no voltage limits."""
    if not apart:
        return network
    limits = {name: getattr(network, name).copy() for name in ("bus_v_min", "bus_v_max")}
    for values in limits.values():
        values[[*apart]] = np.nan
    return network.but(apart=apart, **limits)


def supplied_part(network: Network, *, lost_loads: Int | None = None) -> SuppliedPart:
    """The part of the grid that has a path to a slack bus: the grid that a solver goes on with."""
    dead = np.union1d(network.cut_off_buses(), np.array(network.apart, np.int64))
    buses = np.setdiff1d(np.arange(network.num_buses), dead)
    number = np.full(network.num_buses, -1)
    number[buses] = np.arange(len(buses))
    supplied = number[network.load_bus] >= 0
    supplied[[] if lost_loads is None else lost_loads] = False
    loads = np.flatnonzero(supplied)
    gens = np.flatnonzero(number[network.gen_bus] >= 0)
    ends = number[network.branch_from], number[network.branch_to]
    branches = np.flatnonzero((ends[0] >= 0) & (ends[1] >= 0))
    branch_number = np.full(network.num_branches, -1)
    branch_number[branches] = np.arange(len(branches))
    by_bus = (
        "bus_kind", "bus_kv", "bus_v_min", "bus_v_max", "bus_shunt", "bus_fixed", "bus_consumed",
        "bus_v_set", "v_start",
    )  # fmt: skip
    by_branch = (
        "branch_y", "branch_in_service", "branch_rating", "branch_rated", "branch_emergency",
    )  # fmt: skip
    part = replace(
        network,
        **{name: getattr(network, name)[buses] for name in by_bus},
        **{name: getattr(network, name)[branches] for name in by_branch},
        **{name: getattr(network, name)[gens] for name in GENERATOR_LIMITS},
        **{name: getattr(network, name)[loads] for name in LOAD_SHARES},
        bus_labels=tuple(network.bus_labels[b] for b in buses),
        load_labels=tuple(network.load_labels[row] for row in loads),
        load_bus=number[network.load_bus[loads]],
        load_power=network.load_power[loads],
        gen_labels=tuple(network.gen_labels[row] for row in gens),
        gen_bus=number[network.gen_bus[gens]],
        gen_p=network.gen_p[gens],
        branch_labels=tuple(network.branch_labels[b] for b in branches),
        branch_from=ends[0][branches],
        branch_to=ends[1][branches],
        controls=of_part(network, number, branch_number),
        outage_of=None,
        apart=(),
    )
    return SuppliedPart(whole=network, network=part, buses=buses, loads=loads, branches=branches)
