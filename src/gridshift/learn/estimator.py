"""`ICWRegressor`: a model of any arrays that adapts to shifts, in scikit-learn's conventions."""

import copy
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted, validate_data

from gridshift.arrays import Real
from gridshift.errors import GridshiftError, GridshiftWarning
from gridshift.learn.backbones import MlpConfig
from gridshift.learn.compensated_model import CompensatedModel
from gridshift.learn.compensation import Compensation, Touched, fit_compensation
from gridshift.learn.fitted_network import FittedNetwork, constants_of, input_scaling
from gridshift.learn.identification import check_identifiable
from gridshift.learn.models import FittedModel, RefoldableModel
from gridshift.learn.moments import EPS, LARGEST
from gridshift.learn.paired import paired
from gridshift.learn.regression import REGRESSIONS, RegressionConfig, fit_regression
from gridshift.learn.touching import Buses, IdentifiedPair, Pairs, identify_pair, touched_of
from gridshift.learn.training import Progress, TrainingConfig
from gridshift.learn.whitened_model import WhitenedModel
from gridshift.learn.whitening import Affine, fit_transform

BASES = (*REGRESSIONS, "mlp")
"""Names of what can be adapted: closed forms, and the paper's network."""
MOMENTS = ("context", "paired")
NETWORK_ONLY = ("hidden", "num_layers", "dropout", "num_steps", "batch_size", "learning_rate")
"""Parameters that a base in closed form has no use for."""


class ICWRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """A model that is fitted once, and adapted to shifted outputs by a few rows.

    `fit` learns from rows of one domain, for instance one state of a grid. `adapt` takes rows of
    another and gives an estimator for it, in closed form: by what the shift adds to the model's own
    outputs (ten rows suffice where it is known what the shift touches), or by the mean and
    covariance of the new outputs (In-Context Whitening, equations 7 and 8 of the paper, which needs
    more rows than outputs). `predict` works as usual.

    Args:
        base: what is fitted: 'quadratic' regression on the inputs, and then on products of leading
            components of what that predicts; 'linear' the first alone; 'mlp' a neural network, as
            in the paper. The first two take seconds, and no random numbers.
        whitening: which moments of the outputs are matched: 'zca' mean and covariance (In-Context
            Whitening), 'zscore' mean and variances, 'residual' the mean, 'identity' none.
        moments: what the new moments are held against: 'context' those of the training rows, as in
            the paper; 'paired' those of the estimator's own predictions for the context's inputs,
            so that sampling noise cancels and nothing changes where nothing has shifted.
        eps: added to the eigenvalues of a covariance, or to variances. In squared units of the
            outputs: what varies by less than its root counts as constant.
        hidden: units of each hidden layer, for 'mlp', as all that follow.
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
        held_out_mae_: mean absolute error on a fifth of the rows, by the same model fitted without
            them; None for 'mlp', which is trained on all rows.
        loss_: mean loss of the last training steps, in the transformed space; None for the others.
        num_context_: rows that it was adapted to; 0 after `fit`.
        compensation_: what `adapt` learned of a shift, with its left-out error; None if it matched
            moments, and after `fit`.
    """

    n_features_in_: int
    base_model_: FittedModel
    model_: FittedModel
    compensation_: Compensation | None
    __metadata_request__fit: ClassVar = {"progress": UNUSED}  # not data: nothing to route

    def __init__(
        self,
        *,
        base: str = "quadratic",
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
        self.base = base
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
        """Fit to inputs X (N, F) and outputs y (N, O) or (N,): ten rows, or two for 'mlp'.

        Args:
            progress: called with (step, number of steps, loss), for 'mlp'.

        Raises:
            ValueError: what was given is no such array, or holds NaN; or a parameter is no good.

        Warns:
            GridshiftWarning: parameters of 'mlp' were given for another base.
        """
        x, rows = self._rows(X, y, reset=True)
        _check_moments(self.moments)
        if self.base not in BASES:
            raise GridshiftError(f"no base {self.base!r}; choose one of {', '.join(BASES)}")
        model = self._network(x, rows, progress) if self.base == "mlp" else self._closed(x, rows)
        self.held_out_mae_, self.loss_ = measures(model)
        self.base_model_ = self.model_ = model
        self.num_context_, self.compensation_ = 0, None
        return self

    def _closed(self, x: Real, y: Real) -> WhitenedModel:
        defaults = type(self)().get_params()
        if idle := [name for name in NETWORK_ONLY if getattr(self, name) != defaults[name]]:
            warnings.warn(
                f"{', '.join(idle)} are for base 'mlp'; base {self.base!r} has no use for them",
                GridshiftWarning,
                stacklevel=3,
            )
        regression = fit_regression(x, y, RegressionConfig(name=self.base))
        before = fit_transform(self.whitening, y, eps=self.eps)
        return WhitenedModel(model=regression, before=before, transform=before)

    def _network(self, x: Real, y: Real, progress: Progress | None) -> FittedNetwork:
        schedule = TrainingConfig(
            num_steps=self.num_steps, batch_size=self.batch_size, learning_rate=self.learning_rate
        )
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        model = FittedNetwork.untrained(
            backbone_config(self),
            input_scaling(x),
            fit_transform(self.whitening, y, eps=self.eps),
            num_outputs=y.shape[1],
            seed=seed,
            constants=constants_of(y),
        ).trained(x, y, schedule, seed=seed, progress=progress)
        assert model.loss is not None
        if not np.isfinite(model.loss):
            raise GridshiftError(
                f"training diverged at learning rate {self.learning_rate:g}; take a smaller one"
            )
        return model

    def adapt(
        self, X: Any, y: Any, *, touching: Any = None, branches: Pairs | None = None
    ) -> "ICWRegressor":
        """An estimator for the domain of these rows; this one stays as it is.

        It always starts from what `fit` learned: adapting an adapted estimator doesn't add up.

        Args:
            X: (N, F) inputs of the context, at least two rows.
            y: (N, O) their outputs.
            touching: which outputs belong to what has changed, for compensation: names of columns
                if y has names, or numbers; or a mapping from each bus that the change touches to
                its angle and magnitude, as `learn/touching.py` shows. () is nothing in particular.
                Without it, moments are matched.
            branches: with a mapping, the pairs of its buses between which something has changed;
                by default all pairs.

        Raises:
            NotFittedError: before `fit`.
            ValueError: other columns than at `fit`, NaN, fewer than two rows, an unknown column.

        Warns:
            GridshiftWarning: for compensation, inputs that varied at `fit` are the same in all
                rows.
            RankDeficientWarning: moments of no more rows than outputs.
        """
        names = _names(y)
        x, rows = self._context(X, y)
        if touching is not None:
            touched = touched_of(touching, y=rows, names=names, branches=branches)
            return self._compensated(x, rows, touched)
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

    def identify(
        self, X: Any, y: Any, buses: Mapping[Any, Any], *, branches: Pairs | None = None,
        level: float = 0.05,
    ) -> IdentifiedPair:  # fmt: skip
        """Between which two buses the domain of these rows has changed, as far as they tell.

        Its `pair` is for `adapt`: `touching={bus: buses[bus] for bus in found.pair}`.

        Args:
            X: (N, F) inputs of the context, at least five rows.
            y: (N, O) their outputs.
            buses: a mapping from all buses that may be concerned to their columns, as for `adapt`.
            branches: pairs of buses that may be; by default all.
            level: chance of naming a wrong pair that is accepted.

        Raises:
            NotFittedError: before `fit`.
            ValueError: as for `adapt`; fewer than five rows or than two buses.
        """
        names = _names(y)
        x, rows = self._context(X, y)
        check_identifiable(len(x))
        known = Buses.of(buses, names, self.n_outputs_)
        y_base = self.base_model_.predict(x)
        return identify_pair(x, rows, y_base, known, pairs=branches, level=level)

    def _context(self, X: Any, y: Any) -> tuple[Real, Real]:
        check_is_fitted(self)
        x, rows = self._rows(X, y, reset=False)
        if rows.shape[1] != self.n_outputs_:
            raise GridshiftError(
                f"y has {rows.shape[1]} outputs, but {type(self).__name__} was fitted with "
                f"{self.n_outputs_}"
            )
        return x, rows

    def _compensated(self, x: Real, y: Real, touched: Touched) -> "ICWRegressor":
        fitted = fit_compensation(
            x, y, self.base_model_.predict(x), touched, varied=self.base_model_.varied
        )
        adapted = self.frozen()
        adapted.model_ = CompensatedModel(base=self.base_model_, compensation=fitted)
        adapted.num_context_, adapted.compensation_ = len(x), fitted
        return adapted

    def frozen(self) -> "ICWRegressor":
        """A copy as it was after `fit`: what adaptation is compared with."""
        check_is_fitted(self)
        base = copy.copy(self)
        base.model_, base.num_context_, base.compensation_ = self.base_model_, 0, None
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


def backbone_config(estimator: ICWRegressor) -> MlpConfig:
    """The network that its parameters ask for."""
    return MlpConfig(
        hidden=estimator.hidden, num_layers=estimator.num_layers, dropout=estimator.dropout
    )


def measures(model: FittedModel) -> tuple[float | None, float | None]:
    """Held-out error and training loss of a model, as far as its kind has them."""
    if isinstance(model, WhitenedModel):
        return model.model.left_out_mae, None
    return None, getattr(model, "loss", None)


def _names(y: Any) -> list[str] | None:
    """Names of the outputs, if they are a table with named columns."""
    columns = getattr(y, "columns", None)
    return None if columns is None else [str(name) for name in columns]


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
