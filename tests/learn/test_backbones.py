import pytest
import torch
from torch import nn

from gridshift.errors import GridshiftError
from gridshift.learn.backbones import BACKBONES
from gridshift.learn.backbones.dropout import Dropout
from gridshift.learn.backbones.transformer import TransformerConfig

FLOAT32 = 2e-5
"""Order of sums of a few hundred float32 terms of size 1: some tens of roundings of 6e-8 each."""


def num_parameters(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters())


def test_the_transformer_has_the_papers_number_of_parameters():
    assert num_parameters(TransformerConfig().build(52, 60)) == 291_772


@pytest.mark.parametrize("name", ["mlp", "transformer"])
def test_the_head_is_one_linear_layer_on_top_of_the_features(name):
    torch.manual_seed(0)
    backbone = BACKBONES[name]().build(17, 5).eval()
    x = torch.randn(4, 17)
    assert type(backbone.head) is nn.Linear
    assert torch.equal(backbone.head(backbone.features(x)), backbone(x))
    assert not BACKBONES[name].needs_graph


def test_the_transformer_is_pytorchs_own_with_the_same_weights():
    torch.manual_seed(0)
    config = TransformerConfig(patch=4, width=24, num_heads=3, feed_forward=20)
    transformer = config.build(10, 5).eval()
    embedding, *layers, norm, _, hidden, gelu = transformer.features
    peer = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(24, 3, 20, 0.0, "gelu", batch_first=True, norm_first=True),
        num_layers=2, norm=norm, enable_nested_tensor=False,
    ).eval()  # fmt: skip
    for theirs, ours in zip(peer.layers, layers, strict=True):
        _copy(theirs.norm1, ours.attention_norm)
        theirs.self_attn.in_proj_weight.data = ours.query_key_value.weight.data
        theirs.self_attn.in_proj_bias.data = ours.query_key_value.bias.data
        _copy(theirs.self_attn.out_proj, ours.attention_out[0])
        _copy(theirs.norm2, ours.feed_forward[0])
        _copy(theirs.linear1, ours.feed_forward[1])
        _copy(theirs.linear2, ours.feed_forward[4])

    x = torch.randn(6, 10)
    patches = torch.cat([x, torch.zeros(6, 2)], dim=1).reshape(6, 3, 4)
    tokens = peer(embedding.embed(patches) + embedding.position_TD)
    expected = transformer.head(gelu(hidden(tokens.mean(1))))
    torch.testing.assert_close(transformer(x), expected, rtol=0, atol=FLOAT32)


def _copy(to: nn.Module, of: nn.Module) -> None:
    to.load_state_dict(of.state_dict())


@pytest.mark.parametrize("probability", [0.15, 0.2, 0.9])
def test_dropout_drops_and_scales_as_its_probability_says(probability):
    torch.manual_seed(0)
    dropout = Dropout(probability)
    x = torch.ones(999, 1001, requires_grad=True)
    y = dropout(x)
    y.sum().backward()
    kept = y != 0
    # five standard deviations of a million draws, and the rounding of the probability
    tolerance = 5 * (probability * (1 - probability) / x.numel()) ** 0.5 + 2**-17
    assert kept.float().mean().item() == pytest.approx(1 - probability, abs=tolerance)
    torch.testing.assert_close(y[kept].mean().item(), 1 / (1 - probability), rtol=2e-4, atol=0)
    assert torch.equal(x.grad, y.detach())
    # neighbours share a draw of 64 bits, and must not know of each other
    both = (kept.flatten()[:-1] & kept.flatten()[1:]).float().mean().item()
    assert both == pytest.approx((1 - probability) ** 2, abs=3 * tolerance)


def test_dropout_does_nothing_in_evaluation():
    x = torch.randn(3, 5)
    assert torch.equal(Dropout(0.5).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)


@pytest.mark.parametrize("wrong", [{"num_heads": 3}, {"patch": 0}, {"dropout": 1.0}])
def test_a_transformer_that_cannot_be_built_is_refused(wrong):
    with pytest.raises(GridshiftError, match="Transformer needs"):
        TransformerConfig(**wrong)
