import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from gridshift.adapt.surrogate import Surrogate, SurrogateConfig, train
from gridshift.adapt.surrogate_config import (
    PAPER_SURROGATE,
    base_config,
    default_num_rows,
    describe_config,
    parse_config,
)
from gridshift.adapt.training_rows import validation_rows
from gridshift.errors import GridshiftError, StorageError, SurrogateMismatchError
from gridshift.learn.fitted_network import input_scaling
from gridshift.learn.training import TrainingConfig
from tests.adapt.conftest import quick_config
from tests.adapt.grids import small_grid


class Killed(Exception):
    pass


def test_a_surrogate_is_better_than_the_mean_of_its_training_rows(surrogate, outage_rows):
    """The transform's shift is that mean; validation rows of the intact grid are in `mae`."""
    spread_of_y = np.abs(outage_rows.y - outage_rows.y.mean(0)).mean()
    assert surrogate.mae < spread_of_y / 5
    assert surrogate.record["num_rows"] == surrogate.record["num_solves"] == 200


@pytest.mark.parametrize("name", ["residual", "zscore", "zca"])
def test_prediction_is_the_explicit_inverse_of_the_whitened_prediction(
    surrogates, outage_rows, name
):
    s = surrogates[name]
    explicit = s.transform.inverse(s.predict_whitened(outage_rows.x))
    # float32 in the last layer: 1e-7 of the spread of y, which is about 1
    np.testing.assert_allclose(s.predict(outage_rows.x), explicit, atol=1e-6)


def test_predictions_do_not_depend_on_the_other_rows(surrogate, outage_rows):
    many = np.tile(outage_rows.x, (100, 1))
    np.testing.assert_allclose(
        surrogate.predict(many)[:60], surrogate.predict(outage_rows.x), atol=1e-6
    )


def test_constant_inputs_are_divided_by_one():
    x = np.column_stack([np.arange(6.0), np.full(6, 0.1), np.zeros(6)])
    mean, scale = input_scaling(x)
    assert mean.tolist() == [2.5, 0.1, 0.0]
    assert scale[1:].tolist() == [1.0, 1.0]
    assert ((x - mean) / scale)[:, 1:].tolist() == [[0.0, 0.0]] * 6


@pytest.mark.parametrize(
    "transform", ["identity", "residual", "zscore", "zca", "tangent", "tangent2"]
)
def test_a_saved_surrogate_predicts_bit_for_bit_the_same(
    surrogates, transform, outage_rows, grid, tmp_path
):
    surrogate = surrogates[transform]
    surrogate.save(tmp_path / "new" / "folder")
    back = Surrogate.load(tmp_path / "new" / "folder", grid)
    assert np.array_equal(back.predict(outage_rows.x), surrogate.predict(outage_rows.x))
    assert np.array_equal(
        back.predict_whitened(outage_rows.x), surrogate.predict_whitened(outage_rows.x)
    )
    assert back.config == surrogate.config
    assert back.record == surrogate.record
    assert back.transform.rank == surrogate.transform.rank


def test_a_surrogate_loads_for_every_topology_of_its_grid(surrogate, grid, tmp_path):
    surrogate.save(tmp_path)
    Surrogate.load(tmp_path, grid.without(["line:1"]))


def test_a_surrogate_of_another_grid_is_refused_naming_both(surrogate, tmp_path):
    surrogate.save(tmp_path)
    with pytest.raises(SurrogateMismatchError, match=r"trained for small .* does not fit other"):
        Surrogate.load(tmp_path, small_grid("other", load_scale=1.1))


def test_files_that_do_not_belong_together_are_refused(surrogates, grid, tmp_path):
    surrogates["zca"].save(tmp_path / "a")
    surrogates["zscore"].save(tmp_path / "b")
    (tmp_path / "b" / "surrogate.json").replace(tmp_path / "a" / "surrogate.json")
    with pytest.raises(StorageError, match="do not belong together"):
        Surrogate.load(tmp_path / "a", grid)


@pytest.mark.parametrize("content", ["{ cut", "[]", '{"format": 99}'])
def test_a_damaged_description_is_refused_in_one_line(surrogate, grid, tmp_path, content):
    surrogate.save(tmp_path)
    (tmp_path / "surrogate.json").write_text(content)
    with pytest.raises(StorageError):
        Surrogate.load(tmp_path, grid)


def test_a_description_with_other_fields_is_refused_in_one_line(surrogate, grid, tmp_path):
    surrogate.save(tmp_path)
    file = tmp_path / "surrogate.json"
    about = json.loads(file.read_text())
    about["config"]["colour"] = "red"
    file.write_text(json.dumps(about))
    with pytest.raises(StorageError, match="another version"):
        Surrogate.load(tmp_path, grid)


