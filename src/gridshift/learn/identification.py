"""Which of several changes happened: whose compensation explains rows best, if that is sure."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from gridshift.errors import ContextError
from gridshift.learn.compensation import ROUND_OFF, Touched, fit_left_out
from gridshift.learn.moments import Real


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
    x: Real, y: Real, y_base: Real, candidates: Mapping[str, Touched], *, level: float = 0.05
) -> Identified:
    """Rank changes by the left-out error of their compensation, and name one if it is sure.

    The best is held against each other candidate, and against no change but a shift of the mean, by
    a one-sided paired t-test of the logarithms of the rows' left-out errors, at `level` over the
    number of candidates (Bonferroni); logarithms, for stressed rows are far worse than others.
    Candidates that touch the same columns are one: nothing tells them apart.

    Args:
        x: (N, X) inputs of rows after the change.
        y: (N, d) their outputs.
        y_base: (N, d) outputs that the base model has for these inputs.
        candidates: what each change would touch.
        level: chance of naming a wrong one that is accepted.

    Raises:
        ContextError: fewer than 5 rows, or no candidates.
    """
    if len(x) < 5 or not candidates:
        raise ContextError(
            f"{len(x)} solved cases and {len(candidates)} candidates to identify a change; give at "
            "least 5 cases and 1 candidate"
        )
    remainder = y - y_base
    errors = {
        name: np.abs(fit_left_out(touched.features("flows", y_base), remainder).left_out).mean(1)
        for name, touched in candidates.items()
    }
    ranking = sorted(errors, key=lambda name: errors[name].mean())
    best = ranking[0]
    nothing = np.abs(fit_left_out(np.empty((len(x), 0)), remainder).left_out).mean(1)
    doubts = {name: _doubt(errors[best], errors[name]) for name in ranking[1:]}
    against_nothing = _doubt(errors[best], nothing)
    bound = level / len(candidates)
    alike = (best, *(name for name, doubt in doubts.items() if doubt > bound))
    doubt = min(1.0, len(candidates) * max([against_nothing, *doubts.values()]))
    name, reason = best, f"{best} leads in {len(x)} cases; chance of a mistake {doubt:.1g}"
    if against_nothing > bound:
        name, reason = None, "no candidate explains the cases better than a shift of the mean"
    elif len(alike) > 1:
        name, reason = None, f"{', '.join(alike[:5])} explain the {len(x)} cases equally well"
    return Identified(
        name=name, ranking=tuple((one, float(errors[one].mean())) for one in ranking),
        alike=alike, doubt=doubt, reason=reason,
    )  # fmt: skip


def _doubt(rows: Real, than: Real) -> float:
    """Probability of such a lead, or a larger one, between equals: one-sided paired t-test."""
    least = np.finfo(float).tiny
    gain = np.log(np.maximum(than, least)) - np.log(np.maximum(rows, least))
    error = gain.std(ddof=1) / np.sqrt(len(gain))
    if error <= ROUND_OFF:
        return 0.0 if gain.mean() > ROUND_OFF else 1.0
    return float(stdtr(len(gain) - 1, -gain.mean() / error))
