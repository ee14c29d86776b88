"""Tables of cost: deployment over all outages, scratch training, what the figures' text quotes."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from gridshift_paper.artefacts import Rows, Table, mean_and_spread
from gridshift_paper.cost_paper import (
    BACKBONES,
    PAPER_300,
    PAPER_300_FROZEN,
    PAPER_BAND_MARGIN,
    PAPER_BAND_RATIO,
    PAPER_CORES,
    PAPER_DEPLOYMENT,
    PAPER_ICW_COST,
    PAPER_ICW_V,
    PAPER_SCRATCH,
)
from gridshift_paper.cost_points import Point, closed_form, contexts_of, curve, factor, seconds_of
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import mean, picked

BUDGET = 4_000
"""Gradient steps of the paper's comparison at deployment scale."""
TARGET_LABELS = {"no-norm": "raw y", "zscore": "z-score"}
DEPLOYMENT_COLUMNS = (
    "grid", ">K", ">data\n(s/ctg)", ">ICW inf.\n(s/ctg)", ">FT inf.\n(s/ctg)",
    ">4,000 steps\n(s/ctg)", ">ICW total\n(s)", ">FT total\n(s)", ">speed-up",
)  # fmt: skip


def deployment(rows: Rows, grid: str, *, solver: str, cores: int) -> tuple[object, ...] | None:
    """One row of the table of deployment cost; None if its parts weren't measured."""
    seconds, sweep = seconds_of(rows, grid), picked(rows["deployment-sweep"], grid=grid)
    if not np.isfinite(seconds.step) or not len(sweep):
        return None
    number, num_context = int(sweep.num_outages.iloc[-1]), int(sweep.num_context.iloc[-1])
    data = num_context * getattr(seconds, solver) / cores
    inference, gradient = seconds.fit + seconds.predict, BUDGET * seconds.step
    icw = number * (data + inference)
    tuned = number * (data + gradient + seconds.predict_tuned)
    speed_up = factor(tuned / icw)
    return (
        grid, number, data, inference, seconds.predict_tuned, gradient, icw, tuned, speed_up,
    )  # fmt: skip


def deployment_tables(rows: Rows) -> list[Table]:
    """The paper's accounting by pandapower and by the engine, and wall time as it passed."""
    grids = [grid for grid in GRIDS if len(picked(rows["deployment-sweep"], grid=grid))]
    if not grids:
        return []
    tables = []
    for solver, label in (("pandapower", "pandapower"), ("engine", "our engine")):
        lines: list[tuple[object, ...]] = []
        for grid in grids:
            lines += filter(None, [deployment(rows, grid, solver=solver, cores=PAPER_CORES)])
            paper = PAPER_DEPLOYMENT[grid]
            lines.append(("paper", *paper[:-1], factor(paper[-1])))
        tables.append(
            Table(
                title=f"Serial solver time of {label}, divided by {PAPER_CORES} cores",
                columns=DEPLOYMENT_COLUMNS, rows=lines,
                note="The paper's accounting. ICW inf.: its statistics, and 1,000 predictions.",
            )
        )  # fmt: skip
    serial = [deployment(rows, grid, solver="engine", cores=1) for grid in grids]
    tables.append(
        Table(
            title="Our engine, everything on one thread",
            columns=DEPLOYMENT_COLUMNS, rows=[line for line in serial if line],
        )
    )  # fmt: skip
    tables.append(_measured_sweep(rows, grids))
    return tables


def _measured_sweep(rows: Rows, grids: list[str]) -> Table:
    lines = []
    for grid in grids:
        row = picked(rows["deployment-sweep"], grid=grid).iloc[-1]
        parts = [float(row[name]) for name in ("data_s", "fit_s", "predict_s")]
        number = int(row.num_outages)
        exact = seconds_of(rows, grid).engine * int(row.num_rows)
        lines.append((grid, number, int(row.num_left_out), *parts, sum(parts), exact))
    return Table(
        title="ICW for every outage as it ran here, wall time on one thread of a shared machine",
        columns=("grid", ">K", ">no nominal\nsolution", ">solves (s)", ">fit (s)", ">predict (s)",
                 ">total (s)", ">exact rows\ninstead (s)"),
        rows=lines,
        note="Last column: the engine's time for the rows that were predicted, context not needed.",
    )  # fmt: skip


