"""What each backbone is made of: frozen configurations, read and written without loading torch."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gridshift.arguments import require_one_of
from gridshift.errors import GridshiftError
from gridshift.learn.backbones.graph import NodeGraph
from gridshift.learn.model_file import config_of, field
from gridshift.memory import require_memory

if TYPE_CHECKING:
    from torch import nn


def _require(config: "BackboneConfig", sound: bool, needs: str) -> None:
    """Pass if the sizes are sound and the dropout is a share."""
    if not (sound and 0 <= config.dropout < 1):
        raise GridshiftError(f"{needs} and a dropout in [0, 1), not {config}")


@dataclass(frozen=True, kw_only=True)
class MlpConfig:
    """Two hidden layers of 256 units with GELU and dropout 0.15 after each, as in the paper."""

    name: ClassVar[str] = "mlp"
    needs_graph: ClassVar[bool] = False
    hidden: int = 256
    num_layers: int = 2
    dropout: float = 0.15

    def __post_init__(self) -> None:
        sound = self.hidden >= 1 and self.num_layers >= 1
        _require(self, sound, "an MLP needs at least one layer and one unit")

    def build(
        self, num_inputs: int, num_outputs: int, graph: NodeGraph | None = None
    ) -> "nn.Module":
        """An `Mlp` with PyTorch's default random weights.

        Raises:
            MemoryNeededError: it doesn't fit into memory.
        """
        from gridshift.learn.backbones.mlp import Mlp

        inner = (self.num_layers - 1) * (self.hidden + 1) * self.hidden
        weights = inner + (num_inputs + 1) * self.hidden + (self.hidden + 1) * num_outputs
        # float32: themselves, the copy that is trained, gradients, and two moments of AdamW
        what = f"{self.num_layers} hidden layers of {self.hidden:,} units"
        require_memory(4 * 5 * weights, what)
        return Mlp(num_inputs, num_outputs, self)


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Two encoder layers of width 128 over patches of 12 inputs, as in the paper."""

    name: ClassVar[str] = "transformer"
    needs_graph: ClassVar[bool] = False
    patch: int = 12
    """Neighbouring inputs that make one token; the last patch is filled up with zeros."""
    width: int = 128
    num_layers: int = 2
    num_heads: int = 4
    feed_forward: int = 256
    """Hidden units between the two linear maps of a layer."""
    dropout: float = 0.15
    """Of attention weights, of feed-forward units, and of what each half of a layer adds."""

    def __post_init__(self) -> None:
        fewest = min(self.patch, self.width, self.num_layers, self.num_heads, self.feed_forward)
        sound = fewest >= 1 and not self.width % max(self.num_heads, 1)
        needs = "positive sizes, a width that is a multiple of the number of heads"
        _require(self, sound, f"a Transformer needs {needs}")

    def build(
        self, num_inputs: int, num_outputs: int, graph: NodeGraph | None = None
    ) -> "nn.Module":
        """A `Transformer` with PyTorch's default random weights."""
        from gridshift.learn.backbones.transformer import Transformer

        return Transformer(num_inputs, num_outputs, self)


@dataclass(frozen=True, kw_only=True)
class PfgnnConfig:
    """Four message passings and three graph convolutions of 129 units, as in the paper."""

    name: ClassVar[str] = "pfgnn"
    needs_graph: ClassVar[bool] = True
    hidden: int = 129
    num_layers: int = 4
    """Message passings; between two of them there is a graph convolution."""
    hops: int = 3
    """How far one graph convolution reaches."""
    dropout: float = 0.2
    """After every layer but the last, before its ReLU."""

    def __post_init__(self) -> None:
        sound = self.hidden >= 1 and self.num_layers >= 2 and self.hops >= 0
        needs = "at least two layers, one unit, no negative number of hops"
        _require(self, sound, f"a PFGNN needs {needs}")

    def build(
        self, num_inputs: int, num_outputs: int, graph: NodeGraph | None = None
    ) -> "nn.Module":
        """A `Pfgnn` over a graph with random weights (uniform, PyTorch's default).

        Raises:
            GridshiftError: the graph is of another number of inputs or outputs.
        """
        from gridshift.learn.backbones.pfgnn import NodeNetwork, Pfgnn

        assert graph is not None, "a PFGNN is built over a graph"
        if (num_inputs, num_outputs) != (graph.num_inputs, graph.num_outputs):
            raise GridshiftError(
                f"the graph is of {graph.num_inputs} inputs and {graph.num_outputs} outputs, "
                f"not of {num_inputs} and {num_outputs}"
            )
        return Pfgnn(NodeNetwork(graph.edge_features.shape[1], self), graph)


BackboneConfig = MlpConfig | TransformerConfig | PfgnnConfig

BACKBONES: dict[str, type[BackboneConfig]] = {
    "mlp": MlpConfig,
    "transformer": TransformerConfig,
    "pfgnn": PfgnnConfig,
}
"""Name to the configuration class; `BACKBONES['mlp']().build(num_inputs, num_outputs)`.

One that `needs_graph` takes a `graph.NodeGraph` as a third argument, and has no linear head."""


def backbone_fields(config: BackboneConfig) -> dict[str, Any]:
    """The configuration as JSON values, its name among them."""
    return {**asdict(config), "name": config.name}


def parse_backbone(fields: dict[str, Any]) -> BackboneConfig:
    """The configuration of `backbone_fields`.

    Raises:
        GridshiftError: no backbone has the name; a field is missing, unknown or can't be.
    """
    name = field(fields, "name", str)
    require_one_of(name, BACKBONES, "backbone")
    return config_of(BACKBONES[name], {k: v for k, v in fields.items() if k != "name"})
