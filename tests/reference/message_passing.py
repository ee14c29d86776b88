"""PowerFlowNet as its definition says, edge by edge and node by node, in float64."""

import numpy as np


def power_flow_net(weights, graph, x):
    """z (Y,) of one row of scaled inputs x (X,); `weights` are those of `Pfgnn`, by name."""
    w = {name.removeprefix("nodes."): value for name, value in weights.items()}
    state = (graph.inputs_to_nodes @ x + graph.offset).reshape(-1, 4)
    nodes = []
    for node in range(graph.num_nodes):
        unknown = 1.0 - graph.known[node]
        hidden = np.maximum(w["mask_embedding.0.weight"] @ unknown + w["mask_embedding.0.bias"], 0)
        embedded = w["mask_embedding.2.weight"] @ hidden + w["mask_embedding.2.bias"]
        nodes.append(state[node] + embedded)

    num_layers = 1 + max(int(name.split(".")[1]) for name in w if name.startswith("layers."))
    for layer in range(num_layers):
        own = {n.split(".", 2)[2]: v for n, v in w.items() if n.startswith(f"layers.{layer}.")}
        work = graph_convolution if "weight_KHH" in own else message_passing
        nodes = work(own, graph, nodes)
        if layer < num_layers - 1:
            nodes = [np.maximum(h, 0) for h in nodes]
    return np.array([nodes[slot // 4][slot % 4] for slot in graph.output_slots])


def message_passing(w, graph, nodes):
    """For every edge j -> i: second(relu(first([h_i, h_j, e_ij]))), added up at i."""
    sums = [np.zeros(len(w["second.bias"])) for _ in nodes]
    for edge, (j, i) in enumerate(graph.edges.T):
        given = np.concatenate([nodes[i], nodes[j], graph.edge_features[edge]])
        hidden = np.maximum(w["first.weight"] @ given + w["first.bias"], 0)
        sums[i] = sums[i] + w["second.weight"] @ hidden + w["second.bias"]
    return sums


def graph_convolution(w, graph, nodes):
    """sum_k S^k h W_k + b; one S: for every edge j -> i, h_j / sqrt(degree_i degree_j) at i."""
    degree = [sum(1 for i in graph.edges[1] if i == node) for node in range(graph.num_nodes)]
    out = [h @ w["weight_KHH"][0] + w["bias"] for h in nodes]
    for hop in w["weight_KHH"][1:]:
        moved = [np.zeros_like(h) for h in nodes]
        for j, i in graph.edges.T:
            moved[i] = moved[i] + nodes[j] / np.sqrt(degree[i] * degree[j])
        nodes = moved
        out = [o + h @ hop for o, h in zip(out, nodes, strict=True)]
    return out
