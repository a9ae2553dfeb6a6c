"""reduce."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.meaning import combine, numeric
from heron.hlo.ops.rules import array, attr, need_arrays, need_dims

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.types import ElementType


def need_reduction(i: Instruction, operands: tuple[Shape, ...], body: Computation) -> tuple[Shape, ...]:
    """Checks arrays of one size followed by as many scalar initial values, and the reducer over them.

    Gives the arrays' shapes with the element types reduced to; a reduction may widen floats or integers.
    """
    if len(operands) == 2 and _is_plain(operands[0], operands[1], body):
        return operands[:1]
    count = len(operands) // 2
    if not operands or len(operands) % 2:
        reject(i, "needs arrays and as many initial values", f"{len(operands)} operands given")
    need_arrays(i, *operands)
    arrays, inits = operands[:count], operands[count:]
    for n, (s, init) in enumerate(zip(arrays, inits, strict=True)):
        if s.dims != arrays[0].dims:
            reject(i, f"operand {n} has other dimensions than operand 0", f"{s} and {arrays[0]}")
        if init.rank:
            reject(i, f"operand {count + n}, an initial value, must be a scalar", f"it is {init}")
    types = [init.element_type for init in inits]
    _need_reducer(i, body, types)
    for n, (s, t) in enumerate(zip(arrays, types, strict=True)):
        if s.element_type.kind != t.kind:
            reject(i, f"operand {n} is not of its initial value's kind", f"{s.element_type} and {t}")
    return tuple(s if s.element_type is t else s.with_type(t) for s, t in zip(arrays, types, strict=True))


def need_reducer_types(i: Instruction) -> None:
    """Rejects a reducer that works in floats of another width than its initial values."""
    inits = i.operands[len(i.operands) // 2 :]
    _need_reducer(i, i.to_apply, [o.shape.element_type for o in inits], exact=True)


def _need_reducer(i: Instruction, body: Computation, types: Sequence[ElementType], *, exact: bool = False) -> None:
    """Rejects a reducer that does not make a scalar of each type of two of it.

    Unless `exact`, floats may be of any width: a reduction's shape does not depend on it, and XLA's parser reads such.
    """
    parameters, count = body.parameters, len(types)
    if len(parameters) != 2 * count:
        reject(i, f"the reducer takes {len(parameters)} parameters", f"{2 * count} are needed")
    for n, p in enumerate(parameters):
        if not _is_scalar(p.shape, types[n % count], exact):
            reject(i, f"parameter {n} of the reducer is {p.shape}", f"{types[n % count]}[] is needed")
    gives = body.root.shape
    parts = gives.tuple_shapes if gives.tuple_shapes is not None else (gives,)
    if len(parts) != count or not all(_is_scalar(p, t, exact) for p, t in zip(parts, types, strict=True)):
        reject(i, f"the reducer returns {gives}", f"{', '.join(f'{t}[]' for t in types)} is needed")


def _is_scalar(s: Shape, t: ElementType, exact: bool) -> bool:
    if s.bare is scalar(t).bare:
        return True
    return not exact and s.is_array and not s.rank and s.element_type.is_float and t.is_float


def _is_plain(s: Shape, init: Shape, body: Computation) -> bool:
    """One array, its scalar, and a reducer of that scalar type: nearly every reduction."""
    t = init.bare
    if init.rank or not init.is_array or not s.is_array or s.element_type is not init.element_type:
        return False
    if body.root is None:  # pyright: ignore[reportUnnecessaryComparison]
        return False
    return body.root.shape.bare is t and [p.shape.bare for p in body.parameters] == [t, t]


def reduced_shape(typed: Sequence[Shape], dims: Sequence[int], body: Computation) -> Shape:
    """An array of `dims`, or a tuple of as many as are `typed` where the reducer returns a tuple."""
    if body.root.shape.is_tuple:
        return tuple_([array(s.element_type, dims) for s in typed])
    return array(typed[0].element_type, dims)


def reduction_inputs(i: Instruction, operands: tuple[np.ndarray, ...]) -> tuple[combine.Arrays, combine.Arrays]:
    """The arrays, converted to the types reduced to, and the initial values."""
    count = len(operands) // 2
    shapes = [o.shape for o in i.operands]
    arrays = [
        numeric.convert(a, s.element_type, t.element_type)
        for a, s, t in zip(operands[:count], shapes[:count], shapes[count:], strict=True)
    ]
    return tuple(arrays), operands[count:]


@op("reduce")
class Reduce(Op):
    """Elements along `dimensions` combined by `to_apply`, beginning with the initial value.

    Any number of arrays, then as many initial values; the order of combining is open.

    Shape: the operand's without `dimensions`; a tuple of such for several arrays, or a reducer that returns a tuple.
    """

    operands = ("operands_and_init_values*",)
    attributes = {
        "dimensions": Attr(AttrKind.INTS, required=True),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {Trait.APPLIES, Trait.REDUCES, Trait.CONTRACTS, Trait.SHAPES_KERNEL, Trait.OVER_OPERAND}
    linear = ("operands_and_init_values*",)
    code = 8
    verify = staticmethod(need_reducer_types)

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        arrays = need_reduction(i, operands, attr(i, "to_apply"))
        gone = attr(i, "dimensions")
        need_dims(i, "dimensions", gone, arrays[0].rank)
        kept = [n for d, n in enumerate(arrays[0].dims) if d not in gone]
        gives = attr(i, "to_apply").root.shape  # of the initial values' types, where the program verifies
        parts = gives.tuple_shapes if gives.tuple_shapes is not None else (gives,)
        return reduced_shape(parts, kept, attr(i, "to_apply"))

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: np.ndarray) -> object:
        arrays, inits = reduction_inputs(i, operands)
        types = tuple(o.shape.element_type for o in i.operands[len(arrays) :])
        results = combine.reduce(combine.Combiner(ev, i.to_apply, types), arrays, inits, tuple(i.dimensions))
        return results if i.shape.is_tuple else results[0]
