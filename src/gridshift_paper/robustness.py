"""Does what holds for two outages hold for all? (Fig. 5 "Robustness Across the Full Contingency
Set"; Fig. 13, pairs of outages; Fig. 16, physical validity)"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gridshift.pictures import ORANGE
from gridshift.study.text import real
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import PAPER, Claim, Count, Frame, Note, Numbers, Rows, own_error
from gridshift_paper.figures import boxes, draw_panels, finish_boxes, method_handles
from gridshift_paper.outages import (
    COMPENSATION,
    OUTAGES,
    OUTAGES_PRODUCT,
    PAIRS,
    TENFOLD,
    TERCILES,
    compensated,
    frame_of,
    grids_of,
    intact,
    outages,
    outages_by_seed,
    terciles,
)
from gridshift_paper.protocol import GRIDS
from gridshift_paper.records import Study
from gridshift_paper.selection import count, measured

SHOWN = {"frozen": "frozen", "icw": "ICW", "icw-paired": "paired"}
LABELS = {"v": "|V|, p.u.", "theta_deg": "theta, °"}
NEAR_INTACT = 2.0
"""Error on an outage over that on the intact grid up to which it is near it."""
HEAVY = 10.0  # the same of the frozen surrogate: 'a heavy upper tail'


def _largest_grid(rows: Rows) -> str:
    """The grid of the paper's figure, case118, or what there is at a smaller scale."""
    return grids_of(rows, OUTAGES)[-1]


def consistency_tables(rows: Rows) -> Iterator[Table]:
    """Quartiles of the errors over all outages, and the error on the intact grid."""
    measured(rows, OUTAGES.name)
    grid = _largest_grid(rows)
    frame = frame_of(rows, OUTAGES, grid)
    lines = []
    for column, label in LABELS.items():
        errors, base = outages(frame, column), intact(frame, column).mean()
        for method, name in (SHOWN | {"perfect": "perfect"}).items():
            values, level = errors[method], float(base[method])
            paper = PAPER.icw_intact[column] if method == "icw" and grid == "case118" else None
            lines.append((label, name, level, paper, *values.quantile([0.25, 0.5, 0.75]),
                          values.max(), values.max() / level))  # fmt: skip
    number = len(outages(frame, "v"))
    yield Table(
        f"Error over {number} of {GRIDS[grid].num_single} single-line outages of {grid}, mean over "
        "seeds",
        ("", "method", ">intact", ">paper:\nintact", ">lower\nquarter", ">median",
         ">upper\nquarter", ">largest", ">ratio"), lines,
        "'Paired' is icw-paired, 'perfect' ICW around exact solutions of the intact grid; "
        "'intact' is the error on the intact grid, 'ratio' the largest over it.",
    )  # fmt: skip


def _severity(frame: Frame) -> Frame:
    """Tercile of each outage by the frozen surrogate's overall error, as in the paper."""
    return terciles(outages(frame, "overall")["frozen"])


def _factors(frame: Frame, column: str = "worst_median") -> Frame:
    """Mismatch of the frozen surrogate over ICW's: its median in each third of the outages."""
    worst = outages(frame, column)
    return (worst["frozen"] / worst["icw"]).groupby(_severity(frame), observed=True).median()


def balance_tables(rows: Rows) -> Iterator[Table]:
    """The worst bus's mismatch by thirds of the outages."""
    lines, levels = [], []
    for grid in grids_of(rows, OUTAGES):
        frame = frame_of(rows, OUTAGES, grid)
        worst, group = outages(frame, "worst_median"), _severity(frame)
        for name, factor in _factors(frame).items():
            median = worst[group == name].median()
            lines.append((grid, name, *(median[method] for method in (*SHOWN, "perfect")), factor,
                          PAPER.balance[name], median["frozen"] / median["icw"]))  # fmt: skip
        solver = frame[frame.method == "solver"]
        levels.append(
            f"{grid} ({len(worst)} of {GRIDS[grid].num_single} outages) median "
            f"{real(solver.worst_median.median())}, largest {real(solver.worst_max.max())}"
        )
    yield Table(
        "Worst-bus mismatch, p.u., by thirds of single-line outages by frozen error",
        ("grid", "third", ">frozen", ">ICW", ">paired\nICW", ">perfect\nICW", ">median\nfactor",
         ">paper", ">factor of\nmedians"), lines,
        "Root of dP² + dQ² at the worst bus but the slack, reactive power of generators as "
        "predicted; median over test rows, then over outages; factor: frozen over ICW. "
        "'Perfect ICW' starts from exact solutions of the intact grid. Rows of the solver: "
        f"{'; '.join(levels)} (paper: about {real(PAPER.solver)}).",
    )  # fmt: skip


