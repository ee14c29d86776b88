import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.grid.scenarios import sample_loads

PAIRED = ("residual-paired", "zscore-paired", "icw-paired", "icw-shrunk")


def mae(predictor, rows):
    return np.abs(predictor.predict(rows.x) - rows.y).mean()


@pytest.fixture(scope="module")
def test_rows(outage_rows):
    network = outage_rows.network
    return generate(network, sample_loads(network, np.random.default_rng(9), 200))


@pytest.mark.parametrize("name", PAIRED)
@pytest.mark.parametrize("num", [4, 60])
def test_where_outputs_are_as_predicted_paired_methods_change_nothing(
    surrogate, outage_rows, name, num
):
    x = outage_rows.x[:num]
    context = Context(network=outage_rows.network, x=x, y=surrogate.predict(x), num_solves=num)
    predictor = METHODS[name].fit(surrogate, context)
    # float32 in the last layer, and square roots of a covariance of rank 3 with eps 1e-6
    np.testing.assert_allclose(
        predictor.predict(outage_rows.x), surrogate.predict(outage_rows.x), atol=2e-6
    )


def test_icw_paired_is_its_formula(surrogate, outage_rows):
    predictor = METHODS["icw-paired"].fit(surrogate, Context.of(outage_rows))
    f, y = surrogate.predict(outage_rows.x), outage_rows.y
    eye = 1e-6 * np.eye(y.shape[1])

    def root(rows, exponent):
        values, vectors = np.linalg.eigh(np.cov(rows.T) + eye)
        return vectors * values**exponent @ vectors.T

    expected = y.mean(0) + (f - f.mean(0)) @ root(f, -0.5) @ root(y, 0.5)
    np.testing.assert_allclose(predictor.predict(outage_rows.x), expected, atol=5e-5)


def test_paired_moments_beat_those_of_the_training_rows(surrogate, outage_rows, test_rows):
    context = Context.of(outage_rows)
    icw = mae(METHODS["icw"].fit(surrogate, context), test_rows)
    assert mae(METHODS["icw-paired"].fit(surrogate, context), test_rows) < icw


def test_ridge_with_enough_rows_is_about_least_squares(surrogate, outage_rows, test_rows):
    """Sixty rows, nine inputs that vary: the solution is nearly affine, so penalties are small."""
    varied = outage_rows.x.std(0) > 0
    plain = LinearRegression().fit(outage_rows.x[:, varied], outage_rows.y)
    expected = np.abs(plain.predict(test_rows.x[:, varied]) - test_rows.y).mean()
    ridge = METHODS["ridge"].fit(surrogate, Context.of(outage_rows))
    assert mae(ridge, test_rows) == pytest.approx(expected, rel=0.1)


def test_ridge_features_is_linear_in_z_and_x(surrogate, outage_rows, test_rows):
    predictor = METHODS["ridge-features"].fit(surrogate, Context.of(outage_rows))
    varied = test_rows.x.std(0) > 0
    both = np.hstack([surrogate.predict_whitened(test_rows.x), test_rows.x[:, varied]])
    y_hat = predictor.predict(test_rows.x)
    linear = LinearRegression().fit(both, y_hat)
    np.testing.assert_allclose(linear.predict(both), y_hat, atol=1e-5)


@pytest.mark.parametrize("num", [2, 9, 20, 60])
def test_the_choice_is_about_as_good_as_the_best_and_never_worse_than_frozen(
    surrogate, outage_rows, test_rows, num
):
    context = Context.of(outage_rows.rows(slice(0, num)))
    auto = METHODS["icw-auto"].fit(surrogate, context)
    assert mae(auto, test_rows) <= 1.001 * mae(surrogate, test_rows)
    if num == 60:
        names = ("frozen", "icw", "zscore-paired", "icw-paired", "ridge", "ridge-features")
        errors = [mae(METHODS[name].fit(surrogate, context), test_rows) for name in names]
        assert mae(auto, test_rows) < 1.2 * min(errors)


def test_left_out_errors_tell_the_test_error(surrogate, outage_rows, test_rows):
    auto = METHODS["icw-auto"].fit(surrogate, Context.of(outage_rows))
    for name, expected in auto.left_out_mae.items():
        found = mae(METHODS[name].fit(surrogate, Context.of(outage_rows)), test_rows)
        # sixty rows: errors of errors of some tens of percent
        assert found == pytest.approx(expected, rel=0.6)
