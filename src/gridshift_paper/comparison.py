"""Table III: every competing method under one protocol, with what each needs and costs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from gridshift.adapt.context import Context
from gridshift.adapt.methods import METHODS
from gridshift.study.ledger import training_seconds
from gridshift.study.measure import measure_adaptation
from gridshift.study.metrics import mean_absolute_errors
from gridshift_paper.artefacts import Artefact, Claim, Rows, Table, mean_and_spread
from gridshift_paper.comparison_claims import PAPER_TABLE_3, claims
from gridshift_paper.protocol import (
    GRIDS,
    TOPOLOGIES,
    Scale,
    base_config,
    base_surrogate,
    context_rows,
    rows_for_test,
    topology,
)
from gridshift_paper.records import Record, Study, Task
from gridshift_paper.references import context_mean, perfect_icw
from gridshift_paper.selection import by_seed, mean, picked

ZERO_SHOT = (
    "frozen", "modular-gp", "modular-gp-multi", "deepopf-ft", "deepopf-ft-multi", "pfgnn",
    "pfgnn-multi",
)  # fmt: skip
WITH_CONTEXT = ("mmnp", "mmnp-multi", "residual", "zscore", "icw", "ridge", "ridge-features")
WITH_GRADIENTS = ("fine-tune", "scratch", "ttf-ensemble", "pi-ttt")
BEYOND = ("icw-paired", "tangent", "tangent2", "tangent2-icw")
REFERENCES = ("context-mean", "perfect")
GROUPS = {
    "no solved cases": ZERO_SHOT,
    "400 solved cases": WITH_CONTEXT,
    "gradient steps": WITH_GRADIENTS,
    "ours": BEYOND,
    "references": REFERENCES,
}


def _tasks(scale: Scale) -> Iterator[Task]:
    names = [name for group in GROUPS.values() for name in group if name not in REFERENCES]
    for seed in scale.seeds:
        for case in scale.cases("case30", "case118"):
            for name in (*names, "references"):
                backbone = _backbone(name)
                key = {"grid": case.name, "method": name, "backbone": backbone, "seed": seed}
                run = _references if name == "references" else partial(_method, name)
                yield Task(key=key, measure=partial(run, scale, case.name, seed))


def _backbone(name: str) -> str:
    """What the method's base is made of, which decides about the length of its training."""
    method = METHODS.get(name)
    if method is None:
        return "mlp"
    return method.backbone or ("own" if method.base else "mlp")


def _method(name: str, scale: Scale, grid: str, seed: int) -> Sequence[Record]:
    """Errors and cost of one method on the three topologies, from one base.

    The base of a method that learns from several topologies has seen no outage of either line of
    the double outage.
    """
    method = METHODS[name]
    outages = GRIDS[grid].topologies
    config = base_config(scale, seed=seed)
    steps = replace(config.training, num_steps=scale.steps(_backbone(name)))
    base = method.start(topology(grid, outages["N-2"]), replace(config, training=steps))
    trained = {
        "training_s": training_seconds(base),
        "training_rows": int(base.record.get("num_rows", 0)),
        "training_solves": int(base.record.get("num_solves", 0)),
        "training_topologies": int(base.record.get("num_topologies", 1)) if base.record else 0,
    }
    rows = []
    for label, outage in outages.items():
        found = measure_adaptation(
            base, topology(grid, outage), method, num_context=scale.num_context,
            num_test=scale.num_test, seed=seed,
        )  # fmt: skip
        cost = found.cost
        rows.append(
            {
                "topology": label, "outage": outage, **found.mae,
                "mismatch": found.mismatch["median"], "num_solves": found.num_solves,
                "data_s": cost.data_s, "fit_s": cost.fit_s, "gradient_s": cost.gradient_s,
                "us_per_row": cost.predict_us_per_row, **trained,
            }
        )  # fmt: skip
    return rows


def _references(scale: Scale, grid: str, seed: int) -> Sequence[Record]:
    """The mean of the context, and ICW around exact base solutions."""
    base = base_surrogate(scale, grid, seed=seed)
    rows = []
    for label, outage in GRIDS[grid].topologies.items():
        context = context_rows(grid, outage, scale.num_context, seed=seed)
        test = rows_for_test(grid, outage, scale.num_test, seed=seed)
        for name, y_hat in (
            ("context-mean", context_mean(context, test)),
            ("perfect", perfect_icw(grid, context, test, base.transform)),
        ):
            errors = mean_absolute_errors(test.layout, test.y, y_hat)
            rows.append(
                {"topology": label, "outage": outage, "reference": name,
                 "num_solves": Context.of(context).num_solves, **errors}
            )  # fmt: skip
    return rows


