"""reduce and reduce-window as loops in one thread: what is left when no hero emitter takes them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index, reduce_index, window_index
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.emitter import FunctionEmitter, Value
from heron.codegen.elemental.registry import rule
from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape, scalar


def _parts(shape: Shape) -> tuple[Shape, ...]:
    return shape.tuple_shapes if shape.tuple_shapes is not None else (shape,)


def initial_values(e: FunctionEmitter, i: Instruction) -> list[Value]:
    """The initial values of a reduce or reduce-window."""
    return [e.value(o, ()) for o in i.operands[len(i.operands) // 2 :]]


@rule("reduce")
def _reduce(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    arrays = i.operands[: len(i.operands) // 2]
    sizes = [arrays[0].shape.dims[d] for d in sorted(i.dimensions)]

    def read(variables: Index) -> list[Value]:
        place = e.simplify(reduce_index(i, index, variables))
        return [e.value(a, place) for a in arrays]

    return _accumulate(e, i, sizes, read)


@rule("reduce-window")
def _reduce_window(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    arrays = i.operands[: len(i.operands) // 2]
    dims = arrays[0].shape.dims

    def read(variables: Index) -> list[Value]:
        place = e.simplify(window_index(i.window, dims, index, variables)[0])
        return [e.value(a, place) for a in arrays]

    def inside(variables: Index):  # noqa: ANN202
        return window_index(i.window, dims, index, variables)[1]

    return _accumulate(e, i, [w.size for w in i.window], read, inside)


def _accumulate(e: FunctionEmitter, i: Instruction, sizes: Sequence[int], read, inside=None) -> Value:  # noqa: ANN001
    """The initial values combined with every element of the box, outermost first."""
    scalars = [scalar(s.element_type) for s in _parts(i.shape)]
    inits = [v for value, s in zip(initial_values(e, i), scalars, strict=True) for v in e.pack(value, s)]

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        values = iter(carried)
        accumulators = [e.unpack(values, s) for s in scalars]
        result = apply(e, i.to_apply, [*accumulators, *read(variables)])
        results = result if i.shape.is_tuple else (result,)
        return [v for value, s in zip(results, scalars, strict=True) for v in e.pack(value, s)]

    final = iter(inits) if 0 in sizes else iter(e.loop(sizes, inits, body, inside))
    values = tuple(e.unpack(final, s) for s in scalars)
    return values if i.shape.is_tuple else values[0]
