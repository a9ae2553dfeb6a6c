"""Constant folding, identities and what ranges decide, on integer, index and boolean arith.

Light on purpose: it shrinks what later transforms and LLVM's parser see. Floats are left alone, the HLO passes did what
is exact there. Each rule carries its law.

    %i = xla_gpu.apply_indexing "(d0) -> (d0 mod 8), …"(%t) ; %c = arith.cmpi slt, %i, %c9 ; %r = arith.remsi %i, %c8
    ->
    %c = arith.constant true ; %r = %i
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, i1
from xdsl.ir import Block, Operation, SSAValue

from heron.codegen.ir.builder import INTEGER_PREDICATES, Builder, Constants
from heron.codegen.ir.editing import constant_value, erase, functions, replace
from heron.codegen.transforms.lib.ranges import Ranges
from heron.codegen.transforms.options import TransformOptions

_FOLD: dict[type[Operation], Callable[[int, int], int]] = {
    arith.AddiOp: lambda a, b: a + b,
    arith.SubiOp: lambda a, b: a - b,
    arith.MuliOp: lambda a, b: a * b,
    arith.AndIOp: lambda a, b: a & b,
    arith.OrIOp: lambda a, b: a | b,
    arith.XOrIOp: lambda a, b: a ^ b,
    arith.MinSIOp: min,
    arith.MaxSIOp: max,
}
_DIVISIONS: dict[type[Operation], type[Operation]] = {  # what does the same to numbers that are not negative
    arith.DivUIOp: arith.DivUIOp,
    arith.DivSIOp: arith.DivUIOp,
    arith.FloorDivSIOp: arith.DivUIOp,
    arith.RemUIOp: arith.RemUIOp,
    arith.RemSIOp: arith.RemUIOp,
}
_SIMPLIFIED = frozenset({*_FOLD, *_DIVISIONS, arith.CmpiOp, arith.SelectOp})


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Simplifies every function of the module in one walk, operands before users."""
    for function in functions(module):
        _block(function.body.block, Constants(function.body.block), Ranges())


def _block(block: Block, constants: Constants, ranges: Ranges) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        for region in op.regions:
            for inner in region.blocks:
                _block(inner, constants, ranges)
        if type(op) is scf.IfOp:
            following = _if(op, block, constants) or following
        elif type(op) in _SIMPLIFIED and len(op.results) == 1:
            new = _simplify(op, Builder(block, constants, before=op, known={}), ranges)
            if new is not None:
                replace(op, [new])
        op = following


def _simplify(op: Operation, builder: Builder, ranges: Ranges) -> SSAValue | None:
    if type(op) in _FOLD:
        return _binary(op, builder) or _bounded(op, ranges)
    if type(op) in _DIVISIONS:
        return _division(op, builder, ranges)
    if type(op) is arith.CmpiOp:
        return _compare(op, builder, ranges)
    return _select(op) if type(op) is arith.SelectOp else None


def _binary(op: Operation, builder: Builder) -> SSAValue | None:
    lhs, rhs = op.operands
    a, b, type_ = constant_value(lhs), constant_value(rhs), op.results[0].type
    if a is not None and b is not None and isinstance(type_, (IntegerType, IndexType)):
        return builder.integer(_wrap(_FOLD[type(op)](a, b), type_), type_)
    if isinstance(op, (arith.MuliOp, arith.AndIOp)):
        found = _product(op, a, b, builder)
        if found is not None:
            return found
    if isinstance(op, (arith.AddiOp, arith.OrIOp, arith.XOrIOp)) and a == 0:
        return rhs  # 0 + x == x
    if isinstance(op, (arith.AddiOp, arith.SubiOp, arith.OrIOp, arith.XOrIOp)) and b == 0:
        return lhs  # x + 0 == x - 0 == x | 0 == x ^ 0 == x
    if isinstance(op, (arith.AndIOp, arith.OrIOp, arith.MinSIOp, arith.MaxSIOp)) and lhs is rhs:
        return lhs  # x & x == x | x == min(x, x) == x
    return None


def _product(op: arith.MuliOp | arith.AndIOp, a: int | None, b: int | None, builder: Builder) -> SSAValue | None:
    """A product or `and` of which one operand, `a` or `b`, is the constant that decides it."""
    lhs, rhs = op.operands
    type_ = op.results[0].type
    if a == 0 or b == 0:
        return builder.integer(0, type_)  # x * 0 == x & 0 == 0
    if isinstance(op, arith.MuliOp):
        if type_ == IntegerType(1) or 1 not in (a, b):
            return None
        return rhs if a == 1 else lhs  # x * 1 == x
    if _all_ones(b, type_):
        return lhs  # x & ~0 == x
    return rhs if _all_ones(a, type_) else None


