"""What is measured of every outage of a grid: errors, power balance, distance from the intact grid.

Outages are those that keep the grid in one piece and have a nominal solution; of case300's 253 in
one piece ten have none and are left out (`num_unsolvable`). A key without an outage is the intact
grid, measured like the others.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np
import pandas as pd

from gridshift.adapt.cache import cached_surrogate
from gridshift.adapt.datasets import Dataset
from gridshift.adapt.methods import METHODS
from gridshift.adapt.surrogate import Surrogate
from gridshift.adapt.surrogate_config import base_config as product_config
from gridshift.arrays import Real
from gridshift.errors import RankDeficientWarning
from gridshift.grid.contingency import assess, cut_off_buses, enumerate_outages, outage_text
from gridshift.grid.equations import specified_mismatch
from gridshift.learn.diagnostics import mmd
from gridshift.learn.whitening import fit_transform
from gridshift.trial.metrics import mismatch_summary
from gridshift_paper.claims import Frame, Rows
from gridshift_paper.protocol import (
    GRIDS,
    SPREAD,
    WIDE,
    WIDE_SPREAD,
    Scale,
    adapted,
    base_surrogate,
    context_rows,
    errors_of,
    errors_where_given,
    network_of,
    reference_levels,
    rows_for_test,
    surrogate_without_dropout,
)
from gridshift_paper.records import Key, Record, Study, crossed
from gridshift_paper.selection import measured, picked

TENFOLD = "icw-tenfold"
"""ICW with ten times the context: what is left of an error is not the context's size."""
ALL_METHODS = ("frozen", "residual", "zscore", "icw", "icw-paired")
ZCA_METHODS = ("frozen", "icw", "icw-paired")
PERFECT = {"perfect": "zca", "perfect-residual": "residual", "perfect-zscore": "zscore"}
"""Adaptation of the exact solution of the intact grid, and what it matches."""
BALANCED = {*ZCA_METHODS, TENFOLD, "perfect"}
"""What the power balance is measured of."""
TERCILES = ("low", "mid", "high")


@lru_cache(maxsize=8)
def connected_outages(grid: str, size: int) -> tuple[tuple[str, ...], int]:
    """Outages of `size` lines that can be studied, and how many more have no nominal solution."""
    network = network_of(grid)
    outages = enumerate_outages(network, "lines", size)
    cut_off = zip(outages, cut_off_buses(network, outages), strict=True)
    whole = [outage for outage, buses in cut_off if not len(buses)]
    usable = tuple(outage_text(outage) for outage in whole if assess(network, outage).usable)
    return usable, len(whole) - len(usable)


def num_unsolvable(grid: str, size: int = 1) -> int:
    """Outages that keep the grid in one piece and have no nominal solution."""
    return connected_outages(grid, size)[1]


def _chosen(grid: str, size: int, scale: Scale) -> tuple[str, ...]:
    """Outages of a sweep at this scale: all, or some evenly over the list."""
    outages = connected_outages(grid, size)[0]
    if scale.max_outages is None or scale.max_outages >= len(outages):
        return outages
    where = np.linspace(0, len(outages) - 1, scale.max_outages).round().astype(int)
    return tuple(outages[i] for i in where)


def _keys(
    scale: Scale, *, grids: Sequence[str], size: int = 1, num_seeds: int | None = None
) -> Iterator[Key]:
    """The intact grid and every outage of `size` lines, for each grid and seed."""
    for grid in scale.grids_of(*grids):
        outages = ("", *_chosen(grid, size, scale))
        yield from crossed(grid=[grid], seed=scale.seeds[:num_seeds], outage=outages)


@lru_cache(maxsize=32)
def _surrogate(
    scale: Scale, grid: str, seed: int, spread: float, backbone: str, transform: str
) -> Surrogate:
    return base_surrogate(
        scale, grid, transform=transform, backbone=backbone, seed=seed, spread=spread
    )


