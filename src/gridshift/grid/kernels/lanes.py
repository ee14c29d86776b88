"""Lanes: W scenarios side by side in vector registers, as a value that numba code can compute with.

A kernel reads like scalar arithmetic, `a = muladd(g, e, a)`, and each name stands for W numbers
that stay in registers (LLVM splits a vector of 32 doubles over four AVX-512 registers, or eight
AVX2 ones). numba alone can't express this: accumulators of an inner lane loop live in memory,
which measured 3 times slower.

`Lanes(width, dtype)` is the token that says how many and how wide; it is part of a kernel's
signature, so the same source compiles for every width and precision. `tests/reference/lanes.py` has
the same functions on numpy arrays of shape (W,); tests run the kernels' source on both.
"""

import operator
import os

import numpy as np
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import (
    NativeValue,
    intrinsic,
    lower_builtin,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import from_dtype


class Lanes:
    """Token for `width` lanes of `dtype` ('float64' or 'float32')."""

    def __init__(self, width: int, dtype: str = "float64"):
        self.width, self.dtype = width, np.dtype(dtype)
        # numba asks for this first; without it every call of a kernel takes 10 µs longer
        self._numba_type_ = LanesType(width, from_dtype(self.dtype))

    def __reduce__(self):
        return Lanes, (self.width, self.dtype.name)


class LanesType(types.Type):
    """Type of a `Lanes` token; carries no data."""

    def __init__(self, width: int, base: types.Float):
        self.width, self.base = width, base
        super().__init__(name=f"Lanes({width}, {base})")

    @property
    def vector(self) -> "VectorType":
        """Type of the values that these lanes hold."""
        return VectorType(self.width, self.base)


class VectorType(types.Type):
    """Type of a value of W numbers, one LLVM vector."""

    def __init__(self, width: int, base: types.Float):
        self.width, self.base = width, base
        super().__init__(name=f"Vector({width}, {base})")


@typeof_impl.register(Lanes)
def _typeof_lanes(value, _context):
    return value._numba_type_


register_model(LanesType)(models.OpaqueModel)


@unbox(LanesType)
def _unbox_lanes(_type, _value, context):
    return NativeValue(context.context.get_dummy_value())


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager, fe_type):
        super().__init__(manager, fe_type, _llvm(fe_type))


def _llvm(vector: VectorType) -> ir.VectorType:
    scalar = ir.DoubleType() if vector.base == types.float64 else ir.FloatType()
    return ir.VectorType(scalar, vector.width)


def _pointer(context, builder, array_type, array, index, vector):
    data = context.make_array(array_type)(context, builder, array).data
    at = builder.gep(data, [index])
    return builder.bitcast(at, _llvm(vector).as_pointer())


def _call(builder, name: str, vector: VectorType, args):
    kind = _llvm(vector)
    suffix = f"v{vector.width}f{64 if vector.base == types.float64 else 32}"
    function = ir.FunctionType(kind, [kind] * len(args))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, function, f"llvm.{name}.{suffix}"), args
    )


