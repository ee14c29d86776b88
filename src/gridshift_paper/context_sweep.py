"""Table VIII: ICW by size of the context, and in which order its cases have to be for that.

The paper's errors are flat up to half of the largest context, then they fall. Prefixes of a pool
give this whose first half has the fixed spread of the loads, and whose second half has drawn ones:
until the second half is reached, the covariance is too large by a factor of 0.04 / 0.02875.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import chain

import numpy as np

from gridshift.adapt.datasets import Dataset, generate
from gridshift.grid.scenarios import LoadScenarios, named_rng, sample_loads
from gridshift.learn.whitening import fit_zca
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Count, Frame, Note, Numbers, Rows, decided
from gridshift_paper.outages import COMPENSATION, compensated
from gridshift_paper.protocol import (
    EXACT,
    GRIDS,
    SPREAD,
    WIDE,
    Experiment,
    Scale,
    context_mean,
    errors_where_given,
)
from gridshift_paper.records import Key, Record, Study, on_outage
from gridshift_paper.selection import mean, measured, picked

SIZES = {"case118": (1, 1.5, 2, 3, 4), "case300": (2, 3, 5, 7.5, 10)}
"""Of the contexts, in contexts of the scale: 400 to 1,600 and 800 to 4,000 at full scale."""
ORDERS = {"unshuffled": "first half fixed spread", "shuffled": "random order"}
QUANTITIES = {"overall": "overall", "q_gen": "Q gen", "v": "|V|"}
NETWORKS_OWN = (
    "the paper's overall errors are ours around exact solutions and about the same on top at every "
    "size, as a network's own error would be; none of our networks has these errors"
)


def pool(experiment: Experiment, num_rows: int) -> LoadScenarios:
    """Scenarios of a context: the first half with the fixed spread, the others with drawn ones."""
    network, outage = experiment.network, experiment.outage
    rng = named_rng(network.name, "context-pool", outage=outage, seed=experiment.seed)
    fixed, drawn = num_rows - num_rows // 2, num_rows // 2
    halves = [
        sample_loads(network, rng, fixed, spread=SPREAD, regime="fixed"),
        sample_loads(network, rng, drawn, spread=SPREAD, regime="drawn"),
    ]
    return LoadScenarios(
        load_p=np.vstack([half.load_p for half in halves]),
        load_q=np.vstack([half.load_q for half in halves]),
    )


def prefixes(experiment: Experiment, order: str) -> Iterator[tuple[int, Dataset]]:
    """Sizes, and the solved ones of so many first cases of the pool in this order."""
    network = experiment.network
    sizes = [round(factor * experiment.scale.num_context) for factor in SIZES[experiment.grid]]
    cases = pool(experiment, sizes[-1])
    if order == "shuffled":
        rng = named_rng(network.name, "order", outage=experiment.outage, seed=experiment.seed)
        cases = cases.rows(rng.permutation(cases.num_rows))
    for n in sizes:
        yield n, generate(network, cases.rows(slice(0, n)), min_rows=2)


BASES = {
    "paper": Experiment.base,
    "no dropout": Experiment.base_without_dropout,
    "regression": Experiment.regression,
    WIDE: partial(Experiment.base, backbone=WIDE),
}
"""What ICW starts from: the network of appendix C, the product's, the base 'quadratic', and the
network that fits case300."""
LABELS = {EXACT: "exact", "paper": "appendix C", "no dropout": "without dropout",
          "regression": "quadratic", WIDE: "width 1,024"}  # fmt: skip


def _keys(scale: Scale) -> Iterator[Key]:
    bases = [EXACT, *(base for base in BASES if base != WIDE)]
    yield from on_outage(scale, *SIZES, topology="N-1", base=bases, seed=scale.seeds)
    yield from on_outage(scale, "case300", topology="N-1", base=[WIDE], seed=scale.seeds[:1])


def _measure(experiment: Experiment, *, base: str) -> list[Record]:
    """Errors of y = T_ctx^-1(T_base(y_base)), y_base exact or predicted."""
    test, old = experiment.test(), fit_zca(experiment.training().y)
    if base == EXACT:
        y_base = experiment.exact_base(test)
    else:
        y_base = BASES[base](experiment).predict(test.x)
    frozen = errors_where_given(test, y_base)
    rows: list[Record] = [{"n": 0, "order": "", "method": "frozen", **frozen}]
    for order in ORDERS:
        for n, context in prefixes(experiment, order):
            y_hat = fit_zca(context.y).inverse(old.forward(y_base))
            for method, y in (("icw", y_hat), ("context-mean", context_mean(context, test))):
                about = {"n": n, "order": order, "method": method, "context_rows": len(context)}
                rows.append(about | errors_where_given(test, y))
    return rows


SWEEP = Study(
    name="context-sweep",
    about="error of ICW on the N-1 outage by size of the context, 118 and 300 buses: prefixes of a "
    "pool in two orders, around exact solutions and around networks",
    keys=_keys,
    measure=_measure,
    version=2,
)


def _errors(rows: Rows, grid: str, order: str, base: str, method: str = "icw") -> Frame:
    """Means over seeds: index size, columns quantities; empty if nothing was measured."""
    frame = measured(rows, SWEEP.name, grid=grid)
    part = picked(frame, base=base, order=order, method=method)
    return part.groupby("n")[list(QUANTITIES)].mean() if len(part) else part


def tables(rows: Rows) -> Iterator[Table]:
    """Table VIII: errors in both orders, improvements, and other bases and methods beside."""
    measured(rows, SWEEP.name)
    for grid in SIZES:
        part = picked(rows[SWEEP.name], grid=grid)
        lines = []
        for n, told in PAPER.sweep[grid].items():
            ours = [mean_and_spread(picked(part, base="exact", n=n, order="unshuffled",
                                           method="icw")[q]) for q in QUANTITIES]  # fmt: skip
            lines.append([n, *chain(*zip(told[:3], ours, strict=True))])
        yield Table(
            f"{GRIDS[grid].label}, MAE (p.u. and rad), prefixes of an unshuffled pool, exact base",
            [">N", *(h for name in QUANTITIES.values() for h in (">paper", f">{name}"))],
            lines if len(part) else (),
        )  # fmt: skip
        bases = [b for b in (EXACT, *BASES) if len(picked(part, base=b))]
        lines, columns = [], [(order, b) for order in ORDERS for b in bases]
        for n, told in PAPER.sweep[grid].items():
            cells = [picked(part, base=b, n=n, order=order, method="icw") for order, b in columns]
            lines.append([n, told[0], *(mean(c.overall) if len(c) else None for c in cells)])
        frozen = [f"{LABELS[b]} {mean_and_spread(picked(part, base=b, method='frozen').overall)}"
                  for b in bases]  # fmt: skip
        lines += [
            [f"compensation, {n}", None, mean_and_spread(values), *[None] * (len(columns) - 1)]
            for n, values in compensated(rows, grid, GRIDS[grid].single).items()
        ]
        yield Table(
            f"{GRIDS[grid].label}, overall MAE by order of the cases and base",
            [">N", ">paper", *(f">{order},\n{LABELS[b]}" for order, b in columns)],
            lines if len(part) else (),
            f"Frozen: {', '.join(frozen)}; the paper's tables imply {_implied(grid):.4f}. "
            "Quadratic: the base of that name; width 1,024: without dropout, one seed. "
            "Compensation: ours, on the base 'quadratic', cases drawn as contexts are.",
        )  # fmt: skip


def _implied(grid: str) -> float:
    """Frozen error by the paper's table: ICW's times its improvement, mean over sizes."""
    return float(np.mean([row[0] * row[3] for row in PAPER.sweep[grid].values()]))


def _over_paper(grid: str, rows: Rows, base: str = "exact") -> Numbers:
    """Ours over the paper's, each size and quantity."""
    ours = _errors(rows, grid, "unshuffled", base)
    return {
        f"{name} at {n:,}": ours[q].get(n, rules.NAN) / told[k] if len(ours) else rules.NAN
        for n, told in PAPER.sweep[grid].items()
        for k, (q, name) in enumerate(QUANTITIES.items())
    }


