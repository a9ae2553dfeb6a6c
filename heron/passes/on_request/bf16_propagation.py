"""bf16-propagation: values that are rounded to bf16 anyway are rounded before they are moved, or chosen from."""

from __future__ import annotations

from heron.hlo.facts import combiner, having, is_plain_product, is_reduction
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import BF16, F32
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, convert
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: ops whose result is made of elements of these operands as they are, of their magnitude or negated
_KEEPS = {
    **dict.fromkeys((having(Trait.REINDEXES, Trait.READS_PART) - {"bitcast"}) | {"negate", "abs"}, range(1)),
    **dict.fromkeys(having(Trait.EXTREMUM, Trait.REDUCES) | {"pad", "dynamic-update-slice"}, range(2)),
    "clamp": range(3),
    "select": range(1, 3),
}


@register
@dataclass(frozen=True)
class Bf16Propagation(Pass):
    """Moves conversions from f32 to bf16 up through ops that only move or choose elements: half the bytes are moved.

    An f32 value is made bf16 where everything that uses it rounds it to bf16, by itself or by way of other such ops.
    Rounding keeps the order of numbers, so the largest of rounded ones is the largest, rounded: all this is exact.
    Arithmetic stays in f32.

    With ``dots`` matrix products whose result is rounded get rounded operands too, as on machines that multiply nothing
    wider by default. This changes values by the rounding of bf16, so it is done only where the option ``math`` allows
    more than exact rules, the program asks for no precision, and the target multiplies bf16 itself.

    No pipeline has it: fusion puts most conversions next to what makes and what reads their values.

    n = f32[4,8] negate(f32[4,8] x)
    zero = f32[] constant(0)
    zeros = f32[4,8] broadcast(zero), dimensions={}
    m = f32[4,8] maximum(n, zeros)
    t = f32[8,4] transpose(m), dimensions={1,0}
    ROOT r = bf16[8,4] convert(t)
    ->
    a = bf16[4,8] convert(x)
    n = bf16[4,8] negate(a)
    b = bf16[] convert(zero)
    zeros = bf16[4,8] broadcast(b), dimensions={}
    m = bf16[4,8] maximum(n, zeros)
    ROOT r = bf16[8,4] transpose(m), dimensions={1,0}
    """

    name = "bf16-propagation"
    dots: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed, dots = False, self.dots and ctx.options.allows("reassociating")
        for c in module.computations:
            for i in reversed(c.post_order()):  # users first: they may have become bf16
                if i.parent is not c or i.shape.element_type is not F32 or not _is_rounded(i):
                    continue
                if _keeps(i) or (dots and _may_round_operands(i, ctx)):
                    _round_first(i)
                    changed = True
        return changed


def _is_rounded(i: Instruction) -> bool:
    return bool(i.users) and not i.is_root and all(_rounds(u) for u in i.users)


def _rounds(u: Instruction) -> bool:
    return u.opcode == "convert" and u.shape.element_type is BF16


def _keeps(i: Instruction) -> bool:
    if is_reduction(i):
        return len(i.operands) == 2 and combiner(i.to_apply) in having(Trait.EXTREMUM)
    return i.opcode in _KEEPS or i.opcode == "concatenate"


def _may_round_operands(i: Instruction, ctx: PassContext) -> bool:
    if not is_plain_product(i) or i.attrs.get("algorithm"):
        return False
    asked = set(i.attrs.get("operand_precision", ())) - {"default"}
    able = ctx.target is None or ctx.target.computes_in(i.opcode, "bf16")
    return able and not asked and all(o.shape.element_type in (F32, BF16) for o in i.operands)


def _round_first(i: Instruction) -> None:
    c = home(i)
    places = _KEEPS.get(i.opcode, range(len(i.operands)))
    operands = [convert(o, BF16) if n in places else o for n, o in enumerate(i.operands)]
    new = c.attach(i.clone(operands, i.shape.with_type(BF16)))
    if i.called:
        op = combiner(i.to_apply)
        assert op is not None and c.module is not None
        new.attrs["to_apply"] = applied(c.module, op, BF16)
    for user in list(i.users):
        c.replace(user, new)
