"""`ICWRegressor` against scikit-learn's own checks, closed forms and formulas written out."""

import numpy as np
import pytest
from scipy.linalg import sqrtm
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gridshift.errors import GridshiftError, RankDeficientWarning
from gridshift.learn.estimator import ICWRegressor
from gridshift.learn.estimator_file import load, save

QUICK = {"base": "mlp", "num_steps": 200, "hidden": 32, "learning_rate": 1e-2, "random_state": 0}
TINY = QUICK | {"num_steps": 20, "hidden": 4, "learning_rate": 2e-3}

NOT_APPLICABLE = {
    # the same row in a block of another size: BLAS adds float32 products in another order, and
    # the check allows 1e-7; `test_a_row_is_predicted_alike_alone_and_among_others` allows 1e-6
    "check_methods_subset_invariance": "layers are float32",
}


@pytest.mark.filterwarnings("ignore::gridshift.errors.RankDeficientWarning")
@parametrize_with_checks(
    [
        ICWRegressor(base="mlp", num_steps=100, hidden=16, learning_rate=2e-2),
        ICWRegressor(base="linear"),
        ICWRegressor(base="quadratic"),
    ],
    expected_failed_checks=lambda e: NOT_APPLICABLE if e.base == "mlp" else {},
)
def test_it_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


