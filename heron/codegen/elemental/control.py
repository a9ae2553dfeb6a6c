"""Calls of scalar computations (reducers, map) and the plumbing of tuples."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value, tuple_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


def apply(e: FunctionEmitter, computation: Computation, arguments: Sequence[Value]) -> Value:
    """The result of a scalar computation on these values, in line."""
    with e.scope():
        for parameter, value in zip(computation.parameters, arguments, strict=True):
            e.provide(parameter, (), value)
        return e.value(computation.root, ())


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
    return tuple_of(e.value(i.operands[0], index))[i.index]