def scratch_tables(target: str) -> Callable[[Rows], list[Table]]:
    """Tables of scratch training towards these targets: both contexts, both backbones."""

    def tables(rows: Rows) -> list[Table]:
        return [
            _scratch_table(rows, target, num, backbone, points)
            for num in contexts_of(rows, "case30")
            for backbone in BACKBONES
            if (
                points := curve(
                    rows, "v", "case30", backbone, kind="scratch", target=target, num_context=num
                )
            )
        ]

    return tables


def _scratch_table(
    rows: Rows, target: str, num: int, backbone: str, points: Sequence[Point]
) -> Table:
    icw = closed_form(rows, "v", "icw", "case30", num, backbone)
    paper_icw = PAPER_ICW_COST.get((backbone, num)), PAPER_ICW_V[backbone]
    lines: list[Sequence[object]] = [("ICW", icw.cost_s, mean_and_spread(icw.errors), *paper_icw)]
    place = list(BACKBONES).index(backbone)
    for point in points:
        paper = PAPER_SCRATCH.get((target, num), {}).get(point.num_steps, (None,) * 4)
        ours = f"{point.num_steps:,}", point.cost_s, mean_and_spread(point.errors)
        lines.append((*ours, paper[place], paper[place + 2]))
    return Table(
        title=f"{BACKBONES[backbone]}, {num:,} context rows, {TARGET_LABELS[target]}: "
        "seconds and |V| error",
        columns=("steps", ">s", ">|V|", ">paper s", ">paper |V|"),
        rows=lines,
        note="Ours: seconds of one thread, the context by our engine.",
    )


def _at(points: list[Point], num_steps: int) -> Point | None:
    return next((point for point in points if point.num_steps == num_steps), None)


Ways = Mapping[str, tuple[str, str]]
"""Name to kind and target of a curve."""
FINE_TUNED: Ways = {
    "fine-tuned, raw y": ("fine-tune", "no-norm"),
    "fine-tuned, z-score": ("fine-tune", "zscore"),
}
SCRATCH: Ways = {"scratch, z-score": ("scratch", "zscore")}


def fine_tuning_tables(rows: Rows) -> list[Table]:
    """Fine-tuning on 30-bus N-2, by backbone and context, with the paper's targets and ours."""
    return [
        table
        for backbone, label in BACKBONES.items()
        for num in contexts_of(rows, "case30", backbone)
        for table in _curve_table(
            rows, "v", "case30", num, f"{label}, {num:,} context rows, 30-bus N-2, |V| error",
            FINE_TUNED, backbone,
        )
    ]  # fmt: skip


def position_tables(rows: Rows) -> list[Table]:
    """The plane of cost and accuracy on both grids: all ways, overall error."""
    return [
        table
        for grid in ("case30", "case118")
        for table in _curve_table(
            rows, "overall", grid, 400, f"{grid} N-2, 400 context rows, overall error",
            {**FINE_TUNED, **SCRATCH},
        )
    ]  # fmt: skip


def _closed_form_table(
    rows: Rows, quantity: str, grid: str, num: int, backbone: str, title: str
) -> Iterator[Table]:
    lines = []
    for name in ("frozen", "context-mean", "icw", "icw-paired", "ridge"):
        point = closed_form(rows, quantity, name, grid, num, backbone)
        costs = (point.cost_s, point.cost_pandapower_s) if name == "icw" else (None, None)
        if len(point.errors):
            lines.append((name, mean_and_spread(point.errors), *costs))
    if lines:
        columns = ("without gradient steps", ">error", ">cost (s)", ">cost with\npandapower (s)")
        yield Table(title=title, columns=columns, rows=lines)


def _curve_table(
    rows: Rows, quantity: str, grid: str, num: int, title: str, ways: Ways, backbone: str = "mlp"
) -> Iterator[Table]:
    """Errors without gradient steps, then by gradient steps."""
    yield from _closed_form_table(rows, quantity, grid, num, backbone, title)
    curves = {
        name: curve(rows, quantity, grid, backbone, kind=kind, target=target, num_context=num)
        for name, (kind, target) in ways.items()
    }
    curves = {name: points for name, points in curves.items() if points}
    lines = []
    for number in sorted({point.num_steps for points in curves.values() for point in points}):
        at = [_at(points, number) for points in curves.values()]
        first = next(point for point in at if point is not None)
        errors = [None if point is None else mean_and_spread(point.errors) for point in at]
        lines.append((f"{number:,}", first.cost_s, first.cost_pandapower_s, *errors))
    if lines:
        names = (f">{name}".replace(", ", ",\n") for name in curves)
        columns = ("steps", ">cost\n(s)", ">with pan-\ndapower", *names)
        yield Table(title=f"{title}, by gradient steps", columns=columns, rows=lines)