@lru_cache(maxsize=4)
def _intact_rows(grid: str, num_rows: int, seed: int) -> Dataset:
    return rows_for_test(grid, "", num_rows, seed=seed)


def _measure(
    scale: Scale, *, grid: str, outage: str, seed: int, methods: tuple[str, ...],
    perfect: tuple[str, ...] = (), spread: float = SPREAD, physics: bool = True,
    distances: bool = False, backbone: str = "mlp",
) -> list[Record]:  # fmt: skip
    """Rows of one outage and one seed, one for each method and reference level.

    Args:
        methods: of the roster; each starts from the surrogate of its own transform.
        perfect: reference levels of `PERFECT`; with any, that of the context's mean too.
        physics: measure the power balance of `BALANCED` and of the solver's rows too.
        distances: measure the MMD between the intact grid's rows and the outage's too, raw (in the
            row of `frozen`) and whitened.
        backbone: of the surrogates.
    """
    draw = partial(context_rows, grid, outage, seed=seed, spread=spread)
    context, longer = draw(scale.num_context), draw(10 * scale.num_context, draw=1)
    test = rows_for_test(grid, outage, scale.num_test, seed=seed, spread=spread)
    base = partial(_surrogate, scale, grid, seed, spread, backbone)
    with warnings.catch_warnings():
        # case300 has 600 outputs and contexts of 400: how that goes is what the rows tell
        warnings.simplefilter("ignore", RankDeficientWarning)
        y_hats = {name: _predicted(name, base, context, test) for name in methods}
        y_hats[TENFOLD] = _predicted("icw", base, longer, test)
        if perfect:
            transforms = {name: base(PERFECT[name]).transform for name in perfect}
            y_hats |= reference_levels(grid, context, test, transforms)
        rows = {name: _errors(test, y_hat) for name, y_hat in y_hats.items()}
        if physics:
            for name in BALANCED & y_hats.keys():
                rows[name] |= balance(test, y_hats[name])
            rows["solver"] = balance(test, test.y)
        if distances and outage:
            intact = _intact_rows(grid, scale.num_test, seed).y
            rows["frozen"]["mmd"] = mmd(intact, test.y)
            rows["icw"]["mmd"] = _whitened_distance(base("zca"), intact, test.y, context.y)
    failed = {
        "failed_context": context.num_solves - len(context),
        "failed_test": test.num_solves - len(test),
    }
    return [{"method": name, **_shortened(row), **failed} for name, row in rows.items()]


def _predicted(
    method: str, base: Callable[[str], Surrogate], context: Dataset, test: Dataset
) -> Real:
    surrogate = base(METHODS[method].transform or "zca")
    return adapted(method, surrogate, context).predict(test.x)


def _errors(test: Dataset, y_hat: Real) -> dict[str, float]:
    errors = errors_where_given(test, y_hat)
    del errors["theta_deg"]  # 'theta' tells, and a sweep has thousands of rows
    return errors


def balance(test: Dataset, y_hat: Real) -> dict[str, float]:
    """Worst bus of each row by two definitions, the slack left out by both; p.u.

    `worst_*`: as in the paper's appendix G, the root of dP^2 + dQ^2, with the reactive power of
    generators as predicted. `mismatch_*`: of the predicted voltages alone, the larger of |dP| and
    |dQ|, without dQ where a generator holds the voltage, as solvers define it.
    """
    layout, network = test.layout, test.network
    loads, voltage = layout.unpack_loads(test.x), layout.unpack_voltage(test.x, y_hat)
    states = mismatch_summary(network, voltage, loads.load_power)
    off = specified_mismatch(network, voltage, loads.load_power)
    reactive = layout.y_slices["q_gen"]
    implied = layout.pack_outputs(network, loads, voltage)[:, reactive]
    off[:, layout.controlled] += 1j * (implied - y_hat[:, reactive])
    off[:, layout.slack] = 0
    worst = np.abs(off).max(1)
    return {
        "worst_median": float(np.median(worst)),
        "worst_max": float(worst.max()),
        "mismatch_median": states["median"],
        "mismatch_max": states["max"],
    }


