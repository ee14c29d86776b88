"""How many solved cases a context needs (Fig. 6, 17), and which part of its moments it lacks."""

import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterSciNotation

from gridshift.errors import RankDeficientWarning
from gridshift.learn.moments import Moments, Spectrum
from gridshift.peers.clock import least_cpu_seconds
from gridshift.pictures import BLUE, GREEN, GREY, RED
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Frame, Note, Numbers, Rows, own_error
from gridshift_paper.figures import DASHED, NARROW, PAPERS, band, dress
from gridshift_paper.protocol import (
    GRIDS,
    Experiment,
    adapted,
    errors_of,
    errors_where_given,
    given,
)
from gridshift_paper.records import Record, Study, crossed, on_outage
from gridshift_paper.selection import mean, measured, picked
from gridshift_paper.spectra import (
    BOTH,
    COVARIANCE,
    CURVE,
    NUM_DRAWS,
    distance_left,
    landmarks,
    reference_moments,
    sizes_of,
)

LEADING = 20
"""Directions that count as leading: the paper's largest effective rank."""
PAPER_ICW = PAPER.table_2["mlp"]["ICW"]


def _measure(experiment: Experiment, *, draw: int) -> list[Record]:
    """Errors of the frozen surrogate, then of each size of the context by each level beside ICW."""
    base, test = experiment.base(), experiment.test()
    rows: list[Record] = [
        {"n": 0, "method": "frozen", "test_rows": len(test), **errors_of(base, test)}
    ]
    experiment.context(2, draw=draw)  # compiling is no collecting
    for n in sizes_of(experiment.scale, CURVE):
        context = experiment.context(n, draw=draw)
        collect_s = least_cpu_seconds(partial(experiment.context, n, draw=draw), repeats=3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RankDeficientWarning)  # the sizes tell
            levels = {"icw": adapted("icw", base, context).predict(test.x)}
            levels |= experiment.reference_levels(context, test, {"perfect": base.transform})
        for method, y_hat in levels.items():
            counts = {"context_rows": len(context), "test_rows": int(given(y_hat).sum())}
            rows.append({"n": n, "method": method, "collect_s": collect_s, **counts,
                         **errors_where_given(test, y_hat)})  # fmt: skip
    return rows


SIZES = {
    grid: Study(
        name=f"context-size-{grid}",
        about=f"error of ICW and time to collect its context, by size of the context, {grid}",
        keys=lambda scale, grid=grid: crossed(
            grid=scale.grids_of(grid), outage=("", GRIDS[grid].double), seed=scale.seeds,
            draw=range(NUM_DRAWS),
        ),
        measure=_measure,
        version=2,
    )
    for grid in BOTH
}  # fmt: skip


def captured(errors: Frame, method: str = "icw") -> Frame:
    """(e(100) - e(400)) / (e(100) - e(2000)) of the N-2 outage's overall error, one a seed.

    The share of the improvement that the largest context brings over the smallest which the paper's
    size has brought already; paper: 0.89 (case30), 0.66 (case118). An error that falls with the
    root of the size gives 0.64.
    """
    part = picked(errors[errors.outage != ""], method=method)
    by_size = part.pivot_table(index="seed", columns="n", values="overall")
    first, chosen, last = (by_size[n] for n in landmarks(by_size.columns))
    return (first - chosen) / (first - last)


