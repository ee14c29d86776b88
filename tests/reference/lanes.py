"""The functions of `lanes` and `arithmetic` in `gridshift.grid.kernels` on numpy arrays (W,)."""

import types

import numpy as np

from gridshift.grid.kernels.lanes import Lanes


def width(lanes: Lanes) -> int:
    return lanes.width


def load(lanes, array, index):
    return array.reshape(-1)[index : index + lanes.width].astype(lanes.dtype)


def store(array, index, value):
    array.reshape(-1)[index : index + len(value)] = value


def fill(lanes, scalar):
    return np.full(lanes.width, scalar, lanes.dtype)


def coefficient(lanes, table, index):
    return fill(lanes, table[index]) if table.ndim == 1 else table[index].astype(lanes.dtype)


def element(array, index):
    assert index >= 0
    return array.reshape(-1)[index]


def muladd(a, b, c):
    return a * b + c


def mulsub(a, b, c):
    return c - a * b


def absolute(a):
    return np.abs(a)


def square_root(a):
    return np.sqrt(a)


def larger(a, b):
    return np.maximum(a, b)


def peak(a, so_far):
    return np.maximum(np.abs(a), so_far)


def if_zero(a, yes, no):
    return np.where(a == 0, yes, no)


def convert(lanes, a):
    return a.astype(lanes.dtype)


def transpose_tile(source, at, source_stride, target, to, target_stride):
    for k in range(8):
        for j in range(8):
            target.reshape(-1)[to + k * target_stride + j] = source.reshape(-1)[
                at + j * source_stride + k
            ]


def plain(kernel):
    """The kernel's own source, run by the Python interpreter on the functions of this module.

    Kernels that it calls are replaced by their plain versions as well.
    """
    source = kernel.py_func
    scope = dict(source.__globals__)
    for name in source.__code__.co_names:
        value = scope.get(name)
        if name in globals() and not name.startswith("_"):
            scope[name] = globals()[name]
        elif hasattr(value, "py_func"):
            scope[name] = plain(value)
    return types.FunctionType(source.__code__, scope, source.__name__, source.__defaults__)
