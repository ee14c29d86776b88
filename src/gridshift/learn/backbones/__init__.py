"""Networks x -> z, architecture only. Each has a frozen configuration that builds it.

A backbone is `forward(x) = head(features(x))`. Where the head is a plain `nn.Linear`, an affine
inverse transform folds into it and costs nothing at prediction time.
"""

from gridshift.learn.backbones.mlp import MlpConfig

BACKBONES = {"mlp": MlpConfig}
"""Name to the configuration class; `BACKBONES['mlp']().build(num_inputs, num_outputs)`."""
