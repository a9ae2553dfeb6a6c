"""Bits read as another type: bitcast-convert, and bitcasts between types. Least significant bits come first.

A narrower element is some bits of one element, a wider one is the bits of several.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from heron.analysis.indexing.expr import Const, Expr, floordiv, mod
from heron.analysis.indexing.hlo_maps import (
    Index,
    delinearize,
    from_memory,
    linearize,
    memory_sizes,
    moves_elements,
    operand_index,
    to_memory,
)
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Pair, Value, scalar_of
from heron.codegen.ir.types import I8, scalar_type
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType


def to_bits(e: FunctionEmitter, a: Value, t: ElementType) -> list[SSAValue]:
    """A value of type `t` as an integer of its width; a complex one as those of its parts."""
    if isinstance(a, Pair):
        return [e.b.op(arith.BitcastOp, part, type=IntegerType(t.component.bits)) for part in a]
    a = scalar_of(a)
    if t is types.PRED:
        return [e.b.op(arith.ExtUIOp, a, type=I8)]
    return [a if t.is_integer else e.b.op(arith.BitcastOp, a, type=IntegerType(t.bits))]


def of_bits(e: FunctionEmitter, words: list[SSAValue], t: ElementType) -> Value:
    """The value of type `t` those integers are the bits of; any bit makes a pred true."""
    if t.is_complex:
        return Pair(*(e.b.op(arith.BitcastOp, word, type=scalar_type(t.component)) for word in words))
    (word,) = words
    if t is types.PRED:
        return e.b.cmpi("ne", word, e.b.integer(0, I8))
    return word if t.is_integer else e.b.op(arith.BitcastOp, word, type=scalar_type(t))


def _width(word: SSAValue) -> int:
    return cast("IntegerType", word.type).width.data


def _part(e: FunctionEmitter, words: list[SSAValue], number: Expr, bits: int) -> SSAValue:
    """Part `number`, `bits` wide, of the number whose digits `words` are."""
    width = _width(words[0])
    word = words[0]
    if len(words) > 1:
        place, number = (
            e.simplify((x,))[0] for x in (floordiv(number, Const(width // bits)), mod(number, Const(width // bits)))
        )
        for n, other in enumerate(words[1:], 1):
            word = e.b.select(e.b.cmpi("eq", e.index_value(place), e.b.integer(n)), other, word)
    if bits == width:
        return word
    shift = e.b.op(arith.IndexCastOp, e.index_value(e.simplify((number * bits,))[0]), type=word.type)
    return e.b.op(arith.TruncIOp, e.b.op(arith.ShRUIOp, word, shift), type=IntegerType(bits))


def _together(e: FunctionEmitter, words: list[SSAValue], bits: int) -> SSAValue:
    """One number of that many bits whose digits `words` are."""
    wide: Attribute = IntegerType(bits)
    width = _width(words[0])
    if width == bits:
        return words[0]
    total: SSAValue | None = None
    for n, word in enumerate(words):
        digit = e.b.op(arith.ExtUIOp, word, type=wide)
        if n:
            digit = e.b.op(arith.ShLIOp, digit, e.b.integer(n * width, wide))
        total = digit if total is None else e.b.op(arith.OrIOp, total, digit)
    assert total is not None
    return total


def reinterpret(
    e: FunctionEmitter, source: ElementType, target: ElementType, number: Expr, read: Callable[[Expr], Value]
) -> Value:
    """An element of type `target` over the bits of elements of type `source`.

    `number` counts result elements, from any multiple of the ratio of widths; ``read(n)`` gives source element `n`.
    """
    part = target.component.bits
    if source.bits >= target.bits:
        ratio = source.bits // target.bits
        place, rest = e.simplify((floordiv(number, Const(ratio)), mod(number, Const(ratio))))
        words = to_bits(e, read(place), source)
        if ratio == 1:
            return of_bits(e, words, target)
        if target.is_complex:
            word = _part(e, words, rest, target.bits)
            return of_bits(e, [_part(e, [word], Const(n), part) for n in (0, 1)], target)
        return of_bits(e, [_part(e, words, rest, part)], target)
    ratio = target.bits // source.bits
    digits = [w for n in range(ratio) for w in to_bits(e, read(e.simplify((number * ratio + n,))[0]), source)]
    if not target.is_complex:
        return of_bits(e, [_together(e, digits, part)], target)
    half = len(digits) // 2
    return of_bits(e, [_together(e, d, part) for d in (digits[:half], digits[half:])], target)


@rule("bitcast-convert")
def _bitcast_convert(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    operand, source, target = i.operands[0], i.operands[0].shape.element_type, i.shape.element_type
    if source.bits == target.bits:
        return reinterpret(e, source, target, Const(0), lambda _: e.operand(i, 0, index))
    if source.bits > target.bits:
        return reinterpret(e, source, target, index[-1], lambda _: e.value(operand, index[:-1]))
    return reinterpret(e, source, target, Const(0), lambda n: e.value(operand, (*index, n)))


def _whole_elements(i: Instruction) -> str | None:
    if moves_elements(i) or i.operands[0].shape.element_type.is_complex == i.shape.element_type.is_complex:
        return None
    return f"{i.operands[0].shape} to {i.shape} mixes complex and real elements"


@rule("bitcast", check=_whole_elements)
def _bitcast(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    operand = i.operands[0]
    if moves_elements(i):
        return e.value(operand, e.simplify(operand_index(i, 0, index)))
    sizes = memory_sizes(operand.shape)

    def read(place: Expr) -> Value:
        return e.value(operand, e.simplify(from_memory(operand.shape, delinearize(place, sizes))))

    number = linearize(to_memory(i.shape, index), memory_sizes(i.shape))
    return reinterpret(e, operand.shape.element_type, i.shape.element_type, number, read)
