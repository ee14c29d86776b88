"""Ten solved cases of an outage are enough: compensation, with the line's ends named or found.

gridshift's power flow makes the tables here; nothing else below knows of it.
"""

import numpy as np

import gridshift as gs

intact = gs.read_grid("case30")
outaged = intact.without(gs.parse_outage(intact, "line:9"))  # from bus 5 to bus 7


def solved_cases(network: gs.Network, role: str, num_rows: int):
    """Demands in MW and Mvar; angles in rad and magnitudes in p.u. of all buses."""
    rng = gs.named_rng(network.name, role, outage=",".join(network.outaged))
    loads = gs.sample_loads(network, rng, num_rows, spread=0.2)
    voltage = gs.solve(network, loads).voltage
    demands = np.hstack([loads.load_p, loads.load_q]) * network.base_mva
    return demands, np.hstack([np.angle(voltage), np.abs(voltage)])


num = intact.num_buses
buses = {bus: {"angle": bus, "magnitude": num + bus} for bus in range(num)}  # columns of y

base = gs.ICWRegressor().fit(*solved_cases(intact, "training", 2000))
ten, test = solved_cases(outaged, "context", 10), solved_cases(outaged, "test", 500)

found = base.identify(*ten, buses)
print(f"between buses {found.pair}: {found.reason}")
adapted = {
    "not adapted": base,
    "mean shift": base.adapt(*ten, touching=()),
    "ends named": base.adapt(*ten, touching={bus: buses[bus] for bus in (5, 7)}),
}
if found.pair is not None:
    adapted["ends found"] = base.adapt(*ten, touching={bus: buses[bus] for bus in found.pair})
for name, regressor in adapted.items():
    error = np.abs(regressor.predict(test[0]) - test[1]).mean()
    print(f"{name:11} {error:.1e} (p.u. and rad) after {regressor.num_context_} solved cases")
