"""Networks x -> z, architecture only. Each has a frozen configuration that builds it.

A backbone is `forward(x) = head(features(x))`. Where the head is a plain `nn.Linear`, an affine
inverse transform folds into it and costs nothing at prediction time.
"""

from gridshift.learn.backbones.mlp import MlpConfig
from gridshift.learn.backbones.pfgnn import PfgnnConfig
from gridshift.learn.backbones.transformer import TransformerConfig

BackboneConfig = MlpConfig | TransformerConfig | PfgnnConfig

BACKBONES: dict[str, type[BackboneConfig]] = {
    "mlp": MlpConfig,
    "transformer": TransformerConfig,
    "pfgnn": PfgnnConfig,
}
"""Name to the configuration class; `BACKBONES['mlp']().build(num_inputs, num_outputs)`.

One that `needs_graph` takes a `graph.NodeGraph` as a third argument, and has no linear head."""
