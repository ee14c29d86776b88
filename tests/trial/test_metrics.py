"""Errors of predictions, by quantity and in all."""

import numpy as np
import pytest

from gridshift.grid.layout import Layout
from gridshift.grid.powerflow import solve
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.trial.metrics import (
    QUANTITIES,
    mean_absolute_errors,
    mismatch_summary,
    summarise,
)


def test_each_quantity_has_its_own_error_and_overall_is_the_mean_of_all_entries(triangle):
    layout = Layout.of(triangle)
    assert [entry.name for entry in layout.outputs] == [
        "p_slack bus:0", "q_gen bus:0", "v bus:1", "v bus:2", "theta bus:1", "theta bus:2",
    ]  # fmt: skip
    y = np.zeros((2, 6))
    y_hat = np.array([[1, 2, 3, -5, 0.1, 0], [-3, 0, 0, 0, -0.3, 0.4]])
    errors = mean_absolute_errors(layout, y, y_hat)
    assert set(errors) == set(QUANTITIES)
    assert errors["p_slack"] == 2
    assert errors["q_gen"] == 1
    assert errors["v"] == 2
    assert errors["theta"] == pytest.approx(0.2)
    assert errors["theta_deg"] == pytest.approx(0.2 * 180 / np.pi)
    assert errors["overall"] == pytest.approx((4 + 2 + 8 + 0.8) / 12)


def test_the_mismatch_of_exact_solutions_is_below_the_solvers_tolerance(triangle):
    loads = sample_loads(triangle, named_rng("t", "t"), 5)
    solution = solve(triangle, loads)
    summary = mismatch_summary(triangle, solution.voltage, loads.load_power)
    assert summary["max"] <= 1e-8


def test_a_flat_state_misses_exactly_the_largest_load(triangle):
    loads = sample_loads(triangle, named_rng("t", "t"), 7)
    summary = mismatch_summary(triangle, np.ones((7, 3), complex), loads.load_power)
    largest = np.maximum(loads.load_p, loads.load_q).max(1)
    assert summary["median"] == pytest.approx(np.median(largest))
    assert summary["max"] == pytest.approx(largest.max())


def test_no_rows_have_no_summary():
    assert all(np.isnan(value) for value in summarise(np.empty(0)).values())
