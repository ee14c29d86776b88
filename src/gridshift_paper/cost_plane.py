"""Error against the cost of an adaptation: Fig. 1, 7 and 20."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gridshift.pictures import BLUE, GREEN, GREY, ORANGE, RED
from gridshift_paper import claims as rules
from gridshift_paper.artefacts import Artefact, Table, mean_and_spread
from gridshift_paper.claims import NAN, PAPER, Claim, Note, Numbers, Rows, own_error
from gridshift_paper.deployment import BACKBONES, BUDGET, factor, seconds_of
from gridshift_paper.figures import DASHED, STAR, band, draw_panels, star
from gridshift_paper.gradient_steps import (
    PLANE,
    TARGET_LABELS,
    Point,
    closed_form,
    contexts_of,
    curve,
)
from gridshift_paper.protocol import FIT_300, WIDE

NETWORKS_300 = {"mlp": "network of appendix C", WIDE: "width 1,024, one seed"}
PAPER_STEPS_300 = PAPER.deployment["case300"][4]
"""Seconds of 4,000 steps on 300 buses."""
NEAR_FLOOR = 1.5
"""Error over that of the best gradient steps up to which one is near the accuracy floor."""
WAYS = {
    ("fine-tune", "no-norm"): ("fine-tuned, raw y", ORANGE, "o"),
    ("fine-tune", "zscore"): ("fine-tuned, z-score", RED, "s"),
    ("scratch", "zscore"): ("from scratch, z-score", GREEN, "^"),
}
BY_CONTEXT = {400: BLUE, 1_000: ORANGE, 2_000: GREEN}
LINES = {"no-norm": ("-", "o"), "zscore": ("--", "s")}
LEVEL_LINES = {"frozen": ("frozen", DASHED),
               "context-mean": ("mean of the context", (0, (1, 2)))}  # fmt: skip
FINE_TUNED = {"fine-tuned, raw y": ("fine-tune", "no-norm"),
              "fine-tuned, z-score": ("fine-tune", "zscore")}  # fmt: skip
SCRATCH = {"scratch, z-score": ("scratch", "zscore")}
"""Name to kind and target of a curve."""


def fine_tuning_tables(rows: Rows) -> Iterator[Table]:
    """Fine-tuning on 30-bus N-2, by backbone and context, with the paper's targets and ours."""
    for backbone, label in BACKBONES.items():
        for num in contexts_of(rows, "case30", backbone):
            title = f"{label}, {num:,} context rows, 30-bus N-2, |V| error"
            yield from _plane_tables(rows, "v", "case30", num, title, FINE_TUNED, backbone)


def position_tables(rows: Rows) -> Iterator[Table]:
    """The plane of cost and accuracy on both grids: all ways, overall error."""
    for grid in ("case30", "case118"):
        title = f"{grid} N-2, 400 context rows, overall error"
        yield from _plane_tables(rows, "overall", grid, 400, title, FINE_TUNED | SCRATCH)


def _plane_tables(
    rows: Rows, quantity: str, grid: str, num: int, title: str,
    ways: Mapping[str, tuple[str, str]], backbone: str = "mlp",
) -> Iterator[Table]:  # fmt: skip
    """Errors without gradient steps, then by gradient steps."""
    lines: list[Sequence[object]] = []
    for name in ("frozen", "context-mean", "icw", "icw-paired", "ridge"):
        point = closed_form(rows, quantity, name, grid, num, backbone)
        if len(point.errors):
            cost = point.cost_s if name == "icw" else None
            lines.append((name, mean_and_spread(point.errors), cost))
    yield Table(title, ("without gradient steps", ">error", ">cost (s)"), lines)
    curves = {
        f">{name}".replace(", ", ",\n"): {point.num_steps: point for point in points}
        for name, (kind, target) in ways.items()
        if (points := curve(rows, quantity, grid, backbone, kind=kind, target=target,
                            num_context=num))
    }  # fmt: skip
    lines = []
    for number in sorted({number for points in curves.values() for number in points}):
        at = [points.get(number) for points in curves.values()]
        first = next(filter(None, at))
        errors = [None if point is None else mean_and_spread(point.errors) for point in at]
        lines.append((f"{number:,}", first.cost_s, *errors))
    yield Table(f"{title}, by gradient steps", ("steps", ">cost\n(s)", *curves), lines)


