"""A kernel's source gives the same numbers compiled to vector registers and as plain Python."""

import numpy as np
import pytest

from gridshift.grid.engine import Engine
from gridshift.grid.equations import jacobian, specified_mismatch
from gridshift.grid.kernels import arithmetic, steps
from gridshift.grid.kernels import lanes as compiled_lanes
from gridshift.grid.kernels.lanes import Lanes
from tests.reference import lanes as plain_lanes
from tests.reference.grids import random_network
from tests.reference.lanes import plain
from tests.reference.newton import off_balance

ROUNDING = 1e-12  # sums of some ten products of numbers of order 10


@pytest.fixture(scope="module")
def case():
    """A meshed random grid, its engine, and a Newton workspace filled with a point off balance."""
    network = random_network(np.random.default_rng(3), 12, extra=8)
    engine = Engine(network)
    work = engine.newton_work()
    w = engine.newton_lanes.width
    rng = np.random.default_rng(0)
    angle = rng.uniform(-0.1, 0.1, (network.num_buses, w))
    magnitude = rng.uniform(0.95, 1.05, (network.num_buses, w))
    voltage = magnitude * np.exp(1j * angle)
    work.voltage[:] = np.stack([voltage.real, voltage.imag], 1).ravel()
    work.power[:] = np.repeat(engine.nominal_power, w)
    work.admittance[:] = engine.intact.point.admittance[:, None]
    work.active[:] = 1
    return network, engine, work, voltage


def test_every_lane_function_has_a_plain_twin():
    names = {**vars(compiled_lanes), **vars(arithmetic)}
    kernel_side = {name for name, value in names.items() if type(value).__name__ == "_Intrinsic"}
    assert len(kernel_side) > 12
    assert kernel_side <= set(vars(plain_lanes))


def test_the_power_balance_equals_its_plain_source_and_the_bus_equations(case):
    network, engine, work, voltage = case
    lanes = engine.newton_lanes
    arguments = (lanes, lanes, engine.symbolic, work.admittance)
    steps.power_balance(*arguments, work)
    other = work._replace(
        residual=np.zeros_like(work.residual), mismatch=np.zeros_like(work.mismatch)
    )
    plain(steps.power_balance)(*arguments, other)
    np.testing.assert_allclose(work.residual, other.residual, atol=ROUNDING)
    np.testing.assert_allclose(work.mismatch, other.mismatch, atol=ROUNDING)
    for k in range(lanes.width):
        expected = off_balance(network, voltage[:, k], network.load_power)
        assert abs(work.mismatch[k] - expected) < ROUNDING


def test_factors_solve_the_jacobian_of_every_lane(case):
    network, engine, work, voltage = case
    symbolic, lanes = engine.symbolic, engine.newton_lanes
    steps.power_balance(lanes, lanes, symbolic, work.admittance, work)
    steps.fill_jacobian(lanes, symbolic, work)
    filled = np.zeros_like(work.factors)
    plain(steps.fill_jacobian)(lanes, symbolic, work._replace(factors=filled))
    np.testing.assert_allclose(work.factors, filled, atol=ROUNDING)
    steps.factorise(lanes, symbolic, work.factors, work.growth)
    plain(steps.factorise)(lanes, symbolic, filled, np.zeros_like(work.growth))
    np.testing.assert_allclose(work.factors, filled, atol=1e-10)
    steps.substitute(lanes, symbolic, work.lower, work.diagonal, work.upper, work.residual)
    step = work.residual.reshape(-1, lanes.width)
    moving = np.concatenate([network.pv, network.pq])
    for k in range(lanes.width):
        v = voltage[:, k]
        off = specified_mismatch(network, v, network.load_power)
        full = np.linalg.solve(
            jacobian(network, v).toarray(),
            -np.concatenate([off[moving].real, off[network.pq].imag]),
        )
        expected = dict(zip(moving, full, strict=False))
        relative = dict(zip(network.pq, full[len(moving) :] / np.abs(v[network.pq]), strict=True))
        for node, bus in enumerate(symbolic.node_bus):
            first = symbolic.node_first[node]
            assert abs(step[first, k] - expected[bus]) < 1e-10
            if symbolic.node_size[node] == 2:
                assert abs(step[first + 1, k] - relative[bus]) < 1e-10


@pytest.mark.parametrize("far", [False, True])
def test_turning_keeps_frozen_lanes_bit_for_bit_and_equals_its_plain_source(case, far):
    _, engine, work, _ = case
    lanes = engine.newton_lanes
    step = np.random.default_rng(1).uniform(-0.05, 0.05, work.residual.shape)
    active = np.ones(lanes.width)
    active[2] = 0.0
    moved = work._replace(residual=step, active=active)
    fast, slow = work.voltage.copy(), work.voltage.copy()
    arguments = (lanes, lanes, engine.symbolic, engine.set_point, far)
    steps.apply_step(*arguments, moved._replace(voltage=fast))
    plain(steps.apply_step)(*arguments, moved._replace(voltage=slow))
    np.testing.assert_allclose(fast, slow, atol=1e-14)
    before, after = work.voltage.reshape(-1, lanes.width), fast.reshape(-1, lanes.width)
    assert np.array_equal(before[:, 2], after[:, 2])
    assert not np.array_equal(before[:, 3], after[:, 3])


def test_a_maximum_over_lanes_never_hides_a_nan():
    lanes = Lanes(8)
    engine = Engine(random_network(np.random.default_rng(0), 6, extra=2))
    work = engine.newton_work()
    work.voltage[:] = 1.0
    work.admittance[:] = engine.intact.point.admittance[:, None]
    for bus in range(6):
        work.power[:] = 0.0
        work.power[bus * 16] = np.nan
        steps.power_balance(lanes, lanes, engine.symbolic, work.admittance, work)
        specified = bus in engine.symbolic.node_bus
        assert np.isnan(work.mismatch[0]) == specified
        assert np.isfinite(work.mismatch[1:]).all()