def cost_300_tables(rows: Rows) -> list[Table]:
    """300-bus N-1: frozen, ICW and fine-tuning at the largest budget, by context."""
    errors, costs = [], []
    for num in contexts_of(rows, "case300"):
        icw = closed_form(rows, "v", "icw", "case300", num)
        frozen = closed_form(rows, "v", "frozen", "case300", num)
        ends = [
            curve(rows, "v", "case300", kind="fine-tune", target=target, num_context=num)[-1:]
            for target in TARGET_LABELS
        ]
        tuned = [mean_and_spread(end[0].errors) if end else None for end in ends]
        cost = next((end[0].cost_s for end in ends if end), np.nan)
        errors.append((f"{num:,}", mean(frozen.errors), mean_and_spread(icw.errors), *tuned))
        costs.append((f"{num:,}", icw.cost_s, cost, factor(cost / icw.cost_s)))
        theirs = PAPER_300.get(num)
        if theirs:
            errors.append(("paper", PAPER_300_FROZEN, theirs[0], theirs[1], None))
            costs.append(("paper", theirs[2], None, "5× to 21×"))
    if not errors:
        return []
    return [
        Table(
            title="300-bus N-1, |V| error; fine-tuning with 4,000 steps",
            columns=("context", ">frozen", ">ICW", ">fine-tuned,\nraw y", ">fine-tuned,\nz-score"),
            rows=errors,
        ),
        Table(
            title="300-bus N-1, cost of one adaptation (s), one thread",
            columns=("context", ">ICW", ">fine-tuning", ">fine-tuning / ICW"),
            rows=costs,
        ),
    ]


def band_ratios(rows: Rows, target: str) -> pd.DataFrame:
    """r = MAE_ICW / MAE_FT, overall: a row for each outage with its third, a column for each
    number of steps; 0 steps are the frozen surrogate."""
    frame = picked(rows["band-30"], target=target)
    if not len(frame):
        return pd.DataFrame()
    errors = frame.pivot_table(
        index=["tercile", "outage"], columns=["method", "num_steps"], values="overall"
    )
    icw = errors[("icw", 0)]
    tuned = errors["fine-tune"].copy()
    tuned[0] = errors[("frozen", 0)]
    return (1 / tuned).mul(icw, axis=0).sort_index(axis=1)


def band_tables(rows: Rows) -> list[Table]:
    """Median ratio by steps, and by third of difficulty at the largest budget."""
    return [table for target in TARGET_LABELS for table in _band_tables(rows, target)]


def _band_tables(rows: Rows, target: str) -> Iterator[Table]:
    ratios = band_ratios(rows, target)
    if not len(ratios):
        return
    last = ratios.columns[-1]
    quartiles = ratios.quantile([0.25, 0.5, 0.75])
    yield Table(
        title=f"{len(ratios)} outages, fine-tuned towards {TARGET_LABELS[target]}: "
        "MAE of ICW / MAE of fine-tuning",
        columns=("steps", ">lower\nquartile", ">median", ">upper\nquartile", ">outages where\n"
                 "ICW is better", ">paper's\nmedian"),
        rows=[
            (f"{steps:,}", *map(float, quartiles[steps]), int((ratios[steps] < 1).sum()),
             PAPER_BAND_RATIO if steps == BUDGET else None)
            for steps in ratios.columns
        ],
        note="0 steps are the frozen surrogate. Below 1, ICW has the smaller error.",
    )  # fmt: skip
    by_third = [
        (name, len(part), float(part[last].median()), 1 / float(part[last].median()),
         PAPER_BAND_MARGIN[name])
        for name in PAPER_BAND_MARGIN
        if name in ratios.index.get_level_values(0)
        for part in (ratios.loc[[name]],)
    ]  # fmt: skip
    yield Table(
        title=f"By difficulty at {last:,} steps, {TARGET_LABELS[target]}",
        columns=("third by frozen |V| error", ">outages", ">median ratio", ">ICW's margin",
                 ">paper's margin"),
        rows=by_third,
    )  # fmt: skip
