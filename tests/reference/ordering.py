"""The elimination order of `gridshift.grid.kernels.ordering`, with sets and a look at all buses."""

from gridshift.grid.kernels.ordering import MOST_COUNTED, UNCOUNTED


def eliminate(neighbours, size):
    """Buses in order, and the neighbours of each when it goes, both as lists."""
    near = [set(n) for n in neighbours]

    def cost(bus):
        around = near[bus]
        if len(around) > MOST_COUNTED:
            return UNCOUNTED + len(around), len(around), bus
        pairs = ((a, b) for a in around for b in around if a < b and b not in near[a])
        return sum(size[a] * size[b] for a, b in pairs), len(around), bus

    costs = {bus: cost(bus) for bus, s in enumerate(size) if s}
    order, upper = [], []
    while costs:
        bus = min(costs, key=costs.get)
        del costs[bus]
        around = near[bus]
        order.append(bus)
        upper.append(sorted(around))
        for a in around:
            near[a] = (near[a] | around) - {a, bus}
        costs |= {a: cost(a) for a in around}
    return order, upper
