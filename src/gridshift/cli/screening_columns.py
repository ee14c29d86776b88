"""What the keys of a study and the columns of its outages mean."""

from gridshift.cli.options import GRID_KEY

STUDY_KEYS = GRID_KEY | {
    "num_outages": "outages in the ranking",
    "method": "`newton`, or how the surrogate was adapted to each",
    "outages": "list, the worst first, with the keys of the next table up to `cost`",
    "splitting": "with --refuse-splits: outages that cut demand off, not ranked: `outage`, "
    "`cut_off`, `mw_cut_off` (demand), `mw_generation_cut_off`",
    "intact": "of the intact grid, solved exactly in the same scenarios: `severity`, "
    "`violation_probability` and other columns of an outage",
    "beside": "of each method of --beside, on outages of branches that leave the grid in one "
    "piece: `method`, `num_context`, `mae` (as in adapt, mean over outages), "
    "`rank_correlation` (Spearman, of severities), `missed_violations` (share of the "
    "scenarios with a violation in which it predicts none), `num_violated`, "
    "`num_missed`, `num_false`, `num_outages`, `num_failed`, "
    "`problem` (of the first that failed), `outages` (of each `severity`, `exact_severity`, "
    "`mae`, `num_rows`, `num_violated`, `num_missed`, `num_false`), `cost` (s: `train_s`, "
    "`data_s`, `fit_s`, `predict_s`, `wall_s`; `num_solves`)",
    "system": "sums over the outages with failure rates: `failures_per_year`, "
    "`violations_per_year`, `energy_not_served_mwh`; `num_with_rates`",
    "notes": "what the study cannot say, and warnings met on the way",
    "cost": "of the whole study: seconds `train_s` (of the surrogate, be it now or long ago), "
    "`sweep_s`, `wall_s`, and summed over outages `data_s`, `holdout_s`, `fit_s`, `predict_s`, "
    "`certify_s`, `risk_s`, `outages_s`; `num_solves`, `num_predicted`; with --certify "
    "`num_kept_as_predicted`, `num_repaired`, `num_solved`, `num_marked`; "
    "`predict_us_per_row`, `exact_us_per_row`, `exact_instead_s`, `break_even_rows` (scenarios "
    "per outage), `resumed` (outages found finished), `workers`",
    "config": "everything that decides the results, and `workers`, the number used",
    "about": "versions, machine, threads, digests",
    "report": "the page written for people",
}