def cost_300_tables(rows: Rows) -> Iterator[Table]:
    """300-bus N-1: frozen, ICW and fine-tuning at the largest budget, by network and context."""
    for backbone, label in NETWORKS_300.items():
        lines: list[Sequence[object]] = []
        for num in contexts_of(rows, "case300", backbone):
            icw, frozen = (closed_form(rows, "v", method, "case300", num, backbone)
                           for method in ("icw", "frozen"))  # fmt: skip
            ends = [curve(rows, "v", "case300", backbone, kind="fine-tune", target=target,
                          num_context=num)[-1:] for target in TARGET_LABELS]  # fmt: skip
            tuned = [mean_and_spread(end[0].errors) if end else None for end in ends]
            cost = next((end[0].cost_s for end in ends if end), NAN)
            lines.append((f"{num:,}", frozen.error, mean_and_spread(icw.errors), *tuned,
                          icw.cost_s, cost, factor(cost / icw.cost_s)))  # fmt: skip
            if num in PAPER.cost_300:
                error, at_end, cost = PAPER.cost_300[num]
                total = cost + PAPER_STEPS_300
                lines.append(("paper", PAPER.cost_300_frozen, error, at_end, None, cost, total,
                              factor(total / cost)))  # fmt: skip
        yield Table(
            f"300-bus N-1, |V| error and seconds of one thread, {label}; tuned by 4,000 steps",
            ("context", ">frozen", ">ICW", ">tuned,\nraw y", ">tuned,\nz-score", ">ICW\n(s)",
             ">tuned\n(s)", ">tuned\n/ ICW"), lines,
            "The paper's seconds of tuning are those of ICW and Table IV's of gradient steps.",
        )  # fmt: skip


def _draw(
    titles: Mapping[str, str], panel: Callable[[Axes, str], None], height: float, y: str,
    handles: Sequence[Line2D] = (),
) -> Figure:  # fmt: skip
    return draw_panels(
        titles, panel, "run the studies closed-form, gradient-curves", height, y=y, log="xy",
        x="cost of one adaptation (s, one thread)", grid="both", legend="lower center",
        columns=2 + (len(titles) > 1), handles=handles,
    )  # fmt: skip


def draw_position(rows: Rows) -> Figure:
    """Overall error against seconds on 30-bus and 118-bus N-2, 400 context rows."""

    def panel(axes: Axes, grid: str) -> None:
        for (kind, target), (label, colour, marker) in WAYS.items():
            points = curve(rows, "overall", grid, kind=kind, target=target, num_context=400)
            _plot(axes, points, color=colour, marker=marker, label=label)
        _levels(axes, rows, "overall", grid, 400)
        icw = closed_form(rows, "overall", "icw", grid, 400)
        star(axes, icw.cost_s, icw.errors, BLUE, label="ICW")
        if grid == "case30":
            error = PAPER.table_2["mlp"]["ICW"][2]
            _papers(axes, 400, PAPER.icw_cost["mlp", 400], error, label="the paper's ICW")

    grids = [grid for grid in ("case30", "case118") if contexts_of(rows, grid)]
    return _draw({g: f"{g}, N-2 Most" for g in grids}, panel, 3.1, "overall MAE (p.u., rad)")


