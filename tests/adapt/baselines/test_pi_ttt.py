from dataclasses import replace

import numpy as np
import pytest
import torch

from gridshift.adapt.baselines.pi_ttt import StepsConfig, adapt_pi_ttt
from gridshift.adapt.baselines.power_balance import PowerBalance
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import generate
from gridshift.errors import GridshiftError
from gridshift.grid.equations import jacobian, specified_mismatch
from gridshift.grid.scenarios import sample_loads
from tests.adapt.test_methods import bits

FEW = StepsConfig(num_rows=60)


@pytest.fixture(scope="module")
def network(outage_rows):
    return outage_rows.network


@pytest.fixture(scope="module")
def fresh_rows(network):
    return generate(network, sample_loads(network, np.random.default_rng(9), 200))


def mae(predictor, rows):
    return np.abs(predictor.predict(rows.x) - rows.y).mean()


def test_the_mismatch_is_s_less_v_times_conjugate_current(surrogate, network, outage_rows):
    """S = V conj(Y V) written out row by row, against what loads and generators schedule."""
    layout, x = surrogate.layout, outage_rows.x
    y = surrogate.predict(x)
    p, q = (part.numpy() for part in PowerBalance(network, layout, x)(torch.from_numpy(y)))
    voltage, dense = layout.unpack_voltage(x, y), network.admittance.toarray()
    loads = layout.unpack_loads(x).load_power
    for row in range(len(x)):
        power = voltage[row] * np.conj(dense @ voltage[row])
        scheduled = network.scheduled.copy()
        np.subtract.at(scheduled, network.load_bus, loads[row])
        off = power - scheduled
        # float64 sums of a handful of terms of size one
        np.testing.assert_allclose(p[row], off.real[layout.non_slack], atol=1e-12)
        np.testing.assert_allclose(q[row], off.imag[layout.pq], atol=1e-12)


def test_the_mismatch_is_that_of_the_grids_own_equations(surrogate, network, outage_rows):
    layout, x, y = surrogate.layout, outage_rows.x, surrogate.predict(outage_rows.x)
    p, q = PowerBalance(network, layout, x)(torch.from_numpy(y))
    loads = layout.unpack_loads(x).load_power
    off = specified_mismatch(network, layout.unpack_voltage(x, y), loads)
    np.testing.assert_allclose(p.numpy(), off.real[:, layout.non_slack], atol=1e-12)
    np.testing.assert_allclose(q.numpy(), off.imag[:, layout.pq], atol=1e-12)


def test_exact_solutions_have_no_mismatch(surrogate, network, outage_rows):
    balance = PowerBalance(network, surrogate.layout, outage_rows.x)
    # rows are solved to a mismatch of 1e-8 or less, at some ten places a row
    assert balance.loss(torch.from_numpy(outage_rows.y)) < 10 * 1e-16


def test_the_gradient_by_voltages_is_the_jacobian(surrogate, network, outage_rows):
    layout, x = surrogate.layout, outage_rows.x[:1]
    y = torch.from_numpy(surrogate.predict(x))
    balance = PowerBalance(network, layout, x)
    by_y = torch.autograd.functional.jacobian(lambda y: torch.hstack(balance(y)), y)
    by_y = by_y.reshape(-1, layout.num_outputs).numpy()
    at = layout.y_slices
    by_state = np.hstack([by_y[:, at["theta"]], by_y[:, at["v"]]])
    # the solver orders PV before PQ buses, the layout by number
    order = np.argsort(np.concatenate([network.pv, network.pq]))
    order = np.concatenate([order, len(order) + np.arange(len(network.pq))])
    expected = jacobian(network, layout.unpack_voltage(x, y.numpy())[0]).toarray()
    np.testing.assert_allclose(by_state, expected[order][:, order], atol=1e-10)


def test_every_step_kept_lowers_the_residual(surrogate, network):
    context = Context.empty(network, surrogate)
    config = replace(FEW, num_steps=20)
    losses = adapt_pi_ttt(surrogate, context, config=config).losses
    assert len(losses) == 21
    assert (np.diff(losses) < 0).all()


def test_without_labels_the_error_falls_below_the_frozen_one(surrogate, network, fresh_rows):
    context = Context.empty(network, surrogate)
    before = bits(surrogate)
    predictor = adapt_pi_ttt(surrogate, context, config=FEW)
    assert mae(predictor, fresh_rows) < mae(surrogate, fresh_rows) / 10
    assert bits(surrogate) == before


def test_generation_is_what_the_equations_leave_over(surrogate, network, fresh_rows):
    layout, x = surrogate.layout, fresh_rows.x
    y = adapt_pi_ttt(surrogate, Context.empty(network, surrogate), config=FEW).predict(x)
    voltage = layout.unpack_voltage(x, y)
    generation = voltage * (network.admittance.toarray() @ voltage.T).T.conj()
    loads = layout.unpack_loads(x).load_power
    for load, bus in enumerate(network.load_bus):
        generation[:, bus] += loads[:, load]
    generation -= network.bus_fixed
    at = layout.y_slices
    np.testing.assert_allclose(y[:, at["q_gen"]], generation[:, layout.controlled].imag, atol=1e-12)
    np.testing.assert_allclose(y[:, at["p_slack"]], generation[:, layout.slack].real, atol=1e-12)


def test_no_steps_leave_the_frozen_voltages(surrogate, network, fresh_rows):
    context = Context.empty(network, surrogate)
    still = adapt_pi_ttt(surrogate, context, config=replace(FEW, num_steps=0))
    where = surrogate.layout.y_slices["theta"]
    y, frozen = still.predict(fresh_rows.x), surrogate.predict(fresh_rows.x)
    # float32 in the last layer
    np.testing.assert_allclose(y[:, where], frozen[:, where], atol=1e-6)


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(GridshiftError, match="positive first step"):
        StepsConfig(step=0.0)
