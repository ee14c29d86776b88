"""DeepOPF-FT: one network for all topologies, which it is told as admittances of every branch.

Source: Zhou, Chen and Low, DeepOPF-FT: One Deep Neural Network for Multiple AC-OPF Problems With
Flexible Topology, IEEE Transactions on Power Systems 38(1), 2023, and its code
(github.com/Mzhou-cityu/DeepOPF-FT); what is different here is in docs/baselines.md.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.own_model import (
    Arrays,
    kept_model,
    weights_of,
    with_weights,
)
from gridshift.adapt.baselines.topologies import (
    TopologyRows,
    held_out_elements,
    solved_rows,
    training_topologies,
)
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.adapt.training_rows import training_seed
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.contingency import assess, candidate_elements
from gridshift.grid.layout import Layout
from gridshift.grid.network import Network
from gridshift.grid.scenarios import named_rng
from gridshift.learn.fitted_network import input_scaling, run_blocks
from gridshift.learn.training import Progress

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class DeepOpfFtConfig:
    """A multilayer perceptron on [x, conductance and susceptance of every branch]."""

    hidden: int = 256
    num_layers: int = 2
    learning_rate: float = 4e-3
    embedded: float = 0.5
    """Share of the training topologies, if there are several, that are embedded ones: one or two
    branches have a random part of their admittance."""
    reconstruct: bool = False
    """Whether generation is computed from the predicted voltages instead of predicted."""

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.num_layers < 1 or not 0 <= self.embedded < 1:
            raise GridshiftError(
                "the network needs at least one layer and one unit, and a share of embedded "
                f"topologies in [0, 1), not {self}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class DeepOpfFt(Base):
    """A trained network and its scalings. Axis I: inputs, X and twice the branches."""

    own: DeepOpfFtConfig
    intact: Network
    """The intact grid, whose admittances the ratios refer to."""
    mean: Real
    """(I,)"""
    scale: Real
    """(I,) standard deviation in training, 1 where an input never varied."""
    y_mean: Real
    """(Y,)"""
    y_scale: Real
    """(Y,)"""
    backbone: "nn.Module"

    def inputs(self, network: Network, x: Real) -> Real:
        """(R, I) inputs of rows x (R, X) on a topology."""
        told = admittance_ratios(self.intact, network)
        return np.hstack([x, np.broadcast_to(told, (len(x), len(told)))])


@dataclass(frozen=True, kw_only=True, eq=False)
class DeepOpfFtPredictor:
    """The trained network, told one topology."""

    base: DeepOpfFt
    network: Network

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        base = self.base
        blocks = run_blocks(base.backbone, base.inputs(self.network, x), base.mean, base.scale)
        y = np.concatenate([z for _, z in blocks]) * base.y_scale + base.y_mean
        if not base.own.reconstruct:
            return y
        return base.layout.with_implied_generation(self.network, x, y)


def admittance_ratios(intact: Network, network: Network) -> Real:
    """(2 E,) series conductance, then susceptance, of each branch as a part of the intact grid's.

    1 for a branch as it is there, 0 for one that is out of service, also if the grid has it out or
    without conductance.
    """
    series, before = network.branch_y[:, 1], intact.branch_y[:, 1]
    parts = []
    for now, then in ((series.real, before.real), (series.imag, before.imag)):
        ratio = np.divide(now, then, out=np.ones_like(then), where=then != 0)
        parts.append(np.where(network.branch_in_service, ratio, 0.0))
    return np.concatenate(parts)


def start_deepopf_ft(
    network: Network,
    config: SurrogateConfig,
    progress: Progress | None = None,
    *,
    own: DeepOpfFtConfig | None = None,
    multi: bool = False,
) -> DeepOpfFt:
    """Train the network on the intact grid, or on many topologies, or read a trained one."""
    own = own or DeepOpfFtConfig()
    intact, layout = network.intact, Layout.of(network)

    def built(known: dict[str, Any], arrays: Arrays) -> DeepOpfFt:
        untrained = build(layout.num_inputs + 2 * intact.num_branches, layout.num_outputs, own)
        backbone, scaling = with_weights(untrained, arrays)
        return DeepOpfFt(**known, **scaling, intact=intact, backbone=backbone)

    return kept_model(
        "deepopf-ft", network, config, own, multi=multi,
        draw=lambda: _training_rows(network, config, own, multi=multi),
        train=lambda rows: _train(intact, config, own, rows, progress),
        build=built,
        on_intact=lambda model, _: DeepOpfFtPredictor(base=model, network=intact),
    )  # fmt: skip


def adapt_deepopf_ft(base: DeepOpfFt, context: Context) -> Predictor:
    """The network as it is, told the new topology's admittances; cases aren't used."""
    return DeepOpfFtPredictor(base=base, network=context.network)


def build(num_inputs: int, num_outputs: int, own: DeepOpfFtConfig) -> "nn.Sequential":
    """Hidden layers with ReLU and a linear head, with PyTorch's default random weights."""
    from torch import nn

    layers: list[nn.Module] = []
    width = num_inputs
    for _ in range(own.num_layers):
        layers += [nn.Linear(width, own.hidden), nn.ReLU()]
        width = own.hidden
    return nn.Sequential(*layers, nn.Linear(width, num_outputs))


def embedded_topologies(network: Network, num: int, *, seed: int) -> list[Network]:
    """Intact grids of which one or two random lines have a random part of their admittance.

    No element that is out in `network` is touched. Those without a nominal solution are left out.
    """
    intact, held_out = network.intact, held_out_elements(network)
    rng = named_rng(intact.name, "embedded", outage=",".join(sorted(held_out)), seed=seed)
    candidates = [label for label in candidate_elements(intact) if label not in held_out]
    found = []
    for _ in range(num):
        branch_y = intact.branch_y.copy()
        for label in rng.choice(candidates, int(rng.integers(1, 3)), replace=False):
            branch_y[list(intact.elements[label])] *= rng.uniform()
        weakened = replace(intact, branch_y=branch_y)
        if assess(weakened, ()).usable:
            found.append(weakened)
    return found


def _training_rows(
    network: Network, config: SurrogateConfig, own: DeepOpfFtConfig, *, multi: bool
) -> TopologyRows:
    topologies = list(training_topologies(network, multi=multi))
    if multi:
        num = round(len(topologies) * own.embedded / (1 - own.embedded))
        topologies += embedded_topologies(network, num, seed=config.seed)
    return solved_rows(topologies, config)


def _train(
    intact: Network,
    config: SurrogateConfig,
    own: DeepOpfFtConfig,
    rows: TopologyRows,
    progress: Progress | None,
) -> Arrays:
    from gridshift.learn.training_loop import fit, seeded

    told = np.stack([admittance_ratios(intact, network) for network in rows.networks])
    inputs = np.hstack([rows.x, told[rows.topology]])
    mean, scale = input_scaling(inputs)
    y_mean, y_scale = input_scaling(rows.y)
    seed = training_seed(intact, config)
    backbone = fit(
        seeded(lambda: build(inputs.shape[1], rows.y.shape[1], own), seed),
        (inputs - mean) / scale,
        (rows.y - y_mean) / y_scale,
        replace(config.training, learning_rate=own.learning_rate),
        seed=seed,
        progress=progress,
    )
    scaling = {"mean": mean, "scale": scale, "y_mean": y_mean, "y_scale": y_scale}
    return scaling | weights_of(backbone)