def _wrap(value: int, type_: IntegerType | IndexType) -> int:
    """Two's complement of the type's width, as a signed number (i1: 0 or 1)."""
    bits = type_.width.data if isinstance(type_, IntegerType) else 64
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def _all_ones(value: int | None, type_: object) -> bool:
    if value is None:
        return False
    bits = type_.width.data if isinstance(type_, IntegerType) else 64
    return value & ((1 << bits) - 1) == (1 << bits) - 1


def _bounded(op: Operation, ranges: Ranges) -> SSAValue | None:
    """One operand, where ranges say that the other one changes nothing."""
    if not isinstance(op, (arith.MinSIOp, arith.MaxSIOp, arith.AndIOp)):
        return None
    lhs, rhs = op.operands
    (a, b), (c, d) = ranges.of(lhs), ranges.of(rhs)
    if isinstance(op, arith.AndIOp):  # x & 2^k - 1 == x where 0 <= x < 2^k
        return lhs if a >= 0 and c == d and d & (d + 1) == 0 and b <= d else None
    if isinstance(op, arith.MaxSIOp):
        (a, b), (c, d) = (-b, -a), (-d, -c)  # max(x, y) == -min(-x, -y)
    return lhs if b <= c else rhs if d <= a else None  # min(x, y) == x where x <= y


def _division(op: Operation, builder: Builder, ranges: Ranges) -> SSAValue | None:
    lhs, rhs = op.operands
    (a, b), (c, d) = ranges.of(lhs), ranges.of(rhs)
    unsigned = _DIVISIONS[type(op)]
    if a < 0 or c <= 0:
        return None
    if b < c:  # x mod y == x and x / y == 0 where 0 <= x < y
        return lhs if unsigned is arith.RemUIOp else builder.integer(0, lhs.type)
    if c == d == 1:  # x / 1 == x and x mod 1 == 0
        return builder.integer(0, lhs.type) if unsigned is arith.RemUIOp else lhs
    return None if unsigned is type(op) else builder.op(unsigned, lhs, rhs)  # signs do not matter where there are none


#: a predicate is decided where the range of the difference `lhs - rhs` lies on one side
_DECIDED: dict[str, Callable[[int, int], int | None]] = {
    "slt": lambda low, high: 1 if high < 0 else 0 if low >= 0 else None,
    "sle": lambda low, high: 1 if high <= 0 else 0 if low > 0 else None,
    "sgt": lambda low, high: 1 if low > 0 else 0 if high <= 0 else None,
    "sge": lambda low, high: 1 if low >= 0 else 0 if high < 0 else None,
    "eq": lambda low, high: 1 if low == high == 0 else 0 if low > 0 or high < 0 else None,
    "ne": lambda low, high: 0 if low == high == 0 else 1 if low > 0 or high < 0 else None,
}


def _compare(op: arith.CmpiOp, builder: Builder, ranges: Ranges) -> SSAValue | None:
    name = INTEGER_PREDICATES[op.predicate.value.data]
    lhs, rhs = op.operands
    if lhs.type == i1:
        return None
    (a, b), (c, d) = ranges.of(lhs), ranges.of(rhs)
    if name[0] == "u":
        if a < 0 or c < 0:
            return None
        name = "s" + name[1:]  # signs do not matter where there are none
    found = _DECIDED[name](a - d, b - c)
    return None if found is None else builder.integer(found, op.results[0].type)


def _select(op: arith.SelectOp) -> SSAValue | None:
    condition, yes, no = op.operands
    if yes is no:
        return yes  # c ? x : x == x
    known = constant_value(condition)
    return None if known is None else yes if known & 1 else no


def _if(op: scf.IfOp, block: Block, constants: Constants) -> Operation | None:
    """An `if` on a constant is the branch it takes; returns the op to go on with."""
    known = constant_value(op.operands[0])
    if known is None:
        return None
    region = op.regions[0 if known & 1 else 1]
    following = op.next_op
    if not region.blocks:
        erase(op)
        return following
    source = region.block
    last = source.last_op
    assert last is not None
    results = list(last.operands)
    erase(last)
    inner = source.first_op
    while inner is not None:
        after = inner.next_op
        inner.detach()
        block.insert_op_before(inner, op)
        inner = after
    replace(op, results)
    return following
