from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.baselines.deepopf_ft import (
    DeepOpfFtConfig,
    DeepOpfFtPredictor,
    adapt_deepopf_ft,
    admittance_ratios,
    start_deepopf_ft,
)
from gridshift.adapt.baselines.topologies import draw_rows
from gridshift.adapt.context import Context
from tests.adapt.conftest import quick_config

pytestmark = pytest.mark.usefixtures("own_cache")
OWN = DeepOpfFtConfig(hidden=32, learning_rate=5e-3)


@pytest.fixture
def bases(grid):
    """Trained on the intact grid, and on all topologies but those without line 1."""
    network = grid.without(["line:1"])
    return {m: start_deepopf_ft(network, quick_config(), own=OWN, multi=m) for m in (False, True)}


def test_an_outage_is_told_by_its_own_columns_at_zero_and_all_others_at_one(grid, bases):
    for labels in (["line:1"], ["line:4", "line:6"]):
        x = draw_rows(grid, quick_config(), 3, role="test").x
        inputs = bases[True].inputs(grid.without(labels), x)
        assert np.array_equal(inputs[:, : x.shape[1]], x)
        told = inputs[:, x.shape[1] :].reshape(3, 2, grid.num_branches)
        out = [grid.elements[label][0] for label in labels]
        assert not told[:, :, out].any()
        assert (np.delete(told, out, axis=2) == 1).all()


def test_a_branch_of_half_the_admittance_is_told_as_half_and_no_resistance_is_no_problem(grid):
    y = grid.branch_y.copy()
    y[2] *= 0.5
    y[5] = 1j * y[5].imag
    weaker = replace(grid, branch_y=y)
    ratio = admittance_ratios(grid, weaker).reshape(2, -1)
    assert ratio[:, 2] == pytest.approx([0.5, 0.5])
    lossless = replace(grid, branch_y=1j * grid.branch_y.imag)
    assert (admittance_ratios(lossless, lossless) == 1).all()


def test_columns_that_never_vary_are_not_divided_by_their_deviation(grid, bases):
    base = bases[False]
    assert (base.scale[base.layout.num_inputs :] == 1).all()
    x = draw_rows(grid, quick_config(), 20, role="test").x
    outage = Context.empty(grid.without(["line:1"]), base)
    off = adapt_deepopf_ft(base, outage).predict(x) - base.y_mean
    # a network that has never seen this column move is wrong by deviations, not by a thousand
    assert np.abs(off / base.y_scale).max() < 50


def test_the_network_trained_on_topologies_tells_them_apart(grid, bases):
    network = grid.without(["line:3"])
    data = draw_rows(network, quick_config(), 200, role="test", regime="drawn")

    def error(base):
        y = adapt_deepopf_ft(base, Context.empty(network, base)).predict(data.x)
        return np.abs(y - data.y).mean()

    assert error(bases[True]) < error(bases[False]) / 2


def test_reconstructed_generation_agrees_with_the_predicted_voltages(grid, bases):
    network = grid.without(["line:1"])
    x = draw_rows(network, quick_config(), 4, role="test").x
    base = bases[True]
    own = replace(base, own=replace(OWN, reconstruct=True))
    plain = DeepOpfFtPredictor(base=base, network=network).predict(x)
    derived = DeepOpfFtPredictor(base=own, network=network).predict(x)
    for quantity in ("v", "theta"):
        where = base.layout.y_slices[quantity]
        np.testing.assert_allclose(derived[:, where], plain[:, where], atol=1e-12)
    loads = base.layout.unpack_loads(x)
    voltage = base.layout.unpack_voltage(x, derived)
    expected = base.layout.pack_outputs(network, loads, voltage)
    np.testing.assert_allclose(derived, expected, atol=1e-12)


def test_predictions_are_finite_and_leave_the_base_as_it_was(grid, bases):
    network = grid.without(["line:1"])
    x = draw_rows(network, quick_config(), 7, role="test").x
    for base in bases.values():
        before = [p.numpy().tobytes() for p in base.backbone.state_dict().values()]
        predictor = adapt_deepopf_ft(base, Context.empty(network, base))
        for num in (0, 1, 7):
            y = predictor.predict(x[:num])
            assert y.shape == (num, base.layout.num_outputs)
            assert np.isfinite(y).all()
        assert [p.numpy().tobytes() for p in base.backbone.state_dict().values()] == before


def test_a_second_start_reads_the_same_network_from_the_cache(grid, bases):
    def never(*args):
        raise AssertionError("trained again")

    x = draw_rows(grid, quick_config(), 5, role="test").x
    again = start_deepopf_ft(grid.without(["line:1"]), quick_config(), never, own=OWN, multi=True)
    empty = Context.empty(grid, again)
    assert np.array_equal(
        adapt_deepopf_ft(again, empty).predict(x), adapt_deepopf_ft(bases[True], empty).predict(x)
    )
