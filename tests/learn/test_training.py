import copy

import numpy as np
import pytest
import torch
from torch import nn

from gridshift.errors import GridshiftError, StorageError
from gridshift.learn.backbones import BACKBONES
from gridshift.learn.backbones.mlp import MlpConfig
from gridshift.learn.training import PAPER_TRAINING, TrainingConfig
from gridshift.learn.training_loop import _batches, fit


class Killed(Exception):
    """Stands for a process that dies in the middle."""


@pytest.fixture
def task():
    """A small backbone with dropout, so that its random stream matters, and rows to fit."""
    torch.manual_seed(1)
    x = torch.randn(50, 4)
    z = torch.stack([x[:, 0] * x[:, 1], x[:, 2].sin(), x.sum(1)], 1)
    return MlpConfig(hidden=16, dropout=0.15).build(4, 3), x.numpy(), z.numpy()


SHORT = TrainingConfig(num_steps=60, batch_size=8)


def weights(module):
    return torch.cat([p.detach().flatten() for p in module.parameters()])


def test_the_papers_schedule_is_a_named_default():
    paper = TrainingConfig(
        num_steps=40_000, batch_size=32, learning_rate=6.29e-4, final_learning_rate=1e-6,
        weight_decay=1e-5, clip_norm=1.0,
    )  # fmt: skip
    assert paper == PAPER_TRAINING


def test_the_papers_mlp_has_about_100_thousand_parameters_on_case30():
    mlp = BACKBONES["mlp"]().build(52, 60)
    assert sum(p.numel() for p in mlp.parameters()) == 94_780
    assert [m.p for m in mlp.modules() if isinstance(m, nn.Dropout)] == [0.15, 0.15]


def test_the_learning_rate_is_pytorchs_cosine_annealing():
    config = TrainingConfig(num_steps=20)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=config.learning_rate)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, config.num_steps, eta_min=config.final_learning_rate
    )
    for step in range(config.num_steps):
        assert config.learning_rate_at(step) == pytest.approx(cosine.get_last_lr()[0], rel=1e-9)
        optimizer.step()
        cosine.step()


def test_a_backbone_in_double_precision_is_trained_in_it(task):
    backbone, x, z = task
    single = fit(backbone, x, z, SHORT)
    double = fit(copy.deepcopy(backbone).double(), x.astype(float), z.astype(float), SHORT)
    assert weights(double).dtype == torch.float64
    assert 0 < (weights(double) - weights(single)).abs().max() < 1e-4


def test_a_step_is_what_pytorchs_plain_loop_does(task):
    """AdamW without fusion, one tensor at a time, by hand; rows from the same permutations."""
    _, x, z = task
    backbone = MlpConfig(hidden=16, dropout=0.0).build(4, 3)
    trained = fit(backbone, x, z, SHORT, seed=3)
    x, z = torch.from_numpy(x), torch.from_numpy(z)
    optimizer = torch.optim.AdamW(
        backbone.parameters(), lr=SHORT.learning_rate, weight_decay=SHORT.weight_decay,
        foreach=False,
    )  # fmt: skip
    batches = _batches(len(x), SHORT.batch_size, 3, start=0)
    for step in range(SHORT.num_steps):
        rows = next(batches)
        optimizer.param_groups[0]["lr"] = SHORT.learning_rate_at(step)
        optimizer.zero_grad()
        ((backbone(x[rows]) - z[rows]) ** 2).mean().backward()
        nn.utils.clip_grad_norm_(backbone.parameters(), SHORT.clip_norm, foreach=False)
        optimizer.step()
    # float32 round-off over 60 steps
    torch.testing.assert_close(weights(trained), weights(backbone), atol=1e-5, rtol=0)


def test_each_pass_visits_every_row_once():
    batches = _batches(40, 8, seed=0, start=0)
    first = torch.cat([next(batches) for _ in range(5)])
    second = torch.cat([next(batches) for _ in range(5)])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(40))
    assert first.tolist() != second.tolist()


@pytest.mark.parametrize("start", [1, 5, 6, 13])
def test_batches_can_be_taken_up_anywhere(start):
    whole, later = _batches(41, 8, seed=0, start=0), _batches(41, 8, seed=0, start=start)
    for _ in range(start):
        next(whole)
    for _ in range(12):
        assert torch.equal(next(whole), next(later))


def test_the_same_seed_gives_the_same_network_and_another_seed_another(task):
    once, again, other = (fit(*task, SHORT, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(weights(once), weights(again))
    assert not torch.equal(weights(once), weights(other))


def test_training_leaves_its_arguments_and_the_global_random_state_alone(task):
    before, random = weights(task[0]).clone(), torch.get_rng_state()
    threads = torch.get_num_threads()
    trained = fit(*task, SHORT)
    assert torch.equal(weights(task[0]), before)
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.get_num_threads() == threads
    assert not trained.training


@pytest.mark.parametrize("killed_at", [5, 20, 37, 59])
def test_a_killed_training_continues_to_the_same_result(task, tmp_path, killed_at):
    def kill(step, num_steps, loss):
        if step == killed_at:
            raise Killed

    file = tmp_path / "training.pt"
    with pytest.raises(Killed):
        fit(*task, SHORT, progress=kill, report_every=1, checkpoint=file, checkpoint_every=10)
    steps = []
    resumed = fit(
        *task, SHORT, progress=lambda step, *_: steps.append(step), report_every=1,
        checkpoint=file, checkpoint_every=10,
    )  # fmt: skip
    assert steps[0] == killed_at // 10 * 10 + 1
    assert torch.equal(weights(resumed), weights(fit(*task, SHORT)))


def test_a_finished_checkpoint_is_returned_without_a_step(task, tmp_path):
    file = tmp_path / "training.pt"
    done = fit(*task, SHORT, checkpoint=file)
    again = fit(*task, SHORT, checkpoint=file, progress=lambda *_: pytest.fail("took a step"))
    assert torch.equal(weights(done), weights(again))


def test_a_checkpoint_of_another_training_is_refused(task, tmp_path):
    file = tmp_path / "training.pt"
    fit(*task, SHORT, checkpoint=file)
    with pytest.raises(StorageError, match="another training"):
        fit(*task, SHORT, seed=1, checkpoint=file)


def test_a_damaged_checkpoint_is_refused_in_one_line(task, tmp_path):
    file = tmp_path / "training.pt"
    file.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(StorageError, match="damaged"):
        fit(*task, SHORT, checkpoint=file)


def test_progress_tells_step_total_and_a_falling_loss(task):
    seen = []
    config = TrainingConfig(num_steps=400, batch_size=16, learning_rate=5e-3)
    fit(*task, config, progress=lambda *told: seen.append(told), report_every=150)
    assert [told[:2] for told in seen] == [(150, 400), (300, 400), (400, 400)]
    assert seen[-1][2] < seen[0][2]


@pytest.mark.parametrize("wrong", [{"num_steps": 0}, {"batch_size": 0}, {"learning_rate": np.nan}])
def test_senseless_schedules_are_refused_when_made(wrong):
    with pytest.raises(GridshiftError):
        TrainingConfig(**wrong)


@pytest.mark.parametrize("wrong", [{"hidden": 0}, {"num_layers": 0}, {"dropout": 1.0}])
def test_senseless_networks_are_refused_when_made(wrong):
    with pytest.raises(GridshiftError):
        MlpConfig(**wrong)
