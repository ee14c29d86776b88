"""What all outages of a study share."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.arrays import Complex
from gridshift.grid.intact_rows import IntactRows
from gridshift.grid.network import Network
from gridshift.grid.scenarios import LoadScenarios, Scenarios, named_rng, sample_loads
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.statistics import Limits
from gridshift.grid.supplied import without_limits_at
from gridshift.study.row import OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.study.spread import SpreadOfLoads

if TYPE_CHECKING:
    from gridshift.adapt.base import Base
    from gridshift.adapt.methods import Method

BLOCK = 4096
"""Scenarios that are drawn, or predicted and counted, at a time."""
FIRST_BLOCK = 256
"""Scenarios before it is first asked whether they are enough."""
ALL = slice(None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """What all outages of a study share; read-only, so that workers can use it at once."""

    config: ScreenConfig
    network: Network
    """The intact grid."""
    voltage: Complex
    """(B,) its nominal solution."""
    loads: LoadScenarios | Scenarios
    """The scenarios, the same for every outage, so that outages differ by what they do alone."""
    spread: SpreadOfLoads | None
    """What they are drawn from; None where a study file tells something else."""
    intact_rows: IntactRows
    """Their solutions on the intact grid."""
    method: "Method | None" = None
    """None solves every scenario exactly."""
    surrogate: "Base | None" = None
    reference: OutageRow | None = None
    """The intact grid's row, that what an outage adds is told against."""
    counted: tuple[dict[str, Any], ...] | None = None
    """What was counted of an outage's scenarios elsewhere, in their order; None: nothing."""
    threads: int = 1
    """That share the scenarios of one outage."""

    @cached_property
    def shares(self) -> SlackShares | None:
        """Who shares the imbalance of every scenario, if the slack is distributed.

        Raises:
            GridshiftError: as `SlackShares.of`.
        """
        by = self.config.distributed_slack
        return None if by is None else SlackShares.of(self.network, by)

    @cached_property
    def intact(self) -> tuple[Network, Limits]:
        """The intact grid with the study's limits, and these as the statistics read them."""
        network = self.limited(self.network)
        return network, Limits.of(network)

    def limits_on(self, network: Network) -> tuple[Network, Limits]:
        """A grid with the limits of this one, and these on an outage of it, or on a part of that.

        Limits of buses and branches are those of the intact grid, whatever is out of service.
        """
        if network.intact is self.network.intact and network.num_buses == self.network.num_buses:
            limited, limits = self.intact
            return without_limits_at(limited, network.apart), limits.without(network)
        limited = self.limited(network)
        return limited, Limits.of(limited)

    def limited(self, network: Network) -> Network:
        """The network with the limits that the study counts against."""
        return self.config.limited(network)

    def drawn(self, role: str, outage: str, num_rows: int) -> LoadScenarios:
        """Scenarios for a context or a hold-out, of no other role.

        They are drawn, those of the context with mixed spreads as in the paper; or they are
        scenarios of the study, where only a study file knows what these are.
        """
        config = self.config
        if self.spread is not None:
            rng = named_rng(self.network.name, role, outage=outage, seed=config.seed)
            regime = "mixed" if role == "context" else self.spread.regime
            return sample_loads(
                self.network, rng, num_rows, spread=self.spread.spread, regime=regime
            )
        assert isinstance(self.loads, LoadScenarios)
        rng = named_rng(self.network.name, "chosen rows", outage=outage, seed=config.seed)
        order, behind = rng.permutation(self.loads.num_rows), 0
        if role == "holdout" and self.method is not None:
            behind = min(config.num_context, len(order) // 2)
        return self.loads.rows(order[behind : behind + num_rows])

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of the scenarios; empty where the configuration tells them."""
        if self.spread is not None and self.config.study is None:
            return ""
        state = hashlib.sha256(repr(self.spread).encode())
        if isinstance(self.loads, LoadScenarios):
            for power in (self.loads.load_p, self.loads.load_q):
                state.update(np.ascontiguousarray(power).tobytes())
        else:
            state.update(repr((self.loads.num_rows, self.loads.state)).encode())
        return state.hexdigest()

    def blocks(self, rows: slice = ALL) -> Iterator[slice]:
        """Runs of scenarios; short ones first if an outage may have enough of them early."""
        first, last, _ = rows.indices(self.loads.num_rows)
        while first < last:
            size = BLOCK if self.config.precision is None else min(BLOCK, max(FIRST_BLOCK, first))
            yield slice(first, min(first + size, last))
            first += size
