from dataclasses import replace

import numpy as np
import pytest

from gridshift.adapt.baselines.fine_tune import adapt_fine_tune
from gridshift.adapt.baselines.ttf_ensemble import TTF, adapt_ttf_ensemble, start_ttf_ensemble
from gridshift.adapt.context import Context
from gridshift.errors import SurrogateMismatchError
from tests.adapt.conftest import quick_config
from tests.adapt.grids import small_grid
from tests.adapt.test_methods import bits

QUICK = replace(TTF, num_steps=100)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRIDSHIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def ensemble(grid, cache):
    return start_ttf_ensemble(grid.without(["line:1"]), quick_config(), num_members=3)


def test_members_differ_in_weights_and_in_rows(ensemble, outage_rows):
    y = [member.predict(outage_rows.x) for member in ensemble.members]
    means = [member.model.input_mean for member in ensemble.members]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not np.array_equal(y[one], y[other])
        assert not np.array_equal(means[one], means[other])


def test_the_mean_of_members_is_better_on_the_intact_grid_than_they_are(ensemble, training_rows):
    """Convexity of the absolute error: the mean is at least as good as the members' average."""
    off = [np.abs(m.predict(training_rows.x) - training_rows.y).mean() for m in ensemble.members]
    mean = np.mean([m.predict(training_rows.x) for m in ensemble.members], axis=0)
    assert np.abs(mean - training_rows.y).mean() < np.mean(off)
    # 50 validation rows, whose spread is smaller than that of training rows
    assert 0.2 < ensemble.mae / np.abs(mean - training_rows.y).mean() < 2


def test_the_prediction_is_the_mean_of_members_fine_tuned_on_the_context(ensemble, outage_rows):
    context, before = Context.of(outage_rows), [bits(m) for m in ensemble.members]
    predictor = adapt_ttf_ensemble(ensemble, context, config=QUICK)
    each = np.array(
        [
            adapt_fine_tune(member, context, config=QUICK).predict(outage_rows.x)
            for member in ensemble.members
        ]
    )
    # rounding of sums in another order
    np.testing.assert_allclose(predictor.predict(outage_rows.x), each.mean(0), rtol=1e-14)
    np.testing.assert_allclose(predictor.spread(outage_rows.x), each.std(0, ddof=1), atol=1e-14)
    assert [bits(m) for m in ensemble.members] == before
    assert np.abs(each.mean(0) - outage_rows.y).mean() < ensemble.mae * 10


def test_a_second_start_reads_the_same_members_from_the_cache(ensemble, grid, outage_rows):
    def never(*args):
        raise AssertionError("trained again")

    again = start_ttf_ensemble(grid, quick_config(), never, num_members=3)
    assert again.record == ensemble.record
    for one, other in zip(again.members, ensemble.members, strict=True):
        assert bits(one) == bits(other)


def test_all_members_count_as_training_and_their_rows_once(ensemble):
    assert ensemble.record["num_rows"] == ensemble.record["num_solves"] == 200
    assert ensemble.record["train_s"] == sum(m.record["train_s"] for m in ensemble.members)
    assert ensemble.config.transform == "zscore"


def test_another_grid_is_refused(ensemble):
    with pytest.raises(SurrogateMismatchError, match="does not fit other"):
        ensemble.check(small_grid("other", load_scale=1.1))