def _whitened_distance(base: Surrogate, intact: Real, outage: Real, context: Real) -> float:
    """MMD of the intact grid's rows and the outage's, each whitened by its own statistics.

    As a method sees them: those of the training rows and of the context, not of the rows compared.
    """
    new = fit_transform("zca", context, eps=base.transform.eps)
    return mmd(base.transform.forward(intact), new.forward(outage))


def _shortened(row: Mapping[str, float]) -> dict[str, float]:
    """With 17 binary digits, five decimal ones: the files of a sweep are kept, and stay small."""
    parts = {name: np.frexp(value) for name, value in row.items()}
    return {name: float(np.ldexp(np.round(m * 2**17), e - 17)) for name, (m, e) in parts.items()}


OUTAGES = Study(
    name="outages",
    about="Errors, power balance and distance from the intact grid of every single-line outage.",
    keys=partial(_keys, grids=("case30", "case118")),
    measure=partial(_measure, methods=ALL_METHODS, perfect=tuple(PERFECT), distances=True),
)
OUTAGES_300 = Study(
    name="outages-300",
    about="Errors of every single-line outage of case300, by the methods of the ZCA surrogate.",
    keys=partial(_keys, grids=("case300",)),
    measure=partial(_measure, methods=ZCA_METHODS, perfect=("perfect",), physics=False),
)
OUTAGES_FIT = Study(
    name="outages-300-fit",
    about="The same around the network that fits case300, one seed.",
    keys=partial(_keys, grids=("case300",), num_seeds=1),
    measure=partial(OUTAGES_300.measure, backbone=WIDE),
)


def _measure_product(scale: Scale, *, grid: str, outage: str, seed: int) -> list[Record]:
    """Frozen and ICW around the product's network, which has no dropout."""
    base = _product(scale, grid, seed=seed)
    context = context_rows(grid, outage, scale.num_context, seed=seed)
    test = rows_for_test(grid, outage, scale.num_test, seed=seed)
    return [{"method": name, **_shortened(errors_of(adapted(name, base, context), test))}
            for name in ("frozen", "icw")]  # fmt: skip


_product = lru_cache(maxsize=4)(surrogate_without_dropout)


OUTAGES_PRODUCT = Study(
    name="outages-product",
    about="Errors of every single-line outage of case118 around the product's network, without "
    "dropout.",
    keys=partial(_keys, grids=("case118",)),
    measure=_measure_product,
)
PAIRS = Study(
    name="pairs",
    about="Errors of every double-line outage of case30 at loads of ±50 %.",
    keys=partial(_keys, grids=("case30",), size=2),
    measure=partial(_measure, methods=ZCA_METHODS, spread=WIDE_SPREAD, physics=False),
)

COMPENSATED = {
    "standard": (1, SPREAD, (10, 50, 400), tuple(GRIDS)),
    "single": (1, SPREAD, (10,), tuple(GRIDS)),
    "pairs": (2, WIDE_SPREAD, (10,), ("case30",)),
}
"""Outages of the paper's tables, to lines out, spread, solved cases and grids."""


