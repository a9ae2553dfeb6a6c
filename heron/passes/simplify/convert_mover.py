"""convert-mover: data is moved in its narrow type."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.types import ElementType
from heron.passes.base import Pass
from heron.passes.building import is_static
from heron.passes.context import PassContext
from heron.passes.registry import register
from heron.passes.simplify.algebraic.convert import holds_all

#: ops that move elements and whose operand 0 (all of a concatenate's) is what they move
_MOVES = frozenset({"broadcast", "reshape", "transpose", "slice", "reverse", "concatenate"})


@register
@dataclass(frozen=True)
class ConvertMover(Pass):
    """Moves conversions to a wider type behind ops that only move data, and those to a narrower one in front of them.

    p = f32[4] convert(bf16[4] x)
    q = f32[4] convert(bf16[4] y)
    c = f32[8] concatenate(p, q), dimensions={0}
    t = f32[2,4] reshape(c)
    ROOT r = f32[4,2] transpose(t), dimensions={1,0}
    ->
    c = bf16[8] concatenate(x, y), dimensions={0}
    t = bf16[2,4] reshape(c)
    u = bf16[4,2] transpose(t), dimensions={1,0}
    ROOT r = f32[4,2] convert(u)
    """

    name = "convert-mover"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in c.post_order():
                if i.parent is c and (_widen_later(c, i) or _narrow_earlier(c, i)):
                    changed = True
        return changed


def _is_narrower(a: ElementType, b: ElementType) -> bool:
    return 8 <= a.bits < b.bits and a.is_float == b.is_float and holds_all(a, b)


def _widen_later(c: Computation, i: Instruction) -> bool:
    """move(convert(x)) == convert(move(x)) for a conversion to a wider type that nobody else needs"""
    if i.opcode not in _MOVES or not is_static(i) or any(o.opcode != "convert" for o in i.operands):
        return False
    narrow = i.operands[0].operands[0].shape.element_type
    if not _is_narrower(narrow, i.shape.element_type):
        return False
    if any(o.operands[0].shape.element_type is not narrow or set(o.users) != {i} or o.is_root for o in i.operands):
        return False
    sources = [o.operands[0] for o in i.operands]
    moved = c.add(i.opcode, sources, i.shape.with_type(narrow), like=i, **i.attrs)
    c.replace(i, c.add("convert", [moved], i.shape, like=i.operands[0]))
    return True


def _narrow_earlier(c: Computation, i: Instruction) -> bool:
    """convert(move(x)) == move(convert(x)) for a conversion to a narrower type, where nobody else needs the move"""
    if i.opcode != "convert" or not _is_narrower(i.shape.element_type, i.operands[0].shape.element_type):
        return False
    m = i.operands[0]
    if m.opcode not in _MOVES or len(m.users) > 1 or m.is_root or not is_static(m):
        return False
    if m.opcode in ("slice", "broadcast"):
        # the conversion of all of a sliced array costs more, that of a repeated one less
        if m.opcode == "slice":
            return False
    elif any(o.opcode in ("convert", "constant") for o in m.operands):
        return False
    t = i.shape.element_type
    sources = [c.add("convert", [o], o.shape.with_type(t), like=i) for o in m.operands]
    c.replace(i, c.add(m.opcode, sources, i.shape, like=m, **m.attrs))
    return True
