"""Tables about the size of a context."""

# pandas comes without types that could be checked
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from collections.abc import Sequence

import pandas as pd

from gridshift_paper.artefacts import Rows, Table, mean_and_spread
from gridshift_paper.protocol import GRIDS
from gridshift_paper.selection import by_seed, picked

CURVE = (0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3.75, 5)
"""Sizes on the figures, in contexts of the scale: 100 to 2,000 at full scale."""

PAPER_SWEEP = {
    "case118": {
        400: (0.00433, 0.00621, 0.000221, 8.3, 8.2, 6.7),
        600: (0.00415, 0.00596, 0.000215, 8.6, 8.6, 6.9),
        800: (0.00413, 0.00587, 0.000212, 8.7, 8.7, 7.0),
        1200: (0.00269, 0.00386, 0.000195, 13.3, 13.2, 7.6),
        1600: (0.00208, 0.00299, 0.000186, 17.2, 17.1, 8.0),
    },
    "case300": {
        800: (0.01995, 0.02023, 0.000911, 1.4, 7.4, 2.8),
        1200: (0.02042, 0.02003, 0.000898, 1.3, 7.5, 2.9),
        2000: (0.01925, 0.01928, 0.000841, 1.4, 7.8, 3.0),
        3000: (0.00819, 0.01035, 0.000512, 3.3, 14.5, 5.0),
        4000: (0.00451, 0.00886, 0.000446, 6.0, 17.0, 5.7),
    },
}
"""Table VIII: MAE overall, of Q_gen and |V|, then frozen over ICW of the same."""
PAPER_CAPTURED = {"case30": 0.89, "case118": 0.66}
"""Appendix H: share of the achievable improvement at 400 cases."""
PAPER_SOLVE_MS = 8.69
"""Fig. 17: time of one solve."""
QUANTITIES = ("overall", "q_gen", "v")


def captured(errors: pd.DataFrame, method: str = "icw") -> pd.Series:
    """(e(100) - e(400)) / (e(100) - e(2000)) of the N-2 outage's overall error, one a seed.

    The share of the improvement that the largest context brings over the smallest which the paper's
    size has brought already; paper: 0.89 (case30), 0.66 (case118). An error that falls with the
    root of the size gives 0.64.
    """
    if not len(errors):
        return pd.Series(dtype=float)
    part = picked(errors[errors.outage != ""], method=method)
    by_size = part.pivot_table(index="seed", columns="n", values="overall")
    first, chosen, last = (by_size[n] for n in landmarks(by_size.columns))
    return (first - chosen) / (first - last)


def landmarks(sizes: Sequence[int] | pd.Index) -> tuple[int, int, int]:
    """The smallest size, the paper's, and the largest: 100, 400, 2,000 at full scale."""
    ordered = sorted(set(sizes))
    return ordered[0], ordered[CURVE.index(1)], ordered[-1]


def distance_left(covariance: pd.DataFrame, grid: str, column: str = "nested") -> pd.Series:
    """Log-Euclidean distance at the paper's size over that at the smallest, one a seed."""
    part = picked(covariance, grid=grid, what="distance")
    if not len(part):
        return pd.Series(dtype=float)
    by_size = part.pivot_table(index="seed", columns="n", values=column)
    first, chosen, _ = landmarks(by_size.columns)
    return by_size[chosen] / by_size[first]


