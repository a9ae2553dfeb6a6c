"""convert-mover: data is moved in its narrow type."""

from __future__ import annotations

import numpy as np

from heron.hlo.ir import literal
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import constant, is_static
from heron.records import dataclass

#: ops that only move elements of their operands: convert(move(x)) == move(convert(x)) whatever the types
_MOVES = frozenset({"reshape", "transpose", "slice", "reverse", "concatenate", "pad"})


@register
@dataclass(frozen=True)
class ConvertMover(Pass):
    """Moves conversions to a wider type behind ops that only move data, and those to a narrower one in front of them.

    Constants among the operands are narrowed too, if they lose nothing. A broadcast stays where it is while its operand
    is widened, which costs less before it; a slice while its result is narrowed, of which there is less.

    p = f32[4] convert(bf16[4] x)
    q = f32[4] convert(bf16[4] y)
    c = f32[8] concatenate(p, q), dimensions={0}
    zero = f32[] constant(0)
    w = f32[10] pad(c, zero), padding=1_1
    t = f32[2,5] reshape(w)
    ROOT r = f32[5,2] transpose(t), dimensions={1,0}
    ->
    c = bf16[8] concatenate(x, y), dimensions={0}
    zero = bf16[] constant(0)
    w = bf16[10] pad(c, zero), padding=1_1
    t = bf16[2,5] reshape(w)
    u = bf16[5,2] transpose(t), dimensions={1,0}
    ROOT r = f32[5,2] convert(u)
    """

    name = "convert-mover"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            conversions = [i for i in c.instructions if i.opcode == "convert"]
            widening = [u for i in conversions for u in i.users if u.opcode in _MOVES]
            while widening:
                later = _widen_later(c, widening.pop())
                if later is not None:
                    widening += [u for u in later.users if u.opcode in _MOVES]
                    changed = True
            narrowing = conversions
            while narrowing:
                made = _narrow_earlier(c, narrowing.pop())
                narrowing += made
                changed |= bool(made)
        return changed


def _is_narrower(a: ElementType, b: ElementType) -> bool:
    # elements of less than a byte are no less to move
    return (a.bits >= 8 or a.kind == "pred") and a.dtype.itemsize < b.dtype.itemsize


def _widen_later(c: Computation, i: Instruction) -> Instruction | None:
    """move(convert(x)) == convert(move(x)) for conversions to a wider type that nobody else needs; the one made"""
    narrow = {o.operands[0].shape.element_type for o in i.operands if o.opcode == "convert"}
    if i.parent is not c or len(narrow) != 1 or not is_static(i):
        return None
    (t,) = narrow
    if not _is_narrower(t, i.shape.element_type) or not all(_is_narrow(i, o, t) for o in i.operands):
        return None
    operands = [_narrowed(c, o, t) for o in i.operands]
    moved = c.add(i.opcode, operands, i.shape.with_type(t), like=i, **i.attrs)
    later = c.add("convert", [moved], i.shape, like=next(o for o in i.operands if o.opcode == "convert"))
    c.replace(i, later)
    return later


def _is_narrow(i: Instruction, o: Instruction, t: ElementType) -> bool:
    """Whether the operand `o` of `i` is a value of type `t` converted for `i` alone, or a constant of such values."""
    if o.opcode == "constant":
        old = o.attrs["literal"].array
        with np.errstate(all="ignore"):
            return old.astype(t.dtype).astype(old.dtype).tobytes() == old.tobytes()
    return o.opcode == "convert" and set(o.users) == {i} and not o.is_root


def _narrowed(c: Computation, o: Instruction, t: ElementType) -> Instruction:
    if o.opcode == "convert":
        return o.operands[0]
    return constant(c, literal.of(o.attrs["literal"].array.astype(t.dtype)), like=o)


def _narrow_earlier(c: Computation, i: Instruction) -> list[Instruction]:
    """convert(move(x)) == move(convert(x)) for a conversion to a narrower type, where nobody else needs the move

    The conversions made are the result, none where nothing was done.
    """
    if i.parent is not c:
        return []
    m, t = i.operands[0], i.shape.element_type
    if m.opcode == "slice" or not (m.opcode in _MOVES or m.opcode == "broadcast"):
        return []
    if not _is_narrower(t, m.shape.element_type) or len(m.users) > 1 or m.is_root or not is_static(m):
        return []
    made = [c.add("convert", [o], o.shape.with_type(t), like=i) for o in m.operands]
    c.replace(i, c.add(m.opcode, made, i.shape, like=m, **m.attrs))
    return made
