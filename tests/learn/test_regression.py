import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from gridshift.errors import GridshiftError
from gridshift.learn.model_file import ModelFiles, Stored
from gridshift.learn.models import FittedModel, model_fields, restored_model
from gridshift.learn.onnx_graph import write_onnx
from gridshift.learn.products import products
from gridshift.learn.regression import RegressionConfig, fit_regression
from gridshift.learn.rounds import PENALTIES, components_of


def quadratic_rows(num_rows=600, num_inputs=6, num_outputs=8, seed=0):
    """Outputs that are linear in the inputs, and one output bent by the square of another."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (num_rows, num_inputs))
    y = x @ rng.normal(size=(num_inputs, num_outputs)) + 3.0
    y[:, 0] += 0.05 * (y[:, 1] - 3) ** 2
    return x, y


def test_linear_is_least_squares_where_rows_have_no_noise():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 5))
    y = x @ rng.normal(size=(5, 3)) + [1.0, 2.0, 3.0]
    model = fit_regression(x, y, RegressionConfig(name="linear"))
    by_hand = np.linalg.lstsq(np.hstack([x, np.ones((200, 1))]), y, rcond=None)[0]
    # the smallest penalty, 1e-10 of the rows' variance, is what separates the two
    np.testing.assert_allclose(model.weight, by_hand[:-1], atol=1e-8)
    np.testing.assert_allclose(model.bias, by_hand[-1], atol=1e-8)
    assert not model.rounds


def test_linear_is_scikit_learns_ridge_with_one_of_the_penalties():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 40)) * rng.uniform(0.1, 10, 40)
    y = x[:, :3] @ rng.normal(size=(3, 2)) + 5 * rng.normal(size=(60, 2))
    model = fit_regression(x, y, RegressionConfig(name="linear"))
    scaler = StandardScaler().fit(x)
    fits = [
        SklearnRidge(alpha=60 * p).fit(scaler.transform(x), y).predict(scaler.transform(x))
        for p in PENALTIES
    ]
    assert any(np.allclose(model.predict(x), fit, rtol=1e-6) for fit in fits)


def test_products_are_all_monomials_up_to_second_order_and_fewer_components_are_a_prefix():
    z = np.random.default_rng(3).normal(size=(7, 4))
    ours = products(z)
    theirs = PolynomialFeatures(2, include_bias=False).fit_transform(z)
    np.testing.assert_allclose(np.sort(ours, 1), np.sort(theirs, 1))
    np.testing.assert_array_equal(products(z[:, :2]), ours[:, : 2 * 5 // 2])


def test_components_are_uncorrelated_with_variance_one_and_of_their_group_alone():
    y = np.random.default_rng(4).normal(size=(300, 6)) * [1, 10, 0.1, 5, 2, 1]
    directions, origin = components_of(y, np.array([1, 3, 4]), 2)
    z = y @ directions - origin
    np.testing.assert_allclose(z.T @ z / 300, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(z.mean(0), 0, atol=1e-12)
    assert not directions[[0, 2, 5]].any()


def test_quadratic_finds_a_square_that_linear_leaves():
    x, y = quadratic_rows()
    fresh, truth = x[:50] * 0.9, None
    linear = fit_regression(x, y, RegressionConfig(name="linear"))
    quadratic = fit_regression(x, y)
    rng = np.random.default_rng(0)
    rng.uniform(-1, 1, (600, 6))
    truth = fresh @ rng.normal(size=(6, 8)) + 3.0
    truth[:, 0] += 0.05 * (truth[:, 1] - 3) ** 2
    assert np.abs(linear.predict(fresh) - truth).max() > 1e-2
    # a sum of squares of 6 inputs is in the span of the products of 6 components
    np.testing.assert_allclose(quadratic.predict(fresh), truth, atol=1e-6)


def test_a_second_round_learns_what_is_of_fourth_order():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (2000, 3))
    y = x @ rng.normal(size=(3, 4))
    y[:, 0] += 0.3 * y[:, 1] ** 2
    y[:, 2] += 0.3 * (y[:, 0] + 0.2 * y[:, 1] ** 2) ** 2
    errors = [
        fit_regression(x, y, RegressionConfig(max_rounds=rounds)).left_out_mae for rounds in (1, 4)
    ]
    assert errors[1] < errors[0] / 3


def test_the_error_told_is_that_of_rows_the_model_has_not_seen():
    x, y = quadratic_rows(num_rows=4000)
    y += 0.01 * np.random.default_rng(6).normal(size=y.shape)
    model = fit_regression(x[:2000], y[:2000])
    fresh = np.abs(model.predict(x[2000:]) - y[2000:]).mean()
    # 400 rows of 8 outputs with the same noise tell their mean to 2 %
    assert model.left_out_mae == pytest.approx(fresh, rel=0.06)


def test_inputs_that_never_vary_change_nothing():
    x, y = quadratic_rows()
    wide = np.hstack([x[:, :2], np.full((600, 3), 0.1), x[:, 2:]])
    plain, padded = fit_regression(x, y), fit_regression(wide, y)
    assert np.array_equal(plain.predict(x), padded.predict(wide))
    wide[:, 3] += 5.0
    assert np.array_equal(plain.predict(x), padded.predict(wide))


FILES = ModelFiles(name="base", noun="base", remedy="fit it anew")


def stored(model, folder):
    """The model as files give it back."""
    FILES.write(folder, {"model": model_fields(model)}, model.arrays())
    state, arrays = FILES.read(folder)
    return Stored(about=state["model"], arrays=arrays, shape=(6, 8))


def test_a_stored_model_predicts_bit_for_bit_the_same(tmp_path):
    x, y = quadratic_rows()
    model = fit_regression(x, y)
    assert isinstance(model, FittedModel)
    back = restored_model(stored(model, tmp_path))
    assert np.array_equal(back.predict(x), model.predict(x))
    assert back.about() == model.about()


@pytest.mark.parametrize("damage", ["weight", "bias", "round0.origin", "varied", "input_mean"])
def test_arrays_that_do_not_fit_together_are_refused(damage, tmp_path):
    x, y = quadratic_rows()
    sound = stored(fit_regression(x, y), tmp_path)
    cut = {k: v[:-1] if k == damage else v for k, v in sound.arrays.items()}
    with pytest.raises(GridshiftError):
        restored_model(replace(sound, arrays=cut))
    del cut[damage]
    with pytest.raises(GridshiftError, match=r"round0\.|" + damage):
        restored_model(replace(sound, arrays=cut))


@pytest.mark.parametrize("num_rounds", [0, 1])
def test_onnxruntime_predicts_what_a_regression_predicts(num_rounds, tmp_path):
    pytest.importorskip("onnxruntime")
    x, y = quadratic_rows()
    wide = np.hstack([x, np.full((600, 1), 0.3)])
    model = fit_regression(wide, y, RegressionConfig(name="quadratic" if num_rounds else "linear"))
    assert bool(model.rounds) == bool(num_rounds)
    written = write_onnx(
        tmp_path / "y.onnx", [model], check_on=wide, expected=model.predict(wide)
    )  # refuses differences beyond the bound
    assert written.max_difference <= model.round_off(wide).max() < 1e-9


def test_what_cannot_be_fitted_is_refused_with_a_reason():
    x, y = quadratic_rows()
    with pytest.raises(GridshiftError, match="at least 10"):
        fit_regression(x[:5], y[:5])
    y[3, 0] = np.nan
    with pytest.raises(GridshiftError, match="NaN"):
        fit_regression(x, y)
    with pytest.raises(GridshiftError, match="no regression cubic"):
        RegressionConfig(name="cubic")


def test_fitting_needs_no_pytorch():
    code = (
        "import sys, numpy as np; from gridshift.learn.regression import fit_regression; "
        "x = np.random.default_rng(0).normal(size=(50, 3)); fit_regression(x, x @ x.T[:3, :3]); "
        "import gridshift.learn.compensation; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
