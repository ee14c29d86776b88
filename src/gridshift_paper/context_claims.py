"""What the paper says of the size of a context, and whether our rows say so too."""

# pandas comes without types that could be checked
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from collections.abc import Iterator

import pandas as pd

from gridshift.study.text import real
from gridshift_paper.artefacts import Claim, Rows
from gridshift_paper.context_tables import (
    PAPER_CAPTURED,
    PAPER_SWEEP,
    captured,
    distance_left,
    landmarks,
)
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import by_seed, near, picked, reaches


def comment_on_sweep(rows: Rows) -> Iterator[str | Claim]:
    """How much a larger context brings, and what limits ICW at each size."""
    frame = rows["context-sweep"]
    grids = list(dict.fromkeys(frame.grid)) if len(frame) else []
    for grid in grids:
        yield _on_growth(frame[frame.grid == grid], grid)
    if grids:
        yield _on_most(frame, grids)
    for grid in grids:
        yield from _on_limits(frame[frame.grid == grid], grid)
        yield from _on_dropout(frame, rows["context-sweep-no-dropout"], grid)


def _levels(part: pd.DataFrame) -> pd.DataFrame:
    """Mean overall error, sizes by methods; 'frozen' is at size 0."""
    return part.pivot_table(index="n", columns="method", values="overall")


def _on_growth(part: pd.DataFrame, grid: str) -> Claim:
    sizes, mean, paper = sorted(set(part.n) - {0}), _levels(part), PAPER_SWEEP[grid]
    few, many = sizes[0], sizes[-1]
    factors = [float(mean["frozen"][0] / mean["icw"][n]) for n in (few, many)]
    told = [paper[n][3] for n in (min(paper), max(paper))]
    return Claim(
        says=f"on {grid} a context of {max(paper):,} cases instead of {min(paper)} raises the "
        f"improvement over the frozen surrogate from {told[0]} to {told[1]} times",
        holds=all(map(reaches, factors, told)) and reaches(factors[1] / factors[0], 1.5),
        ours=f"it goes from {real(factors[0])} at {few:,} cases to {real(factors[1])} at "
        f"{many:,}; around a surrogate without error of its own from "
        f"{real(float(mean['frozen'][0] / mean['perfect'][few]))} to "
        f"{real(float(mean['frozen'][0] / mean['perfect'][many]))}.",
    )


def _on_most(frame: pd.DataFrame, grids: list[str]) -> Claim:
    told, shares = [], []
    for grid in grids:
        part = frame[frame.grid == grid]
        mean, sizes = _levels(part), sorted(set(part.n) - {0})
        gain = mean["frozen"][0] - mean["icw"]
        shares.append(float(gain[sizes[0]] / gain[sizes[-1]]))
        told.append(f"{100 * shares[-1]:.0f} % at {sizes[0]:,} cases on {grid}")
    return Claim(
        says="a small context already recovers most of ICW's gain",
        holds=min(shares) > 0.5,
        ours=f"of what the largest takes off the frozen error, {', '.join(told)}.",
    )


def _on_dropout(frame: pd.DataFrame, better: pd.DataFrame, grid: str) -> Iterator[str]:
    """What the paper's network costs, at the smallest and the largest context."""
    sizes = sorted(set(picked(better, grid=grid, method="icw")["n"])) if len(better) else []
    if sizes:
        with_it, without = (
            [real(float(by_seed(f, "overall", grid=grid, method="icw", n=n).mean()))
             for n in (sizes[0], sizes[-1])]
            for f in (frame, better)
        )  # fmt: skip
        yield (
            f"{GRIDS[grid].label}: around a network trained without dropout ICW goes from "
            f"{without[0]} at {sizes[0]:,} cases to {without[1]} at {sizes[-1]:,}, with dropout "
            f"from {with_it[0]} to {with_it[1]}."
        )


