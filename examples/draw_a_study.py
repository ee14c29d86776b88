"""Draw the scenarios that a study file describes, and solve them on the intact grid."""

from pathlib import Path

import numpy as np

import gridshift as gs
from gridshift.study.study_file import read_study_file

study = read_study_file(Path(__file__).with_name("study.toml"))
drawn = study.draw(gs.read_grid(study.head.grid))
solution = gs.solve(drawn.network, drawn.loads)

mw = drawn.network.base_mva
demand = drawn.loads.load_p[:, : -len(drawn.generators)].sum(1) * mw
print(f"{drawn.num_rows} scenarios of {drawn.network.name}, {solution.solved.sum()} solved")
print(f"demand {demand.mean():,.0f} MW, standard deviation {demand.std():,.0f} MW")
generated = -drawn.loads.load_p[:, -len(drawn.generators) :] * mw
for label, power in zip(drawn.generators, generated.T, strict=True):
    print(f"{label:7} {power.min():6.1f} to {power.max():6.1f} MW")
left = np.abs(drawn.to_slack) > 1e-9
print(f"limits leave a part to the slack in {left.mean():.0%} of the scenarios")