def draw_fine_tuning(rows: Rows) -> Figure:
    """|V| error against seconds on 30-bus N-2: a panel for each backbone, a colour a context."""

    def panel(axes: Axes, backbone: str) -> None:
        _by_context(axes, rows, "case30", backbone)
        _levels(axes, rows, "v", "case30", 400, backbone)
        for num in contexts_of(rows, "case30", backbone):
            if (backbone, num) in PAPER.icw_cost:
                _papers(axes, num, PAPER.icw_cost[backbone, num], PAPER.icw_v[backbone])

    shown = [b for b in BACKBONES if contexts_of(rows, "case30", b)]
    titles = {b: f"({letter}) {BACKBONES[b]}" for letter, b in zip("ab", shown, strict=False)}
    handles = _context_handles(contexts_of(rows, "case30"))
    return _draw(titles, panel, 3.1, "|V| MAE (p.u.)", handles)


def draw_cost_300(rows: Rows) -> Figure:
    """|V| error against seconds on 300-bus N-1, by context, bands of one deviation over seeds."""
    backbone = WIDE if curve(rows, "v", "case300", WIDE) else "mlp"
    contexts = contexts_of(rows, "case300", backbone)

    def panel(axes: Axes, grid: str) -> None:
        _by_context(axes, rows, grid, backbone)
        for num in contexts:
            cost = closed_form(rows, "v", "icw", grid, num, backbone).cost_s
            level = closed_form(rows, "v", "frozen", grid, num, backbone)
            axes.plot(cost, level.error, "o", color=BY_CONTEXT.get(num, GREY), mfc="none", ms=5)
            if num in PAPER.cost_300:
                error, at_end, seconds = PAPER.cost_300[num]
                _papers(axes, num, seconds, error)
                _papers(axes, num, seconds + PAPER_STEPS_300, at_end, marker="D", ms=4)
                _papers(axes, num, seconds, PAPER.cost_300_frozen, marker="o", ms=4)

    told = (("frozen", "o", 6), ("the paper's, fine-tuned", "D", 4))
    handles = _context_handles(contexts, *(
        Line2D([], [], color="black", marker=m, mfc="white", ms=ms, ls="", label=label)
        for label, m, ms in told))  # fmt: skip
    titles = {"case300": NETWORKS_300[backbone]} if contexts else {}
    return _draw(titles, panel, 3.6, "|V| MAE (p.u.)", handles)


def _by_context(axes: Axes, rows: Rows, grid: str, backbone: str) -> None:
    for num in contexts_of(rows, grid, backbone):
        colour = BY_CONTEXT.get(num, GREY)
        for target, (line, marker) in LINES.items():
            points = curve(
                rows, "v", grid, backbone, kind="fine-tune", target=target, num_context=num
            )
            _plot(axes, points, line, color=colour, marker=marker)
        size = 16 if num == 400 else 7  # stars at nearly the same cost stay apart
        icw = closed_form(rows, "v", "icw", grid, num, backbone)
        star(axes, icw.cost_s, icw.errors, colour, ms=size)


def _papers(axes: Axes, num: int, cost: float, error: float, **how: Any) -> None:
    """A value of the paper's: as ours, with a black rim; stars are ICW."""
    colour = BY_CONTEXT.get(num, GREY)
    axes.plot(cost, error, color=colour, **(STAR | {"mec": "black", "mew": 0.9} | how))


def _plot(axes: Axes, points: Sequence[Point], line: str = "-", **style: Any) -> None:
    if points:
        costs, errors = [p.cost_s for p in points], [p.errors for p in points]
        band(axes, costs, errors, line, above_tenth=True, ms=3.5, **style)


def _levels(
    axes: Axes, rows: Rows, quantity: str, grid: str, num: int, backbone: str = "mlp"
) -> None:
    for method, (label, line) in LEVEL_LINES.items():
        level = closed_form(rows, quantity, method, grid, num, backbone)
        axes.axhline(level.error, color=GREY, lw=1, ls=line, label=label)


