"""What the paper says of frozen against ICW for each quantity, and whether our rows say so too."""

import math
from collections.abc import Iterator

import pandas as pd

from gridshift.study.text import real
from gridshift_paper.artefacts import Claim, Rows
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import (
    by_seed,
    listed,
    mean,
    num_seeds,
    picked,
    ratio_by_seed,
    reaches,
)

QUANTITIES = {
    "overall": "overall", "p_slack": "P slack", "q_gen": "Q gen", "v": "|V|", "theta": "θ",
}  # fmt: skip
PAPER_FACTORS = {
    "N-1": {
        ("case30", "overall"): 13, ("case118", "overall"): 15, ("case300", "overall"): 6,
        ("case30", "v"): 25, ("case300", "q_gen"): 17,
    },
    "N-2": {
        ("case30", "overall"): 28, ("case118", "overall"): 18, ("case300", "overall"): 8,
        ("case30", "q_gen"): 54, ("case30", "v"): 47,
    },
}  # fmt: skip
"""Frozen / ICW that the text gives for Fig. 4 (section IV) and for its N-2 companion (appendix)."""
Factors = dict[tuple[str, str, int], float]
"""Grid, quantity and size of the context to the factor."""


def zca_rows(rows: Rows, topology: str) -> pd.DataFrame:
    """Rows of the MLP trained with ZCA, frozen and adapted."""
    return picked(rows["variants"], backbone="mlp", transform="zca", topology=topology)


def sizes_of(frame: pd.DataFrame, grid: str) -> list[int]:
    """Sizes of the context measured, ascending."""
    found = picked(frame, grid=grid, statistics="ctx")
    return sorted(set(found["num_context"].tolist())) if len(found) else []


def frozen_errors(frame: pd.DataFrame, grid: str, quantity: str) -> pd.Series:
    """Error of the frozen surrogate by seed."""
    return by_seed(frame, quantity, grid=grid, statistics="frozen")


def icw_errors(frame: pd.DataFrame, grid: str, quantity: str, num_context: int) -> pd.Series:
    """Error of ICW by seed."""
    return by_seed(frame, quantity, grid=grid, statistics="ctx", num_context=num_context)


def factor(frame: pd.DataFrame, grid: str, quantity: str, num_context: int) -> float:
    """Mean error of the frozen surrogate over that of ICW."""
    icw = icw_errors(frame, grid, quantity, num_context)
    return mean(frozen_errors(frame, grid, quantity)) / mean(icw)


def as_in_paper(frame: pd.DataFrame, grid: str, size: int) -> bool:
    """Whether this context stands where the paper's does: the largest one of its grid."""
    return size == max(sizes_of(frame, grid))


def factors(frame: pd.DataFrame) -> Factors:
    """All there are rows for."""
    found = {
        (grid, quantity, size): factor(frame, grid, quantity, size)
        for grid in GRIDS
        for size in sizes_of(frame, grid)
        for quantity in QUANTITIES
    }
    return {key: value for key, value in found.items() if not math.isnan(value)}


def _named(grid: str, quantity: str, size: int) -> str:
    part = "" if quantity == "overall" else f"{QUANTITIES[quantity]} of "
    return f"{part}{GRIDS[grid].label} at {size:,} rows"


def comments(rows: Rows, topology: str) -> Iterator[str | Claim]:
    """Claims on one outage of each grid; those on both are made beside the double outage."""
    frame = zca_rows(rows, topology)
    ours = factors(frame)
    if not ours:
        return
    for quantities in (("overall",), ("q_gen", "v")):
        yield from _on_numbers(frame, topology, ours, quantities)
    if topology == "N-1":
        yield _on_everywhere(ours)
    else:
        yield from _on_span(rows, ours)
        yield from _on_growth(rows, ours)
    yield _on_ceiling(rows, topology)
    yield from _on_300(frame)


def _on_numbers(
    frame: pd.DataFrame, topology: str, ours: Factors, quantities: tuple[str, ...]
) -> Iterator[Claim]:
    """The factors that the text quotes, of all quantities together or of single ones."""
    paper = {key: told for key, told in PAPER_FACTORS[topology].items() if key[1] in quantities}
    names = [
        f"{told} times on {GRIDS[grid].label}"
        + ("" if quantity == "overall" else f" in {QUANTITIES[quantity]}")
        for (grid, quantity), told in paper.items()
    ]
    found, reached = [], []
    for (grid, quantity, size), value in ours.items():
        if (grid, quantity) in paper:
            found.append(f"{value:.1f} ({_named(grid, quantity, size)})")
            if as_in_paper(frame, grid, size):
                reached.append(reaches(value, paper[grid, quantity]))
    if found:
        what = "overall error" if "overall" in quantities else "error of single quantities"
        yield Claim(
            says=f"on {topology} Most ICW reduces the {what} {listed(names)}",
            holds=all(reached), ours=f"{listed(found)}.",
        )  # fmt: skip


