"""What a study cost, and what solving everything exactly would have cost."""

from collections.abc import Sequence

from gridshift.study.row import CERTIFIED, OutageRow
from gridshift.study.screening import ScreenConfig
from gridshift.trial.cost import break_even_rows
from gridshift.trial.exact import EXACT


def _certified(rows: Sequence[OutageRow], config: ScreenConfig) -> dict[str, float]:
    """Scenarios by what became of their predictions, if those were corrected."""
    if not config.corrects:
        return {}
    counts = {f"num_{name}": 0.0 for name in CERTIFIED[:-1]}
    for row in rows:
        for name in CERTIFIED[:-1]:
            if row.certified[name] == row.certified[name]:
                counts[f"num_{name}"] += row.certified[name]
    kept = counts.pop("num_predicted")
    return {**counts, "num_kept_as_predicted": kept}


def ledger(rows: Sequence[OutageRow], config: ScreenConfig, exact_us: float) -> dict[str, float]:
    """What the rows cost together, and what solving everything exactly would have cost."""
    names = rows[0].cost if rows else ()
    columns = {name: sum(row.cost[name] for row in rows) for name in names}
    columns["outages_s"] = columns.pop("wall_s", 0.0)
    # Where buses are cut off, the rest is solved and not predicted, whatever the method.
    by_method = [row for row in rows if config.method == EXACT or not row.exact]
    predicted = sum(row.num_scenarios for row in by_method)
    predict_s = sum(
        row.cost.get(name, 0.0) for row in by_method for name in ("predict_s", "certify_s")
    )
    predict_us = predict_s / predicted * 1e6 if predicted else float("nan")
    once = columns.get("data_s", 0.0) + columns.get("fit_s", 0.0)
    return {
        **columns,
        "num_solves": sum(row.num_solves for row in rows),
        "num_predicted": predicted,
        **_certified(rows, config),
        "predict_us_per_row": predict_us,
        "exact_us_per_row": exact_us,
        "exact_instead_s": exact_us * 1e-6 * config.num_scenarios * len(rows),
        "break_even_rows": break_even_rows(once / max(1, len(rows)), predict_us, 0.0, exact_us),
    }
