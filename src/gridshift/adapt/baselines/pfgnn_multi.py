"""PowerFlowNet taught by many topologies, each with a graph of its own.

Source: Lin, Orfanoudakis, Ordonez Cardenas, Giraldo, Vergara, "PowerFlowNet", IJEPES 160 (2024)
110112; what is different here is in docs/baselines.md.
"""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.own_model import cache_key, grid_fields
from gridshift.adapt.baselines.topologies import TopologyRows, solved_rows, training_topologies
from gridshift.adapt.cache import kept_surrogate
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.context_methods import adapt_frozen
from gridshift.adapt.graph import graph_of
from gridshift.adapt.surrogate import (
    Surrogate,
    fit_output_transform,
    random_network,
    validated,
)
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.adapt.training_rows import training_seed
from gridshift.arrays import Real
from gridshift.grid.network import Network
from gridshift.learn.backbones import PfgnnConfig
from gridshift.learn.fitted_network import input_scaling
from gridshift.learn.training import Progress


@dataclass(frozen=True, kw_only=True, eq=False)
class PfgnnMulti(Base):
    """A PFGNN that many topologies have taught."""

    surrogate: Surrogate = field(repr=False)

    def on(self, network: Network) -> "PfgnnMulti":
        """The same weights with this topology's graph."""
        return replace(self, surrogate=self.surrogate.on(network))


def adapt_pfgnn_multi(base: PfgnnMulti, context: Context) -> Predictor:
    """The network over the new topology's graph; cases aren't used."""
    return adapt_frozen(base.surrogate, context)


def start_pfgnn_multi(
    network: Network,
    config: SurrogateConfig,
    progress: Progress | None = None,
    *,
    own: PfgnnConfig | None = None,
) -> PfgnnMulti:
    """Train the network on the intact grid and its single-line outages, or read a trained one."""
    own = own or PfgnnConfig()
    config = replace(config, backbone=own, transform="zscore")

    def make(checkpoint: Path | None) -> Surrogate:
        rows = solved_rows(training_topologies(network, multi=True), config)
        return _train(network.intact, config, rows, progress, checkpoint)

    key = cache_key(network, config, own, multi=True)
    surrogate = kept_surrogate("pfgnn-multi", network, key, make)
    known = grid_fields(network, surrogate.layout, config)
    return PfgnnMulti(**known, record=surrogate.record, surrogate=surrogate)


def batches(rows: TopologyRows, x: Real, z: Real, size: int) -> tuple[Real, Real]:
    """Rows in batches of one topology each: (M, size, X + 1), its number last, and (M, size, Y).

    Where a topology's rows don't fill its last batch, its first rows fill it up.
    """
    own = [np.flatnonzero(rows.topology == number) for number in range(len(rows.networks))]
    # `resize` repeats them from the first on
    numbers = np.concatenate([np.resize(o, (math.ceil(len(o) / size), size)) for o in own])
    return np.hstack([x, rows.topology[:, None].astype(float)])[numbers], z[numbers]


def _train(
    intact: Network,
    config: SurrogateConfig,
    rows: TopologyRows,
    progress: Progress | None,
    checkpoint: Path | None,
) -> Surrogate:
    from gridshift.learn.backbones.pfgnn import Pfgnn, PfgnnOnSeveral
    from gridshift.learn.training_loop import fit

    mean, scale = input_scaling(rows.x)
    transform = fit_output_transform(config.transform, rows.y, config.eps)
    model = random_network(config, intact, rows.layout, (mean, scale), transform)
    assert isinstance(model.backbone, Pfgnn)
    graphs = [graph_of(network, rows.layout, mean, scale) for network in rows.networks]
    x, z = batches(
        rows, model.scaled(rows.x), transform.forward(rows.y), config.training.batch_size
    )
    began = time.perf_counter()
    trained = fit(
        PfgnnOnSeveral(model.backbone.nodes, graphs),
        x,
        z,
        replace(config.training, batch_size=1),
        seed=training_seed(intact, config),
        progress=progress,
        checkpoint=checkpoint,
    )
    assert isinstance(trained, PfgnnOnSeveral)
    cost = {"train_s": time.perf_counter() - began, "outaged": []}
    surrogate = Surrogate(
        **grid_fields(intact, rows.layout, config),
        record=rows.record() | cost,
        model=replace(model, backbone=Pfgnn(trained.nodes, graphs[0]).eval()),
    )
    return validated(surrogate, intact)
