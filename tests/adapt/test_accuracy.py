"""The paper's setting on case30, with a shorter training."""

import numpy as np
import pytest

from gridshift.adapt.datasets import generate
from gridshift.adapt.methods import METHODS, Context
from gridshift.adapt.surrogate import SurrogateConfig, train
from gridshift.grid.readers import read_grid
from gridshift.grid.scenarios import named_rng, sample_loads
from gridshift.learn.training import TrainingConfig


@pytest.fixture(scope="module")
def case30():
    network = read_grid("case30")
    training = TrainingConfig(num_steps=4_000, learning_rate=2e-3)
    return network, train(network, SurrogateConfig(training=training))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("outage", "frozen", "icw"),
    [(("line:9",), 5.9e-3, 5.5e-4), (("line:9", "line:28"), 1.56e-2, 6.5e-4)],
)
def test_case30_errors_are_the_papers_or_better(case30, outage, frozen, icw):
    """Frozen within 3 % of the paper's 5.90e-3 and 1.554e-2 (it is the shift itself, whatever the
    network); ICW at most what the issue asks for, the paper's 4.6e-4 and 5.6e-4 plus its spread."""
    base, surrogate = case30
    network, text = base.without(outage), ",".join(outage)

    def rows(role, num, regime):
        rng = named_rng(base.name, role, outage=text)
        return generate(network, sample_loads(network, rng, num, spread=0.2, regime=regime))

    context, test = Context.of(rows("context", 400, "mixed")), rows("test", 1_000, "drawn")

    def mae(name):
        predictor = METHODS[name].fit(surrogate, context)
        return np.abs(predictor.predict(test.x) - test.y).mean()

    assert surrogate.mae < 2e-4
    assert mae("frozen") == pytest.approx(frozen, rel=0.03)
    assert mae("icw") < icw
