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
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftError, StorageError
from gridshift.learn.fitted_network import input_scaling
from gridshift.learn.model_file import array, config_of, field
from gridshift.learn.onnx_graph import OnnxGraph
from gridshift.learn.products import EPS, Round, num_products, products

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
class Regression:
    """A `FittedModel`: y = x[:, varied] @ weight + bias, then each round; from `fit_regression`."""

    kind: ClassVar[str] = "regression"
    config: RegressionConfig
    input_mean: Real
    """(X,) of the rows fitted to."""
    varied: Int
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
        if x.ndim != 2 or x.shape[1] != len(self.input_mean):
            raise GridshiftError(
                f"inputs of shape {x.shape}; (N, {len(self.input_mean)}) is needed"
            )
        y = x[:, self.varied] @ self.weight + self.bias
        for one in self.rounds:
            y = one.add(y)
        return y

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All numbers, by the names that a file has them under."""
        arrays = {
            "input_mean": self.input_mean, "varied": self.varied, "weight": self.weight,
            "bias": self.bias,
        }  # fmt: skip
        for number, one in enumerate(self.rounds):
            arrays |= {f"round{number}.{name}": value for name, value in vars(one).items()}
        return arrays

    def about(self) -> dict[str, Any]:
        """Everything else that a file has, as JSON values."""
        return {
            "regression": asdict(self.config), "num_rounds": len(self.rounds),
            "left_out_mae": self.left_out_mae,
        }  # fmt: skip

    @classmethod
    def restored(
        cls,
        about: dict[str, Any],
        arrays: Mapping[str, NDArray[Any]],
        shape: tuple[int, int],
        make_graph: Any = None,
    ) -> "Regression":
        """The model of `about` and `arrays`, with so many inputs and outputs; it takes no graph.

        Raises:
            GridshiftError: a field or an array is missing, or can't be.
        """
        num_inputs, num_outputs = shape
        varied = array(arrays, "varied", np.shape(arrays.get("varied", ())), kind=np.int64)
        if varied.ndim != 1 or not ((varied >= 0) & (varied < num_inputs)).all():
            raise StorageError(f"array varied holds other numbers than those of {shape[0]} inputs")
        return cls(
            config=config_of(RegressionConfig, about.get("regression")),
            input_mean=array(arrays, "input_mean", (num_inputs,)), varied=varied,
            weight=array(arrays, "weight", (len(varied), num_outputs)),
            bias=array(arrays, "bias", (num_outputs,)),
            rounds=tuple(
                Round.restored(arrays, f"round{number}.", num_outputs)
                for number in range(field(about, "num_rounds", int))
            ),
            left_out_mae=field(about, "left_out_mae", float),
        )  # fmt: skip

    def add_to_graph(self, graph: OnnxGraph) -> str:
        """Add the sums and products in float64, and return the name of y."""
        chosen = graph.add("Gather", "x", graph.constant(self.varied), axis=1)
        product = graph.add("MatMul", chosen, graph.constant(self.weight))
        y = graph.add("Add", product, graph.constant(self.bias))
        for one in self.rounds:
            y = one.add_to_graph(graph, y)
        return y

    def round_off(self, x: Real) -> Real:
        """(d,) how far apart two orders of the same sums may be on rows (R, X)."""
        chosen = x[:, self.varied]
        size = np.abs(chosen) @ np.abs(self.weight) + np.abs(self.bias)
        y, error = chosen @ self.weight + self.bias, (len(self.varied) + 1) * EPS * size
        for one in self.rounds:
            y, error = one.add(y), one.round_off(y, error)
        return error.max(0, initial=0.0)


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
        config=config, input_mean=input_scaling(x)[0], varied=varied, weight=weight, bias=bias,
        rounds=tuple(rounds), left_out_mae=choice.mae,
    )  # fmt: skip


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
        tried = [
            attempt for group in groups for attempt in _attempts(y_hat, y, held, group, numbers)
        ]
        now, step = min(tried, key=lambda one: one[0], default=(np.inf, None))
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
    numbers = [num for num in numbers if 0 < num_products(num) <= enough]
    if not numbers:
        return
    directions, origin = directions[:, : numbers[-1]], origin[: numbers[-1]]
    features = products(y_hat @ directions - origin)
    remainder = y - y_hat
    sums = _Sums.of(features[fitted], remainder[fitted])
    for num in numbers:
        for penalty in PENALTIES:
            weight, bias = sums.solve(num_products(num), penalty)
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
