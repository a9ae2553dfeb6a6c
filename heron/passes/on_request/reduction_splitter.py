"""reduction-splitter: reductions over dimensions apart from each other are made one after the other."""

from __future__ import annotations

from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import Expander
from heron.passes.simplify.algebraic.reduce_functions import is_neutral
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReductionSplitter(Expander):
    """Splits reductions over dimensions that do not stand side by side, the largest first, where that one is large.

    Code for reductions knows rows and columns: one run of reduced dimensions. Dimensions below ``least`` stay together
    with the others. The reduction is made in another order.

    No pipeline has it: the reduction emitter walks any dimensions, and a second kernel would write and read what lies
    between the steps.

    largest {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b)
    }

    low = f32[] constant(-inf)
    ROOT r = f32[4] reduce(f32[16,4,64] x, low), dimensions={0,2}, to_apply=largest
    ->
    s = f32[16,4] reduce(x, low), dimensions={2}, to_apply=largest
    ROOT r = f32[4] reduce(s, low), dimensions={0}, to_apply=largest
    """

    name = "reduction-splitter"
    opcodes = frozenset({"reduce"})
    least: int = 8

    def matches(self, i: Instruction) -> bool:
        dims = i.dimensions
        if len(i.operands) != 2 or len(dims) < 2 or max(dims) - min(dims) + 1 == len(dims):
            return False
        op = combiner(i.to_apply)
        sizes = i.operands[0].shape.dims
        return op is not None and is_neutral(op, i.operands[1]) and max(sizes[d] for d in dims) >= self.least

    def expand(self, i: Instruction) -> Instruction:
        c, (x, init) = i.parent, i.operands
        assert c is not None
        first = max(i.dimensions, key=lambda d: (x.shape.dims[d], d))
        dims = [size for d, size in enumerate(x.shape.dims) if d != first]
        attrs = dict(i.attrs)
        attrs["dimensions"] = (first,)
        part = c.add("reduce", [x, init], array(init.shape.element_type, dims), like=i, **attrs)
        attrs["dimensions"] = tuple([d - (d > first) for d in i.dimensions if d != first])
        rest = c.add("reduce", [part, init], i.shape, like=i, **attrs)
        if not self.matches(rest):
            return rest
        again = self.expand(rest)
        c.remove(rest)
        return again
