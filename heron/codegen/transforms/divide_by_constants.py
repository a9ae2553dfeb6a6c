"""Divisions of 64-bit integers by constants in loops become products of their halves.

LLVM takes the upper half of a product with a magic number, which no x86 processor has for vectors: a loop with one such
division goes one element at a time, random bits and all. Products of 32-bit halves are vector instructions everywhere.

    %q = arith.divui %n, %c301 : i64
    ->
    %low = arith.andi %n, %cffffffff ; %high = arith.shrui %n, %c32
    … four products of halves, whose sums' upper half is %t …
    %half = arith.shrui (%n - %t), %c1
    %q = arith.shrui (%t + %half), %c8 : i64

The magic numbers are those of Granlund and Montgomery, "Division by invariant integers using multiplication" (1994),
figure 4.1, which are right for all numbers of 64 bits.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.ir import Operation, SSAValue

from heron.codegen.ir.accesses import bits_of
from heron.codegen.ir.builder import Builder, Constants
from heron.codegen.ir.editing import constant_value, functions, ops_of, replace, walk_blocks
from heron.codegen.transforms.options import TransformOptions

_DIVISIONS = frozenset({arith.DivUIOp, arith.DivSIOp, arith.RemUIOp, arith.RemSIOp})
_SIGNED = frozenset({arith.DivSIOp, arith.RemSIOp})
_REMAINDERS = frozenset({arith.RemUIOp, arith.RemSIOp})

I64 = IntegerType(64)
_HALF = 32
_LOW = (1 << _HALF) - 1


def run(module: ModuleOp, options: TransformOptions | None = None) -> None:
    """Rewrites the module in place."""
    for function in functions(module):
        constants = Constants(function.body.block)
        for block in walk_blocks(function.body.block):
            if not isinstance(block.parent_op(), scf.ForOp):
                continue
            for op in ops_of(block):
                if type(op) in _DIVISIONS and op.results[0].type == I64:
                    divisor = constant_value(op.operands[1])
                    if divisor is not None and not _is_quick(op, divisor):
                        replace(op, [_divided(op, divisor, Builder(block, constants, before=op, known={}))])


def _is_quick(op: Operation, divisor: int) -> bool:
    """Whether LLVM has vectors for it: by a power of two, or of numbers that fit 32 bits."""
    widened = op.operands[0].owner
    is_short = isinstance(widened, arith.ExtUIOp) and bits_of(widened.operands[0]) <= _HALF
    return is_short or abs(divisor) & (abs(divisor) - 1) == 0


def _divided(op: Operation, divisor: int, b: Builder) -> SSAValue:
    """Quotient or remainder; of signed numbers from those of their sizes."""
    n, sign = op.operands[0], None
    if type(op) in _SIGNED:
        sign = b.op(arith.ShRSIOp, n, b.integer(63, I64))
        n = _with_sign(n, sign, b)
        size = abs(divisor)
    else:
        size = divisor % (1 << 64)
    result = _quotient(n, size, b)
    if type(op) in _REMAINDERS:
        result = _rest(n, result, size, b)
    if sign is None:
        return result
    if divisor < 0 and type(op) not in _REMAINDERS:
        sign = b.op(arith.XOrIOp, sign, b.integer(-1, I64))
    return _with_sign(result, sign, b)


def _with_sign(n: SSAValue, sign: SSAValue, b: Builder) -> SSAValue:
    """`n`, or -n where `sign` is -1 and not 0."""
    return b.op(arith.SubiOp, b.op(arith.XOrIOp, n, sign), sign)


def _quotient(n: SSAValue, divisor: int, b: Builder) -> SSAValue:
    bits = (divisor - 1).bit_length()
    magic = ((1 << 64) * ((1 << bits) - divisor)) // divisor + 1
    upper = _upper_half(n, magic, b)
    half = b.op(arith.ShRUIOp, b.op(arith.SubiOp, n, upper), b.integer(1, I64))
    return b.op(arith.ShRUIOp, b.op(arith.AddiOp, upper, half), b.integer(bits - 1, I64))


def _rest(n: SSAValue, quotient: SSAValue, divisor: int, b: Builder) -> SSAValue:
    """The remainder of `n`: its lower half is all of it if the divisor is short."""
    is_short = divisor <= _LOW
    quotient = _low(quotient, b) if is_short else quotient
    rest = b.op(arith.SubiOp, n, b.op(arith.MuliOp, quotient, b.integer(divisor, I64)))
    return _low(rest, b) if is_short else rest


def _upper_half(n: SSAValue, factor: int, b: Builder) -> SSAValue:
    """The upper 64 bits of a product of 128."""
    low, high = _low(n, b), _high(n, b)
    by_low, by_high = (b.integer(part, I64) for part in (factor & _LOW, factor >> _HALF))
    carried = _high(b.op(arith.MuliOp, low, by_low), b)
    first = b.op(arith.AddiOp, b.op(arith.MuliOp, high, by_low), carried)
    second = b.op(arith.AddiOp, b.op(arith.MuliOp, low, by_high), _low(first, b))
    most = b.op(arith.AddiOp, b.op(arith.MuliOp, high, by_high), _high(first, b))
    return b.op(arith.AddiOp, most, _high(second, b))


def _low(n: SSAValue, b: Builder) -> SSAValue:
    return b.op(arith.AndIOp, n, b.integer(_LOW, I64))


def _high(n: SSAValue, b: Builder) -> SSAValue:
    return b.op(arith.ShRUIOp, n, b.integer(_HALF, I64))
