"""Base models in closed form: linear regression, and products of what it predicts.

`linear` is ridge regression of y on the inputs that vary. `quadratic` goes on from a prediction
with rounds: take the leading principal components of the prediction so far, and fit what is left of
y by ridge on their products. What a grid leaves of its linear prediction is a quadratic form in the
state, which the prediction's leading components stand for with few terms. A second round makes
products of what has products in it already, which is what rows close to a limit of the grid need.

How many components, of which outputs, what penalty and how many rounds: whatever does best on a
fifth of the rows that is held out. The model itself is then fitted to all rows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gridshift.errors import GridshiftError
from gridshift.learn.moments import Real

REGRESSIONS = ("linear", "quadratic")
"""Names of the base models in closed form."""
HELD_OUT = 0.2
"""Share of the rows that decides."""
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
class RegressionConfig:
    """Which model, and how far it may go."""

    name: str = "quadratic"
    """One of `REGRESSIONS`."""
    max_components: int = 40
    max_rounds: int = 4

    def __post_init__(self) -> None:
        if self.name not in REGRESSIONS:
            raise GridshiftError(
                f"no regression {self.name}; choose one of {', '.join(REGRESSIONS)}"
            )
        for name in ("max_components", "max_rounds"):
            if getattr(self, name) < 1:
                raise GridshiftError(f"{name} {getattr(self, name)} must be at least 1")


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """Adds to a prediction y (R, d): products of q components of it @ weight + bias."""

    directions: Real
    """(d, q) components = y @ directions - origin, each of mean 0 and variance 1 where fitted."""
    origin: Real
    """(q,)"""
    weight: Real
    """(F, d) with F = q (q + 3) / 2."""
    bias: Real
    """(d,)"""

    def add(self, y: Real) -> Real:
        """(R, d) the prediction y (R, d) with what this round knows of its remainder."""
        return y + (products(y @ self.directions - self.origin) @ self.weight + self.bias)


@dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """y = x[:, varied] @ weight + bias, then each round in turn; get it with `fit_regression`."""

    config: RegressionConfig
    num_inputs: int
    varied: np.ndarray
    """(V,) numbers of the inputs that varied; no other has an effect."""
    weight: Real
    """(V, d)"""
    bias: Real
    """(d,)"""
    rounds: tuple[Round, ...]
    left_out_mae: float
    """Mean absolute error on the held-out rows, by the same model fitted without them."""

    def predict(self, x: Real) -> Real:
        """(R, d) outputs of inputs (R, X).

        Raises:
            GridshiftError: x has another width than the rows fitted on.
        """
        if x.ndim != 2 or x.shape[1] != self.num_inputs:
            raise GridshiftError(f"inputs of shape {x.shape}; (N, {self.num_inputs}) is needed")
        y = x[:, self.varied] @ self.weight + self.bias
        for one in self.rounds:
            y = one.add(y)
        return y

    def arrays(self) -> dict[str, np.ndarray]:
        """All numbers by name, for storage; `of_arrays` reads them."""
        arrays = {
            "varied": self.varied, "weight": self.weight, "bias": self.bias,
            "num_inputs": np.array([self.num_inputs]),
            "left_out_mae": np.array([self.left_out_mae]),
        }  # fmt: skip
        for number, one in enumerate(self.rounds):
            arrays |= {f"round{number}.{name}": value for name, value in vars(one).items()}
        return arrays

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray], config: RegressionConfig) -> "Regression":
        """The model of `arrays`.

        Raises:
            GridshiftError: arrays are missing, or their shapes don't fit together.
        """
        try:
            num_inputs, varied = int(arrays["num_inputs"][0]), arrays["varied"]
            weight, bias = arrays["weight"], arrays["bias"]
            width, rounds = len(bias), []
            sound = weight.shape == (len(varied), width)
            sound &= not len(varied) or (varied.min() >= 0 and varied.max() < num_inputs)
            while f"round{len(rounds)}.weight" in arrays:
                parts = ("directions", "origin", "weight", "bias")
                one = Round(**{name: arrays[f"round{len(rounds)}.{name}"] for name in parts})
                num = len(one.origin)
                sound &= one.directions.shape == (width, num) and one.bias.shape == (width,)
                sound &= one.weight.shape == (_num_products(num), width)
                rounds.append(one)
            left_out_mae = float(arrays["left_out_mae"][0])
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise GridshiftError(f"numbers of a regression are missing: {error}") from error
        if not sound:
            raise GridshiftError("numbers of a regression have shapes that don't fit together")
        return cls(
            config=config, num_inputs=num_inputs, varied=varied, weight=weight, bias=bias,
            rounds=tuple(rounds), left_out_mae=left_out_mae,
        )  # fmt: skip


def fit_regression(
    x: Real, y: Real, config: RegressionConfig | None = None, *, groups: Sequence[np.ndarray] = ()
) -> Regression:
    """The closed-form base model of rows, its settings chosen on a fifth of them.

    Args:
        x: (N, X) inputs; those that are constant have no effect.
        y: (N, d) outputs.
        config: which model; by default `quadratic`.
        groups: sets of outputs (their numbers) whose components may be multiplied, tried besides
            those of all outputs: for a grid, magnitudes and angles.

    Raises:
        GridshiftError: fewer than 10 rows, or NaN or infinity among them.
    """
    config = config or RegressionConfig()
    if len(x) < 10 or len(x) != len(y):
        raise GridshiftError(
            f"{len(x)} rows of inputs and {len(y)} of outputs for a regression; give at least 10 "
            "of both"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise GridshiftError("rows for a regression hold NaN or infinity; keep solved rows only")
    varied = np.flatnonzero(x.max(0) > x.min(0))
    order = np.random.default_rng(0).permutation(len(x))
    held = np.zeros(len(x), bool)
    held[order[: max(2, round(HELD_OUT * len(x)))]] = True
    choice = _choose(x[:, varied], y, held, config, [np.arange(y.shape[1]), *groups])

    inputs = x[:, varied]
    weight, bias = _Sums.of(inputs, y).solve(inputs.shape[1], choice.penalty)
    y_hat, rounds = inputs @ weight + bias, []
    for step in choice.rounds:
        rounds.append(_fit_round(y_hat, y, step))
        y_hat = rounds[-1].add(y_hat)
    return Regression(
        config=config, num_inputs=x.shape[1], varied=varied, weight=weight, bias=bias,
        rounds=tuple(rounds), left_out_mae=choice.mae,
    )  # fmt: skip


def products(components: Real) -> Real:
    """(R, q (q + 3) / 2) components (R, q) and all products of two of them, the leading ones first.

    The products of the first k components are a prefix of those of all.
    """
    one = np.hstack([np.ones((len(components), 1)), components])
    out, start = np.empty((len(one), _num_products(components.shape[1]))), 0
    for last in range(1, one.shape[1]):
        stop = start + last + 1
        np.multiply(one[:, : last + 1], one[:, last : last + 1], out=out[:, start:stop])
        start = stop
    return out


def _num_products(num_components: int) -> int:
    return num_components * (num_components + 3) // 2


@dataclass(frozen=True, kw_only=True)
class _Step:
    """Settings of a round: which outputs' components, how many, and the penalty."""

    group: np.ndarray
    num: int
    penalty: float


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """Settings of a model, and its error on the held-out rows."""

    penalty: float
    rounds: tuple[_Step, ...]
    mae: float


