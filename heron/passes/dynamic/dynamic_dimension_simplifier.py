"""dynamic-dimension-simplifier: arithmetic on vectors of sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import same_type
from heron.records import dataclass

#: a simpler replacement of an instruction: an existing value, or other operands
_Simpler: TypeAlias = Instruction | list[Instruction] | None


@register
@dataclass(frozen=True)
class DynamicDimensionSimplifier(Pass):
    """Undoes the packing of sizes into vectors: concatenates within concatenates, slices of them, reshapes back.

    So a size that went through a vector is a scalar again, and what sets or reads it can be matched.

    a = s32[1] reshape(s32[] m)
    b = s32[1] reshape(s32[] n)
    both = s32[2] concatenate(a, b), dimensions={0}
    second = s32[1] slice(both), slice={[1:2]}
    ROOT r = s32[] reshape(second)
    ->
    ROOT n
    """

    name = "dynamic-dimension-simplifier"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations:
            vectors = [i for i in c.post_order() if i.opcode in _SIMPLER and i.shape.rank <= 1]
            for i in vectors:
                if i.shape.element_type.is_integer and (found := _SIMPLER[i.opcode](i)) is not None:
                    c.replace(i, found if isinstance(found, Instruction) else c.attach(i.clone(found)))
                    changed = True
        return changed


def _joined(i: Instruction) -> _Simpler:
    if len(i.operands) == 1:
        return i.operands[0]
    if not any(_is_vector_concatenate(o) for o in i.operands):
        return None
    return [p for o in i.operands for p in (o.operands if _is_vector_concatenate(o) else [o])]


def _cut(i: Instruction) -> _Simpler:
    x = i.operands[0]
    if not i.shape.rank:
        return None
    ((start, limit, stride),) = i.slice
    if (start, limit, stride) == (0, x.shape.dims[0], 1):
        return x
    return _part(x, start, limit) if _is_vector_concatenate(x) and stride == 1 else None


def _reshaped(i: Instruction) -> _Simpler:
    x = i.operands[0]
    if same_type(i, x):
        return x
    if x.opcode != "reshape":
        return None
    return [x.operands[0]] if not same_type(i, x.operands[0]) else x.operands[0]


def _is_vector_concatenate(x: Instruction) -> bool:
    return x.opcode == "concatenate" and x.shape.rank == 1


def _part(x: Instruction, start: int, limit: int) -> Instruction | None:
    """The operand that makes up elements `start` to `limit`."""
    at = 0
    for o in x.operands:
        if (at, at + o.shape.dims[0]) == (start, limit):
            return o
        at += o.shape.dims[0]
    return None


_SIMPLER: dict[str, Callable[[Instruction], _Simpler]] = {"concatenate": _joined, "slice": _cut, "reshape": _reshaped}
