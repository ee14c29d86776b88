"""What the networks are made of (Table VII), and which fits what: Table VI, and case300's."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gridshift.adapt.graph import graph_of
from gridshift.adapt.surrogate import random_network
from gridshift.adapt.surrogate_config import SurrogateConfig, fit_output_transform
from gridshift.adapt.training_rows import training_seed
from gridshift.arrays import Real
from gridshift.grid.layout import Layout
from gridshift.learn.fitted_network import FittedNetwork, input_scaling
from gridshift.learn.regression import RegressionConfig
from gridshift.trial.metrics import mean_absolute_errors
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Frame, Note, Numbers, Rows, Undecided
from gridshift_paper.context_sweep import QUANTITIES
from gridshift_paper.protocol import (
    BACKBONE_LABELS,
    GRIDS,
    SCALES,
    WIDE_SETTINGS,
    Experiment,
    base_config,
    changed,
    errors_of,
    network_of,
    trained,
)
from gridshift_paper.records import Record, Study, crossed
from gridshift_paper.selection import by_seed, mean, measured, num_seeds, picked
from gridshift_paper.variants import CHANGES

FULL = SCALES["full"]
FIELDS = {
    "width": ("hidden", "width"), "layers": ("num_layers",), "dropout": ("dropout",),
    "attention heads": ("num_heads",), "feed-forward width": ("feed_forward",),
    "patch": ("patch",),
}  # fmt: skip
"""Row of the table to what a configuration calls it."""

WIDTHS = (128, 256, 512, 1024)
WHITENERS = {2: "zca", 3: "zca-sas"}
"""Moments matched, and the transform that does it."""


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
    for name, theirs in PAPER.architecture.items():
        cells.append([name])
        for backbone, config in configs.items():
            known = {field.name for field in fields(config)}
            ours = [getattr(config, f) for f in FIELDS[name] if f in known]
            cells[-1] += [ours[0] if ours else None, theirs.get(backbone)]
    for grid in GRIDS:
        cells.append([f"parameters, {grid}"])
        for backbone in BACKBONE_LABELS:
            theirs = PAPER.parameters[backbone] if grid == "case30" else None
            cells[-1] += [num_parameters(backbone, grid), theirs]
    names = [
        f">{label}\n{whose}" for label in ("MLP", "Transf.", "PFGNN") for whose in ("ours", "paper")
    ]
    return Table("Architecture of the backbones", ("", *names), cells,
                 "From the configurations that the other tables are measured with.")  # fmt: skip


def _training() -> Table:
    cells = [
        (f"steps, {label}", base_config(FULL, backbone=backbone).training.num_steps, PAPER.steps)
        for backbone, label in BACKBONE_LABELS.items()
    ]
    training = base_config(FULL).training
    cells += [(name, getattr(training, name), theirs) for name, theirs in PAPER.training.items()]
    return Table(
        "Training", ("setting", ">ours", ">paper"), cells,
        "Scale 'full'; scale 'paper' takes all of the paper's steps. AdamW, cosine annealing, "
        "mean squared error in the transformed space; inputs scaled by training statistics.",
    )  # fmt: skip


def coefficient_of_determination(z: Real, z_hat: Real) -> float:
    """R2 over all entries together: 1 - sum of squared errors / sum of squared deviations."""
    return 1 - float(((z - z_hat) ** 2).sum() / ((z - z.mean(0)) ** 2).sum())


def measure_fit(experiment: Experiment, *, width: int, level: int) -> Sequence[Record]:
    """Fit of an MLP of some width on fresh rows of the intact grid, of training's mixed spread."""
    config = experiment.config(transform=WHITENERS[level])
    surrogate = trained(experiment.grid, changed(config, hidden=width))
    fresh = experiment.context(experiment.scale.num_test)
    z = surrogate.transform.forward(fresh.y)
    r2 = coefficient_of_determination(z, surrogate.predict_whitened(fresh.x))
    errors = mean_absolute_errors(fresh.layout, fresh.y, surrogate.predict(fresh.x))
    skew = np.abs(getattr(surrogate.transform, "skew", np.zeros(1)))
    bent = {"median_skew": float(np.median(skew)), "largest_skew": float(skew.max())}
    return [{"r2": r2, **errors, **bent, "num_rows": len(fresh)}]


