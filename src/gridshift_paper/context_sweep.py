"""How many solved cases a context needs on 118 and 300 buses (Table VIII)."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from gridshift.adapt.surrogate import Surrogate
from gridshift.errors import RankDeficientWarning
from gridshift_paper import rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import Claim, Frame, Note, Numbers, Rows
from gridshift_paper.printed import printed
from gridshift_paper.protocol import (
    GRIDS,
    Scale,
    adapted,
    base_surrogate,
    context_rows,
    errors_of,
    errors_where_given,
    reference_levels,
    rows_for_test,
    surrogate_without_dropout,
)
from gridshift_paper.records import Record, Study
from gridshift_paper.selection import by_seed, mean, measured, picked
from gridshift_paper.spectra import context_keys, sizes_of

SWEEP = {"case118": (1, 1.5, 2, 3, 4), "case300": (2, 3, 5, 7.5, 10)}
"""Sizes of Table VIII likewise."""

PAPER_SWEEP = printed("sweep")
QUANTITIES = ("overall", "q_gen", "v")
Start = Callable[..., Surrogate]
"""Scale, grid and seed to the surrogate that a context adapts."""


def measure(
    scale: Scale, *, grid: str, outage: str, seed: int, draw: int,
    factors: Mapping[str, Sequence[float]], start: Start = base_surrogate,
) -> list[Record]:  # fmt: skip
    """Errors of the frozen surrogate, then of each size of the context by each level beside ICW."""
    base = start(scale, grid, seed=seed)
    test = rows_for_test(grid, outage, scale.num_test, seed=seed)
    rows: list[Record] = [
        {"n": 0, "method": "frozen", "test_rows": len(test), **errors_of(base, test)}
    ]
    context_rows(grid, outage, 2, seed=seed, draw=draw)  # compiling is no collecting
    for n in sizes_of(scale, factors[grid]):
        began = time.perf_counter()
        context = context_rows(grid, outage, n, seed=seed, draw=draw)
        collect_s = time.perf_counter() - began
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankDeficientWarning)  # the sizes tell
            levels = {"icw": adapted("icw", base, context).predict(test.x)}
            levels |= reference_levels(grid, context, test, {"perfect": base.transform})
        for method, y_hat in levels.items():
            errors, num = errors_where_given(test, y_hat)
            counts = {"context_rows": len(context), "test_rows": num}
            rows.append({"n": n, "method": method, "collect_s": collect_s, **counts, **errors})
    return rows


SWEEPS = Study(
    name="context-sweep",
    about="error of ICW on the N-1 outage by size of the context, 118 and 300 buses",
    keys=lambda scale: context_keys(scale, *SWEEP, topology="N-1"),
    measure=partial(measure, factors=SWEEP),
)
SWEEPS_NO_DROPOUT = Study(
    name="context-sweep-no-dropout",
    about="the same around a surrogate that fits the intact grid better",
    keys=lambda scale: context_keys(scale, *SWEEP, topology="N-1"),
    measure=partial(measure, factors=SWEEP, start=surrogate_without_dropout),
)


def tabulate_sweep(rows: Rows) -> Iterator[Table]:
    """Table VIII: errors, improvements, and the levels that say what limits them."""
    frame, better = measured(rows, "context-sweep"), rows["context-sweep-no-dropout"]
    columns = [">N", *(h for name in (">overall", ">Q gen", ">|V|") for h in (">paper", name))]
    for grid, part in frame.groupby("grid", sort=False):
        label = GRIDS[grid].label
        frozen = picked(part, method="frozen").set_index("seed")
        errors, factors, levels = [], [], []
        for n in sorted(set(part.n) - {0}):
            told = PAPER_SWEEP[grid].get(n, (None,) * 6)
            at = {m: p.set_index("seed") for m, p in picked(part, n=n).groupby("method")}
            icw = at["icw"]
            ours = [mean_and_spread(icw[q]) for q in QUANTITIES]
            gains = [mean_and_spread(frozen[q] / icw[q]) for q in QUANTITIES]
            errors.append([n, *chain(*zip(told[:3], ours, strict=True))])
            factors.append([n, *chain(*zip(told[3:], gains, strict=True))])
            better_icw = by_seed(better, "overall", grid=grid, method="icw", n=n)
            exact, constant = (mean(at[m]["overall"]) for m in ("perfect", "context-mean"))
            levels.append([n, int(icw.context_rows.min()), ours[0], mean_and_spread(better_icw),
                           exact, constant])  # fmt: skip
        yield Table(f"{label}, MAE (p.u. and rad)", columns, errors)
        yield Table(f"{label}, frozen over ICW", columns, factors)
        yield Table(
            f"{label}, overall MAE by level",
            [">N", ">solved", ">ICW", ">no dropout", ">perfect", ">mean"], levels,
            f"Frozen: overall {mean_and_spread(frozen.overall)}. No dropout, perfect: ICW around a "
            "network trained without dropout, and around exact solutions of the intact grid. Mean: "
            "the context's.",
        )  # fmt: skip


def mean_errors(study: str, grid: str, rows: Rows) -> Frame:
    """Mean overall error on the outage, sizes by methods; 'frozen' is at size 0."""
    part = measured(rows, study, grid=grid)
    return part[part.outage != ""].pivot_table(index="n", columns="method", values="overall")


def _gains(grid: str, rows: Rows, method: str = "icw") -> Numbers:
    """Frozen over adapted at the smallest and the largest context, and the growth between them."""
    errors = mean_errors("context-sweep", grid, rows)
    return _grown((errors["frozen"][0] / errors[method].iloc[1:]).to_dict())


def _grown(gains: Mapping[int, float]) -> dict[str, float]:
    few, many = min(gains), max(gains)
    return {f"{few:,} cases": gains[few], f"{many:,} cases": gains[many],
            "growth": gains[many] / gains[few]}  # fmt: skip


def _recovered(rows: Rows) -> Numbers:
    """Share of what the largest context takes off the frozen error that the smallest does."""
    found = {}
    for grid in SWEEP:
        errors = mean_errors("context-sweep", grid, rows)
        gain = errors["frozen"][0] - errors["icw"].iloc[1:]
        found[f"{gain.index[0]:,} cases of {grid}"] = gain.iloc[0] / gain.iloc[-1]
    return found


def _network(grid: str, rows: Rows) -> Numbers:
    """At the largest context: how much of the error is the network's, ours and the paper's."""
    errors, n = mean_errors("context-sweep", grid, rows), max(PAPER_SWEEP[grid])
    if n not in errors.index:
        return {}
    icw, exact, paper = errors["icw"][n], errors["perfect"][n], PAPER_SWEEP[grid][n][0]
    return {"share of the network in ICW's error": 1 - exact / icw,
            "paper's error over ours": paper / icw,
            "and over that around exact solutions": paper / exact}  # fmt: skip


def _lost_cases(rows: Rows) -> Numbers:
    part = measured(rows, "context-sweep", grid="case300")
    part = part[part.n == part.n.max()]
    lost = part.n - part.context_rows
    return {"least": int(lost.min()), "most": int(lost.max()), "of": int(part.n.max())}


def _on_sweep(grid: str) -> Claim:
    gains = {n: row[3] for n, row in PAPER_SWEEP[grid].items()}
    few, many = min(gains), max(gains)
    return Claim(
        f"on {grid} a context of {many:,} cases instead of {few} raises the improvement over the "
        f"frozen surrogate from {gains[few]} to {gains[many]} times",
        "frozen over ICW", partial(_gains, grid), rules.REACHES,
        _grown(gains),
        beside=Note("Around exact solutions", partial(_gains, grid, method="perfect")),
    )  # fmt: skip


ARTEFACTS = (
    Artefact(
        "context-sweep", "Table VIII", "ICW by size of the context, N-1 Most",
        (SWEEPS, SWEEPS_NO_DROPOUT), tabulate_sweep,
        findings=(
            *map(_on_sweep, SWEEP),
            Claim("a small context already recovers most of ICW's gain",
                  "share of what the largest context takes off the frozen error", _recovered,
                  rules.above(0.5)),
            *(Note(f"{grid} at the largest context; the paper's network must have been closer to "
                   "exact than that of its appendix C is here", partial(_network, grid))
              for grid in SWEEP),
            Note("case300: context cases without a solution, left out", _lost_cases),
        ),
    ),
)  # fmt: skip
