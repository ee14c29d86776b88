"""Solve a thousand load scenarios of a grid with one line out, and look at the voltages."""

import numpy as np

import gridshift as gs

network = gs.read_grid("case30")  # or a pandapower .json, or a MATPOWER .m file
outage = gs.parse_outage(network, "line:9")
found = gs.assess(network, outage)
print(f"without {gs.outage_text(outage)}: {found.status.text} at nominal demand")

loads = gs.sample_loads(
    network, gs.named_rng("case30", "example"), 1000, spread=0.2, regime="fixed"
)
solution = gs.solve(found.network, loads)
print(solution.counts())

magnitude = np.abs(solution.voltage[solution.solved])
lowest = magnitude.min(axis=0).argmin()
print(f"lowest voltage {magnitude[:, lowest].min():.3f} p.u. at {network.bus_labels[lowest]}")