CAPACITY_SWEEP = Study(
    name="capacity",
    about="fit of MLPs of four widths to two and to three matched moments, intact grid",
    keys=lambda scale: crossed(
        seed=scale.seeds if "case30" in scale.grids else (), width=WIDTHS, level=WHITENERS
    ),
    measure=measure_fit,
)


def _fit(rows: Rows, column: str, width: int, level: int) -> Frame:
    return by_seed(rows["capacity"], column, width=width, level=level)


def gap(rows: Rows, width: int) -> float:
    """R2 of level 2 minus that of level 3, mean over seeds that have both."""
    two, three = _fit(rows, "r2", width, 2).align(_fit(rows, "r2", width, 3), join="inner")
    return mean(two - three)


def _tables_of_fit(rows: Rows) -> Sequence[Table]:
    fits, errors = [], []
    for width, (r2_two, r2_three, *paper_mae, paper_gap) in PAPER.capacity.items():
        ours = [_fit(rows, "r2", width, level) for level in WHITENERS]
        fits.append((width, *(f"{mean(o):.5f}" if len(o) else None for o in ours), gap(rows, width),
                     f"{r2_two:.5f}", f"{r2_three:.5f}", paper_gap))  # fmt: skip
        for level, theirs in zip(WHITENERS, paper_mae, strict=True):
            mae = _fit(rows, "overall", width, level)
            errors.append((width, level, mean_and_spread(mae), theirs, mean(mae) / theirs))
    note = f"{num_seeds(rows['capacity'])} seeds; fresh rows of the intact grid, dropout 0.15."
    return [
        Table("R² in the transformed space, by width of the MLP, case30",
              (">width", ">level 2", ">level 3", ">gap", ">level 2\npaper", ">level 3\npaper",
               ">gap\npaper"), fits, note),
        Table("Overall MAE in y, by width of the MLP, case30",
              (">width", ">level", ">ours", ">paper", ">ours / paper"), errors, note),
    ]  # fmt: skip


def _shrinkage(rows: Rows) -> Numbers:
    narrow, wide = gap(rows, WIDTHS[0]), gap(rows, WIDTHS[-1])
    if narrow <= 0:
        raise Undecided("at width 128 three moments are no harder to fit, so no gap could shrink")
    return {"": float("inf") if wide <= 0 else narrow / wide}


def _skews(rows: Rows) -> Numbers:
    three = picked(rows["capacity"], level=3)
    if not len(three):
        return {}
    return {"median": float(three["median_skew"].median()),
            "largest": float(three["largest_skew"].max())}  # fmt: skip


NO_NETWORK = "regression, no network"
DOUBLE = "width 512, double precision"
TRIED: dict[str, dict[str, Any]] = {
    "appendix C": {},
    "no dropout": {"dropout": 0.0},
    "product": {"dropout": 0.0, "num_steps": 20_000, "learning_rate": 2e-3},
    "width 512": {"dropout": 0.0, "hidden": 512},
    "width 1,024": WIDE_SETTINGS,
    DOUBLE: {"dropout": 0.0, "hidden": 512},
    "twice the rows": {"dropout": 0.0, "hidden": 512, "num_rows": 30_000},
    "200,000 steps": {"dropout": 0.0, "hidden": 512, "num_steps": 200_000},
    "residual on a regression": {"dropout": 0.0, "transform": "regression"},
    "residual, width 512": {"dropout": 0.0, "transform": "regression", "hidden": 512},
    NO_NETWORK: {},
}
"""Name to what differs from appendix C, in the order of the search for a network of case300."""


def _try(experiment: Experiment, *, tried: str) -> list[Record]:
    """Error on fresh rows of the intact grid alone, so that no outage has a say."""
    config = changed(experiment.config(), **TRIED[tried])
    if tried == NO_NETWORK:
        predictor = experiment.regression()
    elif tried == DOUBLE:
        predictor = _trained_in_double(experiment, config)
    else:
        predictor = trained(experiment.grid, config)
    return [errors_of(predictor, experiment.test())]


def _trained_in_double(experiment: Experiment, config: SurrogateConfig) -> FittedNetwork:
    """What `trained` gives, from the same rows and first weights, but for the steps' precision."""
    network, data = network_of(experiment.grid), experiment.training()
    transform = fit_output_transform(config.transform, data.y, config.eps)
    first = random_network(config, network, data.layout, input_scaling(data.x), transform)
    last = replace(first, backbone=first.backbone.double()).trained(
        data.x, data.y, config.training, seed=training_seed(network, config)
    )
    return replace(last, backbone=last.backbone.float())