def pair_tables(rows: Rows) -> Iterator[Table]:
    """Errors of all pairs of outages by thirds, and the factor over all of them."""
    frame = frame_of(rows, PAIRS)
    error, seeds = outages(frame, "overall"), outages_by_seed(frame, "overall")
    group, number = terciles(error["frozen"]), len(error)
    ratio, by_seed = error["frozen"] / error["icw"], seeds["frozen"] / seeds["icw"]
    paired = error["frozen"] / error["icw-paired"]
    yield Table(
        f"Overall error on {number} pairs of outages of case30, loads ±50 %",
        ("third", ">pairs", ">frozen", ">ICW", ">paired\nICW", ">factor", ">smallest\nfactor",
         ">ICW\nworse", ">smallest,\npaired"),
        [(name, len(part), *error.loc[part.index].median()[list(SHOWN)], part.median(), part.min(),
          int((part < 1).sum()), paired[part.index].min())
         for name, part in ratio.groupby(group, observed=True)],
        "Medians over pairs of means over seeds.",
    )  # fmt: skip
    few = compensated(rows, "case30", of="pairs")
    yield Table(
        "The same pairs, ICW beside compensation",
        ["method", ">solved cases", ">median error", ">largest", ">pairs worse than frozen"],
        [(name, n, values.median(), values.max(),
          int((values >= error["frozen"].reindex(values.index)).sum()))
         for name, n, values in (
             ("frozen", 0, error["frozen"]), ("ICW", 400, error["icw"]),
             ("paired ICW", 400, error["icw-paired"]),
             *(("compensation, base quadratic", n, values) for n, values in few.items()))],
    )  # fmt: skip
    of_seeds = by_seed.groupby("seed")
    yield Table("Factor over all pairs", ("", ">ours", ">paper", ">mean ± over seeds"), (
        ("pairs", number, PAPER.num_pairs, ""),
        ("median", ratio.median(), PAPER.pairs["median"], mean_and_spread(of_seeds.median())),
        ("worst percentile", ratio.quantile(0.01), PAPER.pairs["worst percentile"],
         mean_and_spread(of_seeds.quantile(0.01))),
        ("smallest", ratio.min(), None, mean_and_spread(of_seeds.min())),
    ))  # fmt: skip


def draw_consistency(rows: Rows) -> Figure:
    """Boxes over all outages, |V| and theta; dotted: ICW on the intact grid."""
    measured(rows, OUTAGES.name)
    frame = frame_of(rows, OUTAGES, _largest_grid(rows))
    labels = {"v": "MAE of $|V|$ (p.u.)", "theta_deg": r"MAE of $\theta$ (degrees)"}

    def panel(axes: Axes, column: str) -> None:
        boxes(axes, outages(frame, column))
        axes.axhline(intact(frame, column)["icw"].mean(), color=ORANGE, ls=":", lw=1.2, zorder=1,
                     label="ICW, intact grid")  # fmt: skip
        axes.axhline(PAPER.icw_intact[column], color="black", ls=(0, (1, 2)), lw=1, zorder=1,
                     label="the paper's")  # fmt: skip
        finish_boxes(axes, labels[column], ())

    return draw_panels(
        dict.fromkeys(labels, ""), panel, "outages", 2.8, narrow=True, legend="upper center",
        columns=2, handles=method_handles(),
    )  # fmt: skip


def _boxes_by_third(
    axes: Axes, values: Frame, group: Frame, label: str, paper: Mapping[str, float] | None = None
) -> None:
    """Three boxes, one a method, for each third of the outages; the median factor above them."""
    for third, name in enumerate(TERCILES):
        part = values[group == name]
        if len(part):
            boxes(axes, part, 4 * third)
            factor = (part["frozen"] / part["icw"]).median()
            told = f"\n(paper {paper[name]:g}×)" if paper else ""
            axes.annotate(f"{real(factor)}×{told}", (4 * third + 1, 1.01), ha="center",
                          xycoords=("data", "axes fraction"))  # fmt: skip
    finish_boxes(axes, label, TERCILES, at=[4 * third + 1 for third in range(3)])


BY_THIRD: dict[str, Any] = {"x": "third of the outages, by frozen error",
                            "legend": "upper center", "handles": method_handles()}  # fmt: skip