def tabulate_size(grid: str, rows: Rows) -> Iterator[Table]:
    """The curves of the figure, and the numbers that the paper quotes from it."""
    errors, body = measured(rows, f"context-size-{grid}"), []
    for n, part in errors[errors.n > 0].groupby("n"):
        lost, apart = part[part.outage != ""], picked(rows["covariance"], grid=grid,
                                                      what="distance", n=n)  # fmt: skip
        cells = (picked(part, outage="", method="icw"), picked(lost, method="icw"),
                 picked(lost, method="perfect"))  # fmt: skip
        far = [mean(apart[c]) if len(apart) else None for c in ("nested", "independent")]
        body.append([n, *(mean_and_spread(cell.overall) for cell in cells),
                     1e3 * float(part.collect_s.min()), *far])  # fmt: skip
    yield Table(
        f"{GRIDS[grid].label}: overall MAE by size of the context",
        [">N", ">ICW, intact", ">ICW, N-2", ">perfect, N-2", ">ms", ">to N max", ">to 10 N max"],
        body,
        "± over draws and seeds. ms: CPU time of drawing, solving and packing a context, the "
        "fastest. Last two: log-Euclidean distance of the covariance to that of the 2,000 cases "
        "which the context is the start of (paper), and to one of 20,000 cases of their own.",
    )  # fmt: skip
    largest, share = errors[errors.n == max(errors.n)], 100 * captured(errors)
    left = [distance_left(rows["covariance"], grid, of) for of in ("nested", "independent")]
    distance = "distance to the reference of {} rows, over that at 100".format
    yield Table("Quoted numbers", ["at the paper's N of 400", ">paper", ">ours"], [
        ["share of the improvement from 100 to 2,000", f"{PAPER.captured[grid]:.0%}",
         f"{share.mean():.0f}% ({share.min():.0f} to {share.max():.0f})"],
        ["one solve, ms", PAPER.solve_ms,
         1e3 * float((largest.collect_s / largest.context_rows).min())],
        [distance("the same"), "below 0.5", mean_and_spread(left[0])],
        [distance("other"), None, mean_and_spread(left[1])],
    ])  # fmt: skip


