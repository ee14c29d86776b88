"""Rank the single-line outages of a grid by exact solutions, with limits of one's own."""

import gridshift as gs

config = gs.ScreenConfig(
    grid="case14",
    num_scenarios=100,
    v_min=0.94,
    v_max=1.10,
    rating_mva=100,  # case14 has no ratings of its own
)
study = gs.screen(config)
for rank, row in enumerate(study.rows[:5], 1):
    if row.lost_supply:
        print(f"{rank}. {row.outage:8} {row.mw_at_risk:.1f} MW without supply")
        continue
    likely = f"{row.violation_probability:.1%} ± {row.standard_error:.1%}"
    print(f"{rank}. {row.outage:8} severity {row.severity:.3f}, violation {likely}")
print("what they add:", *(f"{row.outage}: {row.added_branch or '-'}" for row in study.rows[:5]))
