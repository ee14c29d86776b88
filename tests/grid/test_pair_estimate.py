"""Estimated pairs of outages against the linearised grid solved anew, and against exact studies."""

import numpy as np
import pytest

from gridshift.grid.contingency import cut_off_buses, enumerate_outages
from gridshift.grid.equations import branch_loading
from gridshift.grid.pair_estimate import _flows, _scores, _shares, worst_pairs
from gridshift.grid.powerflow import nominal


def dc_flows(network, injected):
    """Flows of the linearised grid, solved from the start."""
    on = np.flatnonzero(network.branch_in_service)
    matrix = np.zeros((network.num_buses, network.num_buses))
    weight = np.abs(network.branch_y[:, 1])
    for e in on:
        f, t = network.branch_from[e], network.branch_to[e]
        matrix[f, f] += weight[e]
        matrix[t, t] += weight[e]
        matrix[f, t] -= weight[e]
        matrix[t, f] -= weight[e]
    keep = network.non_slack
    angle = np.zeros(network.num_buses)
    angle[keep] = np.linalg.solve(matrix[np.ix_(keep, keep)], injected[keep])
    flow = np.zeros(network.num_branches)
    flow[on] = weight[on] * (angle[network.branch_from[on]] - angle[network.branch_to[on]])
    return flow


def test_shares_give_the_flows_of_the_linearised_grid_without_both_lines(case30):
    injected = np.random.default_rng(0).normal(size=30)
    flow = dc_flows(case30, injected)
    i, j = (case30.elements[f"line:{k}"][0] for k in (4, 20))
    factors, own = _shares(case30, np.array([i, j]))
    lodf = factors / own
    x = np.linalg.solve(np.array([[1, -lodf[i, 1]], [-lodf[j, 0], 1]]), flow[[i, j]])
    after = flow + lodf @ x
    after[[i, j]] = 0
    expected = dc_flows(case30.without(("line:4", "line:20")), injected)
    np.testing.assert_allclose(after, expected, atol=1e-9)


def test_a_line_that_parts_the_grid_leaves_nothing_of_its_own_factor(case30):
    lines = enumerate_outages(case30)
    branches = np.array([case30.elements[label][0] for (label,) in lines])
    _, own = _shares(case30, branches)
    cut = [len(buses) > 0 for buses in cut_off_buses(case30, lines)]
    np.testing.assert_array_equal(own < 1e-6, cut)


def test_scores_are_those_of_a_loop_over_pairs(case30):
    branches = np.array([case30.elements[f"line:{k}"][0] for k in (1, 4, 9, 20)])
    factors, own = _shares(case30, branches)
    flow, limit = _flows(case30)
    np.testing.assert_allclose(
        np.abs(flow / limit), branch_loading(case30, nominal(case30).voltage)[0], rtol=1e-9
    )
    lodf, at = factors / own, 0
    scores = _scores(flow, limit, lodf, branches)
    for a in range(4):
        for b in range(a + 1, 4):
            i, j = branches[a], branches[b]
            x = np.linalg.solve(np.array([[1, -lodf[i, b]], [-lodf[j, a], 1]]), flow[[i, j]])
            after = np.abs(flow + lodf[:, [a, b]] @ x) / limit
            after[[i, j]] = 0
            beyond = np.maximum(0, after - 1).sum() - np.maximum(0, np.abs(flow / limit) - 1).sum()
            expected = 1 + beyond if beyond > 0 else after.max() / (1 + after.max())
            assert scores[at] == pytest.approx(expected)
            at += 1


def test_pairs_that_part_the_grid_together_come_first_and_what_is_left_out_is_told(case30):
    found = worst_pairs(case30, 40)
    cut = [len(buses) > 0 for buses in cut_off_buses(case30, found.outages)]
    assert cut == sorted(cut, reverse=True)
    assert any(cut)
    assert "of 703 pairs of lines the 40" in found.told  # 38 lines that aren't bridges
    assert "663 are not" in found.told
    assert "3 lines that cut buses off" in found.told