def draw_balance(rows: Rows) -> Figure:
    """Worst-bus mismatch by thirds of the frozen error, a panel for each grid."""

    def panel(axes: Axes, grid: str) -> None:
        frame = frame_of(rows, OUTAGES, grid)
        _boxes_by_third(axes, outages(frame, "worst_median"), _severity(frame),
                        "Worst-bus mismatch (p.u.)", PAPER.balance)  # fmt: skip

    titles = {grid: f"{GRIDS[grid].label}\n\n" for grid in grids_of(rows, OUTAGES)}
    return draw_panels(titles, panel, "run the study outages", 2.7, **BY_THIRD)


def draw_pairs(rows: Rows) -> Figure:
    """Overall error of every pair of outages, by thirds of the frozen error."""
    error = outages(frame_of(rows, PAIRS), "overall")

    def panel(axes: Axes, _: str) -> None:
        _boxes_by_third(axes, error, terciles(error["frozen"]), "Overall MAE (p.u., rad)")

    title = f"median factor {real(_pair_factors(rows).median())} (paper {PAPER.pairs['median']})\n"
    return draw_panels({"": title}, panel, "pairs", 2.7, **BY_THIRD)


def _on_118(
    number: Callable[[Frame, Frame], float | Count], networks: Mapping[str, Study] = {"": OUTAGES}
) -> Callable[[Rows], Numbers]:  # fmt: skip
    """Of |V| and theta: a number from errors over outages, and from those on the intact grid."""

    def numbers(rows: Rows) -> Numbers:
        frames = {name: frame_of(rows, study, "case118") for name, study in networks.items()}
        return {
            label.partition(",")[0] + name: number(outages(frame, at), intact(frame, at).mean())
            for name, frame in frames.items() for at, label in LABELS.items()
        }  # fmt: skip

    return numbers


def _pair_factors(rows: Rows, method: str = "icw") -> Frame:
    error = outages(frame_of(rows, PAIRS), "overall")
    return error["frozen"] / error[method]


def _quantiles(rows: Rows) -> Numbers:
    factor = _pair_factors(rows)
    return {"median": factor.median(), "worst percentile": factor.quantile(0.01)}


