"""dynamic-index-splitter: start indices as scalars."""

from __future__ import annotations

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DynamicIndexSplitter(Expander):
    """Takes the one vector of start indices that older programs give dynamic slices and updates apart.

    ROOT r = f32[1,2] dynamic-slice(f32[4,8] x, s32[2] at), dynamic_slice_sizes={1,2}
    ->
    a = s32[1] slice(at), slice={[0:1]}
    row = s32[] reshape(a)
    b = s32[1] slice(at), slice={[1:2]}
    column = s32[] reshape(b)
    ROOT r = f32[1,2] dynamic-slice(x, row, column), dynamic_slice_sizes={1,2}
    """

    name = "dynamic-index-splitter"
    opcodes = facts.opcodes(facts.has_start_operands)
    dynamic = True
    fused = True

    def matches(self, i: Instruction) -> bool:
        return i.operands[-1].shape.rank == 1 and len(i.operands) == self._first(i) + 1

    def expand(self, i: Instruction) -> Instruction:
        first = self._first(i)
        starts = i.operands[first]
        one = array(starts.shape.element_type, (1,))
        scalars = [
            reshape(home(i).add("slice", [starts], one, slice=((n, n + 1, 1),)), ())
            for n in range(starts.shape.dims[0])
        ]
        return home(i).attach(i.clone([*i.operands[:first], *scalars]))

    @staticmethod
    def _first(i: Instruction) -> int:
        """The number of the first start-index operand."""
        return 1 if i.opcode == "dynamic-slice" else 2