def _compensate(scale: Scale, *, grid: str, of: str, seed: int) -> list[Record]:
    """Errors and wall time of the product's default, one row an outage and size of the context."""
    size, spread, sizes, _ = COMPENSATED[of]
    all_of = (GRIDS[grid].single, GRIDS[grid].double)
    outages = all_of if of == "standard" else _chosen(grid, size, scale)
    config = product_config("quadratic", spread=spread, seed=seed, num_rows=scale.num_rows)
    base, rows = cached_surrogate(network_of(grid), config), []
    for outage in outages:
        test = rows_for_test(grid, outage, scale.num_test, seed=seed, spread=spread)
        for n in sizes:
            began = time.perf_counter()
            context = context_rows(grid, outage, n, seed=seed, spread=spread)
            solved = time.perf_counter()
            predictor = adapted("compensation", base, context)
            fitted = time.perf_counter()
            errors = _shortened(errors_of(predictor, test))
            spent = {"data_s": solved - began, "fit_s": fitted - solved,
                     "predict_s": time.perf_counter() - fitted}  # fmt: skip
            rows.append({"outage": outage, "num_context": n, **errors, **_shortened(spent)})
    return rows


COMPENSATION = Study(
    name="compensation",
    about="The product's default, compensation on the base 'quadratic', on the paper's outages.",
    keys=lambda scale: (
        key
        for of, (*_, grids) in COMPENSATED.items()
        for key in crossed(grid=scale.grids_of(*grids), of=[of], seed=scale.seeds)
    ),
    measure=_compensate,
)


def compensated(
    rows: Rows, grid: str, outage: str = "", of: str = "standard", column: str = "overall"
) -> dict[int, Frame]:
    """Size of the context to the errors of compensation: by seed, or by outage if none is named."""
    found = picked(rows.get(COMPENSATION.name, pd.DataFrame()), grid=grid, of=of)
    found = picked(found, outage=outage) if outage else found
    by = "seed" if outage else "outage"
    return {int(n): part.groupby(by)[column].mean()
            for n, part in (found.groupby("num_context") if len(found) else ())}  # fmt: skip


def frame_of(rows: Rows, study: Study, grid: str | None = None) -> Frame:
    """Rows of a study, of one grid if it is given; `theta_deg` is added.

    Seeds that were measured on fewer outages than others of the grid are left out: a mean over
    seeds is one over the same seeds for every outage.

    Raises:
        Undecided: there are none.
    """
    frame = measured(rows, study.name, grid=grid)
    num_outages = frame.groupby(["grid", "seed"]).outage.nunique()
    complete = num_outages.index[num_outages == num_outages.groupby("grid").transform("max")]
    frame = frame[pd.MultiIndex.from_frame(frame[["grid", "seed"]]).isin(complete)]
    return frame.assign(theta_deg=np.rad2deg(frame.theta))


def of_300(rows: Rows) -> Study:
    """Outages of case300 around the network that fits it, once all are measured."""
    fit, whole = (rows.get(study.name, pd.DataFrame()) for study in (OUTAGES_FIT, OUTAGES_300))
    complete = len(fit) and (not len(whole) or {*fit.outage} >= {*whole.outage})
    return OUTAGES_FIT if complete else OUTAGES_300


def grids_of(rows: Rows, study: Study) -> list[str]:
    """Grids that there are rows of, as the paper orders them."""
    frame = rows.get(study.name, pd.DataFrame())
    return [grid for grid in GRIDS if len(picked(frame, grid=grid))]


def outages_by_seed(frame: Frame, column: str) -> Frame:
    """Index (seed, outage), a column for each method; the intact grid is left out."""
    out = frame[frame.outage != ""]
    return out.pivot(index=["seed", "outage"], columns="method", values=column)


def outages(frame: Frame, column: str) -> Frame:
    """Mean over seeds; index outage, a column for each method."""
    return outages_by_seed(frame, column).groupby("outage").mean()


def intact(frame: Frame, column: str) -> Frame:
    """On the intact grid; index seed, a column for each method."""
    return frame[frame.outage == ""].pivot(index="seed", columns="method", values=column)


def terciles(error: Frame) -> pd.Series:
    """Group of each outage, from the mildest to the hardest third by this error."""
    thirds = np.minimum(3 * np.argsort(np.argsort(error.to_numpy())) // len(error), 2)
    return pd.Series(pd.Categorical.from_codes(thirds, TERCILES), index=error.index)
