"""bf16-propagation: values that are rounded to bf16 anyway are rounded before they are moved."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.types import BF16, F32
from heron.passes.base import Pass
from heron.passes.building import convert
from heron.passes.context import PassContext
from heron.passes.expand.expander import home
from heron.passes.registry import register

#: ops that move elements of their first `n` operands and make no new values (-1: of all)
_MOVES = {
    "reshape": 1,
    "transpose": 1,
    "broadcast": 1,
    "slice": 1,
    "reverse": 1,
    "copy": 1,
    "concatenate": -1,
    "pad": 2,
    "gather": 1,
    "dynamic-slice": 1,
    "dynamic-update-slice": 2,
}


@register
@dataclass(frozen=True)
class Bf16Propagation(Pass):
    """Moves conversions from f32 to bf16 up through ops that only move elements, so that half the bytes are moved.

    An f32 value is made bf16 where everything that uses it rounds it to bf16, by itself or by way of other moves.
    Rounding an element before or after it is moved gives the same. Arithmetic stays in f32.

    t = f32[8,4] transpose(f32[4,8] x), dimensions={1,0}
    s = f32[2,4] slice(t), slice={[0:2], [0:4]}
    ROOT r = bf16[2,4] convert(s)
    ->
    a = bf16[4,8] convert(x)
    t = bf16[8,4] transpose(a), dimensions={1,0}
    ROOT r = bf16[2,4] slice(t), slice={[0:2], [0:4]}
    """

    name = "bf16-propagation"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations:
            for i in reversed(c.post_order()):  # users first: they may have become bf16
                if i.parent is c and i.opcode in _MOVES and i.shape.element_type is F32 and _is_rounded(i):
                    _round_first(i)
                    changed = True
        return changed


def _is_rounded(i: Instruction) -> bool:
    return bool(i.users) and not i.is_root and all(_rounds(u) for u in i.users)


def _rounds(u: Instruction) -> bool:
    return u.opcode == "convert" and u.shape.element_type is BF16


def _round_first(i: Instruction) -> None:
    c, count = home(i), _MOVES[i.opcode]
    count = len(i.operands) if count < 0 else count
    operands = [*(convert(o, BF16) for o in i.operands[:count]), *i.operands[count:]]
    new = c.attach(i.clone(operands, i.shape.with_type(BF16)))
    for user in list(i.users):
        c.replace(user, new)