def _same(grid: str, rows: Rows, base: str = "exact") -> Numbers:
    """Errors of Table VIII that ours are within a fifth of."""
    ratios = [float(ratio) for ratio in _over_paper(grid, rows, base).values()]
    known = [ratio for ratio in ratios if ratio == ratio]
    near = sum(abs(ratio - 1) <= rules.TOLERANCE for ratio in known)
    return {"": Count(near, len(known))} if len(known) == len(ratios) else {}


def _offset(grid: str, rows: Rows) -> Numbers:
    """The paper's overall error less ours around exact solutions."""
    exact = _errors(rows, grid, "unshuffled", "exact")
    if not len(exact):
        return {}
    return {f"{n:,} cases": told[0] - exact.overall[n] for n, told in PAPER.sweep[grid].items()}


def _by_draw(grid: str, rows: Rows) -> Numbers:
    """Errors around exact solutions by the largest context, which differ by what was drawn."""
    part = picked(measured(rows, SWEEP.name, grid=grid), base="exact", order="shuffled",
                  method="icw")  # fmt: skip
    errors = part[part.n == part.n.max()].set_index("seed").overall
    return {f"seed {seed}": error for seed, error in errors.items()}


def _gains(grid: str, order: str, rows: Rows, base: str = "exact") -> Numbers:
    """Frozen over ICW at the smallest and the largest context, and the growth between them."""
    found = _errors(rows, grid, order, base)
    if not len(found):
        return {}
    errors, frozen = found.overall, mean(_errors(rows, grid, "", base, "frozen").overall)
    return _grown({n: frozen / error for n, error in errors.items()})


