"""constant-folding: what is known now is computed now."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import constant
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.evaluator import Evaluator

#: the first operand of what is folded
_STARTS = frozenset({"constant", "broadcast", "iota"})
#: never worth a constant: cheap to make where they are used, or not a computation at all
_NOT_FOLDED = having(Trait.FREE, Trait.GENERATED) | {"custom-call", "fusion", "copy-start"}


@register
@dataclass(frozen=True)
class ConstantFolding(Pass):
    """Evaluates instructions whose operands are all constants.

    Broadcasts and iotas stay: computing them again is cheaper than loading them. A result is only kept when it has at
    most ``max_elements`` elements or no more than its operands, and only when it takes at most ``max_work`` element
    operations to get, counted rather than timed so that every compile gives the same program. Broadcasts of constants
    count as constant operands next to at least one real constant. So do iotas next to an array, as in a table that a
    scatter makes, unless the op is elementwise.

    a = f32[] constant(2)
    b = f32[] constant(3)
    c = f32[] multiply(a, b)
    ROOT r = f32[] add(c, f32[] x)
    ->
    c = f32[] constant(6)
    ROOT r = f32[] add(c, x)
    """

    name = "constant-folding"
    max_elements: int = 1024
    max_work: int = 1 << 22

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            work = c.instructions
            for i in work:
                if i.parent is not c or not i.operands or i.operands[0].opcode not in _STARTS:
                    continue
                value = _value(i) if self._folds(i) else None
                if value is None:
                    continue
                if not ctx.may_fire("fold", "constant_folding.py", i):
                    return changed
                new = constant(c, value, like=i)
                c.replace(i, new)
                work += new.users  # some may stand before `i`
                changed = True
        return changed

    def _folds(self, i: Instruction) -> bool:
        if i.opcode in _NOT_FOLDED or i.op.has_side_effect or not i.shape.is_array or any(i.shape.dynamic):
            return False
        if not i.op.traits.isdisjoint({Trait.RANDOM, Trait.COLLECTIVE, Trait.CONTROL_FLOW}):
            return False
        if i.control_predecessors or i.control_successors:
            return False
        if not all(_is_known(o) or o.opcode == "iota" for o in i.operands):
            return False
        known = [o for o in i.operands if o.opcode == "constant" and o.shape.is_array]
        if not known:
            return False
        # positions and numbers are a short expression; what a table or an order makes of them is none
        if any(o.opcode == "iota" for o in i.operands) and (
            i.op.is_elementwise or all(o.shape.is_scalar for o in known)
        ):
            return False
        read = sum(o.shape.num_elements for o in known)
        if i.shape.num_elements > max(self.max_elements, read):
            return False
        return _work(i) <= self.max_work


def _is_known(i: Instruction) -> bool:
    return i.opcode == "constant" or i.opcode == "broadcast" and i.operands[0].opcode == "constant"


def _work(i: Instruction) -> int:
    """About how many element operations `i` takes."""
    out = i.shape.num_elements
    read = sum(o.shape.num_elements for o in i.operands)
    match i.opcode:
        case "dot":
            lhs: Shape = i.operands[0].shape
            return out * prod(lhs.dims[d] for d in i.lhs_contracting_dims)
        case "convolution":
            return out * i.operands[1].shape.num_elements
        case "reduce-window" | "select-and-scatter":
            return (out + read) * prod(w.size for w in i.window)
        case "sort":
            return read * 64
        case "reduce" | "scatter" | "map":
            return (out + read) * 16  # the evaluator may call the computation element by element
    return out + read


def _value(i: Instruction) -> Literal | None:
    """`i` evaluated, or None when the evaluator cannot."""
    from heron.evaluator import Evaluator

    ev = Evaluator()
    try:
        result = ev.run_instruction(i, [_array(o, ev) for o in i.operands])
    except HeronError:
        return None
    return Literal(i.shape.with_default_layout(), np.asarray(result))


def _array(i: Instruction, ev: Evaluator) -> np.ndarray:
    if i.opcode == "constant":
        return i.attrs["literal"].array
    return np.asarray(ev.run_instruction(i, [o.attrs["literal"].array for o in i.operands]))
