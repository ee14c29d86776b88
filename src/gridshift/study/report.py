"""One self-contained HTML page of a study: nothing is loaded from elsewhere.

Its text is written here; the map, the table and the page of each outage are drawn by its own
script from the numbers of `page_data`, so that no picture has to be made beforehand.
"""

import json
import math
from functools import partial
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2

from gridshift.arguments import how_many
from gridshift.grid.names import described, described_outage
from gridshift.study.page_data import MOST_ROWS, most_missed, page_data
from gridshift.study.risk import wilson
from gridshift.study.row import OutageRow
from gridshift.study.screening import Screening
from gridshift.study.store import Store
from gridshift.study.text import real
from gridshift.study.verdict import (
    LIKELY,
    NOTICEABLE,
    Rise,
    largest_rises,
    limit_probability,
    worst_place,
)
from gridshift.trial.exact import EXACT

NUM_WORST = 6
"""Outages that the top of the page describes in words."""
KINDS = {
    "lines": "single-line outages",
    "trafos": "single-transformer outages",
    "all": "single outages",
    "n-2": "double-line outages",
}


def write_report(study: Screening, store: Store) -> Path:
    """Write the page of a study to the store's folder and return its path.

    Raises:
        StorageError: it cannot be written.
    """
    return store.write_text("report.html", render(study))


def render(study: Screening) -> str:
    """The page as text."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gridshift.study"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        number=number, percent=percent, seconds=seconds, count=lambda n: f"{n:,.0f}"
    )
    limited, config = study.limited, study.config
    rises = largest_rises(study.rows, study.intact_row)
    data = page_data(study, rises)
    return environment.get_template("report.html.j2").render(
        study=study,
        config=config,
        exact=config.method == EXACT,
        drawn=_drawn(study),
        what="outages" if config.study else KINDS.get(config.contingencies, "listed outages"),
        verdict=_verdict(study, rises),
        worst=_worst(study, rises),
        violated=any(row.severity > 0 for row in study.rows),
        cut_short=MOST_ROWS if len(study.rows) > MOST_ROWS else 0,
        tiles=_tiles(study, rises),
        heat=data["heat"],
        has_limits=bool((limited.bus_v_min > 0).any() or (limited.bus_v_max > 0).any()),
        has_ratings=bool(limited.branch_rated.any()),
        never=wilson(0.0, config.num_scenarios).high,
        missing=_missing(study, data["numFull"], len(data["details"])),
        described=partial(described_outage, study.network),
        most_missed=most_missed(study),
        costs=_costs(study),
        provenance=_provenance(study),
        css=_template("report.css"),
        script="\n".join(_template(f"{name}.js") for name in ("page", "outage", "map")),
        data=_embedded(data),
    )


def summary_html(study: Screening) -> str:
    """The worst outages as a small table, for notebooks."""
    lines = []
    for rank, row in enumerate(study.rows[:10], 1):
        cells = (
            rank,
            described_outage(study.network, row.outage),
            f"{row.mw_at_risk:,.1f} MW" if row.lost_supply else number(row.severity),
            percent(limit_probability(row)),
            worst_place(row)[0] or "–",
        )
        lines.append("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells) + "</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("#", "outage", "severity", "violated", "at"))
    title = f"{study.network.name}: {how_many(len(study.rows), 'outage')}, {study.config.method}"
    more = f"<p>and {len(study.rows) - 10:,} more</p>" if len(study.rows) > 10 else ""
    return f"<p><b>{escape(title)}</b></p><table><tr>{head}</tr>{''.join(lines)}</table>{more}"


def _template(name: str) -> str:
    return files("gridshift.study").joinpath("templates", name).read_text("utf-8")


def _embedded(data: dict[str, Any]) -> str:
    """As JSON that cannot end the element that it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return text.replace("<", "\\u003c")


def _drawn(study: Screening) -> str:
    """How the loads vary, in words."""
    if study.config.study is not None:
        return f"as {Path(study.config.study).name} says"
    spread, regime = study.config.spread, study.config.regime
    if regime == "drawn":
        how = "spread drawn between ±5 % and that for each" if spread > 0.05 else "the same for all"
    else:
        how = f"{regime} spread"
    return f"±{number(100 * spread)} % ({how})"


