"""`ICWRegressor`: In-Context Whitening for any arrays, in scikit-learn's conventions."""

import copy
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from gridshift.arrays import Real
from gridshift.errors import GridshiftError
from gridshift.learn.backbones import MlpConfig
from gridshift.learn.fitted_network import FittedNetwork, constants_of, input_scaling
from gridshift.learn.models import FittedModel, RefoldableModel
from gridshift.learn.moments import EPS, LARGEST
from gridshift.learn.paired import paired
from gridshift.learn.training import Progress, TrainingConfig
from gridshift.learn.whitening import Affine, fit_transform

MOMENTS = ("context", "paired")


class ICWRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A network that is trained once, and adapted to shifted outputs without gradients.

    `fit` trains on rows of one domain, for instance one state of a grid. `adapt` takes some rows of
    another and gives an estimator for it: the hidden layers stay, and the last layer gets the mean
    and covariance of the new outputs (equations 7 and 8 of the paper). `predict` works as usual.

    Args:
        whitening: which moments of the outputs are matched: 'zca' mean and covariance (In-Context
            Whitening), 'zscore' mean and variances, 'residual' the mean, 'identity' none.
        moments: what the new moments are held against: 'context' those of the training rows, as in
            the paper; 'paired' those of the estimator's own predictions for the context's inputs,
            so that sampling noise cancels and nothing changes where nothing has shifted.
        eps: added to the eigenvalues of a covariance, or to variances. In squared units of the
            outputs: what varies by less than its root counts as constant.
        hidden: units of each hidden layer.
        num_layers: hidden layers.
        dropout: share of hidden units left out in training.
        num_steps: gradient steps.
        batch_size: rows of each.
        learning_rate: at the start; it falls along a cosine.
        random_state: decides initial weights, order of rows and dropout.

    Attributes:
        n_features_in_: number of inputs.
        feature_names_in_: their names, if `fit` was given a table whose columns have names.
        n_outputs_: number of outputs.
        base_model_: the `FittedModel` that `fit` has made.
        model_: the one that predicts: after `adapt`, `base_model_` with another way back to y.
        loss_: mean loss of the last training steps, in the transformed space.
        num_context_: rows that it was adapted to; 0 after `fit`.
    """

    n_features_in_: int
    base_model_: FittedModel
    model_: FittedModel
    __metadata_request__fit: ClassVar = {"progress": UNUSED}  # not data: nothing to route

    def __init__(
        self,
        *,
        whitening: str = "zca",
        moments: str = "context",
        eps: float = EPS,
        hidden: int = 256,
        num_layers: int = 2,
        dropout: float = 0.0,
        num_steps: int = 20_000,
        batch_size: int = 32,
        learning_rate: float = 2e-3,
        random_state: int | np.random.RandomState | None = None,
    ):
        self.whitening = whitening
        self.moments = moments
        self.eps = eps
        self.hidden = hidden
        self.num_layers = num_layers
        self.dropout = dropout
        self.num_steps = num_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, progress: Progress | None = None) -> "ICWRegressor":
        """Train on inputs X (N, F) and outputs y (N, O) or (N,), at least two rows.

        Args:
            X: inputs.
            y: outputs.
            progress: called with (step, number of steps, loss).

        Raises:
            ValueError: what was given is no such array, or holds NaN; or a parameter is no good.
        """
        x, rows = self._rows(X, y, reset=True)
        _check_moments(self.moments)
        schedule = TrainingConfig(
            num_steps=self.num_steps, batch_size=self.batch_size, learning_rate=self.learning_rate
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        model = FittedNetwork.untrained(
            self._backbone_config(),
            input_scaling(x),
            fit_transform(self.whitening, rows, eps=self.eps),
            num_outputs=rows.shape[1],
            seed=seed,
            constants=constants_of(rows),
        ).trained(x, rows, schedule, seed=seed, progress=progress)
        assert model.loss is not None
        self.loss_ = model.loss
        if not np.isfinite(self.loss_):
            raise GridshiftError(
                f"training diverged at learning rate {self.learning_rate:g}; take a smaller one"
            )
        self.base_model_ = self.model_ = model
        self.num_context_ = 0
        return self

    def adapt(self, X: Any, y: Any) -> "ICWRegressor":
        """An estimator for the domain of these rows; this one stays as it is.

        It always starts from what `fit` learned: adapting an adapted estimator doesn't add up.

        Args:
            X: (N, F) inputs of the context, at least two rows.
            y: (N, O) their outputs.

        Raises:
            NotFittedError: before `fit`.
            ValueError: other columns than at `fit`, NaN, fewer than two rows.

        Warns:
            RankDeficientWarning: no more rows than outputs.
        """
        check_is_fitted(self)
        x, rows = self._rows(X, y, reset=False)
        if rows.shape[1] != self.n_outputs_:
            raise GridshiftError(
                f"y has {rows.shape[1]} outputs, but {type(self).__name__} was fitted with "
                f"{self.n_outputs_}"
            )
        _check_moments(self.moments)
        model = self.base_model_
        if not isinstance(model, RefoldableModel):
            raise GridshiftError(f"a model {model.kind} has no outputs that could be adapted")
        base = model.transform
        assert isinstance(base, Affine)
        new = fit_transform(base.name, rows, eps=base.eps)
        if self.moments == "paired":
            new = paired(base, fit_transform(base.name, model.predict(x), eps=base.eps), new)
        adapted = self.frozen()
        adapted.model_ = model.refolded(new, constants_of(rows))
        adapted.num_context_ = len(x)
        return adapted

    def frozen(self) -> "ICWRegressor":
        """A copy as it was after `fit`: what adaptation is compared with."""
        check_is_fitted(self)
        base = copy.copy(self)
        base.model_, base.num_context_ = self.base_model_, 0
        return base

    def predict(self, X: Any) -> Real:
        """(N, O) outputs of inputs X (N, F), or (N,) if `fit` was given a single column as (N,).

        Raises:
            NotFittedError: before `fit`.
            ValueError: other columns than at `fit`, NaN, or values beyond all that was fitted.
        """
        check_is_fitted(self)
        x = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        _check_size(x, "X")
        y = self.model_.predict(x)
        if not np.isfinite(y).all():
            row = np.flatnonzero(~np.isfinite(y).all(1))[0]
            raise GridshiftError(
                f"row {row} of X is too far from the rows of the fit to be predicted"
            )
        return y[:, 0] if self.single_output_ else y

    def _rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Real, Real]:
        x, rows = validate_data(
            self, X, y, reset=reset, dtype=np.float64, multi_output=True, y_numeric=True,
            ensure_min_samples=2,
        )  # fmt: skip
        x, rows = np.asarray(x), np.asarray(rows, np.float64)
        if reset:
            self.single_output_ = rows.ndim == 1
        rows = rows.reshape(len(rows), -1)
        for name, values in (("X", x), ("y", rows)):
            _check_size(values, name)
        if reset:
            self.n_outputs_ = rows.shape[1]
        return x, rows

    def _backbone_config(self) -> MlpConfig:
        return MlpConfig(hidden=self.hidden, num_layers=self.num_layers, dropout=self.dropout)

    def check_model(self, model: FittedModel) -> None:
        """Pass if the model is what `fit` would make with these parameters.

        Raises:
            GridshiftError: it isn't.
        """
        network = isinstance(model, FittedNetwork)
        if not network or model.config != self._backbone_config():
            raise GridshiftError(f"a model {model.kind} of another architecture than asked for")
        if model.constants is None:
            raise GridshiftError("no array constants")
        if model.transform.name != self.whitening:
            raise GridshiftError(f"a transform {model.transform.name} where it is {self.whitening}")


def _check_size(values: Real, name: str) -> None:
    large = np.argwhere(np.abs(values) > LARGEST)
    if len(large):
        row, column = large[0]
        raise GridshiftError(
            f"{name} has {values[row, column]:g} in row {row}, column {column}; values up to "
            f"{LARGEST:g} can be worked with, so choose another unit or leave the row out"
        )


def _check_moments(name: str) -> None:
    if name not in MOMENTS:
        raise GridshiftError(f"no moments {name!r}; choose one of {', '.join(MOMENTS)}")
