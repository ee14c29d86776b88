"""Adaptation by the new topology's network: its tangent, and what a surrogate adds to it.

A surrogate with a tangent's transform has learned z = W (y - t(x)), with t the tangent of the
topology that it was trained on. Adaptation puts the new topology's t in its place, which takes one
solve of the nominal point; a context, if there is one, may correct what the surrogate adds.
"""

import numpy as np

from gridshift.adapt.base import Base
from gridshift.adapt.context import Context, Predictor
from gridshift.adapt.expansion import TANGENT_ORDERS, ExpansionPredictor
from gridshift.adapt.surrogate import Surrogate
from gridshift.grid.expansion import Order
from gridshift.learn.recalibration import Correction, choose_correction
from gridshift.learn.whitening import Affine


def adapt_tangent(base: Base, context: Context, *, order: Order) -> Predictor:
    """The expansion alone; the base isn't used."""
    return ExpansionPredictor.of(context.network, order)


def adapt_corrected_tangent(surrogate: Surrogate, context: Context) -> Predictor:
    """The new topology's expansion, and the surrogate's remainder as it is or recalibrated."""
    expansion = ExpansionPredictor.of(context.network, TANGENT_ORDERS[surrogate.transform.name])
    base = surrogate.transform
    assert isinstance(base, Affine), "the tangent's transforms scale each output"
    if not len(context.x):
        return surrogate.with_transform(base, expansion)
    remainder = context.y - expansion.predict(context.x)
    predicted = base.inverse(surrogate.predict_whitened(context.x))
    correction = choose_correction(remainder, predicted).correction
    return surrogate.with_transform(_corrected(base, correction), expansion)


def _corrected(base: Affine, correction: Correction) -> Affine:
    """The way back from z to the corrected remainder."""
    by, unwhitener, shift = correction.by_prediction, base.unwhitener, base.shift
    if by is not None and by.ndim == 1:
        shift = shift * by
        unwhitener = by * unwhitener if unwhitener.ndim == 1 else by[:, None] * unwhitener
    elif by is not None:
        shift = shift @ by
        unwhitener = by.T * unwhitener if unwhitener.ndim == 1 else by.T @ unwhitener
    return Affine(
        name=base.name, shift=shift + correction.offset, whitener=np.empty(0), unwhitener=unwhitener
    )
