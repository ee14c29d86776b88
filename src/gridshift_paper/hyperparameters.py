"""Table VII: what the backbones are made of, from the objects that build them."""

from collections.abc import Iterator
from dataclasses import fields
from functools import lru_cache

import numpy as np

from gridshift.adapt.layout import Layout
from gridshift.adapt.surrogate import build_backbone
from gridshift_paper.artefacts import Artefact, Claim, Table
from gridshift_paper.protocol import BACKBONE_LABELS, GRIDS, SCALES, base_config, network_of

FULL = SCALES["full"]
PAPER_ARCHITECTURE = {
    "width": {"mlp": 256, "transformer": 128, "pfgnn": 129},
    "layers": {"mlp": 2, "transformer": 2, "pfgnn": 4},
    "dropout": {"mlp": 0.15, "transformer": 0.15, "pfgnn": 0.2},
    "attention heads": {"transformer": 4},
    "feed-forward width": {"transformer": 256},
    "patch": {"transformer": 12},
}
"""Table VII, upper part."""
PAPER_PARAMETERS = {"mlp": 100_000, "transformer": 292_000, "pfgnn": 355_000}
"""Table VII, 'approximately'; case30."""
PAPER_STEPS = 40_000
"""Of every backbone, Table VII."""
PAPER_TRAINING = {
    "batch_size": 32, "learning_rate": 6.29e-4, "final_learning_rate": 1e-6,
    "weight_decay": 1e-5, "clip_norm": 1.0,
}  # fmt: skip
"""Table VII, lower part; AdamW with cosine annealing."""
FIELDS = {
    "width": ("hidden", "width"), "layers": ("num_layers",), "dropout": ("dropout",),
    "attention heads": ("num_heads",), "feed-forward width": ("feed_forward",),
    "patch": ("patch",),
}  # fmt: skip
"""Row of the table to what a configuration calls it."""
CLOSE = 0.05
"""Difference of a number of parameters that needs no explanation."""
ROUNDED = 0.1
"""Difference that 'about' covers."""


@lru_cache(maxsize=16)
def num_parameters(backbone: str, grid: str) -> int:
    """Trained numbers of the paper's backbone on a grid."""
    network = network_of(grid)
    layout = Layout.of(network)
    mean, scale = np.zeros(layout.num_inputs), np.full(layout.num_inputs, 0.1)
    built = build_backbone(base_config(FULL, backbone=backbone), network, layout, mean, scale)
    return sum(p.numel() for p in built.parameters())


def _architecture() -> Table:
    cells = []
    for name, theirs in PAPER_ARCHITECTURE.items():
        row: list[object] = [name]
        for backbone in BACKBONE_LABELS:
            config = base_config(FULL, backbone=backbone).backbone
            known = {field.name for field in fields(config)}
            ours = [getattr(config, f) for f in FIELDS[name] if f in known]
            row += [ours[0] if ours else None, theirs.get(backbone)]
        cells.append(tuple(row))
    for grid in GRIDS.values():
        row = [f"parameters, {grid.name}"]
        for backbone in BACKBONE_LABELS:
            theirs = PAPER_PARAMETERS[backbone] if grid.name == "case30" else None
            row += [num_parameters(backbone, grid.name), theirs]
        cells.append(tuple(row))
    names = [
        f">{label}\n{whose}" for label in ("MLP", "Transf.", "PFGNN") for whose in ("ours", "paper")
    ]
    return Table(
        title="Architecture of the backbones",
        columns=("", *names),
        rows=cells,
        note="From the configurations that the other tables are measured with.",
    )


def _training() -> Table:
    cells = [
        (f"steps, {label}", base_config(FULL, backbone=backbone).training.num_steps, PAPER_STEPS)
        for backbone, label in BACKBONE_LABELS.items()
    ]
    training = base_config(FULL).training
    cells += [(name, getattr(training, name), theirs) for name, theirs in PAPER_TRAINING.items()]
    return Table(
        title="Training",
        columns=("setting", ">ours", ">paper"),
        rows=cells,
        note="Scale 'full'; scale 'paper' takes all of the paper's steps. AdamW, cosine annealing, "
        "mean squared error in the transformed space; inputs scaled by training statistics.",
    )


def _comments() -> Iterator[str | Claim]:
    layout = Layout.of(network_of("case30"))
    numbers = {b: num_parameters(b, "case30") for b in BACKBONE_LABELS}
    yield Claim(
        says="the MLP, Transformer and PFGNN have about 100k, 292k and 355k parameters",
        holds=all(abs(n / PAPER_PARAMETERS[b] - 1) <= ROUNDED for b, n in numbers.items()),
        ours=f"built as the appendix says they have {', '.join(f'{n:,}' for n in numbers.values())}"
        " on case30.",
    )
    for backbone, label in BACKBONE_LABELS.items():
        ours, theirs = num_parameters(backbone, "case30"), PAPER_PARAMETERS[backbone]
        off = ours / theirs - 1
        told = f"{label}: {ours:,} parameters, the paper about {theirs:,} ({off:+.1%})"
        if abs(off) <= CLOSE:
            yield told + "."
        elif backbone == "mlp":
            varying = 2 * len(layout.load_bus)
            without = ours - 256 * (layout.num_inputs - varying)
            yield (
                told + f". {layout.num_inputs} inputs, 256, 256 and {layout.num_outputs} outputs "
                "with biases give this number and no other; with the inputs that vary alone it "
                f"would be {without:,}, with a third hidden layer {ours + 65_792:,}: the paper's "
                "is rounded."
            )
        else:
            yield told + "; this difference is not explained."
    yield (
        "The paper gives neither the Transformer's padding, positions, pooling and head nor the "
        "regularisation of the covariance; ours are chosen so that the number of parameters comes "
        "out, and 1e-6."
    )


HYPERPARAMETERS = Artefact(
    name="hyperparameters",
    kind="table",
    paper="Table VII",
    title="Architecture and training of the backbones",
    studies=(),
    tables=lambda rows: (_architecture(), _training()),
    comments=lambda rows: tuple(_comments()),
)
