"""What adaptation costs: Table IV, tables IX and X, figures 1, 7, 8 and 20.

The paper times pandapower's solver and a GPU's gradient steps; here both are seconds of one CPU
thread, solves by the engine, and pandapower's beside them where the paper's accounting needs them.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from gridshift.study.text import real
from gridshift_paper import cost_claims, cost_figures, cost_tables
from gridshift_paper.artefacts import Artefact, Claim, Rows
from gridshift_paper.cost_paper import BACKBONES, PAPER_DEPLOYMENT, PAPER_ICW_V, PAPER_SCRATCH
from gridshift_paper.cost_points import (
    Point,
    closed_form,
    contexts_of,
    crossing,
    curve,
    factor,
    seconds_of,
)
from gridshift_paper.cost_studies import BAND, CLOSED_FORM, CURVES
from gridshift_paper.cost_tables import BUDGET, TARGET_LABELS, band_ratios
from gridshift_paper.cost_times import SWEEP, TIMES
from gridshift_paper.selection import picked

PLANE = (TIMES, CLOSED_FORM, CURVES)
"""Studies that a point of the cost-accuracy plane comes from."""


def say_deployment(rows: Rows) -> Iterator[str]:
    """Where the speed-up comes from, and what solving the rows themselves costs."""
    for grid, paper in PAPER_DEPLOYMENT.items():
        seconds, sweep = seconds_of(rows, grid), picked(rows["deployment-sweep"], grid=grid)
        if not np.isfinite(seconds.step) or not len(sweep):
            continue
        row, solve = sweep.iloc[-1], seconds.engine
        num_context, per_outage = int(row.num_context), int(row.num_rows) // int(row.num_outages)
        data, gradient = num_context * solve, BUDGET * seconds.step
        yield (
            f"{grid}: 4,000 gradient steps take {real(gradient)} s on one thread, the context's "
            f"{num_context} solves {real(1000 * data)} ms ({real(1e6 * solve)} µs each; "
            f"pandapower: {real(1000 * seconds.pandapower)} ms each)."
        )
        exact, adapted = per_outage * solve, data + seconds.fit + seconds.predict
        yield (
            f"{grid}: with the network at hand, solving the {per_outage:,} rows of an outage takes "
            f"the engine {real(1000 * exact)} ms; solving a context, adapting to it and predicting "
            f"them takes {real(1000 * adapted)} ms, {factor(adapted / exact)} as long."
        )
        if int(row.num_left_out):
            yield (
                f"{grid}: {int(row.num_left_out)} of the paper's {paper[0]} outages have no "
                f"nominal solution and are left out; {int(row.num_outages)} are swept."
            )


def say_scratch(rows: Rows, target: str) -> Iterator[str]:
    """How scratch training ends, and when it passes ICW."""
    for num in contexts_of(rows, "case30"):
        for backbone, label in BACKBONES.items():
            points = curve(
                rows, "v", "case30", backbone, kind="scratch", target=target, num_context=num
            )
            icw = closed_form(rows, "v", "icw", "case30", num, backbone)
            if not points or not len(icw.errors):
                continue
            first, last = points[0], points[-1]
            paper = PAPER_SCRATCH.get((target, num), {}).get(last.num_steps)
            theirs = PAPER_ICW_V[backbone]
            told = paper and f" (paper: {factor(paper[2 + (backbone == 'pfgnn')] / theirs)})"
            yield (
                f"{label}, {num:,} rows: from {real(first.error)} at {first.num_steps:,} steps to "
                f"{real(last.error)} at {last.num_steps:,}, {factor(last.error / icw.error)} "
                f"ICW's {real(icw.error)}{told or ''}. {_passes(points, icw, 'Scratch training')}"
            )


def _passes(points: list[Point], icw: Point, name: str) -> str:
    """'It has a smaller error than ICW from 400 steps on, at 30× its cost.'"""
    point = crossing(points, icw.error)
    if point is None:
        return f"{name} doesn't reach ICW's error within {points[-1].num_steps:,} steps."
    return (
        f"{name} has the smaller error from {point.num_steps:,} steps on, at "
        f"{factor(point.cost_s / icw.cost_s)} ICW's cost with the engine and "
        f"{factor(point.cost_pandapower_s / icw.cost_pandapower_s)} with pandapower."
    )


def say_fine_tuning(rows: Rows) -> Iterator[str]:
    """Whether ICW stays below every curve of fine-tuning on 30-bus N-2."""
    for backbone, label in BACKBONES.items():
        for num in contexts_of(rows, "case30", backbone):
            yield from _say_curves(rows, "v", "case30", backbone, num, f"{label}, {num:,} rows")


def _say_curves(
    rows: Rows, quantity: str, grid: str, backbone: str, num: int, where: str
) -> Iterator[str]:
    icw = closed_form(rows, quantity, "icw", grid, num, backbone)
    for target, label in TARGET_LABELS.items():
        points = curve(
            rows, quantity, grid, backbone, kind="fine-tune", target=target, num_context=num
        )
        if points and len(icw.errors):
            best = min(points, key=lambda point: point.error)
            yield (
                f"{where}: ICW's error is {real(icw.error)}, that of fine-tuning towards {label} "
                f"at best {real(best.error)}, with {best.num_steps:,} steps. "
                f"{_passes(points, icw, 'Fine-tuning')}"
            )


def say_position(rows: Rows) -> Iterator[str]:
    """Whether ICW is at the lower left of the plane, and what else is there."""
    for grid in ("case30", "case118"):
        yield from _say_curves(rows, "overall", grid, "mlp", 400, grid)
        ridge = closed_form(rows, "overall", "ridge", grid, 400)
        icw = closed_form(rows, "overall", "icw", grid, 400)
        if len(ridge.errors) and len(icw.errors):
            yield (
                f"{grid}: linear regression on the same context, without a network or gradient "
                f"steps, has {real(ridge.error)}, {factor(icw.error / ridge.error)} less than ICW."
            )


def say_300(rows: Rows) -> Iterator[str]:
    """ICW against fine-tuning on 300-bus, by context."""
    for num in contexts_of(rows, "case300"):
        yield from _say_curves(rows, "v", "case300", "mlp", num, f"{num:,} rows")


def say_band(rows: Rows) -> Iterator[str]:
    """On how many outages ICW is the better one, before and after fine-tuning."""
    for target, label in TARGET_LABELS.items():
        ratios = band_ratios(rows, target)
        if len(ratios):
            last = ratios.columns[-1]
            yield (
                f"Towards {label}, {last:,} steps: ICW has the smaller error on "
                f"{int((ratios[last] < 1).sum())} of {len(ratios)} outages."
            )
    ratios = band_ratios(rows, "no-norm")
    if len(ratios):
        yield (
            f"Before the first step ICW makes things worse on {int((ratios[0] > 1).sum())} of "
            f"{len(ratios)} outages."
        )


def _together(
    *parts: Callable[[Rows], Iterable[str | Claim]],
) -> Callable[[Rows], list[str | Claim]]:
    """Comments of several functions, one after the other."""
    return lambda rows: [comment for part in parts for comment in part(rows)]


ARTEFACTS = (
    Artefact(
        name="cost-position", kind="figure", paper="Fig. 1",
        title="Cost-accuracy position of ICW and of gradient steps, measured",
        studies=PLANE, tables=cost_tables.position_tables, draw=cost_figures.draw_position,
        comments=_together(cost_claims.claim_position, say_position),
    ),
    Artefact(
        name="cost-300", kind="figure", paper="Fig. 7",
        title="|V| error against the cost of an adaptation, 300-bus N-1 Most",
        studies=PLANE, tables=cost_tables.cost_300_tables, draw=cost_figures.draw_cost_300,
        comments=_together(cost_claims.claim_300, say_300),
    ),
    Artefact(
        name="band-30", kind="figure", paper="Fig. 8",
        title="ICW against fine-tuning on 30 outages of case118 of all difficulties",
        studies=(TIMES, BAND), tables=cost_tables.band_tables, draw=cost_figures.draw_band,
        comments=_together(cost_claims.claim_band, say_band),
    ),
    Artefact(
        name="deployment-cost", kind="table", paper="Table IV",
        title="Cost of adapting to every single-line outage, 400 context rows, MLP",
        studies=(TIMES, SWEEP), tables=cost_tables.deployment_tables,
        comments=_together(cost_claims.claim_speed_up, say_deployment),
    ),
    Artefact(
        name="fine-tuning-cost", kind="figure", paper="Fig. 20",
        title="|V| error of ICW and of fine-tuning against cost, 30-bus N-2 Most",
        studies=PLANE, tables=cost_tables.fine_tuning_tables, draw=cost_figures.draw_fine_tuning,
        comments=_together(cost_claims.claim_fine_tuning, say_fine_tuning),
    ),
    Artefact(
        name="scratch-no-norm", kind="table", paper="Table IX",
        title="Training from scratch on raw y against ICW, 30-bus N-2 Most",
        studies=PLANE, tables=cost_tables.scratch_tables("no-norm"),
        comments=_together(cost_claims.claim_no_norm, partial(say_scratch, target="no-norm")),
    ),
    Artefact(
        name="scratch-zscore", kind="table", paper="Table X",
        title="Training from scratch on z-scored y against ICW, 30-bus N-2 Most",
        studies=PLANE, tables=cost_tables.scratch_tables("zscore"),
        comments=_together(cost_claims.claim_zscore, partial(say_scratch, target="zscore")),
    ),
)  # fmt: skip
