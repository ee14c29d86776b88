from dataclasses import replace

import numpy as np
import pytest
import torch

from gridshift.adapt.baselines.fine_tune import (
    FINE_TUNE,
    SCRATCH,
    GradientConfig,
    adapt_fine_tune,
    adapt_scratch,
    gradient_curve,
)
from gridshift.adapt.context import Context
from gridshift.adapt.datasets import generate
from gridshift.errors import GridshiftError
from gridshift.grid.scenarios import sample_loads
from gridshift.learn.training import TrainingConfig
from tests.adapt.test_methods import bits

FEW = {"num_steps": 200, "schedule": TrainingConfig(learning_rate=5e-3)}


@pytest.fixture(scope="module")
def context(outage_rows):
    return Context.of(outage_rows)


@pytest.fixture(scope="module")
def fresh_rows(outage_rows):
    network = outage_rows.network
    return generate(network, sample_loads(network, np.random.default_rng(9), 200))


def mae(predictor, rows):
    return np.abs(predictor.predict(rows.x) - rows.y).mean()


@pytest.mark.parametrize("name", ["zscore", "identity", "zca"])
@pytest.mark.parametrize("target", ["zscore", "base"])
def test_fine_tuning_lowers_the_error_on_context_and_fresh_rows(
    surrogates, context, outage_rows, fresh_rows, name, target
):
    surrogate = surrogates[name]
    tuned = adapt_fine_tune(surrogate, context, config=GradientConfig(target=target, **FEW))
    assert mae(tuned, outage_rows) < mae(surrogate, outage_rows) / 2
    assert mae(tuned, fresh_rows) < mae(surrogate, fresh_rows) / 2


@pytest.mark.parametrize("adapt", [adapt_fine_tune, adapt_scratch])
def test_the_surrogate_stays_bit_for_bit_and_so_does_torchs_random_state(
    surrogates, context, adapt
):
    surrogate, x = surrogates["zscore"], context.x
    before, prediction, random = bits(surrogate), surrogate.predict(x), torch.get_rng_state()
    config = GradientConfig(num_steps=5, target="zscore")
    first = adapt(surrogate, context, config=config).predict(x)
    assert bits(surrogate) == before
    assert np.array_equal(surrogate.predict(x), prediction)
    assert torch.equal(torch.get_rng_state(), random)
    assert np.array_equal(adapt(surrogate, context, config=config).predict(x), first)


def test_a_vanishing_learning_rate_leaves_the_frozen_surrogate(surrogates, context):
    surrogate = surrogates["zscore"]
    still = TrainingConfig(learning_rate=1e-30, final_learning_rate=0.0)
    config = GradientConfig(target="base", num_steps=3, schedule=still)
    tuned = adapt_fine_tune(surrogate, context, config=config)
    assert np.array_equal(tuned.predict(context.x), surrogate.predict(context.x))


def test_scratch_knows_nothing_of_the_bases_weights_and_statistics(surrogates, context):
    one, other = surrogates["zscore"], surrogates["zca"]
    config = replace(SCRATCH, num_steps=20)
    y = adapt_scratch(one, context, config=config).predict(context.x)
    assert np.array_equal(adapt_scratch(other, context, config=config).predict(context.x), y)
    scaling = {"input_mean": one.model.input_mean + 1, "input_scale": 2 * one.model.input_scale}
    moved = replace(one, model=replace(one.model, **scaling))
    assert np.array_equal(adapt_scratch(moved, context, config=config).predict(context.x), y)


def test_scratch_with_zscore_targets_starts_at_the_contexts_mean(surrogates, context):
    """Random weights give outputs of some tenths of a deviation; raw ones are off by about one."""
    still = TrainingConfig(learning_rate=1e-30, final_learning_rate=0.0)
    errors = {}
    for target in ("zscore", "no-norm"):
        config = GradientConfig(num_steps=1, target=target, schedule=still)
        y = adapt_scratch(surrogates["zscore"], context, config=config).predict(context.x)
        errors[target] = np.abs(y - context.y.mean(0)).mean(0)
    assert (errors["zscore"] < np.sqrt(context.y.var(0, ddof=1) + 1e-6)).all()
    assert errors["no-norm"].mean() > 5 * errors["zscore"].mean()


@pytest.mark.parametrize("kind", ["fine-tune", "scratch"])
def test_a_curve_is_one_budgeted_run_a_milestone(surrogates, context, kind):
    """The schedule ends with the budget: 10 steps are not the first 10 of 40."""
    surrogate = surrogates["zscore"]
    adapt = {"fine-tune": adapt_fine_tune, "scratch": adapt_scratch}[kind]
    config = replace(FINE_TUNE if kind == "fine-tune" else SCRATCH, **FEW)
    points = list(gradient_curve(surrogate, context, milestones=(40, 10), config=config, kind=kind))
    assert [point.num_steps for point in points] == [10, 40]
    for point in points:
        alone = adapt(surrogate, context, config=replace(config, num_steps=point.num_steps))
        assert np.array_equal(point.predictor.predict(context.x), alone.predict(context.x))
        assert point.gradient_s > 0
    short, long = config.training, replace(config.training, num_steps=10)
    assert short.learning_rate_at(9) > 10 * long.learning_rate_at(9)


def test_targets_that_make_no_sense_are_refused(surrogates, context):
    with pytest.raises(GridshiftError, match="choose one of zscore, no-norm, base"):
        GradientConfig(target="zca")  # pyright: ignore[reportArgumentType]
    with pytest.raises(GridshiftError, match="at least one step"):
        GradientConfig(num_steps=0)
    with pytest.raises(GridshiftError, match="transform identity, not zscore"):
        adapt_fine_tune(surrogates["zscore"], context, config=GradientConfig(target="no-norm"))
    with pytest.raises(GridshiftError, match="corrects the tangent of its own topology"):
        adapt_fine_tune(surrogates["tangent"], context)
    with pytest.raises(GridshiftError, match="scratch knows nothing of the base"):
        adapt_scratch(surrogates["zscore"], context, config=GradientConfig(target="base"))
