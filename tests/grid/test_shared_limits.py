"""Generators at one bus share by their ranges, and MATPOWER's own rule gives the same solution."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.grid.powerflow import solve
from gridshift.grid.quantities import quantities
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import nominal_loads
from tests.reference.matpower_limits import enforced


def with_twins(network, ranges):
    """The same grid with the generator at each of these buses split in two with these ranges."""
    rows = [int(np.flatnonzero(network.gen_bus == bus)[0]) for bus in ranges]
    low, high = network.gen_q_min.copy(), network.gen_q_max.copy()
    for row, (own, _) in zip(rows, ranges.values(), strict=True):
        low[row], high[row] = own
    twin_low, twin_high = np.array([twin for _, twin in ranges.values()]).T
    more = len(rows)
    return replace(
        network,
        gen_labels=(*network.gen_labels, *(f"gen:{90 + k}" for k in range(more))),
        gen_bus=np.append(network.gen_bus, network.gen_bus[rows]),
        gen_p=np.append(network.gen_p, np.zeros(more)),
        gen_q_min=np.append(low, twin_low), gen_q_max=np.append(high, twin_high),
        gen_p_min=np.append(network.gen_p_min, np.full(more, -np.inf)),
        gen_p_max=np.append(network.gen_p_max, np.full(more, np.inf)),
        gen_weight=np.append(network.gen_weight, np.zeros(more)),
    )  # fmt: skip


def by_matpower(network, rule=1):
    limits = np.stack([network.gen_q_min, network.gen_q_max])
    limits[:, np.isin(network.gen_bus, network.slack)] = [[-np.inf], [np.inf]]
    return enforced(
        network, network.load_power, network.v_start, limits=limits, rule=rule, tol=1e-11
    )


@pytest.mark.parametrize("rule", [1, 2])
def test_each_generator_gives_what_matpowers_rule_says(rule):
    case14 = read_grid("case14")
    bus, other = (int(b) for b in case14.pv[:2])
    network = with_twins(case14, {bus: ((-0.1, 0.1), (0.0, 0.1)), other: ((-0.1, 0.3), (0, 0.7))})
    loads = nominal_loads(network)
    found = solve(network, loads, tol=1e-10, q_limits=True)
    theirs = by_matpower(network, rule)
    assert found.at_limit is not None
    assert theirs.voltage is not None
    assert found.at_limit[0, bus] == 1
    assert found.at_limit[0, other] == 0
    np.testing.assert_allclose(found.voltage[0], theirs.voltage, rtol=0, atol=1e-8)
    given = quantities(network, loads, found.voltage).gen_q[0] / network.base_mva
    held = ~np.isin(network.gen_bus, network.slack)
    np.testing.assert_allclose(given[held], theirs.gen_q[held], rtol=0, atol=1e-7)


def test_generators_at_the_slack_bus_share_by_their_ranges_beyond_their_limits():
    case14 = read_grid("case14")
    slack = int(case14.slack[0])
    network = with_twins(case14, {slack: ((0.0, 0.1), (-0.1, 0.2))})
    loads = nominal_loads(network)
    found = solve(network, loads, tol=1e-10, q_limits=True)
    given = quantities(network, loads, found.voltage).gen_q[0] / network.base_mva
    here = np.flatnonzero(network.gen_bus == slack)
    part = (given[here] - network.gen_q_min[here]) / (network.gen_q_max - network.gen_q_min)[here]
    assert part[0] == pytest.approx(part[1])
    assert part[0] < 0  # below their limits: a slack bus has none
    assert found.at_limit is not None
    assert not found.at_limit[0, slack]
    power = found.voltage[0] * (network.admittance @ found.voltage[0]).conj()
    power -= network.injected(network.load_power)
    assert given[here].sum() == pytest.approx(power[slack].imag)
