from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from gridshift.errors import GridshiftError
from gridshift.learn.backbones import BACKBONES
from gridshift.learn.backbones.dropout import Dropout
from gridshift.learn.backbones.graph import NodeGraph
from gridshift.learn.backbones.pfgnn import BLOCK, PfgnnConfig
from gridshift.learn.backbones.transformer import TransformerConfig
from tests.reference.message_passing import power_flow_net

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


def random_graph(seed: int, num_nodes: int, num_inputs: int = 5) -> NodeGraph:
    """Random edges, some of them parallel, and as a rule a node without any."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(num_nodes - 1, size=(2, 2 * num_nodes))
    ends = ends[:, ends[0] != ends[1]]
    features = rng.normal(size=(ends.shape[1], 2))
    known = rng.random((num_nodes, 4)) < 0.5
    weight = rng.normal(size=(num_nodes, 4, num_inputs)) * known[..., None]
    return NodeGraph(
        num_nodes=num_nodes,
        edges=np.concatenate([ends, ends[::-1]], axis=1),
        edge_features=np.concatenate([features, features]),
        known=known,
        inputs_to_nodes=weight.reshape(4 * num_nodes, num_inputs),
        offset=(rng.normal(size=(num_nodes, 4)) * known).ravel(),
        output_slots=rng.permutation(np.flatnonzero(~known)),
    )


def without_edge(graph: NodeGraph, number: int) -> NodeGraph:
    keep = np.arange(graph.edges.shape[1]) % (graph.edges.shape[1] // 2) != number
    changed = {"edges": graph.edges[:, keep], "edge_features": graph.edge_features[keep]}
    return replace(graph, **changed)


def build_on(graph: NodeGraph, **config):
    torch.manual_seed(0)
    return PfgnnConfig(**config).build(graph.num_inputs, graph.num_outputs, graph)


def give_biases(module: nn.Module) -> None:
    """Other than zero, so that they are seen, and no ReLU is at its kink."""
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter, std=0.3)


def test_pfgnn_has_the_papers_number_of_parameters():
    assert num_parameters(build_on(random_graph(0, 6))) == 354_500


@pytest.mark.parametrize(
    ("seed", "num_nodes", "hops"), [(0, 2, 3), (1, 7, 3), (2, 12, 1), (3, 5, 0)]
)
def test_pfgnn_is_powerflownet_edge_by_edge_also_without_an_edge(seed, num_nodes, hops):
    graph = random_graph(seed, num_nodes)
    pfgnn = build_on(graph, hidden=11, hops=hops).eval()
    give_biases(pfgnn)
    weights = {name: w.double().numpy() for name, w in pfgnn.state_dict().items()}
    x = np.random.default_rng(seed).normal(size=(3, graph.num_inputs))
    cases = [(graph, pfgnn)]
    if graph.edges.size:
        smaller = without_edge(graph, 0)
        cases.append((smaller, pfgnn.on(smaller)))
    for on, network in cases:
        expected = np.array([power_flow_net(weights, on, row) for row in x])
        z = network(torch.from_numpy(x).float()).detach().numpy()
        # float32, relative to the largest value, as sums of both signs cancel
        np.testing.assert_allclose(z, expected, rtol=0, atol=FLOAT32 * np.abs(expected).max())


def test_pfgnn_on_another_graph_shares_its_weights_and_its_state_is_the_weights_alone():
    graph = random_graph(1, 7)
    pfgnn = build_on(graph, hidden=9)
    other = pfgnn.on(without_edge(graph, 2))
    assert all(a is b for a, b in zip(pfgnn.parameters(), other.parameters(), strict=True))
    assert pfgnn.state_dict().keys() == dict(pfgnn.named_parameters()).keys()
    x = torch.randn(4, 5)
    assert not torch.equal(pfgnn.eval()(x), other.eval()(x))
    assert torch.equal(other.on(graph)(x), pfgnn(x))
    assert repr(pfgnn) == repr(other.on(graph)) != repr(other)


def test_pfgnn_has_the_gradients_of_its_values():
    graph = random_graph(1, 4)
    pfgnn = build_on(graph, hidden=4, num_layers=3, dropout=0.0).double()
    give_biases(pfgnn)
    x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)

    def z(x, *parameters):
        names = dict(pfgnn.named_parameters())
        return torch.func.functional_call(pfgnn, dict(zip(names, parameters, strict=True)), (x,))

    assert torch.autograd.gradcheck(z, (x, *pfgnn.parameters()))


def test_pfgnn_gives_a_row_the_same_whatever_rows_are_beside_it():
    pfgnn = build_on(random_graph(4, 6), hidden=8).eval()
    x = torch.randn(2 * BLOCK + 3, 5)
    one_by_one = torch.cat([pfgnn(row) for row in x.split(1)])
    torch.testing.assert_close(pfgnn(x), one_by_one, rtol=FLOAT32, atol=FLOAT32)
    assert pfgnn(x[:0]).shape == (0, pfgnn.graph.output_slots.numel())


def test_a_graph_of_other_inputs_or_outputs_is_refused():
    graph = random_graph(1, 4)
    with pytest.raises(GridshiftError, match="5 inputs and"):
        PfgnnConfig().build(6, graph.num_outputs, graph)
    with pytest.raises(GridshiftError, match="edges of a graph of 4 nodes"):
        replace(graph, edges=graph.edges[:, 1:])