SEARCH = Study(
    name="fit-300",
    about="error on the intact case300 of the networks that were tried for it",
    keys=lambda scale: crossed(grid=scale.grids_of("case300"), tried=TRIED, seed=scale.seeds[:1]),
    measure=_try,
)


def _tables_of_search(rows: Rows) -> Iterator[Table]:
    frame = measured(rows, SEARCH.name)
    yield Table(
        "Error on the intact case300, fresh rows", ["tried", ">overall", ">Q gen", ">|V|"],
        [(name, *(mean(by_seed(frame, q, tried=name)) if len(picked(frame, tried=name)) else None
                  for q in QUANTITIES)) for name in TRIED],
        "Chosen by these rows alone. All but appendix C without dropout; twice the rows and "
        "200,000 steps: width 512. Single precision unless said otherwise. A dash: not measured.",
    )  # fmt: skip


def _over_what_is_left(rows: Rows) -> Numbers:
    frame = measured(rows, SEARCH.name)
    least = frame.groupby(frame.tried == NO_NETWORK).overall.min() / PAPER.sweep["case300"][4000][0]
    names = {False: "of a network", True: "of the regression"}
    return {name: float(least[no_network]) for no_network, name in names.items()
            if no_network in least.index}  # fmt: skip


def tables_of_changes(rows: Rows) -> Iterator[Table]:
    """The paper's network, with one setting changed at a time, and the product's."""
    for grid in ("case30", "case118"):
        networks = {
            "the paper's": picked(rows["variants"], backbone="mlp", transform="zca"),
            **{f"{c} changed": picked(rows["one-change"], change=c) for c in CHANGES},
            "the product's, all changed": rows["no-dropout"],
        }  # fmt: skip
        lines = []
        for name, frame in networks.items():
            cells = [picked(frame, grid=grid, topology=t, statistics=s)
                     for t, s in (("base", "frozen"), ("N-1", "ctx"), ("N-2", "ctx"))]  # fmt: skip
            if len(cells[0]):
                lines.append((name, num_seeds(cells[0]), *(mean_and_spread(c.overall)
                                                           for c in cells)))  # fmt: skip
        yield Table(
            f"What the network costs, {grid}, overall MAE, one setting changed at a time",
            ("network", ">seeds", ">frozen,\nintact", ">ICW,\nN-1", ">ICW,\nN-2"), lines,
            "Changed: dropout 0.15 to 0; learning rate 6.29e-4 to 2e-3; 40,000 steps to 20,000.",
        )  # fmt: skip


ARTEFACTS = (
    Artefact(
        "capacity", "Table VI", "Fit to two and to three matched moments, by width of the network",
        (CAPACITY_SWEEP,), _tables_of_fit,
        findings=(
            Claim("three moments are harder to fit than two",
                  "gap in R² between level 2 and level 3, over the paper's",
                  lambda rows: {f"width {w}": gap(rows, w) / told
                                for w, (*_, told) in PAPER.capacity.items()},
                  rules.above(1 / 3), beside=Note("Parameter of the sinh-arcsinh map", _skews),
                  why="There is little to bend: symmetric loads give outputs of hardly any "
                  "skewness."),
            Claim("the gap in R² between level 2 and level 3 shrinks 34 times from width 128 to "
                  "1024",
                  "gap at width 128 over that at width 1024", _shrinkage, rules.FACTOR,
                  PAPER.shrinks),
        ),
    ),
    Artefact(
        "fit-300", "", "The search for a network that fits the intact case300", (SEARCH,),
        _tables_of_search,
        findings=(
            Note("The paper's must have less than what ICW leaves with 4,000 cases; the smallest "
                 "error over that", _over_what_is_left),
        ),
    ),
    Artefact(
        "hyperparameters", "Table VII", "Architecture and training of the backbones", (),
        lambda rows: (_architecture(), _training()),
        findings=(
            Claim("the MLP, Transformer and PFGNN have about 100k, 292k and 355k parameters",
                  "trained numbers on case30, built as the appendix says",
                  lambda rows: {label: num_parameters(b, "case30")
                                for b, label in BACKBONE_LABELS.items()},
                  rules.within(0.1), {BACKBONE_LABELS[b]: n for b, n in PAPER.parameters.items()}),
        ),
    ),
)  # fmt: skip