COLUMNS = {
    "rank": "1 for the worst",
    "outage": "elements out of service: branches, `gen:2`, `bus:7`, `load:3`, `shunt:4`",
    "status": "`solved`, `islanded`, another reason why there is no nominal solution, or `failed`",
    "reason": "in words, if it isn't solved",
    "severity": "expected sum of limit violations, each as a share of its limit (loading beyond 1; "
    "distance outside the voltage band over its half width), plus 100 for a scenario without a "
    "solution. From 1e6 on: loss of supply, 1e6 plus the MW at risk (demand cut off, or all demand "
    "times `unsolved` where there is no nominal solution)",
    "unsolved": "share of scenarios without a solution: of all for newton and with --certify, else "
    "of context and hold-out",
    "cut_off": "buses cut off; the rest is solved exactly, whatever the method",
    "mw_cut_off": "nominal demand there, MW: all that draws active power, whatever is generated "
    "beside it",
    "mw_generation_cut_off": "scheduled generation there, MW",
    "num_scenarios": "scenarios behind the limit statistics",
    "exact": "whether all of its scenarios were solved, whatever the method",
    "stopped": "with --precision, why no more were solved: `precision` is reached, `harmless` "
    "(below --ignore-below with all of its interval), or `all` are used",
    "violation_probability": "probability that a limit is exceeded or that there is no solution",
    "violation_low": "lower bound of its 95 % interval, after Wilson; with a surrogate, scenarios "
    "nearer to a limit than its largest error on the hold-out don't count",
    "violation_high": "upper bound; with a surrogate, these scenarios count",
    "standard_error": "half the width of that interval over 1.96",
    "severity_standard_error": "of the severity, from the scenarios alone",
    "num_context": "solved cases that the method was given",
    "num_solves": "solves that this outage took, failed ones included",
    "excess": "expected sum of limit violations over the scenarios with a solution",
    "voltage_excess": "the part of voltages",
    "overload_excess": "the part of overloads",
    "any_voltage": "share of scenarios with a voltage outside limits",
    "any_overload": "share of scenarios with an overload; null without ratings",
    "shift": "complex voltage shift, p.u.: mean over buses of the distance of the mean complex "
    "voltage from the intact grid's nominal one, mostly of angle; orders equal severities",
    "worst_bus": "bus with the largest expected violation, empty if there is none",
    "worst_bus_probability": "share of scenarios in which it is outside limits",
    "worst_branch": "branch with the largest expected overload, empty if there is none",
    "worst_branch_probability": "share of scenarios in which it is overloaded",
    "worst_bus_share": "share of scenarios in which no voltage is worse than its",
    "worst_branch_share": "share of scenarios in which no loading is higher than its",
    "under_bus": "bus most often below its lower limit, empty if none ever is",
    "under_probability": "how often",
    "over_bus": "bus most often above its upper limit",
    "over_probability": "how often",
    "any_emergency": "share of scenarios with a loading beyond an emergency rating; null without "
    "such",
    "emergency_branch": "branch that is most often beyond its emergency rating, if any is",
    "emergency_probability": "how often",
    "any_at_limit": "with --q-limits: share of scenarios with a generator at a reactive limit",
    "limit_bus": "bus whose generators are most often at one, empty if none ever are",
    "limit_probability": "how often",
    "any_moved": "with --controls: share of scenarios in which a tap changer, shunt or phase "
    "shifter moves",
    "moved_control": "the one that moves in most, empty if none ever does",
    "moved_probability": "in how many",
    "end_control": "the one that is most often at its first or last position, if any ever is",
    "end_probability": "how often",
    "unsettled": "with --controls: share of scenarios in which they move without end; part of "
    "`unsolved`",
    "added_severity": "severity less the intact grid's in the same scenarios",
    "added_probability": "`violation_probability` less the intact grid's",
    "added_bus": "bus whose expected violation grows most against the intact grid, if any does",
    "added_bus_probability": "by how much its probability to be outside limits grows",
    "added_branch": "branch whose expected overload grows most",
    "added_branch_probability": "by how much its probability to be overloaded grows",
    "worst_voltage": "of each scenario's worst voltage, as distance from the middle of its band in "
    "half widths (1 at a limit): `mean`, `p95`, `p99`, `max`, `tail` (mean of the worst 5 %)",
    "worst_loading": "the same of each scenario's highest loading",
    "scenario_excess": "the same of each scenario's sum of limit violations",
    "mae": "errors on the hold-out, as in adapt",
    "mismatch": "power balance of the hold-out's predictions, as in adapt",
    "holdout_excess": "`excess` of the hold-out's exact solutions",
    "holdout_excess_predicted": "the same from the predictions of these rows",
    "certified": "with --certify or --correct-share: scenarios `predicted`, `repaired`, `solved`, "
    "`marked`; `worst_mismatch` of those counted, p.u.",
    "equal_to": "outage that was solved in its place, as parallel circuits are equal",
    "name": "what the list of outages calls it",
    "failures_per_year": "from the list, as the next",
    "repair_hours": "until it is back",
    "violations_per_year": "expected failures in which a limit is exceeded or load is lost",
    "energy_not_served_mwh": "expected per year: failures times hours times demand without supply",
    "cost": "s: `data_s` (context), `holdout_s`, `fit_s`, `predict_s`, `certify_s`, `risk_s`, "
    "`wall_s`",
    "bus_under": "parquet only, as those that follow: by bus, share of scenarios below the limit",
    "bus_over": "by bus, share of scenarios above the limit",
    "bus_violation": "by bus, expected distance outside the limits, p.u.",
    "bus_worst": "by bus, share of scenarios in which no voltage is worse",
    "bus_voltage_min": "by bus, least voltage over scenarios, p.u.",
    "bus_voltage_p5": "by bus, its 5 % quantile to 0.004 p.u.",
    "bus_voltage_mean": "by bus, its mean",
    "bus_voltage_p95": "by bus, its 95 % quantile",
    "bus_voltage_max": "by bus, its largest",
    "bus_at_q_max": "with --q-limits: by bus, share of scenarios with its generators at the upper "
    "reactive limit",
    "bus_at_q_min": "by bus, the same of the lower one",
    "control_moved": "with --controls: by control, share of scenarios in which it moves",
    "control_at_end": "by control, share of scenarios with it at its first or last position",
    "branch_overload_probability": "by branch, share of scenarios with a loading above 1",
    "branch_emergency_probability": "by branch, share of scenarios beyond its emergency rating",
    "branch_overload": "by branch, expected loading beyond 1",
    "branch_loading": "by branch, mean loading",
    "branch_loading_p95": "by branch, 95 % quantile of the loading, to 0.016 below 2",
    "branch_loading_p99": "by branch, its 99 % quantile",
    "branch_loading_max": "by branch, its largest",
    "branch_worst": "by branch, share of scenarios in which no loading is higher",
}
"""Of each outage: columns of screening.parquet, keys in JSON."""
