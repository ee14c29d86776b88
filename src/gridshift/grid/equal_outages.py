"""Outages that leave equal grids: parallel circuits with equal parameters are solved once."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gridshift.arrays import Int
from gridshift.grid.contingency import Outage, label_order, make_outage
from gridshift.grid.network import Network


@dataclass(frozen=True, eq=False)
class EqualOutages:
    """Which outages of a grid leave the same grid but for the names of branches."""

    network: Network

    @cached_property
    def _classes(self) -> dict[str, list[str]]:
        """Of each element that has equals: all of them and itself, in the order of labels."""
        network, found = self.network, defaultdict(list)
        moving = {branch for one in network.controls for branch in one.branches}
        for label, branches in network.elements.items():
            alone = len(branches) != 1 or branches[0] in moving  # which may come to stand elsewhere
            if not alone and network.branch_in_service[branches[0]]:
                found[_signature(network, branches[0])].append(label)
        equal = [sorted(labels, key=label_order) for labels in found.values() if len(labels) > 1]
        return {label: labels for labels in equal for label in labels}

    def representative(self, outage: Outage) -> Outage:
        """The outage that is solved for all equal to this one; it depends on the grid alone."""
        found: list[str] = []
        taken: dict[str, int] = defaultdict(int)
        for label in outage:
            labels = self._classes.get(label, [label])
            found.append(labels[taken[labels[0]]])
            taken[labels[0]] += 1
        return make_outage(found)

    def branches(self, outage: Outage) -> Int:
        """(E,) which branch after `representative` each one after `outage` equals."""
        order = np.arange(self.network.num_branches)
        solved = {*self.representative(outage)}
        for labels in {id(c): c for c in map(self._classes.get, outage) if c}.values():
            mine = sorted(labels, key=lambda label: label not in outage)
            theirs = sorted(labels, key=lambda label: label not in solved)
            for label, other in zip(mine, theirs, strict=True):
                order[self.network.elements[label][0]] = self.network.elements[other][0]
        return order


def _signature(network: Network, branch: int) -> bytes:
    """All that matters of a branch, seen from its end with the smaller number."""
    ends = np.array([network.branch_from[branch], network.branch_to[branch]])
    y, rating = network.branch_y[branch], network.branch_rating[branch]
    if ends[0] > ends[1]:
        ends, y, rating = ends[::-1], y[::-1], rating[::-1]
    rated, emergency = network.branch_rated[branch], network.branch_emergency[branch]
    parts = (ends, y, rating, rated, emergency)
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)
