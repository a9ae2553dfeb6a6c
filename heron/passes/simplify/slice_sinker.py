"""slice-sinker: what is done to all parts of an array is done to the array."""

from __future__ import annotations

from typing import Any

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.canonical import Forms
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass

_Key = tuple[Any, ...]


@register
@dataclass(frozen=True)
class SliceSinker(Pass):
    """Does an elementwise op once on whole arrays where it is done to slices of them that hold as many elements.

    p = f32[4] slice(f32[8] x), slice={[0:4]}
    q = f32[4] slice(f32[8] y), slice={[0:4]}
    s = f32[4] slice(x), slice={[4:8]}
    t = f32[4] slice(y), slice={[4:8]}
    a = f32[4] add(p, q)
    b = f32[4] add(s, t)
    ROOT r = f32[4] multiply(a, b)
    ->
    z = f32[8] add(x, y)
    a = f32[4] slice(z), slice={[0:4]}
    b = f32[4] slice(z), slice={[4:8]}
    ROOT r = f32[4] multiply(a, b)
    """

    name = "slice-sinker"
    looks_for = frozenset({"slice"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            while _sink(c, ctx):  # what is sliced now may meet another op
                changed = True
        return changed


def _sink(c: Computation, ctx: PassContext) -> bool:
    forms = Forms()
    groups: dict[_Key, list[Instruction]] = {}
    for i in c.instructions:
        key = _key(i, forms)
        if key is not None:
            groups.setdefault(key, []).append(i)
    changed = False
    for group in groups.values():
        wholes = [s.operands[0] for s in group[0].operands]
        size = wholes[0].shape.num_elements
        if any(i.parent is not c for i in group) or sum(i.shape.num_elements for i in group) < size:
            continue
        first = group[0]
        if not ctx.may_fire("sink", "slice_sinker.py", first):
            return changed
        ctx.fired("sink", "slice_sinker.py")
        shape = first.shape.with_dims(wholes[0].shape.dims)
        whole = c.add(first.opcode, wholes, shape, like=first, **first.attrs)
        for i in group:
            c.replace(i, c.add("slice", [whole], i.shape, like=i, slice=i.operands[0].attrs["slice"]))
        changed = True
    return changed


def _key(i: Instruction, forms: Forms) -> _Key | None:
    """The key shared by instructions that may be done together; None if `i` is not one of them."""
    if not i.operands or i.operands[0].opcode != "slice":
        return None
    if not i.op.is_elementwise or i.has_side_effect or i.opcode == "copy":
        return None
    if any(s.opcode != "slice" or any(s.shape.dynamic) for s in i.operands):
        return None
    wholes = [s.operands[0] for s in i.operands]
    dims, part = wholes[0].shape.dims, i.operands[0].attrs["slice"]
    if any(s.attrs["slice"] != part or w.shape.dims != dims for s, w in zip(i.operands, wholes, strict=True)):
        return None
    return (i.opcode, i.shape.element_type, forms.attributes(i), *map(id, wholes))
