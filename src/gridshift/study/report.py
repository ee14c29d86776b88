"""One self-contained HTML page of a study: no scripts, no fonts, no pictures from elsewhere."""

import math
from pathlib import Path
from typing import Any

import jinja2

from gridshift.study import figures
from gridshift.study.screening import Screening
from gridshift.study.store import Store
from gridshift.study.text import real
from gridshift.trial.exact import EXACT

NUM_SHOWN = 25
"""Outages in the table; the others are one click away."""


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
        number=number, percent=percent, seconds=seconds, count=lambda n: f"{n:,}"
    )
    rows = list(enumerate(study.rows, 1))
    return environment.get_template("report.html.j2").render(
        study=study,
        config=study.config,
        exact=study.config.method == EXACT,
        lost=[(rank, row) for rank, row in rows if row.lost_supply],
        ranked=[(rank, row) for rank, row in rows if not row.lost_supply],
        islands=[row for row in study.rows if row.islanded and not row.lost_supply],
        num_shown=NUM_SHOWN,
        tiles=_tiles(study),
        what=_what(study),
        has_ratings=bool(study.network.branch_rated.any() or study.config.rating_mva),
        figures={
            "severity": figures.severity_chart(study),
            "voltage": figures.voltage_heat_map(study),
            "overload": figures.overload_heat_map(study),
            "holdout": figures.holdout_figure(study),
        },
    )


def _what(study: Screening) -> str:
    kinds = {
        "lines": "single-line outages",
        "trafos": "single-transformer outages",
        "all": "single outages",
        "n-2": "double-line outages",
    }
    return kinds.get(study.config.contingencies, "listed outages")


def _tiles(study: Screening) -> list[tuple[str, str, str]]:
    """(value, what it is, more about it) of the numbers on top of the page."""
    studied = [row for row in study.rows if row.num_scenarios > 0]
    lost = sum(row.lost_supply for row in study.rows)
    likely = sum(max(_or_0(row.any_voltage), _or_0(row.any_overload)) >= 0.5 for row in studied)
    errors = sorted(row.mae["overall"] for row in studied if math.isfinite(row.mae["overall"]))
    apart = f"{len(study.splitting):,} more cut demand off" if study.splitting else "worst first"
    tiles = [
        (f"{len(study.rows):,}", "outages ranked", apart),
        (f"{lost:,}", "leave load without supply", "islanded, or no nominal solution"),
        (f"{likely:,}", "exceed a limit more often than not", "in half of their scenarios or more"),
    ]
    if errors:
        text = f"worst outage {number(errors[-1])}"
        tiles.append((number(errors[len(errors) // 2]), "median error on the hold-out", text))
    else:
        tiles.append(("exact", "every scenario solved", "by Newton's method"))
    resumed = int(study.cost["resumed"])
    text = f"{resumed:,} rows were there already" if resumed else _workers(study)
    tiles.append((seconds(study.cost["sweep_s"]), "for the sweep", text))
    return tiles


def _workers(study: Screening) -> str:
    workers = int(study.cost["workers"])
    return f"{workers} outage{'s' if workers != 1 else ''} at a time"


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
