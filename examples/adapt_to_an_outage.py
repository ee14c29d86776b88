"""Train a small surrogate of the intact grid, adapt it to an outage, measure the error."""

import gridshift as gs
from gridshift.learn.training import TrainingConfig

network = gs.read_grid("case14")
config = gs.SurrogateConfig(num_rows=500, training=TrainingConfig(num_steps=1000))
surrogate = gs.train(network, config)
print(f"error on the intact grid: {surrogate.mae:.1e}")

outaged = network.without(gs.parse_outage(network, "line:2"))
for name in ("frozen", "icw"):
    measured = gs.measure_adaptation(
        surrogate, outaged, gs.METHODS[name], num_context=100, num_test=300
    )
    print(f"{name:7} {measured.mae['overall']:.1e} after {measured.num_solves} solves")
