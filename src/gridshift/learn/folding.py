"""A trained network with the affine maps around it: input scaling before, the way back to y after.

The hidden layers work in float32. Everything that is affine in y is one last layer, and the large
part of y is added last and in float64, so that it keeps its digits.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from gridshift.learn.moments import Real
from gridshift.learn.whitening import Affine

BLOCK = 1_024
"""Rows that go through the layers at a time, so that hidden ones stay in the cache."""


def input_scaling(x: Real) -> tuple[Real, Real]:
    """Mean and standard deviation (X,) of rows (R, X); 1 for an input that never varies.

    A constant's computed deviation is round-off, not zero, so constants are told by their range.
    Nor does an input vary whose differences are too small to be squared.
    """
    deviation = x.std(0)
    constant = (x.min(0) == x.max(0)) | (deviation == 0)
    return np.where(constant, x[0], x.mean(0)), np.where(constant, 1.0, deviation)


def constants_of(y: Real) -> Real:
    """(Y,) value of each column of rows (R, Y) that never varies, NaN for the others."""
    return np.where(y.min(0) == y.max(0), y[0], np.nan)


def run(
    module: nn.Module, x: Real, mean: Real, scale: Real
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """What the module gives for blocks of scaled rows of x (R, X), with the rows they are.

    Always one block at least, so that results have a width; it may be empty.
    """
    for start in range(0, max(len(x), 1), BLOCK):
        rows = slice(start, start + BLOCK)
        scaled = (x[rows] - mean) / scale
        with torch.inference_mode():
            out = module(torch.from_numpy(scaled.astype(np.float32))).numpy()
        yield rows, out


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldedNetwork:
    """y = weight · hidden((x - input_mean) / input_scale) + bias: nothing but arrays and layers."""

    input_mean: Real
    """(X,)"""
    input_scale: Real
    """(X,)"""
    hidden: nn.Module
    """Maps scaled inputs (R, X) to (R, H)."""
    weight: NDArray[np.float32]
    """(Y, H)"""
    bias: Real
    """(Y,) float64."""

    @classmethod
    def of(
        cls, backbone: nn.Module, transform: Affine, input_mean: Real, input_scale: Real
    ) -> "FoldedNetwork":
        """The backbone, followed by the inverse of the transform that it was trained with."""
        head: nn.Linear = backbone.head  # type: ignore[assignment]
        weight, bias = (p.detach().numpy().astype(np.float64) for p in (head.weight, head.bias))
        weight, bias = transform.fold_into_linear(weight, bias)
        return cls(
            input_mean=input_mean,
            input_scale=input_scale,
            hidden=backbone.features,  # type: ignore[arg-type]
            weight=weight.astype(np.float32),
            bias=bias,
        )

    def holding(self, constants: Real) -> "FoldedNetwork":
        """The same, but with outputs that never varied given as they are; NaN (Y,) for the others.

        A network's round-off around a constant is no information, and scores divide by variances.
        """
        held = np.isfinite(constants)
        weight = np.where(held[:, None], np.float32(0), self.weight)
        return replace(self, weight=weight, bias=np.where(held, constants, self.bias))

    def predict(self, x: Real) -> Real:
        """(R, Y) y of inputs (R, X)."""
        y = np.empty((len(x), len(self.bias)))
        for rows, h in run(self.hidden, x, self.input_mean, self.input_scale):
            np.add(h @ self.weight.T, self.bias, out=y[rows])
        return y
