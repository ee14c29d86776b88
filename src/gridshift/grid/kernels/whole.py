"""Lanes as whole numbers: reductions over the lanes of a vector that don't depend on their order.

The last `FRACTION` bits of x + `MAGIC` are the number of quanta in x, rounded, for any x of less
than 2,048: a vector unit gets at them without converting anything. `MAGIC_BITS` is what zero has.
"""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gridshift.grid.kernels.lanes import _pointer, _splat

FRACTION = 40
"""Binary digits behind the point of a whole number of quanta."""
QUANTUM = 2.0**-FRACTION
MAGIC = 1.5 * 2.0 ** (52 - FRACTION)
MAGIC_BITS = int(np.float64(MAGIC).view(np.int64))


def _reduce(builder, name, bits):
    kind = bits.type
    function = ir.FunctionType(kind.element, [kind])
    full = f"llvm.vector.reduce.{name}.v{kind.count}i{kind.element.width}"
    return builder.call(cgutils.get_or_insert_function(builder.module, function, full), [bits])


def _bits(builder, value):
    return builder.bitcast(value, ir.VectorType(ir.IntType(64), value.type.count))


def _each(number, kind):
    return ir.Constant(kind, [number] * kind.count)


@intrinsic
def sum_of_bits(_typing, a, live):
    """Sum over lanes of the bits of `a` where those of `live` are set, as a whole number."""

    def generate(context, builder, sig, args):
        both = builder.and_(_bits(builder, args[0]), _bits(builder, args[1]))
        return _reduce(builder, "add", both)

    return types.int64(a, a), generate


@intrinsic
def most_bits(_typing, a):
    """The largest of the lanes' bits, as whole numbers."""

    def generate(context, builder, sig, args):
        return _reduce(builder, "smax", _bits(builder, args[0]))

    return types.int64(a), generate


@intrinsic
def least_bits(_typing, a):
    """The smallest of the lanes' bits, as whole numbers."""

    def generate(context, builder, sig, args):
        return _reduce(builder, "smin", _bits(builder, args[0]))

    return types.int64(a), generate


@intrinsic
def lanes_above(_typing, a, b):
    """One bit for each lane, set where a > b."""

    def generate(context, builder, sig, args):
        above = builder.fcmp_ordered(">", args[0], args[1])
        mask = builder.bitcast(above, ir.IntType(above.type.count))
        size = ir.IntType(64)
        return mask if mask.type == size else builder.zext(mask, size)

    return types.int64(a, a), generate


@intrinsic
def bits_set(_typing, mask):
    """How many bits of a whole number are set."""

    def generate(context, builder, sig, args):
        return builder.ctpop(args[0])

    return types.int64(types.int64), generate


@intrinsic
def if_above(_typing, a, b, yes, no):
    """Per lane `yes` where a > b, else `no`."""

    def generate(context, builder, sig, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return a(a, a, a, a), generate


@intrinsic
def if_zero(_typing, a, yes, no):
    """Per lane `yes` where a is 0, else `no`."""

    def generate(context, builder, sig, args):
        zero = ir.Constant(args[0].type, [0.0] * args[0].type.count)
        return builder.select(builder.fcmp_ordered("==", args[0], zero), args[1], args[2])

    return a(a, a, a), generate


@intrinsic
def store_shifted(_typing, array, a, first, shift, last):
    """array[:W] := (bits of each lane - first) >> shift, from 0 to last."""

    def generate(context, builder, sig, args):
        bits = _bits(builder, args[1])
        kind = bits.type
        place = builder.sub(bits, _splat(builder, args[2], kind))
        place = builder.ashr(place, _splat(builder, args[3], kind))
        zero, most = _each(0, kind), _splat(builder, args[4], kind)
        place = builder.select(builder.icmp_signed(">", place, zero), place, zero)
        place = builder.select(builder.icmp_signed("<", place, most), place, most)
        start = ir.Constant(ir.IntType(64), 0)
        at = _pointer(context, builder, sig.args[0], args[0], start, sig.args[1])
        builder.store(place, builder.bitcast(at, kind.as_pointer())).align = 8
        return context.get_dummy_value()

    size = types.int64
    return types.void(array, a, size, size, size), generate