def _verdict(study: Screening, rises: list[Rise]) -> str:
    """The answer of the study in a few sentences."""
    total = len(study.rows)
    lost = sum(row.lost_supply for row in study.rows)
    adding = sum(rise.size >= NOTICEABLE for rise in rises)
    likely = sum(rise.size >= LIKELY for rise in rises)
    if not total:
        return "No outage was studied."
    said = []
    if lost:
        verb = "leaves" if lost == 1 else "leave"
        said.append(f"{lost:,} of {how_many(total, 'outage')} {verb} load without supply.")
    if adding:
        verb = "makes" if adding == 1 else "make"
        said.append(
            f"{adding:,} of {how_many(total, 'outage')} {verb} a violation more likely than on "
            "the intact "
            f"grid at some bus or branch, {likely:,} of them by 50 percentage points or more."
        )
    elif not lost:
        said.append(
            f"None of {how_many(total, 'outage')} makes a violation noticeably more likely."
        )
    if study.splitting:
        most = max(split["mw_cut_off"] for split in study.splitting)
        said.append(
            f"{len(study.splitting):,} more cut demand off, up to {most:,.1f} MW, and are listed "
            "apart."
        )
    intact = max(_or_0(study.intact["any_voltage"]), _or_0(study.intact["any_overload"]))
    if intact > 0:
        said.append(
            f"The intact grid itself exceeds a limit in {percent(intact)} of its scenarios; what "
            "it has already is set apart below."
        )
    else:
        said.append("The intact grid exceeds no limit.")
    return " ".join(said)


def _worst(study: Screening, rises: list[Rise]) -> list[dict[str, str]]:
    """The first outages of the ranking that lose supply or add violations, in words."""
    found = []
    for row, rise in zip(study.rows, rises, strict=True):
        if len(found) == NUM_WORST:
            break
        if row.lost_supply or rise.size >= NOTICEABLE:
            text = described_outage(study.network, row.outage)
            text = f"{row.name} ({text})" if row.name else text
            loss = f"{row.mw_at_risk:,.1f} MW at risk. {row.reason}".strip()
            says = loss if row.lost_supply else _addition(study, row, rise)
            found.append({"outage": row.outage, "text": text, "says": says})
    return found


def _addition(study: Screening, row: OutageRow, rise: Rise) -> str:
    """Where it adds a violation, how likely and how sure, and where it is worst."""
    network, label = study.network, rise.label(study.network)
    worst, share = worst_place(row)
    elsewhere = "" if worst in ("", label) else f", worst at {worst} ({percent(share)})"
    sure = wilson(rise.after, row.num_scenarios)
    how = "is outside its voltage limits" if rise.is_bus else "is overloaded"
    before = "" if not rise.before > 0 else f", {percent(rise.before)} on the intact grid"
    return (
        f"{described(network, label)} {how} in {percent(rise.after)} of scenarios "
        f"(95 % interval {percent(sure.low)} to {percent(sure.high)}{before}); "
        f"severity {number(row.severity)}{elsewhere}"
    )