def _context_handles(contexts: Sequence[int], *more: Line2D) -> list[Line2D]:
    sizes = ({"color": BY_CONTEXT.get(num, GREY), "lw": 3, "label": f"{num:,} context rows"}
             for num in contexts)  # fmt: skip
    tuned = ({"color": "black", "ls": line, "marker": marker, "ms": 3.5, "lw": 1.2,
              "label": f"fine-tuned, {TARGET_LABELS[target]}"}
             for target, (line, marker) in LINES.items())  # fmt: skip
    icw = STAR | {"color": "black", "label": "ICW (larger: 400 rows)"}
    told = STAR | {"color": "white", "mec": "black", "label": "black rim: the paper's"}
    return [*(Line2D([], [], **cast(Any, how)) for how in (*sizes, *tuned, icw, told)), *more]


def _tuned(
    quantity: str, grids: Sequence[str], backbones: Mapping[str, str], rows: Rows
) -> Iterator[tuple[str, list[Point], Point]]:
    """Name, curve of fine-tuning, and ICW's point, of each grid, backbone, context and target."""
    for grid, (backbone, label) in product(grids, backbones.items()):
        for num, target in product(contexts_of(rows, grid, backbone), TARGET_LABELS):
            icw = closed_form(rows, quantity, "icw", grid, num, backbone)
            points = curve(
                rows, quantity, grid, backbone, kind="fine-tune", target=target, num_context=num
            )
            if points and len(icw.errors):
                last = points[-1].num_steps
                upto = f" up to {last:,} steps" if 1_000 <= last < BUDGET else ""
                yield f"{label or grid}, {num:,} rows{upto}, {TARGET_LABELS[target]}", points, icw


ON_300 = partial(_tuned, "v", ("case300",), {WIDE: ""})
ON_300_C = partial(_tuned, "v", ("case300",), {"mlp": ""})
ON_30 = partial(_tuned, "v", ("case30",), BACKBONES)


def _best(tuned: partial, target: str, rows: Rows) -> Numbers:
    """The smallest error of each curve towards this target over ICW's."""
    return {name.removesuffix(f", {target}"): min(p.error for p in points) / icw.error
            for name, points, icw in tuned(rows) if name.endswith(target)}  # fmt: skip


def _others_300(rows: Rows) -> Numbers:
    found = {"z-score": _best(ON_300, "z-score", rows),
             "appendix C": _best(ON_300_C, "raw y", rows)}  # fmt: skip
    return {f"{how}, {name}": ratio for how, of in found.items() for name, ratio in of.items()}


def _over_best(rows: Rows) -> Numbers:
    """ICW's overall error over that of the best gradient steps, 400 rows."""
    found = {}
    for grid in ("case30", "case118"):
        best = [p.error for kind, target in product(("fine-tune", "scratch"), TARGET_LABELS)
                for p in curve(rows, "overall", grid, kind=kind, target=target,
                               num_context=400)]  # fmt: skip
        icw = closed_form(rows, "overall", "icw", grid, 400)
        found[grid] = icw.error / min(best, default=NAN)
    return found


POSITION = (
    Claim("ICW reaches near-floor accuracy at the cost of the context alone",
          "overall error of ICW over that of the best gradient steps", _over_best,
          rules.at_most(NEAR_FLOOR)),
)  # fmt: skip


def _icw_300(rows: Rows) -> Numbers:
    return {f"{n:,} rows, {label}": closed_form(rows, "v", "icw", "case300", n, base).error
            for n in PAPER.cost_300 for base, label in FIT_300.items()}  # fmt: skip


def _dearer_300(cores: int, rows: Rows) -> Numbers:
    seconds = seconds_of(rows, "case300")
    return {f"{n:,} rows": seconds.speed_up("pandapower", cores, n) for n in PAPER.cost_300}


def _dearer_30(cores: int, rows: Rows) -> Numbers:
    return {label: seconds_of(rows, "case30", b).speed_up("pandapower", cores)
            for b, label in BACKBONES.items()}  # fmt: skip


