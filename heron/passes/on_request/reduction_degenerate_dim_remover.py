"""reduction-degenerate-dim-remover: reductions without dimensions of size 1."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import tuple_
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReductionDegenerateDimRemover(Expander):
    """Drops dimensions of size 1, reduced or kept, from reductions that reduce something else too.

    No pipeline has it: the reduction emitter leaves such dimensions out itself, and reductions of reshaped arrays are
    not fused with others of the arrays (a GPT-2 training step gets 116 fusions, not 108).

    ROOT r = f32[1,4] reduce(f32[1,4,8,1] x, f32[] init), dimensions={2,3}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    y = f32[4,8] reshape(x)
    s = f32[4] reduce(y, init), dimensions={1}, to_apply=sum
    ROOT r = f32[1,4] reshape(s)
    """

    name = "reduction-degenerate-dim-remover"
    opcodes = frozenset({"reduce"})

    def matches(self, i: Instruction) -> bool:
        dims = i.operands[0].shape.dims
        return 1 in dims and any(dims[d] != 1 for d in i.dimensions)

    def expand(self, i: Instruction) -> Instruction:
        sizes = i.operands[0].shape.dims
        kept = [d for d, size in enumerate(sizes) if size != 1]
        return reduce_reshaped(i, [sizes[d] for d in kept], [kept.index(d) for d in i.dimensions if d in kept])


def reduce_reshaped(i: Instruction, dims: list[int], dimensions: list[int]) -> Instruction:
    """The reduction `i` of its arrays reshaped to `dims` over `dimensions`, its results in their old shapes."""
    c, count = i.parent, len(i.operands) // 2
    assert c is not None
    arrays = [reshape(x, dims) for x in i.operands[:count]]
    left = [size for d, size in enumerate(dims) if d not in dimensions]
    shapes = [array(v.shape.element_type, left) for v in i.operands[count:]]
    shape = shapes[0] if count == 1 else tuple_(shapes)
    attrs = {**i.attrs, "dimensions": tuple(dimensions)}
    small = c.add("reduce", [*arrays, *i.operands[count:]], shape, like=i, **attrs)
    if count == 1:
        return reshape(small, i.shape.dims)
    parts = [c.add("get-tuple-element", [small], s, index=n) for n, s in enumerate(shapes)]
    return c.add("tuple", [reshape(x, s.dims) for x, s in zip(parts, i.shape.tuple_shapes or (), strict=True)])
