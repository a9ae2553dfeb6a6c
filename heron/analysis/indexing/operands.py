"""Maps between the elements of an instruction's result and the elements of its operands, in both directions.

`output_to_input` gives the map from a result index to the operand's elements that take part in it, `input_to_output`
the map from an operand index to the result's elements that it takes part in. Symbols run over what is iterated
(a reduced dimension, a window), constraints say when the operand is read at all (padding, concatenation), runtime
variables stand for positions that the program computes (dynamic-slice, gather, scatter); `operand_indexing` also says
where each of those is read. Maps may name too many elements (a sort reads its whole dimension), never too few.

Ops without a map are in `WITHOUT_MAP`, with the reason.

Source: https://openxla.org/xla/indexing and https://openxla.org/xla/operation_semantics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from heron.analysis.indexing import op_maps, op_maps_runtime
from heron.analysis.indexing.expr import dims
from heron.analysis.indexing.hlo_maps import moves_elements, operand_index
from heron.analysis.indexing.inverse import transposed
from heron.analysis.indexing.map import IndexingMap
from heron.analysis.indexing.op_maps import Sizes
from heron.analysis.indexing.runtime import Indexing, fold_runtime, identity_indexing
from heron.hlo.facts import done_of, having, is_call, opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape

Builder: TypeAlias = "Callable[[Instruction, int, int, Sizes], Indexing | IndexingMap | None]"

BUILDERS: dict[str, Builder] = {**op_maps.BUILDERS, **op_maps_runtime.BUILDERS}

_HALF = "one half of an asynchronous op, whose values are tuples; the op itself has maps"
_ENVIRONMENT = "exchanges whole values with what is outside the program"
_LOOP = "runs computations an unknown number of times, or one of several"
#: opcode -> why no map is given
WITHOUT_MAP: dict[str, str] = {
    **dict.fromkeys(opcodes(lambda op: op.max_operands == 0), "has no operands"),
    "after-all": "has no arrays as operands",
    **dict.fromkeys(sorted({*having(Trait.ASYNC), *done_of(), *done_of().values()}), _HALF),
    **dict.fromkeys(sorted(having(Trait.HOST, Trait.CHANNEL)), _ENVIRONMENT),
    "conditional": _LOOP,
    "while": _LOOP,
    "custom-call": "its meaning is not known",
    "dynamic-reshape": "where an element goes depends on sizes of other operands in every dimension",
    "get-dimension-size": "reads no elements, only the size",
    "get-tuple-element": "its operand is a tuple, not an array; maps of computations look through it",
    "ragged-all-to-all": "which device an element comes from depends on sizes that every device brings",
    "ragged-dot": "which group a row belongs to is a running sum of the group sizes",
}


def operand_indexing(i: Instruction, n: int, output: int = 0) -> Indexing | None:
    """The map from an index of `i`'s result (its `output`-th when a tuple) to the elements of operand `n` it reads.

    None when that is not known: any element may be read. Simplified; runtime variables that read constants or iotas
    are replaced by their values.
    """
    sizes = _result_sizes(i, output)
    if sizes is None or not 0 <= n < len(i.operands) or not i.operands[n].shape.is_array:
        return None
    if i.op.is_elementwise and i.operands[n].shape.dims == sizes:
        return identity_indexing(sizes)
    if moves_elements(i):
        return Indexing(IndexingMap.from_sizes(operand_index(i, n, dims(len(sizes))), sizes).simplify())
    build = BUILDERS.get(i.opcode)
    found = _through(i, n, output) if is_call(i) else build(i, n, output, sizes) if build else None
    if found is None:
        return None
    return fold_runtime(Indexing(found) if isinstance(found, IndexingMap) else found)


def output_to_input(i: Instruction, n: int, output: int = 0) -> IndexingMap | None:
    """The map of `operand_indexing`."""
    found = operand_indexing(i, n, output)
    return None if found is None else found.map


def input_to_output(i: Instruction, n: int, output: int = 0) -> IndexingMap | None:
    """The map from an index of operand `n` to the elements of `i`'s `output`-th result that it takes part in.

    Symbols run over the part of the result that the operand's index does not decide. None when not known.
    """
    found = output_to_input(i, n, output)
    return None if found is None else transposed(found, i.operands[n].shape.dims)


def _result_sizes(i: Instruction, output: int) -> Sizes | None:
    shape: Shape = i.shape
    if shape.tuple_shapes is not None:
        if not 0 <= output < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[output]
    return shape.dims if shape.is_array else None


def _through(i: Instruction, n: int, output: int) -> Indexing | None:
    """The one way in which a fusion or call reads operand `n`; None when there are several: see `computations`."""
    from heron.analysis.indexing.computations import parameter_indexings

    found = parameter_indexings(i, output)[n]
    if not found:
        sizes = _result_sizes(i, output) or ()
        return Indexing(IndexingMap.empty(i.operands[n].shape.rank, IndexingMap.identity(sizes).dims))
    return next(iter(found)) if len(found) == 1 else None
