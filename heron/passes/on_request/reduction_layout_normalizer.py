"""reduction-layout-normalizer: reductions read their arrays in the order in which they lie in memory."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReductionLayoutNormalizer(Expander):
    """Makes reductions of arrays in other layouts reductions of row-major ones, by bitcasts; runs when layouts are set.

    No pipeline has it: layout-normalization makes all arrays row-major, and inside fusions the reduction emitter walks
    its arrays in the order they lie in memory.

    ROOT r = f32[4,2] reduce(f32[4,8,2]{0,1,2} x, f32[] init), dimensions={1}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    y = f32[2,8,4] bitcast(x)
    s = f32[2,4] reduce(y, init), dimensions={1}, to_apply=sum
    t = f32[4,2]{0,1} bitcast(s)
    ROOT r = f32[4,2] copy(t)
    """

    name = "reduction-layout-normalizer"
    opcodes = frozenset({"reduce"})

    def matches(self, i: Instruction) -> bool:
        lay = i.operands[0].shape.layout
        if len(i.operands) != 2 or lay is None or i.shape.layout is None or lay.tiles or i.shape.layout.tiles:
            return False
        return lay.minor_to_major != tuple(reversed(range(len(lay.minor_to_major))))

    def expand(self, i: Instruction) -> Instruction:
        c, (x, init) = i.parent, i.operands
        assert c is not None and x.shape.layout is not None
        order = x.shape.layout.minor_to_major[::-1]  # logical dimensions from major to minor
        plain = c.add("bitcast", [x], array(x.shape.element_type, [x.shape.dims[d] for d in order]), like=i)
        reduced = tuple([n for n, d in enumerate(order) if d in i.dimensions])
        left = [d for d in order if d not in i.dimensions]
        dims = [x.shape.dims[d] for d in left]
        attrs = {**i.attrs, "dimensions": reduced}
        small = c.add("reduce", [plain, init], array(init.shape.element_type, dims), like=i, **attrs)
        kept = sorted(left)
        lies = layout(tuple([kept.index(d) for d in reversed(left)]))
        found = c.add("bitcast", [small], i.shape.with_layout(lies), like=i)
        return found if found.shape is i.shape else c.add("copy", [found], i.shape, like=i)
