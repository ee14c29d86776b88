"""Reactive limits and a distributed slack together, by one kernel: a dense Newton agrees."""

from dataclasses import replace

import numpy as np
import pytest

from gridshift.grid.distributed_slack import DistributedSlack
from gridshift.grid.limited_chords import solved
from gridshift.grid.powerflow import RowStatus, solve
from gridshift.grid.prepared import prepare
from gridshift.grid.reactive import ReactiveLimits
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import LoadScenarios, named_rng, nominal_loads, sample_loads
from gridshift.grid.slack_shares import SlackShares
from gridshift.grid.statistics import Limits
from gridshift.grid.streaming import stream_rows
from tests.reference.limited_newton import Limited, LimitedGrid


def with_parts_and_weights(name, seed):
    """A grid with drawn parts of constant current and impedance and drawn participation factors,
    without active limits, and the generator that draws more."""
    network, rng = read_grid(name), np.random.default_rng(seed)
    share = rng.dirichlet([1, 1, 1], (2, network.num_loads))
    kinds = np.array([label.partition(":")[0] for label in network.gen_labels])
    weight = np.where(np.isin(kinds, ("gen", "ext_grid")), rng.uniform(0, 1, len(kinds)), 0)
    everywhere = np.full(len(kinds), np.inf)
    return replace(
        network, load_current=share[0, :, 1] + 1j * share[1, :, 1],
        load_impedance=share[0, :, 2] + 1j * share[1, :, 2], gen_weight=weight,
        gen_p_min=-everywhere, gen_p_max=everywhere, outage_of=None,
    ), rng  # fmt: skip


def dense_of(network):
    return LimitedGrid(network, factor=network.gen_weight / network.gen_weight.sum())


def test_rows_far_from_nominal_demand_are_those_that_can_be_followed():
    network, rng = with_parts_and_weights("case39", 2)
    network = network.without(["line:4"])
    power, rows = network.load_power, 3
    factor = 1 + rng.uniform(-1, 1, (2, rows, network.num_loads))
    factor[0, :, 20] = -0.5  # what draws 1,104 MW gives half of that
    loads = LoadScenarios(load_p=factor[0] * power.real, load_q=factor[1] * power.imag)
    found = solve(network, loads, q_limits=True, distributed_slack="given")
    dense = dense_of(network)
    nominal = dense.solve(Limited(solve(network, nominal_loads(network)).voltage[0], 0.0), power)
    assert nominal is not None
    for row in range(rows):
        expected = dense.follow(nominal, power, loads.load_power[row])
        assert found.solved[row] == (expected is not None), row
        if expected is not None:
            np.testing.assert_allclose(found.voltage[row], expected.voltage, rtol=0, atol=1e-7)
            given = network.gen_p + network.gen_weight / network.gen_weight.sum() * (
                expected.imbalance
            )
            np.testing.assert_allclose(found.gen_p[row], given, rtol=0, atol=1e-6)
    assert found.solved.any()


@pytest.mark.parametrize("name", ["case39", "case118"])
def test_chord_steps_settle_rows_with_parts_limits_and_shares(name):
    network, _ = with_parts_and_weights(name, 1)
    loads = sample_loads(network, named_rng(name, "both"), 40, spread=0.2, regime="fixed")
    prepared, limits = prepare(network), ReactiveLimits.of(network)
    assert limits is not None
    found = solve(network, loads, tol=1e-10, q_limits=True, distributed_slack="given")
    assert found.solved.all()
    assert found.at_limit.any()
    dense = dense_of(network)
    for row in range(0, 40, 20):
        expected = dense.solve(Limited(found.voltage[row], 0.0), loads.load_power[row])
        np.testing.assert_allclose(found.voltage[row], expected.voltage, rtol=0, atol=1e-8)
        np.testing.assert_array_equal(found.at_limit[row], expected.side)
    assert limits.at_nominal(prepared)
    for slack in (None, DistributedSlack.of(network, SlackShares.of(network, "given"))):
        rows = limits.from_nominal(prepared, loads.load_p, loads.load_q, tol=1e-8, slack=slack)
        assert solved(rows, 1e-8 * network.tolerance_base).all()


def test_rows_with_both_need_hardly_more_steps_than_with_limits_alone(case118):
    loads = sample_loads(case118, named_rng("case118", "both"), 64, spread=0.2, regime="fixed")
    alone = solve(case118, loads, q_limits=True)
    both = solve(case118, loads, q_limits=True, distributed_slack="headroom")
    assert both.solved.all()
    assert both.iterations.mean() < alone.iterations.mean() + 1


def test_streamed_rows_with_both_are_the_solved_ones(case118):
    loads = sample_loads(case118, named_rng("case118", "both"), 70, spread=0.3, regime="fixed")
    rows = solve(case118, loads, q_limits=True, distributed_slack="headroom")
    counted = stream_rows(
        case118, loads, Limits.of(case118), q_limits=True, threads=2,
        distributed_slack=SlackShares.of(case118, "headroom"),
    )  # fmt: skip
    np.testing.assert_array_equal(counted.solved, rows.solved)
    np.testing.assert_array_equal(counted.at_limit[0], (rows.at_limit > 0).sum(0))
    assert counted.any_at_limit == rows.at_limit.any(1).sum()
    mean = rows.voltage[rows.solved].mean(0)
    np.testing.assert_allclose(counted.statistics.mean_voltage(), mean, rtol=0, atol=1e-9)


def test_a_grid_without_limits_has_none_to_keep_with_a_distributed_slack(case14):
    none = np.full(5, np.inf)
    free = replace(case14, gen_q_min=-none, gen_q_max=none, outage_of=None)
    loads = sample_loads(free, named_rng("case14", "both"), 9, spread=0.3, regime="fixed")
    found = solve(free, loads, q_limits=True, distributed_slack="headroom")
    assert not found.at_limit.any()
    shared = solve(free, loads, distributed_slack="headroom")
    np.testing.assert_array_equal(found.voltage, shared.voltage)


def test_rows_without_a_solution_are_marked(case118):
    one = nominal_loads(case118, 2)
    heavy = LoadScenarios(load_p=one.load_p * [[1], [40]], load_q=one.load_q * [[1], [40]])
    for limits in (False, True):
        found = solve(case118, heavy, q_limits=limits, distributed_slack="headroom")
        assert found.solved.tolist() == [True, False]
        assert found.status[1] != RowStatus.NOT_RUN
        assert np.isnan(found.gen_p[1]).all()