def _hardest_pairs(rows: Rows) -> Numbers:
    """What the twentieth of pairs with the largest errors of ICW has in common."""
    error = outages(frame_of(rows, PAIRS), "overall")
    hardest = error.nlargest(max(1, len(error) // 20), "icw")
    lines = Counter(line for pair in hardest.index for line in pair.split(","))
    ((line, number),) = lines.most_common(1)
    names = {"icw": "ICW", TENFOLD: "ten times the context", "icw-paired": "paired"}
    return {
        f"pairs with {line}": Count(number, len(hardest)),
        **{f"median error, {name}": hardest[method].median() for method, name in names.items()},
    }


def _by_third(grid: str, rows: Rows) -> Numbers:
    factors = _factors(frame_of(rows, OUTAGES, grid))
    return {f"{grid}, {third}": value for third, value in factors.items()}


def _of_grids(numbers: Callable[[str, Rows], Numbers]) -> Callable[[Rows], Numbers]:
    """Numbers of both grids."""
    return lambda rows: {**numbers("case30", rows), **numbers("case118", rows)}


def _closer(grid: str, rows: Rows) -> Numbers:
    frame = frame_of(rows, OUTAGES, grid)
    worst, error = (outages(frame, column) for column in ("worst_median", "overall"))
    better, lost = worst["icw"] < worst["frozen"], error["icw"] >= error["frozen"]
    return {grid: count(better), f"where the error is larger, {grid}": count(better[lost])}


def _over_solver(grid: str, rows: Rows) -> Numbers:
    frame = frame_of(rows, OUTAGES, grid)
    icw = outages(frame, "worst_median")["icw"].median()
    return {grid: icw / frame[frame.method == "solver"].worst_max.max()}


def _floor(grid: str, rows: Rows) -> Numbers:
    """What is left of the mismatch without a network's error or without sampling error."""
    frame = frame_of(rows, OUTAGES, grid)
    worst, base = outages(frame, "worst_median").median(), intact(frame, "worst_median").mean()
    voltages = _factors(frame, "mismatch_median")
    return {
        "intact grid, surrogate": base["frozen"], "intact grid, ICW": base["icw"],
        "median outage, ICW": worst["icw"], "around exact solutions": worst["perfect"],
        "with ten times the context": worst[TENFOLD],
        **{f"voltages alone, {third} third, frozen over ICW": v for third, v in voltages.items()},
    }  # fmt: skip


AROUND = {", appendix C": OUTAGES, ", without dropout": OUTAGES_PRODUCT}
_largest = _on_118(lambda error, base: error["icw"].max() / base["icw"], AROUND)
CONSISTENCY = (
    Claim("over all 166 single-line outages of case118 ICW stays near its accuracy on the intact "
          "grid",
          "largest error over the error on the intact grid", _largest, rules.below(NEAR_INTACT),
          unless=own_error(_largest, rules.below(NEAR_INTACT))),
    Claim("the frozen surrogate spreads widely, and an order of magnitude or more is lost on "
          "single outages",
          "outages with more than ten times the frozen surrogate's error on the intact grid",
          _on_118(lambda error, base: count(error["frozen"] > HEAVY * base["frozen"])),
          rules.above(0)),
    Claim("the separation from the frozen surrogate is uniform across the full set rather than "
          "driven by a few outages",
          "outages on which ICW has the smaller error",
          _on_118(lambda error, _: count(error["icw"] < error["frozen"])), rules.ALWAYS,
          why="Where ICW loses, and why, is under win-counts."),
)  # fmt: skip
ON_PAIRS = (
    Claim(f"ICW lowers the error on {PAPER.num_pairs} pairs of outages of case30 at ±50 %, in "
          "every severity group without exception",
          "pairs on which ICW has the smaller error, mean over seeds",
          lambda rows: {"": count(_pair_factors(rows) > 1)}, rules.ALWAYS, where="appendix E"),
    Claim(f"over the pairs the median factor is {PAPER.pairs['median']} and that of the worst "
          f"percentile {PAPER.pairs['worst percentile']}",
          "frozen over ICW", _quantiles, rules.NEAR,
          PAPER.pairs, "appendix E",
          Note("With ten times the context",
               lambda rows: {"median": _pair_factors(rows, TENFOLD).median()})),
    Note("The twentieth of pairs on which ICW's error is largest: not sampling error, but what no "
         "affine map of the intact grid's outputs can follow", _hardest_pairs),
)  # fmt: skip
BALANCE = (
    Claim("over all single-line outages ICW cuts the worst-bus mismatch 14, 18, 30 times by "
          "thirds of the frozen error",
          "largest relative deviation from these; the appendix names no grid",
          lambda rows: {g: max(abs(float(v) / PAPER.balance[name.split(", ")[1]] - 1)
                               for name, v in _by_third(g, rows).items())
                        for g in ("case30", "case118")},
          rules.in_one(rules.at_most(rules.TOLERANCE)), where="appendix G",
          beside=Note("Median of frozen over ICW", _of_grids(_by_third))),
    Claim("the worst-bus mismatch is cut by up to 30 times", "largest median of a third",
          lambda rows: {"": max(map(float, _of_grids(_by_third)(rows).values()))}, rules.FACTOR,
          30, "appendix G"),
    Claim("predictions of ICW are closer to satisfying the power-flow equations, not just closer "
          "in error",
          "median of frozen over ICW", _of_grids(_by_third), rules.above(1), where="appendix G",
          beside=Note("Outages with a smaller mismatch", _of_grids(_closer))),
    Claim(f"the solver's own mismatch, about {real(PAPER.solver)}, is several orders of magnitude "
          "below either method's",
          "median mismatch of ICW over the largest one of the solver", _of_grids(_over_solver),
          rules.above(1_000), where="appendix G"),
    *(Note(f"{grid}, worst-bus mismatch; of voltages alone it is, as solvers define it, the larger "
           "one of |dP| and |dQ|, without dQ at generators", partial(_floor, grid))
      for grid in ("case30", "case118")),
)  # fmt: skip

ARTEFACTS = (
    Artefact("consistency", "Fig. 5", "errors over all single-line outages of case118",
             (OUTAGES, OUTAGES_PRODUCT), consistency_tables, draw_consistency, CONSISTENCY),
    Artefact("n2-pairs", "Fig. 13", "every pair of outages of case30 at loads of ±50 %",
             (PAIRS, COMPENSATION),
             pair_tables, draw_pairs, ON_PAIRS),
    Artefact("physical-validity", "Fig. 16",
             "power balance of predictions over all single-line outages", (OUTAGES,),
             balance_tables, draw_balance, BALANCE),
)  # fmt: skip