@pytest.mark.parametrize("shape", [(3, 1), (17,), (3, 18)])
def test_inputs_of_a_wrong_width_are_refused(surrogate, shape):
    with pytest.raises(GridshiftError, match=r"small needs \(N, 17\)"):
        surrogate.predict(np.zeros(shape))


def test_missing_and_unwritable_folders_are_told(surrogate, grid, tmp_path):
    with pytest.raises(StorageError, match="no surrogate in"):
        Surrogate.load(tmp_path, grid)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        surrogate.save(tmp_path / "file")


def test_a_configuration_survives_json(surrogate):
    for config in (SurrogateConfig(), PAPER_SURROGATE, surrogate.config):
        assert parse_config(json.loads(json.dumps(describe_config(config)))) == config


def test_training_twice_gives_the_same_surrogate(grid, outage_rows):
    once = train(grid, quick_config())
    with torch.random.fork_rng():
        torch.manual_seed(99)  # a global state that must not matter
        again = train(grid, quick_config())
    assert np.array_equal(again.predict(outage_rows.x), once.predict(outage_rows.x))


def test_another_seed_gives_other_rows_and_other_weights(grid, surrogate, training_rows):
    other = train(grid, quick_config(seed=1), data=training_rows)
    weight, other_weight = (s.model.backbone.head.weight for s in (surrogate, other))
    assert not torch.equal(weight, other_weight)


def test_an_interrupted_training_gives_the_same_surrogate(
    grid, surrogate, training_rows, outage_rows, tmp_path
):
    def kill(step, num_steps, loss):
        if step == 200:
            raise Killed

    file = tmp_path / "training.pt"
    with pytest.raises(Killed):
        train(
            grid, surrogate.config, data=training_rows, progress=kill, checkpoint=file,
            checkpoint_every=100,
        )  # fmt: skip
    steps = []
    resumed = train(
        grid, surrogate.config, data=training_rows, checkpoint=file,
        progress=lambda step, *_: steps.append(step),
    )  # fmt: skip
    assert steps == [300]  # went on after 200
    assert np.array_equal(resumed.predict(outage_rows.x), surrogate.predict(outage_rows.x))


def test_a_training_that_diverges_says_so(grid, training_rows):
    hot = replace(quick_config(), training=TrainingConfig(num_steps=50, learning_rate=1e30))
    with pytest.raises(GridshiftError, match=r"diverged at learning rate 1e\+30"):
        train(grid, hot, data=training_rows)


@pytest.mark.parametrize(("buses", "rows"), [(14, 4_000), (30, 4_000), (118, 8_000), (300, 15_000)])
def test_the_number_of_training_rows_follows_the_paper(buses, rows):
    class Sized:
        num_buses = buses

    assert default_num_rows(Sized()) == rows


def test_senseless_configurations_are_refused_when_made():
    with pytest.raises(GridshiftError, match="identity, residual, zscore, zca"):
        SurrogateConfig(transform="whiten")
    with pytest.raises(GridshiftError, match="at least 2"):
        SurrogateConfig(num_rows=1)


@pytest.mark.parametrize("name", ["linear", "quadratic", "regression"])
def test_a_closed_form_comes_back_from_its_folder_bit_for_bit(
    grid, closed_forms, training_rows, tmp_path, name
):
    base = closed_forms[name]
    base.save(tmp_path)
    again = Surrogate.load(tmp_path, grid)
    assert np.array_equal(again.predict(training_rows.x), base.predict(training_rows.x))
    assert (again.digest, again.record, again.config) == (base.digest, base.record, base.config)


def test_a_network_on_what_a_regression_leaves_is_closer_than_one_on_whitened_outputs(
    grid, surrogates, closed_forms
):
    both = surrogates["regression"]
    assert both.mae < surrogates["zca"].mae / 2
    fresh = validation_rows(grid, both.config)
    alone = np.abs(both.leading.predict(fresh.x) - fresh.y).mean()
    assert both.mae < 1.5 * alone  # 200 rows teach a network little that products don't know
    assert closed_forms["quadratic"].mae < closed_forms["linear"].mae / 3


def test_training_and_adapting_a_closed_form_loads_no_torch(tmp_path):
    code = """
import sys
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate import Surrogate, train
from gridshift.trial.trial import measure_adaptation
from gridshift.adapt.surrogate_config import base_config
from tests.adapt.grids import small_grid
grid = small_grid()
train(grid, base_config("quadratic", num_rows=200)).save(sys.argv[1])
base = Surrogate.load(sys.argv[1], grid)
measure_adaptation(base, grid.without(["line:1"]), METHODS["compensation"], num_context=10)
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)]).returncode == 0


def test_a_transform_is_refused_for_a_regression():
    with pytest.raises(GridshiftError, match="transform zca is for networks, and base linear"):
        base_config("linear", transform="zca")
