"""`Round`: what products of a prediction's leading components add to it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridshift.arrays import Real
from gridshift.learn.model_file import array
from gridshift.learn.onnx_graph import OnnxGraph

EPS = float(np.finfo(np.float64).eps)


def products(components: Real) -> Real:
    """(R, q (q + 3) / 2) components (R, q) and all products of two of them, the leading ones first.

    The products of the first k components are a prefix of those of all.
    """
    one = np.hstack([np.ones((len(components), 1)), components])
    i, j = np.tril_indices(one.shape[1])
    return one[:, i[1:]] * one[:, j[1:]]


def num_products(num_components: int) -> int:
    """How many `products` there are of so many components."""
    return num_components * (num_components + 3) // 2


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

    @classmethod
    def restored(
        cls, arrays: Mapping[str, NDArray[np.generic]], prefix: str, width: int
    ) -> "Round":
        """The round of arrays with names of this prefix, of so many outputs.

        Raises:
            StorageError: one is missing, or of another shape than the others need.
        """
        num = np.size(arrays.get(f"{prefix}origin", ()))
        shapes = {
            "directions": (width, num), "origin": (num,), "weight": (num_products(num), width),
            "bias": (width,),
        }  # fmt: skip
        return cls(**{name: array(arrays, prefix + name, shapes[name]) for name in shapes})

    def add_to_graph(self, graph: OnnxGraph, y: str) -> str:
        """Add the round to a graph that has the prediction as `y`; the name of the new one."""
        width, num = self.directions.shape
        # a component that is 1 in front of the others, as in `products`
        directions = np.hstack([np.zeros((width, 1)), self.directions])
        projected = graph.add("MatMul", y, graph.constant(directions))
        origin = graph.constant(np.concatenate([[-1.0], self.origin]))
        one = graph.add("Sub", projected, origin)
        i, j = (graph.constant(numbers[1:]) for numbers in np.tril_indices(num + 1))
        both = (graph.add("Gather", one, numbers, axis=1) for numbers in (i, j))
        product = graph.add("MatMul", graph.add("Mul", *both), graph.constant(self.weight))
        return graph.add("Add", y, graph.add("Add", product, graph.constant(self.bias)))

    def round_off(self, y: Real, error: Real) -> Real:
        """(R, d) bound on the difference of two evaluations, for one of `error` (R, d) in y."""
        width, num = self.directions.shape
        across = np.abs(self.directions)
        z = y @ self.directions - self.origin
        dz = error @ across + (width + 1) * EPS * (np.abs(y) @ across + np.abs(self.origin))
        one = np.hstack([np.ones((len(y), 1)), np.abs(z)])
        d_one = np.hstack([np.zeros((len(y), 1)), dz])
        i, j = (numbers[1:] for numbers in np.tril_indices(num + 1))
        size = one[:, i] * one[:, j]
        d_size = one[:, i] * d_one[:, j] + d_one[:, i] * (one[:, j] + d_one[:, j]) + EPS * size
        own = (d_size + (len(self.weight) + 1) * EPS * size) @ np.abs(self.weight)
        return error + own + 2 * EPS * (np.abs(self.bias) + np.abs(y))
