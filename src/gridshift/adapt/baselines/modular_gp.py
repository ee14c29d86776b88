"""Modular-GP: a Gaussian process for each bus on what its neighbourhood knows.

Source: Caetano, Maciel and Gupta, Admittance Sensitivity-Informed Modular GP for Scalable
Topology-Adaptive Power-Flow Learning, arXiv 2606.03717, of which the abstract was at hand; what
had to be inferred is in docs/baselines.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.bayes import fit_bayesian_linear
from gridshift.adapt.baselines.egonets import Egonets, LocalFeatures
from gridshift.adapt.baselines.own_model import Arrays, kept_model
from gridshift.adapt.baselines.topologies import TopologyRows, solved_rows, training_topologies
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate_config import SurrogateConfig
from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.grid.scenarios import named_rng
from gridshift.learn.fitted_network import input_scaling
from gridshift.learn.training import Progress
from gridshift.threads import Threads

MOST_TO_CHOOSE = 1_000
"""Rows that a length is fitted to, and rows that its error is measured on."""
LEFT_OUT = 0.2
"""Share of the topologies, or of the rows of a single one, for the latter."""


@dataclass(frozen=True, kw_only=True)
class ModularGpConfig:
    """A linear and a radial kernel for each bus, the radial one by random Fourier features."""

    num_fourier: int = 400
    lengths: tuple[float, ...] = (0.3, 1.0, 3.0)
    """Length scales to choose from, in units of the root of the number of features."""
    response: bool = True
    """Whether a bus knows its first-order response to all injections, not only to its egonet's."""

    def __post_init__(self) -> None:
        if self.num_fourier < 1 or not self.lengths or min(self.lengths) <= 0:
            raise GridshiftError(
                f"a Gaussian process needs a Fourier feature and positive lengths, not {self}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class ModularGp(Base):
    """The posterior means of all buses. Axes: F local features, D random Fourier features."""

    own: ModularGpConfig
    egonets: Egonets
    mean: Real
    """(B, F)"""
    scale: Real
    """(B, F) standard deviation in training, 1 where a feature never varied."""
    length: Real
    """() length scale, one for all buses."""
    offset: Real
    """(B, 2) of magnitude and angle."""
    weight: Real
    """(B, F + D, 2)"""

    def predict_states(self, network: Network, x: Real) -> Real:
        """(R, B, 2) magnitude and angle of each bus; zero where it isn't predicted."""
        features = self.egonets.features((network,), x, np.zeros(len(x), np.int64))
        out = np.zeros((len(x), self.layout.num_buses, 2))
        random = _random_features(network, self.config.seed, self.own, features.num_features)
        for bus in self.layout.non_slack:
            local = features.at(bus, response=self.own.response)
            phi = _lift((local - self.mean[bus]) / self.scale[bus], random, float(self.length))
            out[:, bus] = phi @ self.weight[bus] + self.offset[bus]
        return out


@dataclass(frozen=True, kw_only=True, eq=False)
class ModularGpPredictor:
    """The trained processes on one topology; generation from its power flow equations."""

    base: ModularGp
    network: Network

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        layout = self.base.layout
        states = self.base.predict_states(self.network, x)
        y = np.zeros((len(x), layout.num_outputs))
        y[:, layout.y_slices["v"]] = states[:, layout.pq, 0]
        y[:, layout.y_slices["theta"]] = states[:, layout.non_slack, 1]
        return layout.with_implied_generation(self.network, x, y)


def start_modular_gp(
    network: Network,
    config: SurrogateConfig,
    progress: Progress | None = None,
    *,
    own: ModularGpConfig | None = None,
    multi: bool = False,
) -> ModularGp:
    """Fit the processes to rows of the intact grid, or of many topologies, or read the fit."""
    own = own or ModularGpConfig()
    egonets = Egonets.of(network.intact)

    def train(rows: TopologyRows) -> Arrays:
        features = egonets.features(rows.networks, rows.x, rows.topology)
        with Threads(1):
            return _fit_buses(network, config, own, features, rows.y, progress)

    def build(known: dict[str, Any], arrays: Arrays) -> ModularGp:
        fields: dict[str, Any] = known | dict(arrays)
        return ModularGp(**fields, egonets=egonets)

    return kept_model(
        "modular-gp", network, config, own, multi=multi,
        draw=lambda: solved_rows(training_topologies(network, multi=multi), config),
        train=train,
        build=build,
        on_intact=lambda model, _: ModularGpPredictor(base=model, network=network.intact),
    )  # fmt: skip


def adapt_modular_gp(base: ModularGp, context: Context) -> Predictor:
    """The processes as they are, on the new topology's local features; cases aren't used."""
    return ModularGpPredictor(base=base, network=context.network)


def _fit_buses(
    network: Network,
    config: SurrogateConfig,
    own: ModularGpConfig,
    features: LocalFeatures,
    y: Real,
    progress: Progress | None,
) -> dict[str, Any]:
    """Arrays of a `ModularGp`."""
    layout, num = features.egonets.layout, features.num_features
    random = _random_features(network, config.seed, own, num)
    targets = np.full((len(y), layout.num_buses, 2), np.nan)
    targets[:, layout.pq, 0] = y[:, layout.y_slices["v"]]
    targets[:, layout.non_slack, 1] = y[:, layout.y_slices["theta"]]
    mean, scale = np.zeros((layout.num_buses, num)), np.ones((layout.num_buses, num))
    offset, weight = (np.zeros((layout.num_buses, *w, 2)) for w in ((), (num + own.num_fourier,)))
    length = _choose_length(own, features, targets, random)
    for done, bus in enumerate(layout.non_slack, 1):
        local = features.at(bus, response=own.response)
        mean[bus], scale[bus] = input_scaling(local)
        which = np.flatnonzero(np.isfinite(targets[0, bus]))
        phi = _lift((local - mean[bus]) / scale[bus], random, length)
        fitted = fit_bayesian_linear(phi, targets[:, bus, which])
        offset[bus, which], weight[bus][:, which] = fitted.offset, fitted.weight
        if progress is not None:
            progress(done, len(layout.non_slack), float(fitted.noise.mean()))
    return {
        "mean": mean, "scale": scale, "length": np.array(length), "offset": offset,
        "weight": weight,
    }  # fmt: skip


def _choose_length(
    own: ModularGpConfig, features: LocalFeatures, targets: Real, random: tuple[Real, Real]
) -> float:
    """The length with the smallest error on rows left out, relative to each target's deviation."""
    if len(own.lengths) == 1:
        return own.lengths[0]
    fitted, left_out = _split(features)
    error = np.zeros(len(own.lengths))
    for bus in features.egonets.layout.non_slack:
        local = features.at(bus, response=own.response)
        mean, scale = input_scaling(local[fitted])
        local = (local - mean) / scale
        t = targets[:, bus, np.isfinite(targets[0, bus])]
        for number, length in enumerate(own.lengths):
            found = fit_bayesian_linear(_lift(local[fitted], random, length), t[fitted])
            predicted = _lift(local[left_out], random, length) @ found.weight + found.offset
            off = np.abs(predicted - t[left_out]).mean(0)
            error[number] += (off / np.maximum(t.std(0), 1e-300)).sum()
    return own.lengths[int(error.argmin())]


def _split(features: LocalFeatures) -> tuple[Int, Int]:
    """Rows to fit and rows to test a length on, `MOST_TO_CHOOSE` of each at most.

    Of several topologies the fifth that the outage moves most is left out: the ones to come may be
    further from the intact grid than those trained on.
    """
    rows = np.arange(len(features.topology))
    severity = np.abs(features.shift).max((1, 2))
    severe = severity > np.quantile(severity, 1 - LEFT_OUT)
    left_out = severe[features.topology] if severe.any() else rows % round(1 / LEFT_OUT) == 0
    shuffled = np.random.default_rng(0).permutation(rows)
    fitted, tested = shuffled[~left_out[shuffled]], shuffled[left_out[shuffled]]
    return fitted[:MOST_TO_CHOOSE], tested[:MOST_TO_CHOOSE]


def _random_features(
    network: Network, seed: int, own: ModularGpConfig, num: int
) -> tuple[Real, Real]:
    """Frequencies (F, D) of the length of one and phases (D,), the same for all buses."""
    rng = named_rng(network.name, "fourier features", seed=seed)
    phase = rng.uniform(0, 2 * np.pi, own.num_fourier)
    return rng.standard_normal((num, own.num_fourier)) / np.sqrt(num), phase


def _lift(local: Real, random: tuple[Real, Real], length: float) -> Real:
    """(R, F + D) scaled features and their random Fourier features.

    Source: Rahimi and Recht, Random Features for Large-Scale Kernel Machines, 2007.
    """
    frequency, phase = random
    waves = np.sqrt(2 / len(phase)) * np.cos(local @ frequency / length + phase)
    return np.hstack([local, waves])