METHODS_STUDY = Study(
    name="methods",
    about="every method on the intact grid and on the two standard outages of case30 and case118",
    tasks=_tasks,
)


def _frame(rows: Rows) -> pd.DataFrame:
    """Rows with reference levels under their own names."""
    frame = rows["methods"].copy()
    if len(frame) and "reference" in frame:
        named = frame["reference"].notna()
        frame.loc[named, "method"] = frame.loc[named, "reference"]
    return frame


def _quantity_tables(frame: pd.DataFrame, grid: str) -> Iterator[Table]:
    for quantity, title, first in (("v", "|V| (p.u.)", 0), ("theta_deg", "angle (°)", 3)):
        rows: list[Sequence[object]] = []
        for group, names in GROUPS.items():
            present = [name for name in names if len(picked(frame, method=name))]
            rows += [(f"{group}:", "", "", "")] if present else []
            for name in present:
                ours = [by_seed(frame, quantity, method=name, topology=t) for t in TOPOLOGIES]
                rows.append((name, *map(mean_and_spread, ours)))
                paper = PAPER_TABLE_3.get((name, grid))
                if paper:
                    theirs = paper[first : first + 3]
                    ratios = (mean(o) / p for o, p in zip(ours, theirs, strict=True))
                    rows.append(("  paper", *theirs))
                    rows.append(("  ours / paper", *ratios))
        columns = ("method", ">base", ">N-1", ">N-2")
        yield Table(title=f"{grid}, error of {title}", columns=columns, rows=rows)


NEEDS = {"nothing": "-", "network": "N", "solved cases": "C", "gradient steps": "G"}
"""Needs, short enough for a column."""


def _cost_table(frame: pd.DataFrame, grid: str) -> Table:
    rows = []
    for names in GROUPS.values():
        for name in names:
            mine = picked(frame, method=name, topology="N-1")
            if name in REFERENCES or not len(mine):
                continue
            cost = {column: mean(by_seed(mine, column)) for column in COSTS}
            needs = " ".join(NEEDS[need] for need in METHODS[name].needs)
            taught = METHODS[name].uses_surrogate
            rows.append(
                (name, needs, int(cost["training_topologies"]) if taught else None,
                 cost["training_s"] if taught else None,
                 int(cost["num_solves"]), cost["data_s"], cost["fit_s"], cost["gradient_s"],
                 cost["us_per_row"] / 1000)
            )  # fmt: skip
    return Table(
        title=f"{grid}, N-1: what each method needs and costs, one thread",
        columns=("method", "needs", ">grids", ">train\n(s)", ">solves", ">data\n(s)",
                 ">fit\n(s)", ">grad.\n(s)", ">1,000\nrows\n(s)"),
        rows=rows,
        note="needs: N the topology's network, C solved cases, G gradient steps; grids: "
        "topologies that training saw; training is once for the grid, solves, data, fit and "
        "gradient steps are for each outage. Measured beside other work.",
    )  # fmt: skip


COSTS = (
    "training_topologies", "training_s", "num_solves", "data_s", "fit_s", "gradient_s",
    "us_per_row",
)  # fmt: skip


def tables(rows: Rows) -> list[Table]:
    """Table III for both grids, in both quantities, and the ledger of costs."""
    frame = _frame(rows)
    if not len(frame):
        return []
    found = []
    for grid in dict.fromkeys(frame.grid):
        part = picked(frame, grid=grid)
        found += [*_quantity_tables(part, grid), _cost_table(part, grid)]
    return found


def comments(rows: Rows) -> list[str | Claim]:
    """Which of section IV-C's statements hold here."""
    return list(claims(_frame(rows)))


ARTEFACTS = (
    Artefact(
        name="table-3", kind="table", paper="Table III",
        title="Every method on the intact grid and on the two standard outages",
        studies=(METHODS_STUDY,), tables=tables, comments=comments,
    ),
)  # fmt: skip