def _on_everywhere(ours: Factors) -> Claim:
    worse = {key: value for key, value in ours.items() if value <= 1}
    least = min(ours, key=ours.__getitem__)
    names = [f"{_named(*key)} ({value:.2g})" for key, value in worse.items()]
    return Claim(
        says="the improvement holds at every system size and across all four quantities",
        holds=not worse,
        ours=f"ICW is worse than doing nothing for {listed(names)}."
        if worse
        else f"the smallest factor is {ours[least]:.2f}, {_named(*least)}.",
    )


def _on_span(rows: Rows, double: Factors) -> Iterator[Claim]:
    """The abstract's numbers, over all grids and both outages."""
    single_frame, double_frame = zca_rows(rows, "N-1"), zca_rows(rows, "N-2")
    span = {
        (topology, key): value
        for topology, frame in (("N-1", single_frame), ("N-2", double_frame))
        for key, value in factors(frame).items()
        if key[1] == "overall" and as_in_paper(frame, key[0], key[2])
    }
    low, high = (choose(span, key=span.__getitem__) for choose in (min, max))
    yield Claim(
        says="over all grids, N-1 and N-2, ICW reduces the overall error 6 to 28 times over the "
        "frozen surrogate",
        holds=reaches(span[low], 6) and reaches(span[high], 28),
        ours=f"{span[low]:.1f} ({low[0]} of {GRIDS[low[1][0]].label}) to {span[high]:.1f} "
        f"({high[0]} of {GRIDS[high[1][0]].label}).",
    )
    largest = max(double, key=double.__getitem__)
    yield Claim(
        says="single quantities improve up to 54 times under N-2",
        holds=reaches(double[largest], 54),
        ours=f"the largest factor is {double[largest]:.0f}, {_named(*largest)}.",
    )


def _on_growth(rows: Rows, ours: Factors) -> Iterator[Claim]:
    single = factors(zca_rows(rows, "N-1"))
    shared = {key: (single[key], value) for key, value in ours.items() if key in single}
    smaller = [
        f"{_named(*key)} ({before:.2g}, then {after:.2g})"
        for key, (before, after) in shared.items()
        if after < before
    ]
    if shared:
        yield Claim(
            says="improvement factors on N-2 Most are uniformly larger than on N-1 Most",
            holds=not smaller,
            ours=f"smaller for {listed(smaller)}."
            if smaller
            else f"all {len(shared)} factors are larger.",
        )


def _on_ceiling(rows: Rows, topology: str) -> str:
    """What the factor would be with a better surrogate, and with one without error."""
    frame, told = zca_rows(rows, topology), []
    better = picked(rows["no-dropout"], topology=topology)
    exact = picked(rows["references"], topology=topology, reference="zca")
    for grid in GRIDS.values():
        for size in sizes_of(frame, grid.name):
            context = {"grid": grid.name, "num_context": size}
            frozen = frozen_errors(frame, grid.name, "overall")
            levels = [by_seed(better, "overall", statistics="ctx", **context),
                      by_seed(exact, "overall", **context)]  # fmt: skip
            gains = [mean(ratio_by_seed(frozen, level)) for level in levels]
            known = [f"{value:.1f}" if value == value else "–" for value in gains]
            told.append(f"{grid.label} at {size:,} rows {known[0]} and {known[1]}")
    return (
        "The factor depends on how well the surrogate fits the intact grid. Without dropout, and "
        f"around exact solutions of the intact grid, it would be: {'; '.join(told)}."
    )


def _on_300(frame: pd.DataFrame) -> Iterator[str]:
    sizes = sizes_of(frame, "case300")
    if len(sizes) < 2:
        return
    few, many = (mean(icw_errors(frame, "case300", "overall", n)) for n in sizes)
    failed = int(picked(frame, grid="case300", statistics="frozen")["num_test_failed"].sum())
    yield (
        f"300-Bus: {sizes[0]:,} rows are fewer than its 600 outputs, so that its covariance is "
        f"singular; {sizes[1]:,} bring the error from {real(few)} to {real(many)}. {failed} test "
        f"rows in {num_seeds(frame)} seeds have no solution; they are left out."
    )