def _grown(gains: Mapping[int, float]) -> dict[str, float]:
    few, many = min(gains), max(gains)
    return {f"{few:,} cases": gains[few], f"{many:,} cases": gains[many],
            "growth": gains[many] / gains[few]}  # fmt: skip


def _recovered(grid: str, rows: Rows) -> Numbers:
    """Share of what the largest context takes off the frozen error that the smallest does."""
    gains = list(map(float, _gains(grid, "shuffled", rows).values()))
    return {"": (1 - 1 / gains[0]) / (1 - 1 / gains[1])} if gains else {}


def _lost_cases(rows: Rows) -> Numbers:
    part = picked(measured(rows, SWEEP.name, grid="case300"), base="exact", order="shuffled")
    part = part[part.n == part.n.max()]
    lost = part.n - part.context_rows
    return {"least": int(lost.min()), "most": int(lost.max()), "of": int(part.n.max())}


def _findings(grid: str) -> Iterator[Claim | Note]:
    gains = {n: row[3] for n, row in PAPER.sweep[grid].items()}
    few, many = min(gains), max(gains)
    yield Claim(
        f"on {grid} contexts of {few} to {many:,} cases give ICW the errors of Table VIII",
        "errors overall, of Q gen and of |V| within 20 % of the paper's, prefixes of an unshuffled "
        "pool, around exact solutions",
        partial(_same, grid), rules.MOSTLY,
        beside=Note("Around what was trained and fits the intact grid", lambda rows: {
            LABELS[base]: number for base in ("regression", WIDE)
            for number in _same(grid, rows, base).values()}),
        unless=decided if grid == "case300" else lambda _: NETWORKS_OWN,
    )  # fmt: skip
    yield Note(f"{grid}, ours over the paper's", partial(_over_paper, grid))
    yield Note(f"{grid}, the paper's overall error less ours around exact solutions",
               partial(_offset, grid))  # fmt: skip
    yield Claim(
        f"on {grid} a context of {many:,} cases instead of {few} raises the improvement over the "
        f"frozen surrogate from {gains[few]} to {gains[many]} times",
        "frozen over ICW around exact solutions, cases in random order, as what a larger context "
        "brings is asked",
        partial(_gains, grid, "shuffled"), rules.FACTOR, _grown(gains),
        beside=Note("As prefixes of an unshuffled pool, whose smaller contexts hold cases of the "
                    "fixed spread alone", partial(_gains, grid, "unshuffled")),
        why="How much it grows depends on the order of the cases more than on their number.",
    )  # fmt: skip
    yield Note(
        f"{grid}, growth of the improvement in random order around what was trained",
        lambda rows: {LABELS[base]: _gains(grid, "shuffled", rows, base).get("growth", rules.NAN)
                      for base in BASES},
    )  # fmt: skip
    yield Note(f"{grid}, overall error around exact solutions by {many:,} cases, by draw",
               partial(_by_draw, grid))  # fmt: skip
    told = (1 - 1 / gains[few]) / (1 - 1 / gains[many])
    yield Claim(
        f"on {grid} a small context already recovers most of ICW's gain",
        "share of what the largest context takes off the frozen error, random order, around "
        f"exact solutions (by the paper's own table {told:.2f})",
        partial(_recovered, grid), rules.above(0.5),
    )  # fmt: skip


ARTEFACTS = (
    Artefact(
        "context-sweep", "Table VIII", "ICW by size of the context, N-1 Most",
        (SWEEP, COMPENSATION), tables,
        findings=(
            *(finding for grid in SIZES for finding in _findings(grid)),
            Note("case300: context cases without a solution, left out", _lost_cases),
        ),
    ),
)  # fmt: skip