PAPER_ICW_300 = {f"{n:,} rows, {label}": row[0] for n, row in PAPER.cost_300.items()
                 for label in FIT_300.values()}  # fmt: skip
COST_300 = (
    Claim("on 300-bus N-1 ICW lowers the |V| error from 0.00274 to 4.22e-4, 4.25e-4, 3.94e-4 by "
          "400, 1,000 and 2,000 rows",
          "|V| error of ICW", _icw_300, rules.NEAR, PAPER_ICW_300,
          unless=own_error(_icw_300, rules.NEAR, PAPER_ICW_300),
          why="400 rows are fewer than its 600 outputs; the paper's own Table VIII has 9.1e-4 at "
          "800, and 4.5e-4 at 4,000."),
    Claim("on 300-bus N-1 ICW is below and to the left of every fine-tuning curve",
          "smallest error of fine-tuning towards raw y over ICW's, width 1,024, one seed",
          partial(_best, ON_300, "raw y"), rules.at_least(1),
          beside=Note("Towards z-scored y, which the paper doesn't show, and towards raw y around "
                      "appendix C's network, which doesn't fit the intact grid", _others_300)),
    Claim("on 300-bus N-1 fine-tuning with 4,000 steps is 2.55, 1.69 and 1.35 times worse than ICW",
          "error of fine-tuning towards raw y over ICW's, the network of width 1,024",
          lambda rows: {name.split(", ")[1]: points[-1].error / icw.error
                        for name, points, icw in ON_300(rows) if name.endswith("raw y")},
          rules.FACTOR, {f"{n:,} rows": row[1] / row[0] for n, row in PAPER.cost_300.items()},
          why="One seed, and its trainings jump: 4,000 steps by 400 rows, and 2,000 by 2,000, end "
          "far above shorter ones."),
    Claim("on 300-bus 4,000 steps of fine-tuning cost 5 to 21 times as much as ICW",
          "fine-tuning over ICW, appendix C's network, solves by pandapower divided by 48 cores",
          partial(_dearer_300, 48), rules.FACTOR,
          {f"{n:,} rows": (row[2] + PAPER_STEPS_300) / row[2]
           for n, row in PAPER.cost_300.items()},
          beside=Note("Not divided", partial(_dearer_300, 1))),
)  # fmt: skip
FINE_TUNING = (
    Claim("on 30-bus N-2 fine-tuning doesn't get below ICW's |V| error in up to 4,000 steps",
          "smallest error of fine-tuning towards raw y over ICW's",
          partial(_best, ON_30, "raw y"), rules.at_least(1),
          beside=Note("Towards z-scored y, which the paper doesn't show",
                      partial(_best, ON_30, "z-score"))),
    Claim("on 30-bus N-2 the cost of fine-tuning grows past 30 times that of ICW",
          "4,000 steps over ICW, 400 rows, solves by pandapower on one core, as the paper "
          "counts them there",
          partial(_dearer_30, 1), rules.at_least(30), where="appendix I",
          beside=Note("Divided by 48 cores", partial(_dearer_30, 48)),
          why="By the paper's own Table IX 4,000 steps cost 1.7 times as much as ICW (MLP), 5.5 "
          "times (PFGNN)."),
)  # fmt: skip

ARTEFACTS = (
    Artefact("cost-position", "Fig. 1",
             "Cost-accuracy position of ICW and of gradient steps, measured", PLANE,
             position_tables, draw_position, POSITION),
    Artefact("cost-300", "Fig. 7",
             "|V| error against the cost of an adaptation, 300-bus N-1 Most", PLANE,
             cost_300_tables, draw_cost_300, COST_300),
    Artefact("fine-tuning-cost", "Fig. 20",
             "|V| error of ICW and of fine-tuning against cost, 30-bus N-2 Most", PLANE,
             fine_tuning_tables, draw_fine_tuning, FINE_TUNING),
)  # fmt: skip
