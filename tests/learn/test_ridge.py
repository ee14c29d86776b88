import numpy as np
import pytest
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.preprocessing import StandardScaler

from gridshift.learn.ridge import PENALTIES, fit_ridge


@pytest.fixture(params=[(40, 8), (15, 30)], ids=["more rows than features", "fewer rows"])
def rows(request):
    """Linear outputs with noise, and a feature that never varies."""
    num_rows, width = request.param
    rng = np.random.default_rng(0)
    features = rng.normal(size=(num_rows, width)) * rng.uniform(0.1, 10, width)
    features[:, 3] = 0.1
    y = features @ rng.normal(size=(width, 3)) * [1, 10, 0.1] + rng.normal(size=(num_rows, 3))
    return features, y


def by_sklearn(features, y, share, at):
    """scikit-learn's ridge on standardised features, with the penalty that `share` stands for."""
    scaler = StandardScaler().fit(features)
    x = scaler.transform(features)
    penalty = share * np.linalg.svd(x, compute_uv=False)[0] ** 2
    return SklearnRidge(alpha=penalty).fit(x, y).predict(scaler.transform(at))


@pytest.mark.parametrize("share", [1e-4, 1e-2, 1.0])
def test_the_fit_is_scikit_learns(rows, share):
    features, y = rows
    fitted = fit_ridge(features, y, penalties=np.array([share]))
    at = features + 0.1
    np.testing.assert_allclose(fitted.predict(at), by_sklearn(features, y, share, at), rtol=1e-8)
    weight, bias = fitted.linear()
    np.testing.assert_allclose(at @ weight + bias, fitted.predict(at), rtol=1e-8)


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("choose", ["each", "pooled", "simplest"])
@pytest.mark.parametrize("share", [1e-6, 1e-2, 1.0])
def test_left_out_errors_are_those_of_fits_without_the_row(rows, share, choose, with_prior):
    """Refitted with the scaling and the penalty of all rows, as the closed form has it."""
    features, y = rows
    size = np.random.default_rng(2).uniform(0.1, 1.0, features.shape[1]) if with_prior else 1.0
    prior = size if with_prior else None
    fitted = fit_ridge(features, y, choose=choose, prior=prior, penalties=np.array([share]))
    spread = features.std(0)
    spread[3] = np.inf  # it never varies
    scaled = (features - features.mean(0)) / spread * size
    penalty = share * np.linalg.svd(scaled, compute_uv=False)[0] ** 2
    for i in range(len(y)):
        others = np.arange(len(y)) != i
        refit = SklearnRidge(alpha=penalty).fit(scaled[others], y[others])
        np.testing.assert_allclose(
            fitted.left_out[i], y[i] - refit.predict(scaled[i : i + 1])[0], atol=1e-8
        )


def test_each_output_has_the_penalty_of_its_own_smallest_left_out_error(rows):
    features, y = rows
    fitted = fit_ridge(features, y)
    for share in PENALTIES[8:]:
        alone = fit_ridge(features, y, penalties=np.array([share]))
        assert (
            np.square(fitted.left_out).sum(0) <= np.square(alone.left_out).sum(0) * (1 + 1e-9)
        ).all()
    pooled = fit_ridge(features, y, choose="pooled")
    assert len(set(pooled.penalties)) == 1


def test_one_penalty_for_all_is_that_of_the_smallest_mean_absolute_left_out_error(rows):
    features, y = rows
    found = np.abs(fit_ridge(features, y, choose="pooled").left_out).mean()
    for share in PENALTIES[8:]:
        alone = fit_ridge(features, y, penalties=np.array([share]))
        assert found <= np.abs(alone.left_out).mean() + 1e-12


def test_the_simplest_has_the_largest_penalty_than_which_none_is_clearly_better(rows):
    features, y = rows
    shares = PENALTIES[8:]
    errors = {
        share: np.abs(fit_ridge(features, y, penalties=np.array([share])).left_out).mean(1)
        for share in shares
    }
    least = fit_ridge(features, y, choose="pooled", penalties=shares).penalties[0]
    (found,) = set(fit_ridge(features, y, choose="simplest", penalties=shares).penalties)
    assert found >= least
    for share in shares:
        gain, log_gain = errors[share] - errors[least], np.log(errors[share] / errors[least])
        lead = max(g.mean() / (g.std(ddof=1) / len(g) ** 0.5 + 1e-300) for g in (gain, log_gain))
        assert (lead > 1) == (share > found) or share < least


def test_outputs_that_no_feature_explains_get_their_mean():
    rng = np.random.default_rng(1)
    features, y = rng.normal(size=(30, 40)), rng.normal(size=(30, 1))
    fitted = fit_ridge(features, y, penalties=np.array([1e-6, np.inf]))
    np.testing.assert_allclose(fitted.predict(features + 1.0), np.tile(y.mean(0), (30, 1)))


def test_features_that_never_vary_have_no_weight(rows):
    features, y = rows
    fitted = fit_ridge(features, y)
    moved = features.copy()
    moved[:, 3] += 5.0
    assert np.array_equal(fitted.predict(moved), fitted.predict(features))