def draw_size(grid: str, rows: Rows) -> Figure:
    """Errors and the time that they cost above, distance of the covariance below."""
    errors, covariance = measured(rows, f"context-size-{grid}"), measured(rows, "covariance")
    figure = Figure(figsize=(NARROW, 4.2), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _draw_errors(upper, errors.loc[errors["n"] > 0])
    part = picked(covariance, grid=grid, what="distance")
    dress(lower, "solved cases in the context", "log-Euclidean\ndistance")
    for column, colour, line, label in (
        ("nested", BLUE, "-", "to $N_{max}$, same cases"),
        ("independent", RED, "--", "to ten times as many others"),
    ):
        _by_size(lower, part, column, line, color=colour, label=label)
    lower.set_ylim(0, 1.7 * part["independent"].max())
    lower.legend(loc="upper right")
    chosen = landmarks([n for n in set(errors.n) if n])[1]
    for axes, top in ((upper, 1), (lower, 0.62)):
        axes.axvline(chosen, 0, top, color=GREY, lw=1, ls=DASHED, zorder=0)
    lower.text(chosen, 0, f" N = {chosen:,}", color=GREY, va="bottom")
    return figure


def _draw_errors(axes: Axes, errors: Frame) -> None:
    dress(axes, y="overall MAE (p.u., rad)", log="y")
    lost = next(iter(set(errors.outage) - {""}), "")
    for outage, method, colour, line, label in (
        (lost, "icw", RED, "-", "ICW, N-2 Most"),
        (lost, "perfect", RED, ":", "perfect base, N-2 Most"),
        ("", "icw", BLUE, "-", "ICW, intact grid"),
    ):
        part = picked(errors, outage=outage, method=method)
        _by_size(axes, part, "overall", line, color=colour, label=label)
    if set(errors.grid) == {"case30"}:
        axes.plot([400, 400], PAPER_ICW[1:3], label="paper, Table II", **PAPERS)
    axes.yaxis.set_minor_formatter(LogFormatterSciNotation(minor_thresholds=(1, 0.5)))
    cost = axes.twinx()
    fastest = 1e3 * errors.groupby("n").collect_s.min()
    cost.plot(fastest.index, fastest, color=GREEN, ls="--", lw=1.2, marker="^", ms=3,
              label="collecting (right axis)")  # fmt: skip
    cost.set_ylabel("time to collect (ms)", color=GREEN)
    cost.set_ylim(bottom=0)
    cost.spines["right"].set_visible(True)
    cost.tick_params(colors=GREEN)
    handles = [handle for a in (axes, cost) for handle in a.get_legend_handles_labels()[0]]
    axes.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _by_size(axes: Axes, frame: Frame, column: str, line: str, **style: Any) -> None:
    """Mean over draws and seeds, and one standard deviation to either side."""
    cells = dict(iter(frame.groupby("n")[column]))
    band(axes, list(cells), list(cells.values()), line, **style)


def mean_errors(grid: str, rows: Rows) -> Frame:
    """Mean overall error on the outage, sizes by methods; 'frozen' is at size 0."""
    part = measured(rows, f"context-size-{grid}")
    return part[part.outage != ""].pivot_table(index="n", columns="method", values="overall")


BASES = {"icw": "appendix C", "perfect": "exact solutions"}
"""Around what the errors are, and how claims name it: ours, and one without an error of its own."""


def _share(grid: str, rows: Rows) -> Numbers:
    errors = measured(rows, f"context-size-{grid}")
    return {f"share, {name}": mean(captured(errors, method)) for method, name in BASES.items()}


def _flat(grid: str, rows: Rows) -> Numbers:
    errors = mean_errors(grid, rows).iloc[1:]
    _, chosen, last = landmarks(errors.index)
    return {f"{last:,} cases over {chosen:,}, {name}": errors[method][last] / errors[method][chosen]
            for method, name in BASES.items()}  # fmt: skip


def _cost(grid: str, rows: Rows) -> Numbers:
    errors = measured(rows, f"context-size-{grid}")
    fastest = errors[errors.n > 0].groupby("n").collect_s.min()
    _, chosen, last = landmarks(fastest.index)
    return {f"{last:,} cases over {chosen:,}": fastest[last] / fastest[chosen]}


def _left(column: str, grid: str, rows: Rows) -> Numbers:
    left = distance_left(rows["covariance"], grid, column)
    return {"mean": mean(left), "largest": left.max()} if len(left) else {}


def _far(grid: str, rows: Rows) -> Numbers:
    part = picked(measured(rows, "covariance", grid=grid), what="distance")
    far = part.groupby("n").independent.mean()
    return {"at the largest": far.iloc[-1], "over the smallest": far.iloc[-1] / far.iloc[0]}


def _fall(grid: str, rows: Rows) -> Numbers:
    errors = mean_errors(grid, rows)
    first, chosen, last = landmarks(errors.index[1:])
    exact = errors["perfect"]
    return {f"from {first:,} to {last:,} cases": exact[first] / exact[last],
            "as the root of the size": (last / first) ** 0.5,
            f"share in ICW's error at {chosen:,}": (exact / errors["icw"])[chosen]}  # fmt: skip


FLATTENED = rules.between(0.8, 1.2)
ROOT_SHARE = (100**-0.5 - 400**-0.5) / (100**-0.5 - 2_000**-0.5)


def _on_size(grid: str) -> list[Claim | Note]:
    """Findings on the size of the context; that on cost is said of case118 alone."""
    told, where, on_118 = PAPER.captured[grid], "appendix H", grid == "case118"
    at = "section IV-E" if on_118 else where
    share, flat = partial(_share, grid), partial(_flat, grid)
    of_share = {f"share, {name}": told for name in BASES.values()}
    fifth = Claim(f"400 cases of {grid} cost a fifth of 2,000", "time to collect",
                  partial(_cost, grid), rules.NEAR, 5, at,
                  why="Part of the cost is the topology's own, whatever the number.")  # fmt: skip
    return [
        Claim(f"a context of 400 cases captures {100 * told:.0f} % of the achievable improvement "
              f"on {grid}",
              "share of what 2,000 cases bring over 100, which is how we read it; an error that "
              f"falls with the root of the size gives {ROOT_SHARE:.3f}",
              share, rules.NEAR, of_share, where, unless=own_error(share, rules.NEAR, of_share)),
        Claim(f"the curve of errors on {grid} has nearly flattened at 400 cases",
              "error", flat, FLATTENED, where=at, unless=own_error(flat, FLATTENED)),
        *([fifth] if on_118 else []),
        Claim(f"on {grid} the log-Euclidean distance of the covariance at 400 cases is under half "
              "of that at 100",
              "share of it over seeds", partial(_left, "nested", grid), rules.below(0.5),
              where=at,
              beside=Note("To a reference of other rows", partial(_left, "independent", grid))),
        Note("Around exact solutions the error falls less than sampling error would: what stays is "
             "what a map of means and covariances can't follow. Fall", partial(_fall, grid)),
        Note("The paper's distance is zero at the largest context, as its reference holds the same "
             "rows. Distance to ten times as many other rows", partial(_far, grid)),
    ]  # fmt: skip


def _measure_tail(experiment: Experiment, *, draw: int) -> list[Record]:
    """Errors around exact solutions as parts of a context's moments are replaced by known ones."""
    base = Moments.of(experiment.training().y)
    context = Moments.of(experiment.context(draw=draw).y)
    known = reference_moments(replace(experiment, seed=0))
    test = experiment.test()
    z = (experiment.exact_base(test) - base.mean) @ base.spectrum.power(-0.5)
    axes = known.spectrum.vectors[:, -LEADING:]
    lead = axes @ axes.T
    rest = np.eye(len(lead)) - lead
    few, many = context.covariance, known.covariance
    mixed = {
        "context": (context.mean, few),
        "mean known": (known.mean, few),
        "leading directions known": (context.mean, lead @ many @ lead + rest @ few @ rest),
        "tail known": (context.mean, few - rest @ few @ rest + rest @ many @ rest),
        "covariance known": (context.mean, many),
        "both known": (known.mean, many),
    }
    # a mixture may have eigenvalues below zero: `Spectrum` takes the nearest covariance
    return [
        {"known": name, **errors_where_given(test, z @ Spectrum.of(cov).power(0.5) + centre)}
        for name, (centre, cov) in mixed.items()
    ]


TAIL = Study(
    name="tail",
    about="error of ICW around exact solutions as parts of a context's moments become known",
    keys=lambda scale: on_outage(scale, *BOTH, seed=scale.seeds, draw=range(NUM_DRAWS)),
    measure=_measure_tail,
)


def tail_tables(rows: Rows) -> Iterator[Table]:
    """Errors as parts of the moments become known."""
    frame = measured(rows, TAIL.name)
    yield Table(
        "Overall MAE, N-2 Most, ICW around exact solutions, 400 cases",
        ["known of 20,000 cases", *(f">{grid}" for grid in BOTH)],
        [(name, *(mean_and_spread(picked(part, grid=grid).groupby("seed").overall.mean())
                  for grid in BOTH)) for name, part in frame.groupby("known", sort=False)],
        f"Means of {NUM_DRAWS} contexts a seed. Leading: the first {LEADING} principal directions.",
    )  # fmt: skip


def _known_share(known: str, rows: Rows, grid: str = "case118") -> float:
    """Share of what knowing both moments takes off the error that knowing this part does."""
    part = measured(rows, TAIL.name, grid=grid).groupby("known").overall.mean()
    return float((part["context"] - part[known]) / (part["context"] - part["both known"]))


ARTEFACTS = (
    *(
        Artefact(
            f"context-size-{grid.removeprefix('case')}", place,
            f"accuracy and cost by size of the context, {GRIDS[grid].label}",
            (SIZES[grid], COVARIANCE), partial(tabulate_size, grid), partial(draw_size, grid),
            _on_size(grid),
        )
        for grid, place in (("case118", "Fig. 6"), ("case30", "Fig. 17"))
    ),
    Artefact(
        "tail", "section IV", "Which part of its moments a context of 400 cases lacks", (TAIL,),
        tail_tables,
        findings=(
            Claim("on case118 the improvement that 400 cases leave sits in the tail eigenvalues",
                  "share of it that knowing the tail brings",
                  lambda rows: {"": _known_share("tail known", rows)}, rules.above(0.5),
                  where="section IV-E",
                  beside=Note("By knowing other parts", lambda rows: {
                      name: _known_share(name, rows)
                      for name in ("mean known", "leading directions known", "covariance known")}),
                  why="The mean and the leading directions decide the error."),
        ),
    ),
)  # fmt: skip