def _splat(builder, scalar, kind: ir.VectorType):
    one = builder.insert_element(
        ir.Constant(kind, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)


for _base in (types.float64, types.float32):
    for _width in (4, 8, 16, 32, 64):
        _v = VectorType(_width, _base)
        for _op, _name in (
            (operator.add, "fadd"),
            (operator.sub, "fsub"),
            (operator.mul, "fmul"),
            (operator.truediv, "fdiv"),
        ):

            @lower_builtin(_op, _v, _v)
            def _binary(_context, builder, _sig, args, name=_name):
                return getattr(builder, name)(args[0], args[1])

            infer_global(_op)(  # pyright: ignore[reportOptionalCall]
                type(
                    "_Template", (ConcreteTemplate,), {"cases": [signature(_v, _v, _v)], "key": _op}
                )
            )


@intrinsic
def width(_typing, lanes):
    """Number of lanes, a constant once compiled."""

    def generate(context, builder, sig, args):
        return context.get_constant(types.intp, sig.args[0].width)

    return types.intp(lanes), generate


@intrinsic
def load(_typing, lanes, array, index):
    """The W numbers that start at flat position `index`."""
    vector = lanes.vector

    def generate(context, builder, sig, args):
        value = builder.load(_pointer(context, builder, sig.args[1], args[1], args[2], vector))
        value.align = 8 if vector.base == types.float64 else 4
        return value

    return vector(lanes, array, types.intp), generate


@intrinsic
def store(_typing, array, index, value):
    """Write the lanes of `value` from flat position `index` on."""

    def generate(context, builder, sig, args):
        out = builder.store(
            args[2], _pointer(context, builder, sig.args[0], args[0], args[1], sig.args[2])
        )
        out.align = 8 if sig.args[2].base == types.float64 else 4
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


@intrinsic
def fill(_typing, lanes, scalar):
    """The same number in every lane."""

    def generate(context, builder, sig, args):
        return _splat(builder, args[1], _llvm(sig.return_type))

    return lanes.vector(lanes, lanes.base), generate


@intrinsic
def coefficient(_typing, lanes, table, index):
    """Entry `index` of a table: shared by all lanes (1-D table), or one number per lane (2-D)."""
    vector, shared = lanes.vector, table.ndim == 1

    def generate(context, builder, sig, args):
        if shared:
            data = context.make_array(sig.args[1])(context, builder, args[1]).data
            return _splat(builder, builder.load(builder.gep(data, [args[2]])), _llvm(vector))
        start = builder.mul(args[2], ir.Constant(args[2].type, vector.width))
        value = builder.load(_pointer(context, builder, sig.args[1], args[1], start, vector))
        value.align = 8 if vector.base == types.float64 else 4
        return value

    return vector(lanes, table, types.intp), generate


@intrinsic
def element(_typing, array, index):
    """array[index] without numba's wraparound of negative indices."""

    def generate(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load(builder.gep(data, [args[1]]))

    return array.dtype(array, types.intp), generate


@intrinsic
def convert(_typing, lanes, a):
    """The same numbers in the precision of `lanes`."""

    def generate(context, builder, sig, args):
        target, source = sig.return_type, sig.args[1]
        if target.base == source.base:
            return args[1]
        cast = builder.fptrunc if target.base == types.float32 else builder.fpext
        return cast(args[1], _llvm(target))

    return lanes.vector(lanes, a), generate


@intrinsic
def transpose_tile(_typing, source, at, source_stride, target, to, target_stride):
    """target[to + k*target_stride + j] = source[at + j*source_stride + k], 8 by 8, in registers."""
    vector = VectorType(8, types.float64)
    index = ir.IntType(32)

    def generate(context, builder, sig, args):
        def row(array, offset, stride, k):
            place = builder.add(
                args[offset], builder.mul(args[stride], ir.Constant(args[stride].type, k))
            )
            return _pointer(context, builder, sig.args[array], args[array], place, vector)

        def shuffle(x, y, mask):
            return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(index, 8), mask))

        rows = []
        for k in range(8):
            value = builder.load(row(0, 1, 2, k))
            value.align = 8
            rows.append(value)
        for span in (1, 2, 4):
            low = [j if not j & span else j - span + 8 for j in range(8)]
            high = [j + span if not j & span else j + 8 for j in range(8)]
            mixed = list(rows)
            for k in range(8):
                if not k & span:
                    mixed[k] = shuffle(rows[k], rows[k + span], low)
                    mixed[k + span] = shuffle(rows[k], rows[k + span], high)
            rows = mixed
        for k in range(8):
            builder.store(rows[k], row(3, 4, 5, k)).align = 8
        return context.get_dummy_value()

    size = types.intp
    return types.void(source, size, size, target, size, size), generate


def vector_bits() -> int:
    """Width of the widest vector registers that compiled code may use here: 512, 256 or 128."""
    name = (os.environ.get("NUMBA_CPU_NAME") or "").lower()
    if name:
        by_name = {"haswell": 256, "znver3": 256, "skylake-avx512": 512, "znver4": 512}
        return by_name.get(name, 128)
    features = llvm.get_host_cpu_features()
    if features.get("avx512f") and features.get("avx512vl"):
        return 512
    return 256 if features.get("avx2") else 128
