"""Changes of type or representation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.meaning import bits, numeric, rounding
from heron.hlo.ops.rules import array, attr, default, given, need_arrays, need_kind, need_same_dims
from heron.hlo.ops.unary import FLOAT

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("convert")
class Convert(Op):
    """The same values as another type.

    Integers wrap, floats round to nearest even, floats to integers truncate and saturate (NaN gives 0).

    Shape: as stated, with the operand's dimensions.
    """

    operands = ("operand",)
    linear = ("operand",)
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE, Trait.CONVERTS}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        to = given(i, "the result type must be given")
        need_arrays(i, x, to)
        if to.dims != x.dims:
            reject(i, "a conversion keeps the dimensions", f"{x} to {to}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return numeric.convert(x, i.operands[0].shape.element_type, i.shape.element_type)


@op("bitcast-convert")
class BitcastConvert(Op):
    """The same bits as another type.

    Shape: as stated: the operand's dimensions; a width k times smaller adds a minor dimension k, and the reverse.
    """

    operands = ("operand",)
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE, Trait.CONVERTS}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        to = given(i, "the result type must be given")
        need_arrays(i, x, to)
        old, new = x.element_type, to.element_type
        if old.is_complex != new.is_complex:
            reject(i, "complex and real types do not convert into each other bitwise", f"{x} to {to}")
        dims = x.dims
        if max(old.bits, new.bits) % min(old.bits, new.bits):
            reject(i, f"{max(old.bits, new.bits)} bits are no whole number of elements of {min(old.bits, new.bits)}")
        if new.bits < old.bits:
            dims = (*dims, old.bits // new.bits)
        elif new.bits > old.bits:
            if not dims or dims[-1] * old.bits != new.bits:
                reject(i, f"the minor dimension must hold the bits of one {new}", f"{x} to {to}")
            dims = dims[:-1]
        if to.dims != dims:
            reject(i, f"the result must have dimensions {list(dims)}", f"it is {to}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        old, new = i.operands[0].shape.element_type, i.shape.element_type
        # of one width it may be run on a whole array for a scalar, as in a comparator
        return bits.reinterpret(x, old, new, x.shape if old.bits == new.bits else i.shape.dims)


@op("stochastic-convert")
class StochasticConvert(Op):
    """Float to signed integer, rounded up in magnitude when `random` (uniform bits) is below the fraction.

    Shape: as stated, with the operands' dimensions.
    """

    operands = ("operand", "random")
    traits = {Trait.ELEMENTWISE, Trait.CHANGES_TYPE, Trait.CONVERTS}

    def shape(self, i: Instruction, x: Shape, random: Shape) -> Shape:
        to = given(i, "the result type must be given")
        need_arrays(i, x, random, to)
        need_kind(i, x, FLOAT)
        need_kind(i, random, frozenset({"unsigned"}), 1)
        need_same_dims(i, x, random)
        if random.element_type.bits != x.element_type.bits:
            reject(i, "operand 1 must be as wide as operand 0", f"{random.element_type} and {x.element_type}")
        if to.dims != x.dims or not (to.element_type.is_float or to.element_type.is_signed):
            reject(i, "the result must be signed integers or floats of the operand's dimensions", f"it is {to}")
        return default(to)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray, random: np.ndarray) -> np.ndarray:
        t = i.shape.element_type
        if not t.is_signed:
            raise HeronError("EVAL001", "the evaluator knows stochastic-convert to signed integers only")
        value = numeric.precise(x)
        size = np.abs(np.where(np.isfinite(value), value, 0))
        whole = np.trunc(size)
        up = random.astype(np.float64) < np.trunc(np.ldexp(size - whole, i.operand("random").shape.element_type.bits))
        rounded = np.copysign(whole + up, value)
        return numeric.saturate(np.where(np.isfinite(value), rounded, value), t)


@op("reduce-precision")
class ReducePrecision(Op):
    """Rounded to a float of `exponent_bits` and `mantissa_bits`, kept in the operand's type.

    Shape: the operand's.
    """

    operands = ("operand",)
    attributes = {
        "exponent_bits": Attr(AttrKind.INT, required=True),
        "mantissa_bits": Attr(AttrKind.INT, required=True),
    }
    traits = {Trait.ELEMENTWISE, Trait.CONVERTS}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        need_arrays(i, x)
        need_kind(i, x, FLOAT)
        if attr(i, "exponent_bits") < 1 or attr(i, "mantissa_bits") < 0:
            reject(
                i,
                "at least one exponent bit and no negative mantissa bits",
                f"exponent_bits={i.exponent_bits}, mantissa_bits={i.mantissa_bits}",
            )
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        return rounding.reduce_precision(x, i.shape.element_type, i.exponent_bits, i.mantissa_bits)


@op("bitcast")
class Bitcast(Op):
    """The same bytes in memory, under another shape and layout.

    Shape: as stated, of as many bytes.
    """

    operands = ("operand",)
    traits = {Trait.VIEW, Trait.FORWARDS, Trait.MOVES_ELEMENTS, Trait.REINDEXES, Trait.FREE, Trait.PERMUTES}
    flops = 0
    code = 3

    def shape(self, i: Instruction, x: Shape) -> Shape:
        to = given(i)
        need_arrays(i, x, to)
        before, after = x.num_elements * x.element_type.bits, to.num_elements * to.element_type.bits
        if before != after:
            reject(i, "a bitcast keeps the bits", f"{x} has {before}, {to} has {after}")
        return to if to.layout is not None else array(to.element_type, to.dims, to.dynamic)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        source, to = i.operands[0].shape, i.shape
        if not source.rank and not to.rank:  # it may be run on a whole array for a scalar, as in a comparator
            return bits.reinterpret(x, source.element_type, to.element_type, x.shape)
        stored = bits.to_memory(x, source.layout)
        flat = bits.reinterpret(stored, source.element_type, to.element_type, (to.num_elements,))
        return bits.from_memory(flat, to.dims, to.layout)
