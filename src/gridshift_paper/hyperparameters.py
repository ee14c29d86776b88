"""Table VII: what the backbones are made of, from the objects that build them."""

from dataclasses import fields
from functools import lru_cache

import numpy as np

from gridshift.adapt.graph import graph_of
from gridshift.grid.layout import Layout
from gridshift.learn.regression import RegressionConfig
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table
from gridshift_paper.claims import Claim
from gridshift_paper.protocol import (
    BACKBONE_LABELS,
    GRIDS,
    SCALES,
    base_config,
    network_of,
    printed,
)

FULL = SCALES["full"]
PAPER_ARCHITECTURE = printed("architecture")
PAPER_PARAMETERS = printed("parameters")
PAPER_STEPS = printed("steps")
PAPER_TRAINING = printed("training")
FIELDS = {
    "width": ("hidden", "width"), "layers": ("num_layers",), "dropout": ("dropout",),
    "attention heads": ("num_heads",), "feed-forward width": ("feed_forward",),
    "patch": ("patch",),
}  # fmt: skip
"""Row of the table to what a configuration calls it."""


@lru_cache(maxsize=16)
def num_parameters(backbone: str, grid: str) -> int:
    """Trained numbers of the paper's backbone on a grid."""
    network = network_of(grid)
    layout = Layout.of(network)
    mean, scale = np.zeros(layout.num_inputs), np.full(layout.num_inputs, 0.1)
    config, graph = base_config(FULL, backbone=backbone), graph_of(network, layout, mean, scale)
    assert not isinstance(config.backbone, RegressionConfig)  # the paper has networks alone
    built = config.backbone.build(layout.num_inputs, layout.num_outputs, graph)
    return sum(p.numel() for p in built.parameters())


def _architecture() -> Table:
    configs = {b: base_config(FULL, backbone=b).backbone for b in BACKBONE_LABELS}
    cells: list[list[object]] = []
    for name, theirs in PAPER_ARCHITECTURE.items():
        cells.append([name])
        for backbone, config in configs.items():
            known = {field.name for field in fields(config)}
            ours = [getattr(config, f) for f in FIELDS[name] if f in known]
            cells[-1] += [ours[0] if ours else None, theirs.get(backbone)]
    for grid in GRIDS:
        cells.append([f"parameters, {grid}"])
        for backbone in BACKBONE_LABELS:
            theirs = PAPER_PARAMETERS[backbone] if grid == "case30" else None
            cells[-1] += [num_parameters(backbone, grid), theirs]
    names = [
        f">{label}\n{whose}" for label in ("MLP", "Transf.", "PFGNN") for whose in ("ours", "paper")
    ]
    return Table("Architecture of the backbones", ("", *names), cells,
                 "From the configurations that the other tables are measured with.")  # fmt: skip


def _training() -> Table:
    cells = [
        (f"steps, {label}", base_config(FULL, backbone=backbone).training.num_steps, PAPER_STEPS)
        for backbone, label in BACKBONE_LABELS.items()
    ]
    training = base_config(FULL).training
    cells += [(name, getattr(training, name), theirs) for name, theirs in PAPER_TRAINING.items()]
    return Table(
        "Training", ("setting", ">ours", ">paper"), cells,
        "Scale 'full'; scale 'paper' takes all of the paper's steps. AdamW, cosine annealing, "
        "mean squared error in the transformed space; inputs scaled by training statistics.",
    )  # fmt: skip


ARTEFACTS = (
    Artefact(
        "hyperparameters", "Table VII", "Architecture and training of the backbones", (),
        lambda rows: (_architecture(), _training()),
        findings=(
            Claim("the MLP, Transformer and PFGNN have about 100k, 292k and 355k parameters",
                  "trained numbers on case30, built as the appendix says",
                  lambda rows: {label: num_parameters(b, "case30")
                                for b, label in BACKBONE_LABELS.items()},
                  rules.within(0.1), {BACKBONE_LABELS[b]: n for b, n in PAPER_PARAMETERS.items()}),
        ),
    ),
)  # fmt: skip
