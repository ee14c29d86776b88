"""Solved rows of many topologies of a grid, to train on."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.adapt.surrogate_config import SurrogateConfig, default_num_rows
from gridshift.adapt.training_rows import draw_rows
from gridshift.arrays import Int, Real
from gridshift.grid.contingency import assess, cut_off_buses, enumerate_outages
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network


@dataclass(frozen=True, kw_only=True, eq=False)
class TopologyRows:
    """Solved rows of several topologies, all of the first, then all of the second, and so on."""

    networks: tuple[Network, ...]
    layout: Layout
    x: Real
    """(R, X)"""
    y: Real
    """(R, Y)"""
    topology: Int
    """(R,) number of each row's network."""
    num_solves: int
    """Solves that were paid for, failed ones included."""
    data_s: float
    """Seconds of drawing and solving."""

    def record(self) -> dict[str, Any]:
        """What the rows cost, for a model's record."""
        return {
            "num_topologies": len(self.networks),
            "num_rows": len(self.x),
            "num_solves": self.num_solves,
            "data_s": self.data_s,
        }


def training_topologies(network: Network, *, multi: bool) -> tuple[Network, ...]:
    """The intact grid, and if `multi` each single-line outage of it that may be trained on.

    Left out are outages of an element that is out in `network` and of its electrical twins, the
    parallel circuits with the same admittances, and outages without a nominal solution.
    """
    intact = network.intact
    if not multi:
        return (intact,)
    held_out = held_out_elements(network)
    outages = [o for o in enumerate_outages(intact, "lines") if held_out.isdisjoint(o)]
    cut_off = cut_off_buses(intact, outages)
    found = [assess(intact, o, cut_off=cut) for o, cut in zip(outages, cut_off, strict=True)]
    return intact, *(outage.network for outage in found if outage.usable)


def held_out_elements(network: Network) -> set[str]:
    """Elements that are out in `network`, and those whose loss would give the same equations."""
    out = set(network.outaged)
    return {
        label
        for label, branches in network.elements.items()
        if label in out or any(_same(network, branches, network.elements[o]) for o in out)
    }


def _same(network: Network, some: Sequence[int], others: Sequence[int]) -> bool:
    def ports(branches: Sequence[int]) -> tuple[set[tuple[int, int]], np.ndarray]:
        ends = {(int(network.branch_from[b]), int(network.branch_to[b])) for b in branches}
        return ends, network.branch_y[list(branches)].sum(0)

    (ends, y), (other_ends, other_y) = ports(some), ports(others)
    if {(t, f) for f, t in other_ends} == ends:
        return np.allclose(y, other_y[::-1], rtol=1e-9)
    return ends == other_ends and np.allclose(y, other_y, rtol=1e-9)


def solved_rows(
    networks: Sequence[Network],
    config: SurrogateConfig,
    *,
    num_rows: int | None = None,
) -> TopologyRows:
    """Draw and solve the training rows, shared out evenly over the topologies.

    Args:
        networks: topologies of one grid; the intact grid alone gives a surrogate's training rows.
        num_rows: rows in all, if it isn't the configuration's.

    Raises:
        ScenarioError: a topology has no solution for half of its scenarios or more.
    """
    began = time.perf_counter()
    if num_rows is None:
        num_rows = config.num_rows
    if num_rows is None:
        num_rows = default_num_rows(networks[0])
    rows_each = max(2, num_rows // len(networks))
    found = [draw_rows(network, config, rows_each, role="training") for network in networks]
    return TopologyRows(
        networks=tuple(networks),
        layout=found[0].layout,
        x=np.concatenate([data.x for data in found]),
        y=np.concatenate([data.y for data in found]),
        topology=np.repeat(np.arange(len(found)), [len(data) for data in found]),
        num_solves=sum(data.num_solves for data in found),
        data_s=time.perf_counter() - began,
    )
