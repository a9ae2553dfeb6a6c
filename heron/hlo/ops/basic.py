"""Leaves, tuples and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.ir.types import PRED, U32
from heron.hlo.ops.rules import attr, default, given, need_arrays, need_dim, stated

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("parameter")
class Parameter(Op):
    """An input of the computation; `number` prints inside the parentheses.

    Shape: as stated.
    """

    attributes = {"number": Attr(AttrKind.INT, required=True)}
    traits = {Trait.GIVEN, Trait.FREE}
    flops = 0

    def shape(self, i: Instruction) -> Shape:
        if attr(i, "number") < 0:
            reject(i, f"parameter number {i.number} is negative")
        return given(i)


@op("constant")
class Constant(Op):
    """A value the program states; `literal` prints inside the parentheses.

    Shape: the literal's.
    """

    attributes = {"literal": Attr(AttrKind.LITERAL, required=True)}
    traits = {Trait.GIVEN, Trait.FREE}
    flops = 0
    code = 0

    def shape(self, i: Instruction) -> Shape:
        shape = attr(i, "literal").shape
        if stated(i) is None:
            return default(shape)
        if i.shape.bare is not shape.bare:
            reject(i, "the shape is not the literal's", f"{i.shape} and {shape}")
        return i.shape

    def evaluate(self, ev: Evaluation, i: Instruction) -> Any:
        return _value(i.literal)


def _value(literal: Any) -> Any:
    return tuple(map(_value, literal.parts)) if literal.shape.is_tuple else literal.array


@op("iota")
class Iota(Op):
    """Each element's index in `iota_dimension`.

    Shape: as stated.
    """

    attributes = {"iota_dimension": Attr(AttrKind.INT, required=True)}
    traits = {Trait.MOVES_ELEMENTS, Trait.GENERATED}
    flops = 0.5

    def shape(self, i: Instruction) -> Shape:
        shape = given(i)
        need_arrays(i, shape)
        if shape.element_type is PRED:
            reject(i, "an iota cannot count in pred")
        need_dim(i, "iota_dimension", attr(i, "iota_dimension"), shape.rank)
        return default(shape)

    def evaluate(self, ev: Evaluation, i: Instruction) -> np.ndarray:
        shape, d = i.shape, i.iota_dimension
        if not shape.num_elements:  # the dimension itself may be huge
            return np.zeros(shape.dims, shape.element_type.dtype)
        line = np.arange(shape.dims[d]).astype(shape.element_type.dtype)
        return np.broadcast_to(line.reshape([-1 if k == d else 1 for k in range(shape.rank)]), shape.dims)


@op("tuple")
class Tuple(Op):
    """Its operands as one value.

    Shape: the tuple of the operands' shapes.
    """

    operands = ("elements*",)
    traits = {Trait.TUPLE, Trait.FREE}
    flops = 0
    code = 0

    def shape(self, i: Instruction, *elements: Shape) -> Shape:
        return tuple_(elements)

    def evaluate(self, ev: Evaluation, i: Instruction, *elements: Any) -> tuple[Any, ...]:
        return elements


@op("get-tuple-element")
class GetTupleElement(Op):
    """Element `index` of a tuple.

    Shape: that element's.
    """

    operands = ("tuple",)
    attributes = {"index": Attr(AttrKind.INT, required=True)}
    traits = {Trait.TUPLE, Trait.FREE}
    flops = 0
    code = 0

    def shape(self, i: Instruction, x: Shape) -> Shape:
        parts = x.tuple_shapes
        index: int = attr(i, "index")
        if parts is None:
            reject(i, "operand 0 must be a tuple", f"it is {x}")
        if not 0 <= index < len(parts):
            reject(i, f"index={index} is outside the tuple", f"it has {len(parts)} elements")
        return parts[index]

    def evaluate(self, ev: Evaluation, i: Instruction, x: tuple[Any, ...]) -> Any:
        return x[i.index]


@op("copy")
class Copy(Op):
    """The same value in memory of its own, maybe in another layout.

    Shape: the operand's.
    """

    operands = ("operand",)
    traits = {Trait.ELEMENTWISE, Trait.REINDEXES, Trait.PERMUTES, Trait.ANY_ORDER}
    linear = ("operand",)
    flops = 0
    code = 0

    def shape(self, i: Instruction, x: Shape) -> Shape:
        return x

    def evaluate(self, ev: Evaluation, i: Instruction, x: Any) -> Any:
        return x


@op("copy-start")
class CopyStart(Op):
    """Begins a copy; the value is (destination, source, context).

    Shape: a tuple: the operand's shape twice and a u32[], unless stated.
    """

    operands = ("operand",)
    attributes = {"cross_program_prefetch_index": Attr(AttrKind.INT)}
    done = "copy-done"

    def shape(self, i: Instruction, x: Shape) -> Shape:
        if stated(i) is None:
            return tuple_((x, x, scalar(U32)))
        parts = i.shape.tuple_shapes
        if parts is None or len(parts) < 2 or any(p.bare is not x.bare for p in parts[:2]):
            reject(i, "the result must be (destination, source, context)", f"it is {i.shape} for {x}")
        return i.shape

    def evaluate(self, ev: Evaluation, i: Instruction, x: Any) -> tuple[Any, ...]:
        return x, x, np.zeros((), np.uint32)


@op("copy-done")
class CopyDone(Op):
    """The destination of a finished copy.

    Shape: the first element of the operand's.
    """

    operands = ("started",)
    traits = {Trait.FREE}

    def shape(self, i: Instruction, started: Shape) -> Shape:
        if not started.tuple_shapes:
            reject(i, "operand 0 must be what copy-start returns", f"it is {started}")
        return started.tuple_shapes[0]

    def evaluate(self, ev: Evaluation, i: Instruction, started: tuple[Any, ...]) -> Any:
        return started[0]
