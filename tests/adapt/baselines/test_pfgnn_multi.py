from dataclasses import replace

import numpy as np
import pytest
import torch

from gridshift.adapt.baselines.pfgnn_multi import (
    adapt_pfgnn_multi,
    batches,
    start_pfgnn_multi,
)
from gridshift.adapt.baselines.topologies import solved_rows, training_topologies
from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.context import Context
from gridshift.adapt.graph import graph_of
from gridshift.adapt.training_rows import draw_rows
from gridshift.learn.backbones.pfgnn import Pfgnn, PfgnnConfig, PfgnnOnSeveral
from tests.adapt.conftest import quick_config

pytestmark = pytest.mark.usefixtures("own_cache")
OWN = PfgnnConfig(hidden=24, num_layers=3, dropout=0.0)


def config(**training):
    quick = quick_config()
    return replace(quick, training=replace(quick.training, learning_rate=3e-3, **training))


def test_each_batch_is_of_one_topology_and_every_row_is_in_one(grid):
    rows = solved_rows(training_topologies(grid.without(["line:1"]), multi=True), quick_config())
    x, y = batches(rows, rows.x, rows.y, 7)
    assert x.shape[1:] == (7, rows.x.shape[1] + 1)
    assert (x[:, :, -1] == x[:, :1, -1]).all()
    for inputs, outputs in zip(x, y, strict=True):
        mine = rows.topology == inputs[0, -1]
        for row, values in zip(inputs[:, :-1], outputs, strict=True):
            (number,) = np.flatnonzero(mine & (rows.x == row).all(1))
            assert np.array_equal(values, rows.y[number])
    assert len(np.unique(x.reshape(-1, x.shape[2]), axis=0)) == len(rows.x)


def test_on_several_graphs_it_is_the_network_of_each(grid):
    rows = solved_rows(training_topologies(grid.without(["line:1"]), multi=True), quick_config())
    mean, scale = rows.x.mean(0), np.ones(rows.x.shape[1])
    graphs = [graph_of(network, rows.layout, mean, scale) for network in rows.networks]
    alone = OWN.build(graphs[0].num_inputs, graphs[0].num_outputs, graphs[0]).eval()
    assert isinstance(alone, Pfgnn)
    several = PfgnnOnSeveral(alone.nodes, graphs)
    x, _ = batches(rows, rows.x - mean, rows.y, 5)
    seen = set()
    for batch in torch.from_numpy(x.astype(np.float32)):
        number = int(batch[0, -1])
        own = alone.on(graphs[number])(batch[:, :-1])
        torch.testing.assert_close(several(batch[None])[0], own, rtol=0, atol=0)
        seen.add(number)
    assert seen == set(range(len(graphs)))


def test_taught_by_outages_it_does_better_on_one_that_it_has_not_seen(grid):
    network = grid.without(["line:3"])
    data = draw_rows(network, quick_config(), 100, role="test", regime="drawn")
    long = config(num_steps=700)
    several = start_pfgnn_multi(network, long, own=OWN)
    intact = cached_surrogate(network, replace(long, backbone=OWN, transform="zscore"))
    context = Context.empty(network, several)
    told = adapt_pfgnn_multi(several.on(network), context).predict(data.x)
    untaught = adapt_pfgnn_multi(several, context).predict(data.x)
    alone = intact.on(network).predict(data.x)
    error = {name: np.abs(y - data.y).mean()
             for name, y in {"told": told, "untold": untaught, "alone": alone}.items()}  # fmt: skip
    assert error["told"] < error["untold"]
    assert error["told"] < error["alone"]


def test_a_second_start_reads_what_the_first_has_trained(grid):
    network = grid.without(["line:1"])
    first = start_pfgnn_multi(network, config(num_steps=20), own=OWN)

    def no_step(*_):
        raise AssertionError("trained again")

    again = start_pfgnn_multi(network, config(num_steps=20), no_step, own=OWN)
    assert again.record == first.record
    assert first.record["num_topologies"] == len(training_topologies(network, multi=True))
    x = draw_rows(grid, quick_config(), 3, role="test").x
    assert np.array_equal(again.surrogate.predict(x), first.surrogate.predict(x))
