"""Gradient-free adaptation from solved cases alone: better moments, and a choice by left-out error.

`icw` of the paper compares the context's moments with those of the training rows. The methods here
compare them with the moments of the surrogate's own predictions for the same inputs
(`learn/paired.py`), or shrink them.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.ridge import adapt_ridge, adapt_ridge_features
from gridshift.adapt.surrogate import Surrogate, fit_output_transform
from gridshift.arrays import Real
from gridshift.errors import RankDeficientWarning
from gridshift.learn.paired import correlation_shrinkage, fit_shrunk_zca, paired
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
    return _paired(surrogate, context, lambda y, eps: fit_shrunk_zca(y, eps=eps, share=0.0))


def adapt_icw_shrunk(surrogate: Surrogate, context: Context) -> Predictor:
    """As `adapt_icw_paired`, both correlation matrices shrunk by the context's best share."""
    share = correlation_shrinkage(context.y)
    return _paired(surrogate, context, lambda y, eps: fit_shrunk_zca(y, eps=eps, share=share))


def adapt_zscore_paired(surrogate: Surrogate, context: Context) -> Predictor:
    """Mean and variance of each output, held against those of the predictions."""
    return _paired(surrogate, context, lambda y, eps: fit_zscore(y, eps=eps))


def adapt_residual_paired(surrogate: Surrogate, context: Context) -> Predictor:
    """The predictions, moved by their mean error: the control variate of the mean."""
    return _paired(surrogate, context, lambda y, eps: fit_residual(y, eps=eps))


def _paired(
    surrogate: Surrogate, context: Context, fit: Callable[[Real, float], Affine]
) -> Predictor:
    base = surrogate.transform
    assert isinstance(base, Affine), "its methods ask for transform zca"
    predicted, new = fit(surrogate.predict(context.x), base.eps), fit(context.y, base.eps)
    return surrogate.with_transform(paired(base, predicted, new))


CANDIDATES: dict[str, Callable[[Surrogate, Context], Predictor]] = {
    "frozen": adapt_frozen,
    "icw": adapt_with_context_statistics,
    "zscore-paired": adapt_zscore_paired,
    "icw-paired": adapt_icw_paired,
    "ridge": adapt_ridge,
    "ridge-features": adapt_ridge_features,
}
"""What `icw-auto` chooses from."""


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

    Single rows where that has a closed form (ridge), fifths of the context where not, which is a
    little to the disadvantage of whitening. Fewer than two rows a fifth tell nothing: `frozen`.
    """
    if len(context.x) < 2 * FOLDS:
        return Chosen(name="frozen", predictor=surrogate, left_out_mae={})
    errors = {}
    for name, adapt in CANDIDATES.items():
        fitted = adapt(surrogate, context)
        closed_form = getattr(fitted, "left_out_mae", None)
        errors[name] = _left_out(adapt, surrogate, context) if closed_form is None else closed_form
    best = min(errors, key=errors.__getitem__)
    return Chosen(name=best, predictor=CANDIDATES[best](surrogate, context), left_out_mae=errors)


def _left_out(
    adapt: Callable[[Surrogate, Context], Predictor], surrogate: Surrogate, context: Context
) -> float:
    order = np.random.default_rng(0).permutation(len(context.x))
    total = 0.0
    with warnings.catch_warnings():
        # a part of a context lacks the rank that the whole one warns of anyway
        warnings.simplefilter("ignore", RankDeficientWarning)
        for part in np.array_split(order, FOLDS):
            others = np.setdiff1d(order, part)
            kept = replace(context, x=context.x[others], y=context.y[others])
            y_hat = adapt(surrogate, kept).predict(context.x[part])
            total += float(np.abs(y_hat - context.y[part]).mean(1).sum())
    return total / len(order)
