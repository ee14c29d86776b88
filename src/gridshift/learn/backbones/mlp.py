"""Multilayer perceptron of the paper (appendix C).

Shape letters: N rows, X inputs, H hidden units, Y outputs.
"""

import itertools

from torch import Tensor, nn

from gridshift.learn.backbones.configs import MlpConfig


class Mlp(nn.Module):
    """Hidden layers, each linear, GELU and dropout, then a linear head."""

    def __init__(self, num_inputs: int, num_outputs: int, config: MlpConfig):
        super().__init__()
        widths = [num_inputs] + [config.hidden] * config.num_layers
        layers: list[nn.Module] = []
        for width_in, width_out in itertools.pairwise(widths):
            layers += [nn.Linear(width_in, width_out), nn.GELU()]
            if config.dropout:
                layers.append(nn.Dropout(config.dropout))
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(config.hidden, num_outputs)

    def forward(self, x_NX: Tensor) -> Tensor:
        """(N, Y) z of scaled inputs (N, X)."""
        h_NH = self.features(x_NX)
        return self.head(h_NH)
