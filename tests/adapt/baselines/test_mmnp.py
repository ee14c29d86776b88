from dataclasses import replace

import numpy as np
import pytest
import torch

from gridshift.adapt.baselines.mmnp import MmnpConfig, adapt_mmnp, start_mmnp
from gridshift.adapt.baselines.neural_process import NeuralProcess, train_episodes
from gridshift.adapt.baselines.topologies import draw_rows
from gridshift.adapt.context import Context
from gridshift.errors import GridshiftError
from gridshift.learn.training import TrainingConfig
from tests.adapt.conftest import quick_config

pytestmark = pytest.mark.usefixtures("own_cache")
OWN = MmnpConfig(
    hidden=32, representation=16, fewest=10, most=50, num_targets=32, rows_per_topology=60,
    step_factor=1.0, learning_rate=5e-3,
)  # fmt: skip


@pytest.fixture
def bases(grid):
    network = grid.without(["line:1"])
    return {m: start_mmnp(network, quick_config(), own=OWN, multi=m) for m in (False, True)}


@pytest.fixture
def context(outage_rows):
    return Context.of(outage_rows)


@pytest.mark.parametrize("multi", [False, True])
def test_the_order_of_the_context_does_not_matter_and_its_content_does(
    bases, context, outage_rows, multi
):
    base, x = bases[multi], outage_rows.x[:5]
    y = adapt_mmnp(base, context).predict(x)
    order = np.random.default_rng(0).permutation(len(context.x))
    shuffled = adapt_mmnp(base, replace(context, x=context.x[order], y=context.y[order]))
    # a mean of 60 float32 in another order
    np.testing.assert_allclose(shuffled.predict(x), y, atol=1e-5)
    fewer = adapt_mmnp(base, replace(context, x=context.x[:30], y=context.y[:30]))
    assert np.abs(fewer.predict(x) - y).max() > 1e-4


def test_a_shifted_context_shifts_the_prediction(bases, context, outage_rows):
    """Rows are scaled by the context's own statistics, so an offset of y comes back as it is."""
    base, x = bases[False], outage_rows.x[:5]
    y = adapt_mmnp(base, context).predict(x)
    moved = adapt_mmnp(base, replace(context, y=context.y + 0.5)).predict(x)
    np.testing.assert_allclose(moved, y + 0.5, atol=1e-4)  # float32


def test_the_context_repairs_what_the_outage_shifts(bases, context, grid):
    data = draw_rows(context.network, quick_config(), 100, role="test", regime="drawn")
    intact = Context.of(draw_rows(grid, quick_config(), 60, role="context"))

    def error(base, given):
        return np.abs(adapt_mmnp(base, given).predict(data.x) - data.y).mean()

    for base in bases.values():
        assert error(base, context) < error(base, intact) / 5


def test_predictions_are_finite_and_leave_the_base_as_it_was(bases, context):
    for base in bases.values():
        before = [p.numpy().tobytes() for p in base.model.state_dict().values()]
        predictor = adapt_mmnp(base, context)
        for num in (0, 1, 7):
            y = predictor.predict(context.x[:num])
            assert y.shape == (num, base.layout.num_outputs)
            assert y.dtype == np.float64
            assert np.isfinite(y).all()
        assert [p.numpy().tobytes() for p in base.model.state_dict().values()] == before


def test_the_record_counts_topologies_and_solves(bases, grid):
    assert bases[False].record["num_topologies"] == 1
    assert bases[False].record["num_solves"] == 200
    record = bases[True].record
    assert record["num_topologies"] == grid.num_branches  # intact, and every line but line 1
    assert record["num_solves"] == record["num_topologies"] * OWN.rows_per_topology
    assert np.isfinite(bases[True].mae)


def test_an_interrupted_training_ends_as_if_it_had_not_been(tmp_path):
    rng = np.random.default_rng(0)
    rows = [torch.from_numpy(rng.standard_normal((40, n)).astype(np.float32)) for n in (3, 2)]
    own = MmnpConfig(
        hidden=4, representation=4, fewest=4, most=8, num_targets=8, step_factor=1.0
    )  # fmt: skip
    config = TrainingConfig(num_steps=450)

    def model():
        torch.manual_seed(0)
        return NeuralProcess(3, 2, own)

    def stop(step, num_steps, loss):
        if step == 400:
            raise KeyboardInterrupt

    def train(model, progress=None, checkpoint=None):
        tasks = [(rows[0], rows[1])]
        train_episodes(
            model, tasks, own, config, seed=1, progress=progress, checkpoint=checkpoint,
            checkpoint_every=150,
        )  # fmt: skip
        return [p.numpy().tobytes() for p in model.state_dict().values()]

    whole = train(model())
    with pytest.raises(KeyboardInterrupt):
        train(model(), stop, tmp_path / "a.checkpoint")
    assert train(model(), checkpoint=tmp_path / "a.checkpoint") == whole


def test_settings_that_mean_nothing_are_refused():
    for wrong in ({"hidden": 0}, {"fewest": 1}, {"fewest": 500}, {"step_factor": 0.0}):
        with pytest.raises(GridshiftError):
            replace(OWN, **wrong)  # type: ignore[arg-type]
