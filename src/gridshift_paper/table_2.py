"""Table II: three backbones, seven ways to normalise the outputs, three topologies."""

from collections.abc import Iterator, Sequence

import pandas as pd

from gridshift_paper.artefacts import Rows, Table, mean_and_spread
from gridshift_paper.protocol import BACKBONE_LABELS, TOPOLOGIES
from gridshift_paper.selection import by_seed, listed, mean, num_seeds, picked

ROWS = {
    "No Norm": ("identity", "frozen"),
    "Z-Score Frozen": ("zscore", "frozen"),
    "Residual": ("residual", "frozen"),
    "ZCA Frozen": ("zca", "frozen"),
    "Z-Score(ctx)": ("zscore", "ctx"),
    "Residual(ctx)": ("residual", "ctx"),
    "ICW": ("zca", "ctx"),
}
"""The paper's names of variants: transform, and whose statistics."""
INTACT_GRAPH = {
    "Z-Score(ctx), intact graph": ("zscore", "ctx-intact"),
    "ICW, intact graph": ("zca", "ctx-intact"),
}
"""Ours: the graph network keeps the graph that it was trained on."""
TRAINED_OTHERWISE = {
    "transformer": ("No Norm",),
    "pfgnn": ("ZCA Frozen", "ICW", "ICW, intact graph"),
}
"""Backbone to variants of what was trained longer, or without dropout, too."""
FROZEN = tuple(name for name, (_, statistics) in ROWS.items() if statistics == "frozen")
ADAPTED = tuple(name for name in ROWS if name not in FROZEN)
REFERENCE_ROWS = {"mean of the context": "context-mean", "ICW, perfect surrogate": "zca"}
TOPOLOGY_LABELS = {"base": "base", "N-2": "N-2 Most", "N-1": "N-1 Most"}

PAPER_TABLE_2 = {
    "mlp": {
        "No Norm": (0.03, 2.60e-4, 1.552e-2, 5.98e-3),
        "Z-Score Frozen": (0.03, 1.00e-4, 1.554e-2, 5.89e-3),
        "Residual": (0.03, 1.10e-4, 1.554e-2, 5.90e-3),
        "ZCA Frozen": (0.03, 6.00e-5, 1.554e-2, 5.90e-3),
        "Z-Score(ctx)": (0.09, 2.90e-4, 5.90e-4, 4.70e-4),
        "Residual(ctx)": (0.09, 2.90e-4, 8.20e-4, 6.30e-4),
        "ICW": (0.09, 3.10e-4, 5.60e-4, 4.60e-4),
    },
    "transformer": {
        "No Norm": (0.04, 5.80e-4, 1.559e-2, 6.00e-3),
        "Z-Score Frozen": (0.04, 3.10e-4, 1.543e-2, 5.72e-3),
        "Residual": (0.04, 4.40e-4, 1.556e-2, 5.95e-3),
        "ZCA Frozen": (0.04, 1.70e-4, 1.554e-2, 5.89e-3),
        "Z-Score(ctx)": (0.13, 2.90e-4, 6.00e-4, 4.80e-4),
        "Residual(ctx)": (0.13, 5.10e-4, 9.00e-4, 7.40e-4),
        "ICW": (0.13, 3.30e-4, 5.60e-4, 4.70e-4),
    },
    "pfgnn": {
        "No Norm": (0.11, 1.38e-3, 2.614e-2, 7.98e-3),
        "Z-Score Frozen": (0.11, 5.00e-4, 1.569e-2, 6.05e-3),
        "Residual": (0.12, 1.16e-3, 1.569e-2, 6.02e-3),
        "ZCA Frozen": (0.11, 5.40e-4, 1.600e-2, 6.25e-3),
        "Z-Score(ctx)": (0.29, 5.00e-4, 1.85e-3, 1.36e-3),
        "Residual(ctx)": (0.29, 1.08e-3, 2.29e-3, 1.93e-3),
        "ICW": (0.29, 6.10e-4, 2.04e-3, 1.55e-3),
    },
}
"""Table II, case30: seconds for 1,000 rows, then overall MAE on base, N-2 Most and N-1 Most."""
PAPER_COLUMNS = ("seconds", "base", "N-2", "N-1")


def paper_mae(backbone: str, variant: str, topology: str) -> float:
    """The paper's number of a cell of Table II."""
    return PAPER_TABLE_2[backbone][variant][PAPER_COLUMNS.index(topology)]


def errors(
    frame: pd.DataFrame, variant: str, topology: str, backbone: str = "mlp", grid: str = "case30"
) -> pd.Series:
    """Overall error of a cell by seed."""
    transform, statistics = (ROWS | INTACT_GRAPH)[variant]
    return by_seed(
        frame, "overall", grid=grid, backbone=backbone, transform=transform,
        statistics=statistics, topology=topology,
    )  # fmt: skip


def measured(frame: pd.DataFrame) -> list[str]:
    """Backbones that there are rows of on case30."""
    return [b for b in BACKBONE_LABELS if len(picked(frame, grid="case30", backbone=b))]


def tables(rows: Rows) -> Sequence[Table]:
    """One for each topology of case30, one of seconds, one of case118."""
    variants, references = rows["variants"], rows["references"]
    return [
        *(_accuracy_table(rows, topology) for topology in TOPOLOGY_LABELS),
        _seconds_table(variants),
        _table_118(variants, references, rows["no-dropout"]),
    ]


