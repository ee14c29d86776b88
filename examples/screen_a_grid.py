"""Rank the single-line outages of a grid by exact solutions, with limits of one's own."""

import gridshift as gs

config = gs.ScreenConfig(
    grid="case14",
    method="newton",  # 'icw' trains a surrogate first and predicts
    num_scenarios=100,
    v_min=0.94,
    v_max=1.10,
    rating_mva=100,  # case14 has no ratings of its own
)
study = gs.screen(config)
for rank, row in enumerate(study.rows[:5], 1):
    print(f"{rank}. {row.outage:8} severity {row.severity:.3f}, overload {row.any_overload:.0%}")
print(f"{len(study.splitting)} outages split the grid:", *(s["outage"] for s in study.splitting))
