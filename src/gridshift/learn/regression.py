"""Base models in closed form: linear regression, and products of what it predicts.

`linear` is ridge regression of y on the inputs that vary. `quadratic` goes on from a prediction
with rounds: take the leading principal components of the prediction so far, and fit what is left of
y by ridge on their products. What a grid leaves of its linear prediction is a quadratic form in the
state, which the prediction's leading components stand for with few terms. A second round makes
products of what has products in it already, which is what rows close to a limit of the grid need.

How many components, of which outputs, what penalty and how many rounds: whatever does best on a
fifth of the rows that is held out. The model itself is then fitted to all rows.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gridshift.arguments import require_one_of
from gridshift.arrays import Int, Real
from gridshift.errors import GridshiftError, StorageError
from gridshift.learn.fitted_network import input_scaling
from gridshift.learn.model_file import Stored, array, config_of, field
from gridshift.learn.onnx_graph import OnnxGraph
from gridshift.learn.products import EPS, Round
from gridshift.learn.rounds import Sums, choose_rounds, fit_round

REGRESSIONS = ("linear", "quadratic")
"""Names of the base models in closed form."""
HELD_OUT = 0.2
"""Share of the rows that decides."""


@dataclass(frozen=True, kw_only=True)
class RegressionConfig:
    """Which model, and how far it may go."""

    name: str = "quadratic"
    """One of `REGRESSIONS`."""
    max_components: int = 40
    max_rounds: int = 4

    def __post_init__(self) -> None:
        require_one_of(self.name, REGRESSIONS, "regression")
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
    def restored(cls, stored: Stored) -> "Regression":
        """The model that was stored.

        Raises:
            GridshiftError: a field or an array is missing, or can't be.
        """
        about, arrays, (num_inputs, num_outputs) = stored.about, stored.arrays, stored.shape
        varied = array(arrays, "varied", np.shape(arrays.get("varied", ())), kind=np.int64)
        if varied.ndim != 1 or not ((varied >= 0) & (varied < num_inputs)).all():
            raise StorageError(
                f"array varied holds other numbers than those of {num_inputs} inputs"
            )
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
    inputs = x[:, varied]
    order = np.random.default_rng(0).permutation(len(x))
    num_held = max(2, round(HELD_OUT * len(x)))
    fitted, held = order[num_held:], order[:num_held]
    fitted.sort()
    choice = choose_rounds(
        (inputs[fitted], inputs[held]), (y[fitted], y[held]),
        groups=[np.arange(y.shape[1]), *groups], max_components=config.max_components,
        max_rounds=config.max_rounds if config.name == "quadratic" else 0,
    )  # fmt: skip
    weight, bias = Sums.of(inputs, y).solve(inputs.shape[1], choice.penalty)
    y_hat, rounds = inputs @ weight + bias, []
    for step in choice.rounds:
        if rounds:
            y_hat = rounds[-1].add(y_hat)
        rounds.append(fit_round(y_hat, y, step))
    return Regression(
        config=config, input_mean=input_scaling(x)[0], varied=varied, weight=weight, bias=bias,
        rounds=tuple(rounds), left_out_mae=choice.mae,
    )  # fmt: skip