def tabulate_sweep(rows: Rows) -> list[Table]:
    """Table VIII: errors, improvements, and the levels that say what limits them."""
    frame, better, tables = rows["context-sweep"], rows["context-sweep-no-dropout"], []
    for grid in dict.fromkeys(frame.grid) if len(frame) else ():
        part, label = frame[frame.grid == grid], GRIDS[grid].label
        sizes = sorted(set(part.n) - {0})
        frozen = part[part.method == "frozen"].set_index("seed")
        errors, factors, levels = [], [], []
        for n in sizes:
            told = PAPER_SWEEP[grid].get(n, (None,) * 6)
            at = {m: p.set_index("seed") for m, p in part[part.n == n].groupby("method")}
            icw = at["icw"]
            errors.append([n])
            factors.append([n])
            for place, quantity in enumerate(QUANTITIES):
                errors[-1] += [told[place], mean_and_spread(icw[quantity])]
                ratio = frozen[quantity] / icw[quantity]
                factors[-1] += [told[place + 3], mean_and_spread(ratio)]
            better_icw = by_seed(better, "overall", grid=grid, method="icw", n=n)
            exact, constant = (float(at[m]["overall"].mean()) for m in ("perfect", "context-mean"))
            spread = map(mean_and_spread, (icw["overall"], better_icw))
            levels.append([n, int(icw.context_rows.min()), *spread, exact, constant])
        names = (">overall", ">Q gen", ">|V|")
        pairs = [header for name in names for header in (">paper", name)]
        note = (
            f"Frozen: overall {mean_and_spread(frozen.overall)}. No dropout, perfect: ICW around a "
            "network trained without dropout, and around exact solutions of the intact grid. Mean: "
            "the context's."
        )
        tables += [
            Table(title=f"{label}, MAE (p.u. and rad)", columns=[">N", *pairs], rows=errors),
            Table(title=f"{label}, frozen over ICW", columns=[">N", *pairs], rows=factors),
            Table(title=f"{label}, overall MAE by level", rows=levels, note=note,
                  columns=[">N", ">solved", ">ICW", ">no dropout", ">perfect", ">mean"]),
        ]  # fmt: skip
    return tables


def tabulate_size(grid: str, rows: Rows) -> list[Table]:
    """The curves of the figure, and the numbers that the paper quotes from it."""
    errors, covariance = rows[f"context-size-{grid}"], rows["covariance"]
    tables = []
    if len(errors):
        body, distance = [], picked(covariance, grid=grid, what="distance")
        for n in sorted(set(errors.n) - {0}):
            part = errors[errors.n == n]
            outage = part[part.outage != ""]
            cells = [
                part[(part.outage == "") & (part.method == "icw")].overall,
                outage[outage.method == "icw"].overall,
                outage[outage.method == "perfect"].overall,
            ]
            apart = distance[distance.n == n] if len(distance) else None
            far = [None, None] if apart is None else [
                float(apart[column].mean()) for column in ("nested", "independent")
            ]  # fmt: skip
            ms = 1e3 * float(part.collect_s.min())
            body.append([n, *(mean_and_spread(cell) for cell in cells), ms, *far])
        tables.append(Table(
            title=f"{GRIDS[grid].label}: overall MAE by size of the context", rows=body,
            columns=[">N", ">ICW, intact", ">ICW, N-2", ">perfect, N-2", ">ms",
                     ">to N max", ">to 10 N max"],
            note="± over draws and seeds. ms: fastest collection of a context, one process. Last "
                 "two: log-Euclidean distance of the covariance to that of the 2,000 cases which "
                 "the context is the start of (paper), and to one of 20,000 cases of their own.",
        ))  # fmt: skip
    quoted = _quoted(grid, errors, covariance)
    if quoted:
        columns = ["at the paper's N of 400", ">paper", ">ours"]
        tables.append(Table(title="Quoted numbers", columns=columns, rows=quoted))
    return tables


def _quoted(grid: str, errors: pd.DataFrame, covariance: pd.DataFrame) -> list[list[object]]:
    rows: list[list[object]] = []
    if len(errors):
        one = errors[errors.n == max(errors.n)]
        share, told = captured(errors), f"{PAPER_CAPTURED[grid]:.0%}"
        spread = f"{100 * share.mean():.0f}% ({100 * share.min():.0f} to {100 * share.max():.0f})"
        solve = 1e3 * float((one.collect_s / one.context_rows).min())
        rows += [
            ["share of the improvement from 100 to 2,000", told, spread],
            ["one solve, ms", PAPER_SOLVE_MS, solve],
        ]
    if len(covariance):
        for column, said in (("nested", "of the same rows"), ("independent", "of other rows")):
            left = distance_left(covariance, grid, column)
            told = "below 0.5" if column == "nested" else None
            name = f"distance to the reference {said}, over that at 100"
            rows.append([name, told, mean_and_spread(left)])
    return rows
