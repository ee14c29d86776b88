"""Branches as pi models, and what solved cases say of every element."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gridshift as gs
from gridshift.grid.equations import branch_powers
from gridshift.grid.pi_model import PiModel, pi_model
from gridshift.grid.quantities import quantities
from tests.reference.grids import random_network


@given(
    r=st.floats(0, 0.5), x=st.floats(0.01, 1), b=st.floats(0, 2), tap=st.floats(0.5, 1.5),
    shift=st.floats(-np.pi / 2 + 0.01, np.pi / 2 - 0.01), g=st.sampled_from([0, 0.01]),
)  # fmt: skip
def test_the_model_of_a_branch_is_the_one_it_was_made_of(r, x, b, tap, shift, g):
    shunt = np.array([g + 0.5j * b])
    y, t = np.array([1 / (r + 1j * x)]), np.array([tap * np.exp(1j * shift)])
    found = pi_model(PiModel(y, t, shunt, shunt, np.array([True])).two_ports())
    assert found.exact.all()
    # the ratio of two sums tells the tap: it loses what they are larger than the series part
    np.testing.assert_allclose(found.tap, t, rtol=1e-9)
    np.testing.assert_allclose(found.impedance, [r + 1j * x], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.shunt_from, shunt, atol=1e-9)
    np.testing.assert_allclose(found.shunt_to, shunt, atol=1e-9)


@pytest.mark.parametrize("case", ["case14", "case118", "case300", "example_multivoltage"])
@pytest.mark.filterwarnings("ignore::gridshift.errors.GridshiftWarning")
def test_two_ports_are_those_of_the_grid(case):
    network = gs.read_grid(case)
    model = pi_model(network.branch_y)
    off = np.abs(model.two_ports() - network.branch_y).max(1) / np.abs(network.branch_y).max(1)
    assert off[model.exact].max() < 1e-12
    odd = {network.branch_labels[e].partition(":")[0] for e in np.flatnonzero(~model.exact)}
    assert odd <= {"", "trafo3w"}  # star points that are tied to a terminal


def test_a_scaled_branch_has_scaled_impedance_and_the_same_rest():
    network = gs.read_grid("case14")
    model = pi_model(network.branch_y)
    rng = np.random.default_rng(0)
    r, x = rng.uniform(0.5, 1.5, (2, network.num_branches))
    other = pi_model(model.scaled(r, x).two_ports())
    np.testing.assert_allclose(other.impedance.real, r * model.impedance.real, atol=1e-12)
    np.testing.assert_allclose(other.impedance.imag, x * model.impedance.imag, rtol=1e-9)
    np.testing.assert_allclose(other.tap, model.tap, rtol=1e-9)
    np.testing.assert_allclose(other.shunt_to, model.shunt_to, atol=1e-9)


def test_quantities_are_those_of_the_equations():
    network = random_network(np.random.default_rng(3), 12, extra=8)
    rng = np.random.default_rng(0)
    v = rng.uniform(0.9, 1.1, (5, 12)) * np.exp(1j * rng.uniform(-3, 3, (5, 12)))
    loads = gs.sample_loads(network, rng, 5)
    found, base = quantities(network, loads, v), network.base_mva
    flows = np.stack([found.from_p, found.from_q, found.to_p, found.to_q], -1)
    np.testing.assert_allclose(flows, base * branch_powers(network, v), atol=1e-9)
    np.testing.assert_allclose(found.magnitude * np.exp(1j * np.deg2rad(found.angle)), v)
    injected = v * (network.admittance @ v.T).T.conj() * base
    demand = np.zeros((12, 5), complex)
    np.add.at(demand, network.load_bus, loads.load_power.T)
    demand = base * (demand.T - network.bus_fixed)
    np.testing.assert_allclose(found.demand_p + 1j * found.demand_q, demand, atol=1e-9)
    held = network.controlled
    given_q = (injected + demand).imag[:, held]
    np.testing.assert_allclose(found.bus_q[:, held], given_q, atol=1e-9)
    given_p = (injected + demand).real[:, network.slack]
    np.testing.assert_allclose(found.bus_p[:, network.slack], given_p, atol=1e-9)
    scheduled = np.zeros(12)
    np.add.at(scheduled, network.gen_bus, network.gen_p * base)
    np.testing.assert_allclose(
        found.bus_p[:, network.pv], np.tile(scheduled[network.pv], (5, 1)), atol=1e-9
    )
