"""sub-byte-normalization: how elements of less than a byte lie in memory."""

from __future__ import annotations

from functools import cache

from heron.hlo.ir import layout as layouts
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SubByteNormalization(Pass):
    """Says in the layouts of arrays of s1 to s4, u1 to u4 and f4 that elements are packed (``E(4)``), or removes that.

    Targets that pack several elements into a byte want the size stated everywhere; those that give each a byte, as
    heron's own do, want it nowhere. ``packed`` chooses. Other layouts lose a stated size: it is the type's.

    No pipeline has it: layout-assignment drops stated sizes with the layouts they are part of.

    x = s4[4]{0:E(4)} parameter(0)
    ROOT r = s4[4] negate(x)
    ->
    ...
    """

    name = "sub-byte-normalization"
    packed: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in module.instructions():
            new = _normal(i.shape, self.packed)
            if new is not i.shape:
                i.shape, changed = new, True
        return changed


@cache
def _normal(s: Shape, packed: bool) -> Shape:
    if s.tuple_shapes is not None:
        return shapes.tuple_(tuple(_normal(p, packed) for p in s.tuple_shapes))
    if s.layout is None or not s.is_array:
        return s
    bits = s.element_type.bits
    size = bits if packed and bits < 8 and 8 % bits == 0 else 0  # 6 bits would lie across bytes
    if s.layout.element_size == size:
        return s
    old = s.layout
    return s.with_layout(layouts.layout(old.minor_to_major, old.tiles, size, old.memory_space, old.extra, old.tail))
