"""Networks x -> z, architecture only; `configs` has the roster, and loads torch only to build one.

A backbone is `forward(x) = head(features(x))`. Where the head is a plain `nn.Linear`, an affine
inverse transform folds into it and costs nothing at prediction time.
"""

from gridshift.learn.backbones.configs import (
    BACKBONES,
    BackboneConfig,
    MlpConfig,
    PfgnnConfig,
    TransformerConfig,
)

__all__ = ["BACKBONES", "BackboneConfig", "MlpConfig", "PfgnnConfig", "TransformerConfig"]