def rows(seed: int, num: int = 300, shift: float = 0.0):
    """Inputs, and outputs of another size each that a shift moves, scales and mixes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num, 4))
    mixing = np.array([[1.0, 0.3, 0], [0, 1, 0.5], [0.2, 0, 1], [0.4, 0.1, 0.2]])
    y = x @ mixing + 0.1 * np.tanh(x[:, :3])
    change = np.eye(3) + shift * np.array([[0.3, 0.1, 0], [-0.2, 0.2, 0.1], [0, 0.3, -0.2]])
    return x, (y @ change + shift) * [1.0, 30.0, 0.2] + [5.0, 0.0, 100.0]


@pytest.fixture(scope="module")
def fitted() -> ICWRegressor:
    return ICWRegressor(**QUICK | {"num_steps": 600}).fit(*rows(0))


def error(estimator: ICWRegressor, x, y) -> float:
    return float(np.abs((estimator.predict(x) - y) / y.std(0)).mean())


def test_a_row_is_predicted_alike_alone_and_among_others(fitted):
    x, y = rows(1, 40)
    alone = np.vstack([fitted.predict(row[None]) for row in x])
    np.testing.assert_allclose(alone / y.std(0), fitted.predict(x) / y.std(0), atol=1e-6, rtol=0)


@pytest.mark.parametrize("moments", ["context", "paired"])
def test_adaptation_to_a_shifted_domain_beats_none(fitted, moments):
    x, y = rows(2, 2000, shift=1.0)
    adapted = fitted.frozen().set_params(moments=moments).adapt(x[:1000], y[:1000])
    assert error(adapted, x[1000:], y[1000:]) < error(fitted, x[1000:], y[1000:]) / 5


def test_adapting_leaves_the_estimator_as_it_was(fitted):
    x, y = rows(3, shift=1.0)
    before = fitted.predict(x)
    adapted = fitted.adapt(x, y)
    np.testing.assert_array_equal(fitted.predict(x), before)
    assert (fitted.num_context_, adapted.num_context_) == (0, len(x))
    assert np.abs(adapted.predict(x) - before).max() > 1


def test_adapting_twice_is_adapting_once(fitted):
    first, second = rows(4, shift=0.5), rows(5, shift=1.0)
    twice, once = fitted.adapt(*first).adapt(*second), fitted.adapt(*second)
    np.testing.assert_array_equal(twice.predict(first[0]), once.predict(first[0]))
    np.testing.assert_array_equal(twice.frozen().predict(first[0]), fitted.predict(first[0]))


def test_context_moments_are_equation_8_of_the_paper(fitted):
    """y = mean(Y_c) + S(Y_c)^1/2 S(Y_b)^-1/2 (f(x) - mean(Y_b)), written out."""
    (_, base), (x, y) = rows(0), rows(6, shift=1.0)
    eps = fitted.eps * np.eye(3)
    map_ = sqrtm(np.cov(y.T) + eps) @ np.linalg.inv(sqrtm(np.cov(base.T) + eps))
    expected = y.mean(0) + (fitted.predict(x) - base.mean(0)) @ map_.T
    # float32 layers: 1e-7 of the outputs' own spread, enlarged by the whitener
    np.testing.assert_allclose(fitted.adapt(x, y).predict(x), expected, rtol=0, atol=1e-3)


def test_paired_moments_change_nothing_where_nothing_has_shifted(fitted):
    x, _ = rows(7, 20)
    paired = fitted.frozen().set_params(moments="paired")
    # float32 weights of 30 outputs' spread, composed in another order
    np.testing.assert_allclose(
        paired.adapt(x, paired.predict(x)).predict(x), paired.predict(x), rtol=1e-5, atol=1e-4
    )


def test_the_same_random_state_gives_the_same_predictions_and_another_others():
    x, y = rows(8, 60)
    first, again, other = (ICWRegressor(**QUICK | {"random_state": s}).fit(x, y) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.predict(x), again.predict(x))
    assert np.abs(first.predict(x) - other.predict(x)).max() > 0


def test_it_works_in_pipelines_and_cross_validation():
    scores = cross_val_score(make_pipeline(StandardScaler(), ICWRegressor(**QUICK)), *rows(9), cv=2)
    assert scores.min() > 0.9


def test_tables_with_named_columns_are_held_to_their_names():
    pandas = pytest.importorskip("pandas")
    x, y = rows(10, 40)
    named = pandas.DataFrame(x, columns=list("abcd"))
    fitted = ICWRegressor(**QUICK).fit(named, y)
    assert list(fitted.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        fitted.adapt(named[list("bacd")], y)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"base": "tree"}, "linear, quadratic, mlp"),
     ({"whitening": "pca"}, "identity, residual"), ({"moments": "both"}, "context, paired"),
     ({"num_steps": 0}, "at least one step"), ({"hidden": 0}, "at least one layer")],
)  # fmt: skip
def test_parameters_that_mean_nothing_are_refused_at_fit(change, words):
    with pytest.raises(GridshiftError, match=words):
        ICWRegressor(**QUICK | change).fit(*rows(0, 20))


def test_a_context_of_another_shape_is_refused(fitted):
    x, y = rows(11, 30)
    with pytest.raises(GridshiftError, match="2 outputs, but ICWRegressor was fitted with 3"):
        fitted.adapt(x, y[:, :2])
    with pytest.raises(ValueError, match="3 features"):
        fitted.adapt(x[:, :3], y)
    with pytest.raises(ValueError, match="minimum of 2"):
        fitted.adapt(x[:1], y[:1])
    with pytest.raises(NotFittedError):
        ICWRegressor().adapt(x, y)


def test_a_context_no_larger_than_the_outputs_warns(fitted):
    with pytest.warns(RankDeficientWarning):
        fitted.adapt(*rows(12, 3))


def test_a_stored_estimator_predicts_bit_for_bit_and_adapts_alike(fitted, tmp_path):
    x, y = rows(13, shift=1.0)
    adapted = fitted.adapt(x, y)
    save(adapted, tmp_path / "model", about={"who": "test"})
    found, about = load(tmp_path / "model")
    assert about == {"who": "test"}
    assert found.get_params() == fitted.get_params()
    np.testing.assert_array_equal(found.predict(x), adapted.predict(x))
    np.testing.assert_array_equal(found.frozen().predict(x), fitted.predict(x))
    np.testing.assert_array_equal(found.adapt(*rows(14)).predict(x),
                                  fitted.adapt(*rows(14)).predict(x))  # fmt: skip


@pytest.mark.parametrize("whitening", ["identity", "residual", "zscore", "zca"])
def test_an_output_that_never_varies_is_predicted_as_it_is(whitening, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    y = np.column_stack([x.sum(1), np.full(40, 1.02)])
    fitted = ICWRegressor(base="mlp", whitening=whitening, num_steps=20, random_state=0).fit(x, y)
    assert (fitted.predict(x)[:, 1] == 1.02).all()
    adapted = fitted.adapt(x[:20], y[:20] + np.array([0.5, 0.01]))
    assert (adapted.predict(x)[:, 1] == y[0, 1] + 0.01).all()
    assert (adapted.frozen().predict(x)[:, 1] == 1.02).all()
    save(adapted, tmp_path, about={})
    back, _ = load(tmp_path)
    assert np.array_equal(back.predict(x), adapted.predict(x))
    assert (back.frozen().predict(x)[:, 1] == 1.02).all()


@pytest.mark.parametrize("value", [1e31, -1e300, 1.7e308])
@pytest.mark.parametrize("at", ["x", "y"])
def test_a_value_whose_square_overflows_is_refused_by_row_and_column(value, at):
    rng = np.random.default_rng(0)
    tables = {"x": rng.normal(size=(30, 3)), "y": rng.normal(size=(30, 2))}
    fitted = ICWRegressor(**TINY).fit(tables["x"], tables["y"])
    tables[at][4, 1] = value
    told = r"in row 4, column 1; values up to 1e\+30"
    with pytest.raises(GridshiftError, match=told):
        ICWRegressor(**TINY).fit(tables["x"], tables["y"])
    with pytest.raises(GridshiftError, match=told):
        fitted.adapt(tables["x"], tables["y"])
    if at == "x":
        with pytest.raises(GridshiftError, match=told):
            fitted.predict(tables["x"])


@pytest.mark.parametrize("x_unit", [1e-290, 1e-160, 1e-30, 1.0, 1e29])
@pytest.mark.parametrize(
    ("whitening", "y_unit"),
    [(name, unit) for name in ("zca", "zscore") for unit in (1e-290, 1.0, 1e29)]
    # the loss of what isn't scaled is its square in float32
    + [("residual", unit) for unit in (1e-290, 1.0, 1e15)],
)
@pytest.mark.parametrize("base", [TINY, {"base": "linear"}, {"base": "quadratic"}])
def test_every_unit_up_to_the_largest_gives_finite_predictions(base, x_unit, y_unit, whitening):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (30, 3))
    y = x @ rng.normal(size=(3, 2)) / 2
    x, y = x * x_unit, y * y_unit
    fitted = ICWRegressor(**base, whitening=whitening).fit(x, y)
    assert np.isfinite(fitted.predict(x)).all()
    assert np.isfinite(fitted.adapt(x, 2 * y).predict(x)).all()
    assert np.isfinite(fitted.adapt(x, 2 * y, touching=[0, 1]).predict(x)).all()


def test_a_row_far_beyond_the_fit_is_refused_instead_of_predicted_as_nan():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2)) * 1e-20
    fitted = ICWRegressor(**TINY).fit(x, rng.normal(size=(30, 2)))
    with pytest.raises(GridshiftError, match="row 1 of X is too far"):
        fitted.predict(np.array([[0.0, 0.0], [1e25, -1e25]]))
