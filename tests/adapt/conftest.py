import numpy as np
import pytest

from gridshift.adapt.datasets import generate
from gridshift.adapt.surrogate import SurrogateConfig, train
from gridshift.adapt.surrogate_config import OUTPUT_TRANSFORMS, base_config
from gridshift.grid.scenarios import sample_loads
from gridshift.learn.backbones.mlp import MlpConfig
from gridshift.learn.training import TrainingConfig
from tests.adapt.grids import small_grid


@pytest.fixture(scope="session")
def grid():
    return small_grid()


@pytest.fixture(scope="session")
def outage_rows(grid):
    """60 solved rows of the grid without line 1."""
    network = grid.without(["line:1"])
    return generate(network, sample_loads(network, np.random.default_rng(5), 60))


def quick_config(transform="zca", **changes):
    """A surrogate that trains in a quarter of a second."""
    return SurrogateConfig(
        transform=transform,
        backbone=MlpConfig(hidden=32, dropout=0.0),
        training=TrainingConfig(num_steps=300, learning_rate=5e-3),
        num_rows=200,
        num_validation=50,
        **changes,
    )


def quick_base(name, **changes):
    """A regression of few rows."""
    return base_config(name, num_rows=200, num_validation=50, **changes)


@pytest.fixture(scope="session")
def training_rows(grid):
    return generate(grid, sample_loads(grid, np.random.default_rng(4), 200))


@pytest.fixture(scope="session")
def surrogates(grid, training_rows):
    """One for each transform."""
    names = OUTPUT_TRANSFORMS
    return {name: train(grid, quick_config(name), data=training_rows) for name in names}


@pytest.fixture(scope="session")
def closed_forms(grid, training_rows, surrogates):
    """A surrogate for each base in closed form, and one that corrects a regression."""
    made = {
        name: train(grid, quick_base(name), data=training_rows) for name in ("linear", "quadratic")
    }
    return made | {"regression": surrogates["regression"]}


@pytest.fixture(scope="session")
def base_of(grid, surrogates, tmp_path_factory):
    """What a method starts from: one of the surrogates, or a small model of its own."""
    found = {}

    def start(method):
        if method.base is None and method.backbone in (None, "mlp"):
            return surrogates[method.transform or "zca"]
        if method.name not in found:
            found[method.name] = method.start(grid.without(["line:1"]), quick_config())
        return found[method.name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRIDSHIFT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield start


@pytest.fixture(scope="session")
def surrogate(surrogates):
    return surrogates["zca"]
