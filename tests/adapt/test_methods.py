import hashlib
from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.base import Base
from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.onnx_export import onnx_parts
from gridshift.errors import (
    ContextError,
    GridshiftError,
    RankDeficientWarning,
    SurrogateMismatchError,
)
from gridshift.grid.scenarios import sample_loads
from gridshift.learn.moments import EPS
from tests.adapt.grids import small_grid


def bits(surrogate):
    """Digest of every number in a surrogate."""
    state = hashlib.sha256()
    for array in surrogate.model.arrays().values():
        state.update(array.tobytes())
    return state.hexdigest()


class Fitted:
    """A method after it was fitted once, which takes seconds where a network is trained."""

    def __init__(self, method, base, rows):
        self.base, self.before = base, None
        if method.base is None:
            self.before = bits(base), base.predict(rows.x)
        self.predictor = method.fit(base, Context.of(rows))
        self.predictor.predict(rows.x)


@pytest.fixture(scope="module")
def fitted(base_of, outage_rows):
    """Of each method, on the outage's rows."""
    found = {}

    def of(method):
        if method.name not in found:
            found[method.name] = Fitted(method, base_of(method), outage_rows)
        return found[method.name]

    return of


FROM_A_SURROGATE = {name: method for name, method in METHODS.items() if method.base is None}


@pytest.mark.parametrize("method", FROM_A_SURROGATE.values(), ids=FROM_A_SURROGATE)
def test_adaptation_leaves_the_surrogate_bit_for_bit_as_it_was(fitted, outage_rows, method):
    surrogate, (before, prediction) = fitted(method).base, fitted(method).before
    assert bits(surrogate) == before
    assert np.array_equal(surrogate.predict(outage_rows.x), prediction)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_predictor_gives_one_finite_row_of_y_for_each_row_of_x(fitted, outage_rows, method):
    predictor = fitted(method).predictor
    for num in (0, 1, 7):
        y = predictor.predict(outage_rows.x[:num])
        assert y.shape == (num, outage_rows.layout.num_outputs)
        assert y.dtype == np.float64
        assert np.isfinite(y).all()


@pytest.mark.filterwarnings("ignore::gridshift.errors.GridshiftWarning")
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_says_beforehand_whether_its_prediction_has_an_onnx_form(fitted, method):
    predictor = fitted(method).predictor
    if method.exportable:
        assert onnx_parts(predictor)
        return
    with pytest.raises(GridshiftError, match="no ONNX form"):
        onnx_parts(predictor)


@pytest.mark.parametrize(
    "method", [m for m in METHODS.values() if not m.uses_surrogate], ids=lambda m: m.name
)
def test_a_method_that_uses_no_surrogate_predicts_the_same_without_one(
    fitted, grid, outage_rows, method
):
    untrained = method.start(grid.without(["line:1"]), fitted(method).base.config)
    assert type(untrained) is Base
    expected = fitted(method).predictor.predict(outage_rows.x)
    context = Context.of(outage_rows)
    assert np.array_equal(method.fit(untrained, context).predict(outage_rows.x), expected)


def test_icw_is_the_papers_formula(surrogate, outage_rows):
    """Equations 7 and 8 written out: y = (S + eps I)^(1/2) f(x) + mean."""
    predictor = METHODS["icw"].fit(surrogate, Context.of(outage_rows))
    covariance = np.cov(outage_rows.y.T) + EPS * np.eye(outage_rows.layout.num_outputs)
    values, vectors = np.linalg.eigh(covariance)
    z = surrogate.predict_whitened(outage_rows.x)
    expected = z @ (vectors * np.sqrt(values) @ vectors.T) + outage_rows.y.mean(0)
    # float32 in the folded last layer
    np.testing.assert_allclose(predictor.predict(outage_rows.x), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "deviation"),
    [("residual", lambda y: np.ones(y.shape[1])), ("zscore", lambda y: y.std(0, ddof=1))],
)
def test_residual_and_zscore_are_their_formulas(surrogates, outage_rows, name, deviation):
    surrogate = surrogates[name]
    predictor = METHODS[name].fit(surrogate, Context.of(outage_rows))
    z = surrogate.predict_whitened(outage_rows.x)
    expected = z * deviation(outage_rows.y) + outage_rows.y.mean(0)
    # float32, and the regularisation of 1e-6 on variances down to 1e-5
    np.testing.assert_allclose(predictor.predict(outage_rows.x), expected, atol=1e-3)


def test_frozen_is_the_surrogate_and_needs_no_context(surrogates, grid, outage_rows):
    network = grid.without(["line:1"])
    for surrogate in surrogates.values():
        predictor = METHODS["frozen"].fit(surrogate, Context.empty(network, surrogate))
        assert np.array_equal(predictor.predict(outage_rows.x), surrogate.predict(outage_rows.x))


def test_every_context_method_beats_frozen_on_a_severe_outage(
    base_of, surrogates, outage_rows, grid
):
    network = outage_rows.network
    test = generate(network, sample_loads(network, np.random.default_rng(6), 200, regime="drawn"))

    def mae(name):
        predictor = METHODS[name].fit(base_of(METHODS[name]), Context.of(outage_rows))
        return np.abs(predictor.predict(test.x) - test.y).mean()

    frozen = mae("frozen")
    for name in ("residual", "zscore", "icw"):
        assert mae(name) < frozen / 2


def test_a_context_smaller_than_the_output_warns_and_works(surrogate, outage_rows):
    few = Context.of(outage_rows.rows(slice(0, 5)))
    with pytest.warns(RankDeficientWarning, match="5 rows and 12 outputs has rank 4"):
        predictor = METHODS["icw"].fit(surrogate, few)
    assert np.isfinite(predictor.predict(outage_rows.x)).all()


@pytest.mark.parametrize("name", ["residual", "zscore", "icw"])
def test_contexts_that_cannot_be_used_are_refused(base_of, outage_rows, name):
    method = METHODS[name]
    surrogate, good = base_of(method), Context.of(outage_rows)
    poisoned = good.y.copy()
    poisoned[3, 2] = np.nan
    for wrong, told in (
        (replace(good, x=good.x[:1], y=good.y[:1]), "at least 2 solved cases, not 1"),
        (Context.empty(good.network, surrogate), "at least 2 solved cases, not 0"),
        (replace(good, y=good.y[:, :-1]), r"small needs \(N, 17\) and \(N, 12\)"),
        (replace(good, y=good.y[:-1]), "shape"),
        (replace(good, y=poisoned), "1 of 60 context rows hold NaN .*row 3"),
    ):
        with pytest.raises(ContextError, match=told):
            method.fit(surrogate, wrong)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_topology_of_another_grid_is_refused(base_of, outage_rows, method):
    other = replace(Context.of(outage_rows), network=small_grid("other", load_scale=1.1))
    with pytest.raises(SurrogateMismatchError, match=r"small .* does not fit other"):
        method.fit(base_of(method), other)


def test_a_surrogate_trained_with_another_transform_is_refused(surrogates, outage_rows):
    with pytest.raises(SurrogateMismatchError, match=r"icw needs .* zca; .* trained with zscore"):
        METHODS["icw"].fit(surrogates["zscore"], Context.of(outage_rows))


def test_context_statistics_methods_take_no_gradient_steps():
    assert not any(METHODS[name].gradient for name in ("frozen", "residual", "zscore", "icw"))
    assert METHODS["frozen"].needs == ("nothing",)
    assert METHODS["icw"].needs == ("solved cases",)
