"""Which of several changes happened: whose compensation explains rows best, if that is sure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from gridshift.arguments import how_many
from gridshift.arrays import Real
from gridshift.errors import ContextError
from gridshift.learn.compensation import PENALTIES, Touched
from gridshift.learn.ridge import ROUND_OFF, fit_ridge
from gridshift.learn.splits import log_gain

FEWEST = 5
"""Cases below which no change can be told from others."""


@dataclass(frozen=True, kw_only=True)
class Identified:
    """Which of several changes happened, as far as rows tell."""

    name: str | None
    """The one that is sure; None if rows can't tell."""
    ranking: tuple[tuple[str, float], ...]
    """All candidates and their mean absolute left-out errors, the smallest first."""
    alike: tuple[str, ...]
    """Those that can't be told from the first, itself included."""
    doubt: float
    """Probability of so large a lead if the closest rival were as good; what isn't below the level
    is no lead."""
    reason: str
    """Why it is sure, or why it isn't, in words."""


def identify(
    x: Real, y: Real, y_base: Real, candidates: Mapping[str, Touched], *, level: float = 0.05,
    movement: Mapping[str, float] | None = None,
) -> Identified:  # fmt: skip
    """Rank changes by the left-out error of their compensation, and name one if it is sure.

    The best is held against each other candidate, and against no change but a shift of the mean, by
    a one-sided paired t-test of the logarithms of the rows' left-out errors, at `level` over the
    number of candidates (Bonferroni); logarithms, for stressed rows are far worse than others.
    Candidates that touch the same columns are one: nothing tells them apart.

    Where that can't tell, the best is named nonetheless if its angles have moved against each other
    more than any other candidate's, and it beats the shift of the mean at the level of a single
    test: what is injected at i and drawn at j moves no difference of two angles as much as that
    between i and j, and the two signs rest on different columns.

    Args:
        x: (N, X) inputs of rows after the change.
        y: (N, d) their outputs.
        y_base: (N, d) outputs that the base model has for these inputs.
        level: chance of naming a wrong one that is accepted.
        movement: how far the angles of each candidate have moved; by default `angle_movement`.

    Raises:
        ContextError: fewer than 5 rows, or no candidates.
    """
    check_identifiable(len(x), len(candidates))
    remainder = y - y_base

    def left_out(features: Real) -> Real:
        fitted = fit_ridge(features, remainder, choose="pooled", penalties=PENALTIES)
        return np.abs(fitted.left_out).mean(1)

    errors = {name: left_out(one.features("flows", y_base)) for name, one in candidates.items()}
    ranking = sorted(errors, key=lambda name: errors[name].mean())
    best, nothing = ranking[0], left_out(np.empty((len(x), 0)))
    doubts = {name: _doubt(errors[best], errors[name]) for name in ranking[1:]}
    against_nothing = _doubt(errors[best], nothing)
    bound = level / len(candidates)
    alike = (best, *(name for name, doubt in doubts.items() if doubt > bound))
    doubt = min(1.0, len(candidates) * max([against_nothing, *doubts.values()]))
    name, reason = (
        best,
        f"{best} leads in {how_many(len(x), 'case')}; chance of a mistake {doubt:.1g}",
    )
    if against_nothing > bound:
        name, reason = None, "no candidate explains the cases better than a shift of the mean"
    elif len(alike) > 1:
        name, reason = (
            None,
            f"{', '.join(alike[:5])} explain the {how_many(len(x), 'case')} equally well",
        )
    if name is None and against_nothing <= level:
        movement = movement or {key: angle_movement(remainder, t) for key, t in candidates.items()}
        if all(movement[best] > movement[other] for other in ranking[1:]):
            name = best
            reason = f"{best} has the smallest left-out error, and its angles have moved most"
    return Identified(
        name=name, ranking=tuple((one, float(errors[one].mean())) for one in ranking),
        alike=alike, doubt=doubt, reason=reason,
    )  # fmt: skip


def angle_movement(remainder: Real, touched: Touched) -> float:
    """How far the two ends of a branch have moved against each other, mean over rows (N, d).

    Of several branches the one that has moved most; 0 without branches.
    """
    at = [np.zeros(len(remainder)) if c is None else remainder[:, c] for c in touched.angles]
    moved = [float(np.abs(at[i] - at[j]).mean()) for i, j in touched.branches]
    return max(moved, default=0.0)


def check_identifiable(num_cases: int, num_candidates: int = 1) -> None:
    """Pass if so many cases can tell so many changes from each other.

    Raises:
        ContextError: they are too few.
    """
    if num_cases < FEWEST or not num_candidates:
        raise ContextError(
            f"{num_cases} solved cases and {num_candidates} candidates to identify a change; give "
            f"at least {FEWEST} cases and 1 candidate"
        )


def _doubt(rows: Real, than: Real) -> float:
    """Probability of such a lead, or a larger one, between equals: one-sided paired t-test."""
    gain = log_gain(rows, than)
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    if error <= ROUND_OFF:
        return 0.0 if gain.mean() > ROUND_OFF else 1.0
    return float(stdtr(len(gain) - 1, -gain.mean() / error))
