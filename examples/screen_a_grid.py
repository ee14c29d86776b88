"""Rank the single-line outages of a grid by exact solutions, and look at the answer as tables.

In a notebook, `study` alone shows the ranking, and the plots appear below their cells.
"""

import gridshift as gs

config = gs.ScreenConfig(
    grid="case14",
    num_scenarios=100,
    v_min=0.94,
    v_max=1.10,
    rating_mva=100,  # case14 has no ratings of its own
)
study = gs.screen(config)
lost = [row for row in study.rows if row.lost_supply]
print(f"{len(lost)} outages cut demand off:", *(f"{r.outage} {r.mw_at_risk:.1f} MW" for r in lost))

# A row for each outage: how bad, how likely, and how sure that is.
columns = ["described", "severity_change", "any_overload", "any_overload_low", "any_overload_high"]
print(study.outages.head(5)[columns].to_string(index=False))

# A row for each outage and branch: what an outage adds to the intact grid, and where.
added = study.branches[study.branches.probability_change > 0.05]
columns = ["outage", "branch", "from_bus", "to_bus", "kv", "probability", "p99_percent", "p99_ka"]
worst = added.sort_values("probability_change", ascending=False)
print(worst.head(5)[columns].round(2).to_string(index=False))

# The lowest voltages after each of the worst outages, in p.u. and kV.
lowest = study.buses.sort_values("p5_pu").groupby("outage", observed=True).first()
print(lowest.loc[study.outages.outage[:3], ["bus", "p5_pu", "p5_kv"]].round(3).to_string())

# Pictures are matplotlib axes; files for other programs come from study.export("folder").
axes = study.plot_map()
loading = study.plot_outage(study.outages.outage[0])[1]
print("drawn:", axes.get_title("left"), "and", loading.get_xlabel())
