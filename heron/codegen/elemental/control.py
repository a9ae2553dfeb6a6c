"""Calls of scalar computations (reducers, map) and the plumbing of tuples."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.emitter import FunctionEmitter, Value
from heron.codegen.elemental.floats import is_small
from heron.codegen.elemental.registry import rule
from heron.codegen.ir.types import compute_type
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape, tuple_


def apply(e: FunctionEmitter, computation: Computation, arguments: Sequence[Value]) -> Value:
    """The result of a scalar computation on these values, in line."""
    with e.frame():
        for parameter, value in zip(computation.parameters, arguments, strict=True):
            e.provide(parameter, (), value)
        return e.value(computation.root, ())


#: ops that fix the precision of a reducer's values: with one inside, accumulation stays in the stated type
_PRECISION = frozenset({"convert", "reduce-precision", "bitcast-convert", "stochastic-convert"})


def promoted(e: FunctionEmitter, computation: Computation) -> Computation:
    """A reducer with its small floats as f32, so that sums are rounded once, at the end; itself when that is not so."""
    known: dict[Computation, Computation] = e.kernel.promoted
    found = known.get(computation)
    if found is None:
        found = known[computation] = _promote(computation)
    return found


def _promote(computation: Computation) -> Computation:
    instructions = computation.post_order()
    small = [i for i in instructions if any(is_small(s.element_type) for _, s in i.shape.leaves())]
    if not small or any(i.opcode in _PRECISION or i.called for i in instructions):
        return computation
    copy = Computation(computation.name)
    done: dict[Instruction, Instruction] = {}
    for i in instructions:
        new = i.clone([done[o] for o in i.operands], wide_shape(i.shape))
        if i.opcode == "constant":
            new.attrs["literal"] = Literal(new.shape, i.literal.array.astype(new.shape.element_type.dtype))
        done[i] = copy.attach(new)
    copy.root = done[computation.root]
    return copy


def wide_shape(shape: Shape) -> Shape:
    """The shape with small floats as f32."""
    if shape.tuple_shapes is not None:
        return tuple_(tuple(wide_shape(s) for s in shape.tuple_shapes))
    return shape.with_type(compute_type(shape.element_type))


def _scalar_body(i: Instruction) -> str | None:
    return None if all(p.shape.is_scalar for p in i.to_apply.parameters) else "its computation works on arrays"


@rule("map", check=_scalar_body)
def _map(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return apply(e, i.to_apply, e.operands(i, index))


@rule("tuple")
def _tuple(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return tuple(e.value(o, index if o.shape.dims else ()) for o in i.operands)


@rule("get-tuple-element")
def _get_tuple_element(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    return e.value(i.operands[0], index)[i.index]
