"""Solved cases from any tool: the paper's network, fitted once and adapted by moments.

Nothing below but the first part knows of power flow; replace it by your own rows.
"""

import numpy as np

import gridshift as gs

intact = gs.read_grid("case14")
outaged = intact.without(gs.parse_outage(intact, "line:2"))


def solved_cases(network: gs.Network, role: str, num_rows: int):
    """Demands in MW and Mvar, voltages in p.u.: what a table of solved cases would hold."""
    rng = gs.named_rng(network.name, role, outage=",".join(network.outaged))
    loads = gs.sample_loads(network, rng, num_rows, spread=0.2)
    voltage = np.abs(gs.solve(network, loads).voltage[:, network.pq])
    return np.hstack([loads.load_p, loads.load_q]) * network.base_mva, voltage


base = gs.ICWRegressor(base="mlp", num_steps=1500, random_state=0)
base.fit(*solved_cases(intact, "training", 500))
context, test = solved_cases(outaged, "context", 60), solved_cases(outaged, "test", 300)
adapted = {
    "frozen": base,
    "context": base.adapt(*context),
    "paired": base.set_params(moments="paired").adapt(*context),
}
for name, regressor in adapted.items():
    error = np.abs(regressor.predict(test[0]) - test[1]).mean()
    print(f"{name:7} {error:.1e} p.u. after {regressor.num_context_} solved cases")
