"""How the rounds of a regression are chosen by held-out rows, and fitted.

Letters: N rows, V inputs, d outputs, F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gridshift.arrays import Real
from gridshift.learn.products import Round, num_products, products

COMPONENTS = (6, 12, 25, 40)
"""Numbers of leading components that are tried in the first round; 40 have 860 products."""
FURTHER_COMPONENTS = (6, 12)
"""Those of further rounds, which are for a few directions in which the grid is close to a limit."""
PENALTIES = (1e-10, 1e-5, 1e-2)
"""Penalties that are tried, in units of the number of rows, for features of variance 1."""
ROWS_PER_FEATURE = 4
"""Rows for each feature that a round has at least."""
GAIN = 0.9
"""A further round must bring the held-out error below this multiple of what it was."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """Settings of a round: which outputs' components, how many, and the penalty."""

    group: np.ndarray
    num: int
    penalty: float


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Settings of a model, and its error on the held-out rows."""

    penalty: float
    rounds: tuple[Step, ...]
    mae: float


Halves = tuple[Real, Real]
"""Rows to fit to, and rows held out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt:
    """A round fitted to some rows, and its error on the others."""

    step: Step
    mae: float
    features: Halves
    weight: Real
    bias: Real

    def add(self, y_hat: Halves) -> Halves:
        """The predictions with what the round adds to them."""
        num = len(self.weight)
        added = (features[:, :num] @ self.weight + self.bias for features in self.features)
        fitted, held = (y + more for y, more in zip(y_hat, added, strict=True))
        return fitted, held


def choose_rounds(
    x: Halves, y: Halves, *, groups: Sequence[np.ndarray], max_components: int, max_rounds: int
) -> Choice:
    """The settings that do best on the held-out rows, round by round.

    Args:
        x: (N, V) inputs of rows to fit to and of rows held out.
        y: (N, d) their outputs.
        groups: sets of outputs whose components may be multiplied.
        max_rounds: 0 for the linear part alone.
    """
    sums = Sums.of(x[0], y[0])
    mae, penalty, weight, bias = np.inf, 0.0, np.empty(0), np.empty(0)
    for attempt in PENALTIES:
        found = sums.solve(x[0].shape[1], attempt)
        error = float(np.abs(x[1] @ found[0] + found[1] - y[1]).mean())
        if error < mae:
            mae, penalty, (weight, bias) = error, attempt, found
    y_hat: Halves = x[0] @ weight + bias, x[1] @ weight + bias
    steps: list[Step] = []
    while len(steps) < max_rounds:
        numbers = FURTHER_COMPONENTS if steps else COMPONENTS
        numbers = [num for num in numbers if num <= max_components]
        found = [
            attempt
            for group in groups
            if (attempt := _best_round(y_hat, y, group, numbers[:-1] or numbers))
        ]
        best = min(found, key=lambda one: one.mae, default=None)
        if best is not None and len(numbers) > 1:  # the most are worth their time for one group
            more = _best_round(y_hat, y, best.step.group, numbers[-1:])
            best = min([best, more], key=lambda one: one.mae) if more else best
        if best is None or best.mae > GAIN * mae:
            break
        steps.append(best.step)
        y_hat, mae = best.add(y_hat), best.mae
    return Choice(penalty=penalty, rounds=tuple(steps), mae=mae)


def _best_round(
    y_hat: Halves, y: Halves, group: np.ndarray, numbers: Sequence[int]
) -> Attempt | None:
    """The round with this group's components that has the least held-out error, if any can be.

    Sums of products are formed once, for the largest number of components; those of fewer are a
    part of them.
    """
    enough = len(y[0]) / ROWS_PER_FEATURE
    directions, origin = components_of(y_hat[0], group, max(numbers))
    have = directions.shape[1]
    numbers = sorted({min(num, have) for num in numbers})
    numbers = [num for num in numbers if 0 < num_products(num) <= enough]
    if not numbers:
        return None
    directions, origin = directions[:, : numbers[-1]], origin[: numbers[-1]]
    features = products(y_hat[0] @ directions - origin), products(y_hat[1] @ directions - origin)
    left = y[1] - y_hat[1]
    sums, best = Sums.of(features[0], y[0] - y_hat[0]), None
    for num in numbers:
        for penalty in PENALTIES:
            weight, bias = sums.solve(num_products(num), penalty)
            mae = float(np.abs(features[1][:, : len(weight)] @ weight + bias - left).mean())
            if best is None or mae < best.mae:
                step = Step(group=group, num=num, penalty=penalty)
                best = Attempt(step=step, mae=mae, features=features, weight=weight, bias=bias)
    return best


def fit_round(y_hat: Real, y: Real, step: Step) -> Round:
    """The round with these settings, fitted to the rows of a prediction."""
    directions, origin = components_of(y_hat, step.group, step.num)
    features = products(y_hat @ directions - origin)
    weight, bias = Sums.of(features, y - y_hat).solve(features.shape[1], step.penalty)
    return Round(directions=directions, origin=origin, weight=weight, bias=bias)


def components_of(y: Real, group: np.ndarray, most: int) -> tuple[Real, Real]:
    """(d, q) and (q,): leading principal components of some outputs, y @ directions - origin.

    Each has mean 0 and variance 1 over the rows y (N, d); q is `most` at most, and less where fewer
    directions vary.
    """
    chosen = y[:, group]
    mean = chosen.mean(0)
    centred = chosen - mean
    variances, vectors = np.linalg.eigh(centred.T @ centred / len(y))
    # what the sums of squares leave beside the largest one is round-off
    kept = variances > 1e-13 * max(variances[-1], np.finfo(float).tiny)
    variances, vectors = variances[kept][::-1][:most], vectors[:, kept][:, ::-1][:, :most]
    directions = np.zeros((y.shape[1], len(variances)))
    directions[group] = vectors / np.sqrt(variances)
    return directions, mean @ directions[group]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Normal equations of a ridge regression on features scaled to variance 1."""

    mean: Real
    scale: Real
    target_mean: Real
    gram: Real
    """(F, F) a correlation matrix."""
    moment: Real
    """(F, d)"""

    @classmethod
    def of(cls, features: Real, target: Real) -> "Sums":
        """Of features (N, F) and targets (N, d)."""
        n, mean = len(features), features.mean(0)
        standard = features - mean
        scale = np.sqrt(np.einsum("nf,nf->f", standard, standard) / n)
        scale = np.where(scale > 0, scale, 1.0)
        standard /= scale
        return cls(
            mean=mean, scale=scale, target_mean=target.mean(0), gram=standard.T @ standard / n,
            moment=standard.T @ (target - target.mean(0)) / n,
        )  # fmt: skip

    def solve(self, num: int, penalty: float) -> tuple[Real, Real]:
        """(num, d) and (d,): weight and bias on the first `num` features as they are."""
        gram = self.gram[:num, :num] + penalty * np.eye(num)
        weight = cho_solve(cho_factor(gram, lower=True), self.moment[:num])
        weight = weight / self.scale[:num, None]
        return weight, self.target_mean - self.mean[:num] @ weight
