"""Gradient-free adaptation from solved cases alone: moments, linear regression, and a choice.

`icw` of the paper compares the context's moments with those of the training rows. Its paired forms
compare them with the moments of the surrogate's own predictions for the same inputs
(`learn/paired.py`), or shrink them. Ridge regression is the plainest way to learn a topology.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.compensation import adapt_compensation
from gridshift.adapt.context import Context, Predictor, SummedPredictor
from gridshift.adapt.surrogate import Surrogate, fit_output_transform
from gridshift.arrays import Int, Real
from gridshift.errors import OutageError, RankDeficientWarning
from gridshift.learn.linear_terms import LinearTerms
from gridshift.learn.models import RefoldableModel
from gridshift.learn.paired import correlation_shrinkage, fit_shrunk_zca, paired
from gridshift.learn.ridge import fit_ridge
from gridshift.learn.splits import folds
from gridshift.learn.whitening import Affine, fit_residual, fit_zscore

FOLDS = 5
"""Parts of the context of which one is left out to compare methods."""


def adapt_frozen(surrogate: Surrogate, context: Context) -> Predictor:
    """Statistics of the training topology."""
    return surrogate


def adapt_with_context_statistics(surrogate: Surrogate, context: Context) -> Predictor:
    """y = T_ctx^-1(f(x)), equation 8 of the paper; folded into the last layer if T is affine."""
    base = surrogate.transform
    return surrogate.with_transform(fit_output_transform(base.name, context.y, base.eps))


def adapt_icw_paired(surrogate: Surrogate, context: Context) -> Predictor:
    """Mean and covariance, held against those of the predictions for the same inputs."""
    return _paired(surrogate, context, partial(fit_shrunk_zca, shrinkage=0.0))


def adapt_icw_shrunk(surrogate: Surrogate, context: Context) -> Predictor:
    """As `adapt_icw_paired`, both correlation matrices shrunk by what is best for the context."""
    shrinkage = correlation_shrinkage(context.y)
    return _paired(surrogate, context, partial(fit_shrunk_zca, shrinkage=shrinkage))


def adapt_zscore_paired(surrogate: Surrogate, context: Context) -> Predictor:
    """Mean and variance of each output, held against those of the predictions."""
    return _paired(surrogate, context, fit_zscore)


def adapt_residual_paired(surrogate: Surrogate, context: Context) -> Predictor:
    """The predictions, moved by their mean error: the control variate of the mean."""
    return _paired(surrogate, context, fit_residual)


def _paired(surrogate: Surrogate, context: Context, fit: Callable[..., Affine]) -> Predictor:
    base = surrogate.transform
    assert isinstance(base, Affine), "its methods ask for transform zca"
    rows = surrogate.predict(context.x), context.y
    predicted, new = (fit(y, eps=base.eps) for y in rows)
    return surrogate.with_transform(paired(base, predicted, new))


def adapt_ridge(base: Base, context: Context) -> Predictor:
    """y from x alone; the base isn't used."""
    varied = varying(context.x)
    ridge = fit_ridge(context.x[:, varied], context.y)
    return SummedPredictor(
        parts=(_terms(varied, *ridge.linear()),), left_out_mae=float(np.abs(ridge.left_out).mean())
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Recombined:
    """y_hat @ weight of what another predictor gives for the same inputs."""

    of: Surrogate
    weight: Real
    """(Y, Y)"""

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        return self.of.predict(x) @ self.weight


def adapt_ridge_features(surrogate: Surrogate, context: Context) -> Predictor:
    """y from the base's own output and x; a network's z folds into its last layer."""
    varied = varying(context.x)
    if surrogate.leading is not None or not isinstance(surrogate.model, RefoldableModel):
        return _of_outputs(surrogate, context, varied)
    z = surrogate.predict_whitened(context.x)
    ridge = fit_ridge(np.hstack([z, context.x[:, varied]]), context.y)
    weight, bias = ridge.linear()
    by_z, by_x = np.split(weight, [z.shape[1]])
    way_back = Affine(
        name=surrogate.transform.name, shift=bias, whitener=np.empty(0), unwhitener=by_z.T
    )
    terms = _terms(varied, by_x, np.zeros_like(bias))
    return SummedPredictor(
        parts=(terms, surrogate.with_transform(way_back)),
        left_out_mae=float(np.abs(ridge.left_out).mean()),
    )


def _of_outputs(surrogate: Surrogate, context: Context, varied: Int) -> Predictor:
    y_hat = surrogate.predict(context.x)
    ridge = fit_ridge(np.hstack([y_hat, context.x[:, varied]]), context.y)
    weight, bias = ridge.linear()
    by_y, by_x = np.split(weight, [y_hat.shape[1]])
    return SummedPredictor(
        parts=(_terms(varied, by_x, bias), Recombined(of=surrogate, weight=by_y)),
        left_out_mae=float(np.abs(ridge.left_out).mean()),
    )


def _terms(varied: Int, weight: Real, bias: Real) -> LinearTerms:
    return LinearTerms(matrix=weight.T, columns=varied, centre=np.zeros(len(varied)), offset=bias)


def varying(x: Real) -> Int:
    """Inputs that aren't the same in all rows (N, X)."""
    return np.flatnonzero(x.max(0) > x.min(0))


CLOSED_FORMS: dict[str, Callable[[Surrogate, Context], Predictor]] = {
    "frozen": adapt_frozen,
    "ridge": adapt_ridge,
    "ridge-features": adapt_ridge_features,
    "compensation": adapt_compensation,
}
"""What `icw-auto` chooses from: with any base and any context, for errors of single rows left out
are known."""
BY_MOMENTS: dict[str, Callable[[Surrogate, Context], Predictor]] = {
    "icw": adapt_with_context_statistics,
    "zscore-paired": adapt_zscore_paired,
    "icw-paired": adapt_icw_paired,
}
"""What it also tries with a network and two rows or more in each of the parts left out."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen:
    """The predictor that did best on rows left out, and how all candidates did."""

    name: str
    predictor: Predictor
    left_out_mae: dict[str, float]

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        return self.predictor.predict(x)


def adapt_auto(surrogate: Surrogate, context: Context) -> Chosen:
    """The candidate with the smallest mean absolute error on rows of the context left out.

    Single rows where that has a closed form, fifths of the context where not, which is a little to
    the disadvantage of whitening.
    """
    fitted, errors = {}, {}
    for name, adapt in CLOSED_FORMS.items():
        try:
            found = adapt(surrogate, context)
        except OutageError:  # nothing differs from the base's topology: nothing to compensate
            continue
        known = getattr(found, "left_out_mae", None)
        fitted[name] = found
        errors[name] = _error(found, context) if known is None else known
    if isinstance(surrogate.model, RefoldableModel) and len(context.x) >= 2 * FOLDS:
        for name, adapt in BY_MOMENTS.items():
            fitted[name] = adapt(surrogate, context)
            errors[name] = _left_out(adapt, surrogate, context)
    best = min(errors, key=errors.__getitem__)
    return Chosen(name=best, predictor=fitted[best], left_out_mae=errors)


def _error(predictor: Predictor, context: Context) -> float:
    return float(np.abs(predictor.predict(context.x) - context.y).mean())


def _left_out(
    adapt: Callable[[Surrogate, Context], Predictor], surrogate: Surrogate, context: Context
) -> float:
    total = 0.0
    with warnings.catch_warnings():
        # a part of a context lacks the rank that the whole one warns of anyway
        warnings.simplefilter("ignore", RankDeficientWarning)
        for others, part in folds(len(context.x), FOLDS):
            kept = replace(context, x=context.x[others], y=context.y[others])
            y_hat = adapt(surrogate, kept).predict(context.x[part])
            total += float(np.abs(y_hat - context.y[part]).mean(1).sum())
    return total / len(context.x)
