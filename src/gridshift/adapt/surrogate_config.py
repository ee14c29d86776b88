"""What a surrogate is made of and how it is trained: the product's defaults and the paper's."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from gridshift.adapt.expansion import TANGENT_ORDERS
from gridshift.arguments import require_one_of
from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.grid.network import Network
from gridshift.learn.backbones import BACKBONES, BackboneConfig, MlpConfig
from gridshift.learn.backbones.configs import backbone_fields, parse_backbone
from gridshift.learn.model_file import config_of, field
from gridshift.learn.regression import REGRESSIONS, RegressionConfig
from gridshift.learn.third_moment import ZCA_SAS, fit_zca_sas
from gridshift.learn.training import PAPER_TRAINING, TrainingConfig
from gridshift.learn.whitening import EPS, TRANSFORMS, Transform, fit_transform

PRODUCT_BACKBONE = MlpConfig(dropout=0.0)
"""The paper's MLP without dropout, which costs accuracy here and prevents nothing: solved rows have
no noise. Error on the intact grid 4 to 6 times smaller, 40 % less time a step (`PRODUCT_TRAINING`).
"""

PRODUCT_TRAINING = TrainingConfig()
"""Half the paper's steps at three times its learning rate.

Mean absolute error on the intact grid, of ICW on the heaviest single outage, and steps (one seed):

| | case30 | case118 |
|---|---|---|
| paper, dropout 0.15, 40,000 steps | 9.0e-5, 4.5e-4 | 2.7e-3, 3.7e-3 |
| no dropout, 40,000 steps | 1.8e-5, 4.2e-4 | 4.3e-4, 2.2e-3 |
| no dropout, 20,000 steps at 2e-3 | 2.0e-5, 4.2e-4 | 5.5e-4, 2.2e-3 |
| no dropout, 10,000 steps at 2e-3 | 2.5e-5, 4.2e-4 | 8.1e-4, 2.3e-3 |
"""

REGRESSION = "regression"
"""Transform that subtracts a regression fitted to the same rows before it scales; in place of the
tangent's, it needs no network model."""
OUTPUT_TRANSFORMS = (*TRANSFORMS, ZCA_SAS, *TANGENT_ORDERS, REGRESSION)
"""Names of what a surrogate's outputs can be transformed by."""
BASES = (*BACKBONES, *REGRESSIONS)
"""Names of what a surrogate can be made of: the paper's networks, and regressions in closed form.
"""
NUM_REGRESSION_ROWS = 6_000
"""Training rows of a regression, whatever the grid; more gain little (docs/compensation.md)."""


@dataclass(frozen=True, kw_only=True)
class SurrogateConfig:
    """What a surrogate is made of and how it is trained."""

    transform: str = "zca"
    """One of `OUTPUT_TRANSFORMS`."""
    eps: float = EPS
    """Regularisation of the transform, the same for base and context; for the tangent's transforms
    relative to the mean variance of what is left."""
    backbone: BackboneConfig | RegressionConfig = PRODUCT_BACKBONE
    """Configuration of one of `BASES`. A regression's outputs aren't transformed: `identity`."""
    training: TrainingConfig = PRODUCT_TRAINING
    """Of a network; a regression takes no steps."""
    num_rows: int | None = None
    """Training scenarios; None: `num_training_rows` of the grid."""
    num_validation: int = 1_000
    """Fresh scenarios, drawn spread, on which the error of the new surrogate is measured."""
    spread: float = 0.2
    """Spread of the loads, mixed (section IV of the paper)."""
    seed: int = 0

    def __post_init__(self) -> None:
        require_one_of(self.transform, OUTPUT_TRANSFORMS, "transform")
        if self.closed_form and self.transform != "identity":
            raise GridshiftError(
                f"transform {self.transform} is for networks, and base {self.backbone.name} gives "
                "outputs as they are; leave the transform out, or take base mlp"
            )
        for name, number in (("training", self.num_rows), ("validation", self.num_validation)):
            if number is not None and number < 2:
                raise GridshiftError(f"{number} {name} rows; at least 2 are needed")
        for name in ("eps", "spread", "seed"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise GridshiftError(
                    f"{name} {getattr(self, name)} must be a finite number of at least 0"
                )

    @property
    def closed_form(self) -> bool:
        """Whether it is a regression, which takes no gradient steps."""
        return isinstance(self.backbone, RegressionConfig)


def default_backbone(name: str) -> BackboneConfig:
    """The product's backbone of this name, in `BACKBONES`."""
    return PRODUCT_BACKBONE if name == PRODUCT_BACKBONE.name else BACKBONES[name]()


def base_config(name: str, *, transform: str | None = None, **settings: Any) -> SurrogateConfig:
    """The product's configuration with the base of this name, in `BASES`.

    Args:
        transform: by default `zca` for a network, none for a regression.

    Raises:
        GridshiftError: no base has the name, or a regression shall have a transform.
    """
    require_one_of(name, BASES, "base")
    if name in REGRESSIONS:
        backbone, usual = RegressionConfig(name=name), "identity"
    else:
        backbone, usual = default_backbone(name), SurrogateConfig.transform
    return SurrogateConfig(backbone=backbone, transform=transform or usual, **settings)


PAPER_SURROGATE = SurrogateConfig(backbone=MlpConfig(dropout=0.15), training=PAPER_TRAINING)
"""In-Context Whitening with the MLP of the paper, appendix C."""


def default_num_rows(network: Network) -> int:
    """Training rows by size: 4,000 at 30 buses and 45 for each more, in thousands, 15,000 at most.

    This gives the paper's 4,000 for case30, 8,000 for case118 and 15,000 for case300.
    """
    rows = 4_000 + 45 * max(network.num_buses - 30, 0)
    return min(round(rows, -3), 15_000)


def num_training_rows(network: Network, config: SurrogateConfig) -> int:
    """Scenarios that are drawn for the training."""
    if config.num_rows is not None:
        return config.num_rows
    return NUM_REGRESSION_ROWS if config.closed_form else default_num_rows(network)


def describe_config(config: SurrogateConfig) -> dict[str, Any]:
    """The configuration as JSON values."""
    made_of = config.backbone
    regression = isinstance(made_of, RegressionConfig)
    fields = asdict(made_of) if regression else backbone_fields(made_of)
    return asdict(config) | {"backbone": fields}


def parse_config(fields: dict[str, Any]) -> SurrogateConfig:
    """The configuration of `describe_config`.

    Raises:
        GridshiftError: a field is missing, unknown or of another type, or a number can't be.
    """
    made_of = field(fields, "backbone", dict)
    regression = made_of.get("name") in REGRESSIONS
    return config_of(
        SurrogateConfig, fields,
        backbone=config_of(RegressionConfig, made_of) if regression else parse_backbone(made_of),
        training=config_of(TrainingConfig, fields.get("training")),
    )  # fmt: skip


def fit_output_transform(name: str, remainder: Real, eps: float) -> Transform:
    """The transform of that name for rows (N, Y) of y, or of what the leading part leaves of it.

    What a tangent or a regression leaves is smaller than y by orders that differ from grid to grid,
    so `eps` is relative to its mean variance there, and each entry is scaled by itself: a remainder
    of higher order in the loads is far from a normal distribution, which a covariance describes.
    """
    if name == ZCA_SAS:
        return fit_zca_sas(remainder, eps=eps)
    if name not in (*TANGENT_ORDERS, REGRESSION):
        return fit_transform(name, remainder, eps=eps)
    mean_variance = float(remainder.var(0, ddof=1).mean())
    scaled = fit_transform("zscore", remainder, eps=eps * mean_variance)
    return replace(scaled, name=name)
