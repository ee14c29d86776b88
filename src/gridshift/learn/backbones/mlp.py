"""Multilayer perceptron of the paper (appendix C).

Shape letters: N rows, X inputs, H hidden units, Y outputs.
"""

import itertools
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from gridshift.errors import GridshiftError
from gridshift.memory import require_memory


@dataclass(frozen=True, kw_only=True)
class MlpConfig:
    """Two hidden layers of 256 units with GELU and dropout 0.15 after each, as in the paper."""

    name: ClassVar[str] = "mlp"
    needs_graph: ClassVar[bool] = False
    hidden: int = 256
    num_layers: int = 2
    dropout: float = 0.15

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.num_layers < 1 or not 0 <= self.dropout < 1:
            raise GridshiftError(
                f"an MLP needs at least one layer and one unit and a dropout in [0, 1), not {self}"
            )

    def build(self, num_inputs: int, num_outputs: int) -> "Mlp":
        """A network with PyTorch's default random weights.

        Raises:
            MemoryNeededError: it doesn't fit into memory.
        """
        inner = (self.num_layers - 1) * (self.hidden + 1) * self.hidden
        weights = inner + (num_inputs + 1) * self.hidden + (self.hidden + 1) * num_outputs
        # float32: themselves, the copy that is trained, gradients, and two moments of AdamW
        what = f"{self.num_layers} hidden layers of {self.hidden:,} units"
        require_memory(4 * 5 * weights, what)
        return Mlp(num_inputs, num_outputs, self)


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
        h_NH = self.features(x_NX)
        return self.head(h_NH)
