"""Linear regression on the context: the plainest way to learn a topology from its solved cases."""

from dataclasses import dataclass

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.surrogate import FoldedPredictor, Surrogate, TransformedPredictor
from gridshift.arrays import Int, Real
from gridshift.learn.ridge import fit_ridge
from gridshift.learn.whitening import Affine


@dataclass(frozen=True, kw_only=True, eq=False)
class LinearInInputs:
    """y = x @ weight + bias, and a folded surrogate's prediction on top if there is one."""

    weight: Real
    """(V, Y) for the inputs that varied."""
    varied: Int
    """(V,) their numbers in x."""
    bias: Real
    """(Y,)"""
    left_out_mae: float
    """Mean absolute error of each row of the context by a fit to all others."""
    network: FoldedPredictor | TransformedPredictor | None = None

    def predict(self, x: Real) -> Real:
        """(R, Y) outputs of inputs (R, X)."""
        y = x[:, self.varied] @ self.weight
        return y + (self.bias if self.network is None else self.network.predict(x))


def adapt_ridge(base: Base, context: Context) -> Predictor:
    """y from x alone; the base isn't used."""
    varied = varying(context.x)
    ridge = fit_ridge(context.x[:, varied], context.y)
    weight, bias = ridge.linear()
    left_out_mae = float(np.abs(ridge.left_out).mean())
    return LinearInInputs(weight=weight, varied=varied, bias=bias, left_out_mae=left_out_mae)


def adapt_ridge_features(surrogate: Surrogate, context: Context) -> Predictor:
    """y from the surrogate's own output z and x; the part in z folds into its last layer."""
    varied = varying(context.x)
    z = surrogate.predict_whitened(context.x)
    ridge = fit_ridge(np.hstack([z, context.x[:, varied]]), context.y)
    weight, bias = ridge.linear()
    num = z.shape[1]
    way_back = Affine(
        name=surrogate.transform.name, shift=bias, whitener=np.empty(0), unwhitener=weight[:num].T
    )
    network = surrogate.with_transform(way_back)
    return LinearInInputs(
        weight=weight[num:],
        varied=varied,
        bias=np.zeros_like(bias),
        left_out_mae=float(np.abs(ridge.left_out).mean()),
        network=network,
    )


def varying(x: Real) -> Int:
    """Inputs that aren't the same in all rows (N, X)."""
    return np.flatnonzero(x.max(0) > x.min(0))