def _on_limits(part: pd.DataFrame, grid: str) -> Iterator[str]:
    mean, sizes, label = _levels(part), sorted(set(part.n) - {0}), GRIDS[grid].label
    few, many = sizes[0], sizes[-1]
    icw, perfect = mean["icw"], mean["perfect"]
    yield (
        f"{label}: ICW goes from {real(icw[few])} at {few:,} cases to "
        f"{real(icw[many])} at {many:,}; a surrogate without error of its own, adapted alike, "
        f"from {real(perfect[few])} to {real(perfect[many])}, so there the network has "
        f"{100 * (1 - perfect[many] / icw[many]):.0f} % of the error. The context's mean gives "
        f"{real(mean['context-mean'][many])}."
    )
    if many in PAPER_SWEEP[grid]:
        told = PAPER_SWEEP[grid][many][0]
        closer = (
            f", and {real(told / perfect[many])} times what a network without error would leave: "
            "its network must have been closer to exact than that of appendix C is here"
        )
        yield (
            f"{label}: the paper's {real(told)} at {many:,} cases is {real(told / icw[many])} "
            f"times ours{closer if told < icw[many] else ''}."
        )
    lost = part[part.n == many].context_rows
    if (lost < many).any():
        least, most = many - int(lost.max()), many - int(lost.min())
        yield (
            f"{label}: {least if least == most else f'{least} to {most}'} of {many:,} context "
            "cases have no solution and are left out; so are such test cases."
        )


def comment_on_size(grid: str, rows: Rows) -> Iterator[str | Claim]:
    """Does the curve flatten where the paper says, and why?"""
    errors, covariance = rows[f"context-size-{grid}"], rows["covariance"]
    if len(errors):
        yield from _on_errors(errors, grid)
    left = distance_left(covariance, grid)
    if len(left):
        others = distance_left(covariance, grid, "independent")
        yield Claim(
            says=f"on {grid} the log-Euclidean distance of the covariance at 400 cases is under "
            "half of that at 100",
            holds=float(left.max()) < 0.5,
            ours=f"it is {100 * left.mean():.0f} % of it to the reference that holds the same "
            f"rows, and {100 * others.mean():.0f} % to one of other rows.",
        )
        yield from _on_distance(picked(covariance, grid=grid, what="distance"))


def _on_errors(errors: pd.DataFrame, grid: str) -> Iterator[str | Claim]:
    mean = _levels(errors[errors.outage != ""])
    first, chosen, last = landmarks(mean.index[1:])
    by_root = (first**-0.5 - chosen**-0.5) / (first**-0.5 - last**-0.5)
    share, ideal = captured(errors), captured(errors, "perfect")
    told = PAPER_CAPTURED[grid]
    yield Claim(
        says=f"a context of 400 cases captures {100 * told:.0f} % of the achievable improvement on "
        f"{grid}",
        holds=near(float(share.mean()), told),
        ours=f"{chosen:,} cases bring {100 * share.mean():.0f} % of what {last:,} bring over "
        f"{first:,}; around a surrogate without error {100 * ideal.mean():.0f} %. An error that "
        f"falls with the root of the size gives {100 * by_root:.0f} %, so that such a share alone "
        "is no sign of an end.",
    )
    icw, perfect = mean["icw"], mean["perfect"]
    yield Claim(
        says=f"the curve of errors on {grid} has nearly flattened at 400 cases",
        holds=near(float(icw[last]), float(icw[chosen])),
        ours=f"{last:,} cases bring the error from {real(icw[chosen])} to {real(icw[last])}, "
        f"around a perfect surrogate from {real(perfect[chosen])} to {real(perfect[last])}.",
    )
    fastest = errors[errors.n > 0].groupby("n").collect_s.min() if "collect_s" in errors else ()
    if len(fastest) and grid == "case118":  # said of this grid alone
        cost = float(fastest[last] / fastest[chosen])
        yield Claim(
            says=f"400 cases of {grid} cost a fifth of 2,000",
            holds=near(cost, 5), ours=f"{last:,} take {real(cost)} times as long as {chosen:,}.",
        )  # fmt: skip
    fall, root = perfect[first] / perfect[last], (last / first) ** 0.5
    yield (
        f"Around a perfect surrogate the error falls {real(fall)} times from {first:,} to "
        f"{last:,} cases; sampling error alone would fall {real(root)} times. What stays is "
        "what a map of means and covariances can't follow, however many cases it is from."
    )
    yield (
        f"At {chosen:,} cases ICW is at {real(icw[chosen])}, and at {real(perfect[chosen])} around "
        f"a perfect surrogate: {100 * perfect[chosen] / icw[chosen]:.0f} % of the error is the "
        "adaptation's own."
    )


def _on_distance(part: pd.DataFrame) -> Iterator[str]:
    far = part.groupby("n")[["nested", "independent"]].mean()
    last = far.index[-1]
    yield (
        f"The paper's distance is zero at {last:,} cases by construction, as the reference "
        "holds the same rows. To the covariance of ten times as many other rows it is still "
        f"{real(far.independent[last])} there, "
        f"{100 * far.independent[last] / far.independent.iloc[0]:.0f} % of that of the "
        "smallest context."
    )
