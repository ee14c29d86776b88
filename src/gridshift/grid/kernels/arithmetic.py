"""Arithmetic of lanes: what `a * b` and `a + b` don't say of values of W numbers."""
# pyright: basic, reportCallIssue=false, reportArgumentType=false, reportAttributeAccessIssue=false

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gridshift.grid.kernels import compiled
from gridshift.grid.kernels.lanes import _call, _llvm


@intrinsic
def muladd(_typing, a, b, c):
    """a*b + c, fused where the processor can."""

    def generate(context, builder, sig, args):
        return _call(builder, "fmuladd", sig.return_type, args)

    return a(a, a, a), generate


@intrinsic
def mulsub(_typing, a, b, c):
    """c - a*b, fused where the processor can."""

    def generate(context, builder, sig, args):
        return _call(builder, "fmuladd", sig.return_type, [builder.fneg(args[0]), args[1], args[2]])

    return a(a, a, a), generate


@intrinsic
def absolute(_typing, a):
    """Per lane |a|."""

    def generate(context, builder, sig, args):
        return _call(builder, "fabs", sig.return_type, args)

    return a(a), generate


@intrinsic
def square_root(_typing, a):
    """Per lane the square root."""

    def generate(context, builder, sig, args):
        return _call(builder, "sqrt", sig.return_type, args)

    return a(a), generate


@intrinsic
def larger(_typing, a, b):
    """Per lane the larger of the two, NaN if either is: a running maximum never hides one."""

    def generate(context, builder, sig, args):
        first, second = args
        keep = builder.or_(
            builder.fcmp_unordered(">", first, second), builder.fcmp_unordered("uno", first, first)
        )
        keep = builder.and_(keep, builder.fcmp_ordered("ord", second, second))
        return builder.select(keep, first, second)

    return a(a, a), generate


@intrinsic
def peak(_typing, a, so_far):
    """Per lane the larger of |a| and `so_far`, which is not negative; NaN if either is.

    As `larger(absolute(a), so_far)` in a third of the instructions: the bits of numbers without a
    sign are in the order of the numbers, NaN above all.
    """

    def generate(context, builder, sig, args):
        vector = sig.return_type
        bits = 64 if vector.base == types.float64 else 32
        kind = ir.VectorType(ir.IntType(bits), vector.width)
        unsigned = ir.Constant(kind, [2 ** (bits - 1) - 1] * vector.width)
        size = builder.and_(builder.bitcast(args[0], kind), unsigned)
        best = builder.bitcast(args[1], kind)
        best = builder.select(builder.icmp_signed(">", size, best), size, best)
        return builder.bitcast(best, _llvm(vector))

    return a(a, a), generate


@compiled
def active_power(v_re, v_im, i_re, i_im):
    """Re(v conj(i))"""
    return muladd(v_re, i_re, v_im * i_im)


@compiled
def reactive_power(v_re, v_im, i_re, i_im):
    """Im(v conj(i))"""
    return mulsub(v_re, i_im, v_im * i_re)
