"""What varies from case to case beside loads and generation: branches out, impedances, set-points.

Outages are drawn for every scenario. Other impedances or set-points make another grid, whose
factors have to be found anew, so a run of scenarios shares one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gridshift.errors import OutageError
from gridshift.grid.contingency import Outage, candidate_elements, cut_off_buses, make_outage
from gridshift.grid.network import Network
from gridshift.grid.pi_model import pi_model
from gridshift.study.description import UncertaintyError, finite

ATTEMPTS = 1000
"""Draws of one outage, of which the first counts that leaves every bus with supply."""


@dataclass(frozen=True, kw_only=True)
class Variation:
    """What varies from case to case beside loads and generation."""

    outages: tuple[float, ...] = ()
    """Shares of the scenarios with 1, 2, ... branches out; the others have the intact grid."""
    impedance: float = 0.0
    """Every branch's r and x are multiplied by factors of their own from 1 - this to 1 + this."""
    set_points: float = 0.0
    """Every voltage set-point is moved by up to this, p.u."""

    def __post_init__(self) -> None:
        shares = [finite(share, "outages") for share in self.outages]
        if any(share < 0 for share in shares) or sum(shares) > 1 + 1e-12:
            told = (
                f"{', '.join(f'{share:g}' for share in shares)}: the shares of the scenarios with "
                "1, 2, ... branches out are numbers from 0 to 1, and not more than 1 together"
            )
            raise UncertaintyError(("outages",), told)
        for name, most in (("impedance", 1.0), ("set_points", 0.5)):
            value = finite(getattr(self, name), name)
            if not 0 <= value < most:
                raise UncertaintyError((name,), f"{value:g} must be at least 0 and below {most:g}")

    @property
    def of_grid(self) -> bool:
        """Whether it makes other grids, not outages alone."""
        return self.impedance > 0 or self.set_points > 0

    def grid(self, network: Network, rng: np.random.Generator) -> Network:
        """A grid with other impedances and set-points; branches without a model keep theirs."""
        if not self.of_grid:
            return network
        model, count = pi_model(network.branch_y), network.num_branches
        factors = 1 + self.impedance * rng.uniform(-1, 1, (2, count))
        y = np.where(model.exact[:, None], model.scaled(*factors).two_ports(), network.branch_y)
        buses = network.controlled
        moved = self.set_points * rng.uniform(-1, 1, len(buses))
        v_set, start = network.bus_v_set.copy(), network.v_start.copy()
        start[buses] *= 1 + moved / v_set[buses]
        v_set[buses] += moved
        return replace(network, branch_y=y, bus_v_set=v_set, v_start=start, outage_of=None)


def draw_outages(
    network: Network, shares: Sequence[float], num_rows: int, rng: np.random.Generator
) -> list[Outage]:
    """An outage of branches for each row, `()` for the intact grid; none cuts a bus off.

    Raises:
        OutageError: no outage of so many branches leaves every bus with supply.
    """
    if not any(shares):
        return [()] * num_rows
    elements = candidate_elements(network, "all")
    sizes = rng.choice(len(shares) + 1, num_rows, p=[max(0.0, 1 - sum(shares)), *shares])
    whole: dict[Outage, bool] = {}
    return [_whole_outage(network, elements, int(size), rng, whole) for size in sizes]


def _whole_outage(
    network: Network, elements: Sequence[str], size: int, rng: np.random.Generator,
    whole: dict[Outage, bool],
) -> Outage:  # fmt: skip
    if not size:
        return ()
    for _ in range(ATTEMPTS if size <= len(elements) else 0):
        chosen = rng.choice(len(elements), size, replace=False)
        outage = make_outage([elements[int(at)] for at in chosen])
        if outage not in whole:
            whole[outage] = not len(cut_off_buses(network, [outage])[0])
        if whole[outage]:
            return outage
    raise OutageError(
        f"none of {ATTEMPTS} outages of {size} of the {len(elements)} branches of {network.name} "
        "leaves every bus with supply; ask for fewer branches"
    )