def _accuracy_table(rows: Rows, topology: str) -> Table:
    variants, longer, no_dropout = (rows[n] for n in ("variants", "longer", "pfgnn-no-dropout"))
    cells: list[Sequence[object]] = []
    for backbone in measured(variants):
        names = (*ROWS, *(INTACT_GRAPH if backbone == "pfgnn" else ()))
        cells += _cells(variants, topology, backbone, names)
    for mark, frame in (("*", longer), ("°", no_dropout)):
        for backbone in measured(frame):
            cells += _cells(frame, topology, backbone, TRAINED_OTHERWISE[backbone], mark)
    for label, name in REFERENCE_ROWS.items():
        ours = reference(rows["references"], name, topology)
        cells.append(("–", label, mean_and_spread(ours), None, None))
    return Table(
        title=f"Overall MAE, case30, {TOPOLOGY_LABELS[topology]}",
        columns=("backbone", "variant", ">ours", ">paper", ">ours / paper"),
        rows=cells if len(variants) else (),
        note=f"{_num_context(variants)} context rows, {num_seeds(variants)} seeds. MAE over all "
        "outputs, p.u. and radians mixed. Perfect surrogate: ICW around exact solutions of the "
        f"intact grid. Trained for {_steps(variants)} steps (paper 40,000){_as_long(longer)}"
        f"{'; with a circle without dropout, one seed' if len(no_dropout) else ''}.",
    )


def _cells(
    frame: pd.DataFrame, topology: str, backbone: str, variants: Sequence[str], mark: str = ""
) -> Iterator[Sequence[object]]:
    """Lines of some variants of one backbone; those that are ours have no number of the paper."""
    for variant in variants:
        ours = errors(frame, variant, topology, backbone)
        theirs = paper_mae(backbone, variant, topology) if variant in ROWS else None
        ratio = mean(ours) / theirs if theirs else None
        label = BACKBONE_LABELS[backbone] + mark
        yield label, variant, mean_and_spread(ours), theirs, ratio


def reference(
    references: pd.DataFrame, name: str, topology: str, grid: str = "case30"
) -> pd.Series:
    """Overall error of a reference level by seed."""
    return by_seed(references, "overall", grid=grid, reference=name, topology=topology)


def _steps(frame: pd.DataFrame) -> str:
    steps = {
        b: picked(frame, grid="case30", backbone=b)["num_steps"].max() for b in measured(frame)
    }
    return listed([f"{int(number):,} ({BACKBONE_LABELS[b]})" for b, number in steps.items()])


def _as_long(longer: pd.DataFrame) -> str:
    return f"; with a star {int(longer['num_steps'].max()):,}, one seed" if len(longer) else ""


def _num_context(frame: pd.DataFrame) -> int:
    rows = picked(frame, statistics="ctx", backbone="mlp")
    return int(rows["num_context"].min()) if len(rows) else 0


def seconds(frame: pd.DataFrame, variant: str, backbone: str) -> pd.Series:
    """CPU time of adaptation (if any) and of 1,000 rows, for each seed and topology."""
    transform, statistics = ROWS[variant]
    rows = picked(
        frame, grid="case30", backbone=backbone, transform=transform, statistics=statistics
    )
    return rows["fit_s"] + rows["predict_1000_s"] if len(rows) else pd.Series(dtype=float)


def _seconds_table(frame: pd.DataFrame) -> Table:
    cells = []
    for backbone in measured(frame):
        for variant in ("ZCA Frozen", "ICW"):
            ours, theirs = seconds(frame, variant, backbone), PAPER_TABLE_2[backbone][variant][0]
            label = BACKBONE_LABELS[backbone]
            cells.append((label, variant, 1e3 * float(ours.min()), 1e3 * theirs))
    return Table(
        title="Inference time of 1,000 rows, adaptation included, ms",
        columns=("backbone", "variant", ">ours", ">paper"),
        rows=cells,
        note="Ours: CPU time of one thread, the fastest over seeds, topologies and repeats. The "
        "paper's machine isn't named.",
    )


def _table_118(variants: pd.DataFrame, references: pd.DataFrame, no_dropout: pd.DataFrame) -> Table:
    frame = picked(variants, grid="case118")
    found = {v: [errors(frame, v, t, grid="case118") for t in TOPOLOGIES] for v in ROWS}
    found["ICW, no dropout"] = [
        by_seed(no_dropout, "overall", grid="case118", statistics="ctx", topology=t)
        for t in TOPOLOGIES
    ]
    levels = {"Z-Score(ctx), perfect": "zscore", "Residual(ctx), perfect": "residual"}
    for label, name in (REFERENCE_ROWS | levels).items():
        found[label] = [reference(references, name, t, "case118") for t in TOPOLOGIES]
    return Table(
        title="Overall MAE, case118, MLP (not in the paper)",
        columns=("variant", ">base", ">N-1 Most", ">N-2 Most"),
        rows=[(label, *map(mean_and_spread, series)) for label, series in found.items()]
        if len(frame)
        else (),
        note=f"{_num_context(frame)} context rows, {num_seeds(frame)} seeds.",
    )