def _tiles(study: Screening, rises: list[Rise]) -> list[tuple[str, str, str]]:
    """(value, what it is, more about it) of the numbers on top of the page."""
    lost = sum(row.lost_supply for row in study.rows)
    likely = sum(rise.size >= LIKELY for rise in rises)
    errors = sorted(row.mae["overall"] for row in study.rows if math.isfinite(row.mae["overall"]))
    apart = f"{len(study.splitting):,} more cut demand off" if study.splitting else "worst first"
    tiles = [
        (f"{len(study.rows):,}", "outages ranked", apart),
        (f"{lost:,}", "leave load without supply", "islanded, or no nominal solution"),
        (f"{likely:,}", "make a violation likely", "by 50 points or more, somewhere"),
    ]
    if errors:
        text = f"worst outage {number(errors[-1])}"
        tiles.append((number(errors[len(errors) // 2]), "median error on the hold-out", text))
    else:
        tiles.append(("exact", "every scenario solved", "by Newton's method"))
    if study.system["num_with_rates"]:
        told = f"and {number(study.system['energy_not_served_mwh'])} MWh not served, by "
        told += how_many(int(study.system["num_with_rates"]), "rate")
        tiles.append((number(study.system["violations_per_year"]), "violations a year", told))
    resumed = int(study.cost["resumed"])
    workers = int(study.cost["workers"])
    at_a_time = f"{how_many(workers, 'outage')} at a time"
    text = (
        f"{how_many(resumed, 'row')} {'was' if resumed == 1 else 'were'} there already"
        if resumed
        else at_a_time
    )
    tiles.append((seconds(study.cost["sweep_s"]), "for the sweep", text))
    return tiles


def _missing(study: Screening, num_full: int, num_details: int) -> list[str]:
    """What the study or the page leaves out, in sentences."""
    rows, network = study.rows, study.limited
    studied = sum(row.num_scenarios > 0 for row in rows)
    found = []
    if len(rows) > studied:
        found.append(
            f"{how_many(len(rows) - studied, 'outage has', 'outages have')} no state to "
            "describe; why is in their row"
        )
    unrated = int((~network.branch_rated).sum())
    if unrated:
        found.append(f"overloads of {unrated:,} of {network.num_branches:,} branches: no rating")
    failed = sum(row.unsolved > 0 for row in rows if row.num_scenarios)
    if failed:
        found.append(
            f"{how_many(failed, 'outage has', 'outages have')} scenarios without a solution; "
            "the others are counted"
        )
    if num_full < studied:
        text = f"this page has every bus and branch of the worst {num_full:,} outages"
        if num_details > num_full:
            text += f", the most affected of {num_details - num_full:,} more"
        found.append(f"{text}; screening.parquet has all of all")
    limits = ["reactive limits of generators"] * (not study.config.q_limits)
    limits += ["tap changers and shunts that move"] * (not study.config.controls)
    return [*found, ", ".join([*limits, "protection and operators that act", "transients"])]


def _costs(study: Screening) -> list[tuple[str, str]]:
    exact, cost = study.config.method == EXACT, study.cost
    phases = [
        ("training, once for the grid", "train_s"),
        ("context: drawing and solving", "data_s"),
        ("adapting", "fit_s"),
        ("solving" if exact else "predicting", "predict_s"),
        ("correcting predictions", "certify_s"),
        ("counting violations", "risk_s"),
        ("hold-out: drawing and solving", "holdout_s"),
    ]
    found = [(name, seconds(cost[key])) for name, key in phases if cost.get(key)]
    found.append(("sweep, wall clock", seconds(cost["sweep_s"])))
    found.append(("exact solves", f"{cost['num_solves']:,.0f}"))
    found.append(("one row exactly", f"{number(cost['exact_us_per_row'])} µs"))
    per_row = f"{number(cost['predict_us_per_row'])} µs"
    found.append((f"one row {'in the sweep' if exact else 'predicted'}", per_row))
    if not exact:
        found.append(("all scenarios exactly instead", seconds(cost["exact_instead_s"])))
        rows = cost["break_even_rows"]
        pays = number(rows) if rows < 1e12 else "never"
        found.append(("scenarios per outage from which predicting pays", pays))
    return found


def _provenance(study: Screening) -> list[tuple[str, str]]:
    about, config = study.about, study.config
    limits = {
        "v_min": config.v_min, "v_max": config.v_max, "default rating": config.rating_mva,
        "ratings of": config.ratings, "emergency rating": config.emergency_rating,
        "season": config.season, "seasonal factor": config.seasonal_factor,
    }  # fmt: skip
    units = {"default rating": " MVA", "emergency rating": " times the rating"}
    told = [f"{name} {value}{units.get(name, '')}" for name, value in limits.items() if value]
    machine, threads = about["machine"], about["threads"]
    found = [("grid", about["origin"]), ("digest of the grid", about["grid_digest"][:16])]
    if about.get("surrogate_digest"):
        found.append(("digest of the surrogate", about["surrogate_digest"][:16]))
    return [
        *found,
        ("method", config.method),
        ("contingencies", config.contingencies),
        *([("study file", config.study)] if config.study else []),
        *([("reactive limits", "kept")] if config.q_limits else []),
        *([("tap changers and shunts", "move")] if config.controls else []),
        *([("slack shared by", config.distributed_slack)] if config.distributed_slack else []),
        ("root seed", str(config.seed)),
        ("limits", ", ".join(told) + "; else the grid's own" if told else "the grid's own"),
        ("made", about["made"]),
        ("versions", ", ".join(f"{name} {version}" for name, version in about["versions"].items())),
        ("machine", f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"),
        ("threads per worker", ", ".join(f"{name} {n}" for name, n in threads.items())
         + f"; {how_many(int(study.cost['workers']), 'worker')}"),
    ]  # fmt: skip


def _or_0(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def number(value: float | None) -> str:
    """Three digits as on the terminal: `0.123`, `2.40e-4`, `1,230`; a dash for no number."""
    return real(value, none="–")


def percent(value: float | None) -> str:
    """A share as a percentage; what is small but not zero stays visible."""
    if value is None or not math.isfinite(value):
        return "–"
    if 0 < value < 0.001:
        return "< 0.1 %"
    return f"{100 * value:.0f} %" if value in (0, 1) else f"{100 * value:.1f} %"


def seconds(value: Any) -> str:
    """A duration with its unit."""
    value = float(value)
    if not math.isfinite(value):
        return "–"
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"
