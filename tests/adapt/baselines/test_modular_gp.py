from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from gridshift.adapt.baselines.bayes import fit_bayesian_linear
from gridshift.adapt.baselines.egonets import Egonets
from gridshift.adapt.baselines.modular_gp import ModularGpConfig, adapt_modular_gp, start_modular_gp
from gridshift.adapt.baselines.topologies import draw_rows
from gridshift.adapt.context import Context
from gridshift.grid.powerflow import nominal
from tests.adapt.conftest import quick_config

pytestmark = pytest.mark.usefixtures("own_cache")


def test_regression_by_evidence_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    phi = rng.standard_normal((200, 12)) * np.linspace(0.1, 3, 12)
    targets = phi @ rng.standard_normal((12, 2)) + rng.standard_normal((200, 2)) * [0.3, 3.0]
    fitted = fit_bayesian_linear(phi, targets, num_iterations=3000, rtol=1e-10)
    for which in range(2):
        theirs = BayesianRidge(max_iter=3000, tol=1e-12).fit(phi, targets[:, which])
        # their weak hyperpriors of 1e-6 aside, the same fixed point
        np.testing.assert_allclose(fitted.weight[:, which], theirs.coef_, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(fitted.offset[which], theirs.intercept_, rtol=1e-4)
        np.testing.assert_allclose(1 / fitted.noise[which], theirs.alpha_, rtol=1e-4)


def test_without_noise_a_process_goes_through_its_training_points(grid):
    """As many points as regressors: a kernel's interpolant, whatever the targets are."""
    config = replace(quick_config(), num_rows=25, num_validation=10)
    base = start_modular_gp(grid, config, own=ModularGpConfig(num_fourier=100, lengths=(1.0,)))
    rows = draw_rows(grid, config, 25, role="training")
    states = base.predict_states(grid, rows.x)
    off = states[:, rows.layout.pq, 0] - rows.y[:, rows.layout.y_slices["v"]]
    # noise is at least 1e-12 of the variance
    assert np.abs(off).max() < 1e-4 * rows.y[:, rows.layout.y_slices["v"]].std(0).min()


def test_admittance_features_vanish_on_the_intact_grid_and_only_there(grid):
    egonets = Egonets.of(grid)
    x = draw_rows(grid, quick_config(), 3, role="training").x
    intact = egonets.features((grid,), x, np.zeros(3, np.int64))
    assert not intact.shift.any()
    outage = egonets.features((grid.without(["line:1"]),), x, np.zeros(3, np.int64))
    moved = np.concatenate(
        [outage.shift[0, grid.pq, 0], outage.shift[0, egonets.layout.non_slack, 1]]
    )
    assert (moved != 0).all()
    assert (outage.degree - intact.degree).sum() == -2


def test_the_shift_is_the_first_order_change_of_the_solution(grid):
    """Against exact solutions of grids whose line is a little weaker: the error is quadratic."""
    before = nominal(grid).voltage[0]

    def error(part):
        y = grid.branch_y.copy()
        y[3] *= 1 - part
        weaker = replace(grid, branch_y=y, outaged=("line:3",))
        shift = Egonets.of(grid).features((weaker,), np.empty((0, 17)), np.empty(0, int)).shift[0]
        after = nominal(replace(weaker, outaged=())).voltage[0]
        v = np.abs(after) - np.abs(before) - shift[:, 0]
        theta = np.angle(after / before) - shift[:, 1]
        return np.abs(np.concatenate([v, theta])).max()

    assert error(0.02) < 1e-4
    assert error(0.01) == pytest.approx(error(0.02) / 4, rel=0.1)


def test_members_that_are_no_neighbours_any_more_have_zero_features(grid):
    x = draw_rows(grid, quick_config(), 5, role="training").x
    features = Egonets.of(grid).features((grid.without(["line:1"]),), x, np.zeros(5, int))
    f, t = grid.branch_from[1], grid.branch_to[1]
    where = int(np.flatnonzero(features.egonets.members[f] == t)[0])
    of_members = features.at(f)[:, 5:].reshape(5, -1, 2)
    assert not of_members[:, where].any()
    assert of_members[:, 0].any() == (f in grid.load_bus)


def test_generation_follows_from_the_topologys_own_equations(grid):
    config = quick_config()
    base = start_modular_gp(grid, config, own=ModularGpConfig(num_fourier=50, lengths=(1.0,)))
    network = grid.without(["line:1"])
    x = draw_rows(network, config, 4, role="test").x
    predictor = adapt_modular_gp(base, Context.empty(network, base))
    y = predictor.predict(x)
    layout = base.layout
    power = layout.unpack_voltage(x, y)
    power = power * (power @ network.admittance.T.toarray()).conj()
    demand = np.zeros((4, 6), complex)
    for load, bus in enumerate(network.load_bus):
        demand[:, bus] += layout.unpack_loads(x).load_power[:, load]
    expected = (power + demand - network.bus_fixed)[:, layout.controlled].imag
    np.testing.assert_allclose(y[:, layout.y_slices["q_gen"]], expected, atol=1e-12)


def test_on_the_intact_grid_the_processes_are_accurate_and_knowing_more_helps(grid):
    config = replace(quick_config(), num_rows=400)
    with_it = start_modular_gp(grid, config)
    without = start_modular_gp(grid, config, own=ModularGpConfig(response=False))
    assert with_it.mae < without.mae
    assert with_it.mae < 1e-3
