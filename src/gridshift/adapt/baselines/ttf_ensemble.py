"""TTF-Ensemble: several base networks, each fine-tuned on the context, and the mean of them.

Jia et al. 2024 was not at hand. The paper says that it fits a base MLP and adapts it to each
topology by gradient updates on the same context; members, steps and resampling are chosen here.
"""

import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.baselines.fine_tune import GradientConfig, adapt_fine_tune
from gridshift.adapt.baselines.own_model import grid_fields
from gridshift.adapt.cache import kept_surrogate
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.surrogate import Surrogate, train
from gridshift.adapt.surrogate_config import SurrogateConfig, default_num_rows, describe_config
from gridshift.adapt.training_rows import draw_rows, validation_rows
from gridshift.arrays import Real
from gridshift.grid.network import Network
from gridshift.grid.scenarios import named_rng
from gridshift.learn.training import Progress

NUM_MEMBERS = 5
TTF = GradientConfig(num_steps=1_000, target="zscore")
"""Outputs scaled by the context: mean and deviation have moved before the first step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Ensemble(Base):
    """Base networks of one grid, each with random weights and resampled rows of its own.

    Its record has one set of rows, `train_s` of all members together, and `mae` of their mean.
    """

    members: tuple[Surrogate, ...] = field(repr=False)

    def on(self, network: Network) -> "Ensemble":
        """The same weights with this topology's graph."""
        return replace(self, members=tuple(member.on(network) for member in self.members))


@dataclass(frozen=True, kw_only=True, eq=False)
class EnsemblePredictor:
    """The mean of several predictors."""

    members: tuple[Predictor, ...]

    def predict(self, x: Real) -> Real:
        """(R, Y) mean of the members' outputs for inputs (R, X)."""
        return self._each(x).mean(0)

    def spread(self, x: Real) -> Real:
        """(R, Y) standard deviation of the members' outputs."""
        return self._each(x).std(0, ddof=1)

    def _each(self, x: Real) -> Real:
        return np.stack([member.predict(x) for member in self.members])


def adapt_ttf_ensemble(
    base: Ensemble, context: Context, *, config: GradientConfig = TTF
) -> EnsemblePredictor:
    """Each member fine-tuned on the context."""
    members = (adapt_fine_tune(member, context, config=config) for member in base.members)
    return EnsemblePredictor(members=tuple(members))


def start_ttf_ensemble(
    network: Network,
    config: SurrogateConfig,
    progress: Progress | None = None,
    *,
    num_members: int = NUM_MEMBERS,
) -> Ensemble:
    """The ensemble of the intact grid, trained only if it isn't there yet.

    Members share one set of solved rows, from which each draws as many with replacement.
    """
    intact, config = network.intact, replace(config, transform="zscore")
    num_rows = default_num_rows(intact) if config.num_rows is None else config.num_rows

    @cache
    def solved() -> tuple[Dataset, float]:
        began = time.perf_counter()
        rows = draw_rows(intact, config, num_rows, role="training")
        return rows, time.perf_counter() - began

    def member(number: int) -> Surrogate:
        def make(checkpoint: Path | None) -> Surrogate:
            return _train_member(intact, config, number, solved(), progress, checkpoint)

        key = {"member": number, **describe_config(config)}
        return kept_surrogate("ttf-ensemble", intact, key, make)

    members = tuple(map(member, range(num_members)))
    fresh = validation_rows(intact, config)
    off = EnsemblePredictor(members=members).predict(fresh.x) - fresh.y
    records = [member.record for member in members]
    return Ensemble(
        **grid_fields(intact, fresh.layout, config),
        members=members,
        record={
            "num_rows": records[0]["num_rows"],
            "num_solves": records[0]["num_solves"],
            "data_s": max(record["data_s"] for record in records),
            "train_s": sum(record["train_s"] for record in records),
            "mae": float(np.abs(off).mean()),
        },
    )


def member_config(config: SurrogateConfig, number: int) -> SurrogateConfig:
    """Configuration of a member: the seed of its weights, batches and dropout is its own."""
    return replace(config, seed=1_000 * (config.seed + 1) + number)


def _train_member(
    intact: Network,
    config: SurrogateConfig,
    number: int,
    solved: tuple[Dataset, float],
    progress: Progress | None,
    checkpoint: Path | None,
) -> Surrogate:
    rows, data_s = solved
    rng = named_rng(intact.name, "bootstrap", draw=number, seed=config.seed)
    resampled = rows.rows(rng.integers(len(rows), size=len(rows)))
    own = member_config(config, number)
    member = train(intact, own, data=resampled, progress=progress, checkpoint=checkpoint)
    return replace(member, record=member.record | {"data_s": data_s})