def _choose(
    x: Real, y: Real, held: np.ndarray, config: RegressionConfig, groups: Sequence[np.ndarray]
) -> _Choice:
    """The settings that do best on the held-out rows, round by round."""
    fitted, sums = ~held, _Sums.of(x[~held], y[~held])
    best = (np.inf, 0.0, y)
    for penalty in PENALTIES:
        weight, bias = sums.solve(x.shape[1], penalty)
        y_hat = x @ weight + bias
        mae = float(np.abs(y_hat[held] - y[held]).mean())
        if mae < best[0]:
            best = (mae, penalty, y_hat)
    mae, penalty, y_hat = best
    steps: list[_Step] = []
    while config.name == "quadratic" and len(steps) < config.max_rounds:
        numbers = FURTHER_COMPONENTS if steps else COMPONENTS
        numbers = [num for num in numbers if num <= config.max_components]
        now, step = min(
            (
                attempt
                for group in groups
                for attempt in _attempts(y_hat, y, held, group, numbers[:-1] or numbers)
            ),
            key=lambda one: one[0],
            default=(np.inf, None),
        )
        if step is not None and len(numbers) > 1:  # the most are worth their time for one group
            more = _attempts(y_hat, y, held, step.group, numbers[-1:])
            now, step = min([(now, step), *more], key=lambda one: one[0])
        if step is None or now > GAIN * mae:
            break
        steps.append(step)
        y_hat = _fit_round(y_hat, y, step, fitted).add(y_hat)
        mae = now
    return _Choice(penalty=penalty, rounds=tuple(steps), mae=mae)


def _attempts(
    y_hat: Real, y: Real, held: np.ndarray, group: np.ndarray, numbers: Sequence[int]
) -> Iterator[tuple[float, _Step]]:
    """Held-out error and settings of every round with this group's components.

    Sums of products are formed once, for the largest number of components; those of fewer are a
    part of them.
    """
    fitted = ~held
    enough = fitted.sum() / ROWS_PER_FEATURE
    directions, origin = components_of(y_hat[fitted], group, max(numbers))
    have = directions.shape[1]
    numbers = sorted({min(num, have) for num in numbers})
    numbers = [num for num in numbers if 0 < _num_products(num) <= enough]
    if not numbers:
        return
    directions, origin = directions[:, : numbers[-1]], origin[: numbers[-1]]
    features = products(y_hat @ directions - origin)
    remainder = y - y_hat
    sums = _Sums.of(features[fitted], remainder[fitted])
    for num in numbers:
        for penalty in PENALTIES:
            weight, bias = sums.solve(_num_products(num), penalty)
            predicted = features[held, : len(weight)] @ weight + bias
            mae = float(np.abs(predicted - remainder[held]).mean())
            yield mae, _Step(group=group, num=num, penalty=penalty)


def _fit_round(y_hat: Real, y: Real, step: _Step, rows: np.ndarray | slice = slice(None)) -> Round:
    """The round with these settings, fitted to some of the rows of a prediction."""
    y_hat, y = y_hat[rows], y[rows]
    directions, origin = components_of(y_hat, step.group, step.num)
    features = products(y_hat @ directions - origin)
    weight, bias = _Sums.of(features, y - y_hat).solve(features.shape[1], step.penalty)
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
class _Sums:
    """Normal equations of a ridge regression on features scaled to variance 1."""

    mean: Real
    scale: Real
    target_mean: Real
    gram: Real
    """(F, F) a correlation matrix."""
    moment: Real
    """(F, d)"""

    @classmethod
    def of(cls, features: Real, target: Real) -> "_Sums":
        n, mean, scale = len(features), features.mean(0), features.std(0)
        scale = np.where(scale > 0, scale, 1.0)
        standard = (features - mean) / scale
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
