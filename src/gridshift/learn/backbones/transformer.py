"""Transformer encoder over patches of the input, of the paper (appendix C).

The paper gives width, layers, heads, feed-forward width, patch and dropout; what it leaves open
(padding, positions, pooling, head) is the usual choice that comes to its 292k parameters: 291,772
for 52 inputs and 60 outputs.

Shape letters: N rows, X inputs, T tokens (patches of the input), K inputs of a patch, D width,
A attention heads, C = D / A width of a head, Y outputs.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gridshift.learn.backbones.configs import TransformerConfig
from gridshift.learn.backbones.dropout import Dropout


class Transformer(nn.Module):
    """Tokens, encoder layers, mean over tokens, one GELU layer, then a linear head."""

    def __init__(self, num_inputs: int, num_outputs: int, config: TransformerConfig):
        super().__init__()
        self.features = nn.Sequential(
            PatchEmbedding(num_inputs, config),
            *(EncoderLayer(config) for _ in range(config.num_layers)),
            nn.LayerNorm(config.width),
            MeanOverTokens(),
            nn.Linear(config.width, config.width),
            nn.GELU(),
        )
        self.head = nn.Linear(config.width, num_outputs)

    def forward(self, x_NX: Tensor) -> Tensor:
        """(N, Y) z of scaled inputs (N, X)."""
        h_ND = self.features(x_NX)
        return self.head(h_ND)


class PatchEmbedding(nn.Module):
    """One token for each patch of neighbouring inputs: a linear map and a learned position."""

    def __init__(self, num_inputs: int, config: TransformerConfig):
        super().__init__()
        self.patch = config.patch
        self.padding = -num_inputs % config.patch
        num_tokens = (num_inputs + self.padding) // config.patch
        self.embed = nn.Linear(config.patch, config.width)
        self.position_TD = nn.Parameter(torch.empty(num_tokens, config.width))
        nn.init.normal_(self.position_TD, std=0.02)

    def forward(self, x_NX: Tensor) -> Tensor:
        """(N, T, D) tokens of inputs (N, X), which are padded with zeros to whole patches."""
        x_NTK = F.pad(x_NX, (0, self.padding)).unflatten(1, (-1, self.patch))
        return self.embed(x_NTK) + self.position_TD


class EncoderLayer(nn.Module):
    """Self-attention, then two linear maps with GELU; each is given normalised tokens and adds."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        width = config.width
        self.num_heads = config.num_heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attention_dropout = Dropout(config.dropout)
        self.attention_out = nn.Sequential(nn.Linear(width, width), Dropout(config.dropout))
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width),
            nn.Linear(width, config.feed_forward),
            nn.GELU(),
            Dropout(config.dropout),
            nn.Linear(config.feed_forward, width),
            Dropout(config.dropout),
        )

    def forward(self, h_NTD: Tensor) -> Tensor:
        """(N, T, D) tokens of tokens (N, T, D)."""
        h_NTD = h_NTD + self._attend(self.attention_norm(h_NTD))
        return h_NTD + self.feed_forward(h_NTD)

    def _attend(self, h_NTD: Tensor) -> Tensor:
        # in the open: the fused kernel has no dropout on CPUs, and no gain for 5 to 50 tokens
        qkv_NTD3 = self.query_key_value(h_NTD)
        q_NATC, k_NATC, v_NATC = (
            part.unflatten(2, (self.num_heads, -1)).transpose(1, 2) for part in qkv_NTD3.chunk(3, 2)
        )
        scale = q_NATC.shape[3] ** -0.5
        weight_NATT = torch.softmax(scale * q_NATC @ k_NATC.transpose(2, 3), dim=3)
        mixed_NATC = self.attention_dropout(weight_NATT) @ v_NATC
        return self.attention_out(mixed_NATC.transpose(1, 2).flatten(2))


class MeanOverTokens(nn.Module):
    """(N, T, D) to (N, D)."""

    def forward(self, h_NTD: Tensor) -> Tensor:
        """(N, D) mean of tokens (N, T, D)."""
        return h_NTD.mean(1)
