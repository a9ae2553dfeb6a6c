"""reduction-reuse: a reduction goes on from one that has done a part of it."""

from __future__ import annotations

from heron.analysis.values.splat import splat_value
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_static
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: what an initial value must be for it not to matter how often it goes in; any will do for the other ops
_NEUTRAL = {"add": 0, "multiply": 1, "xor": 0}


@register
@dataclass(frozen=True)
class ReductionReuse(Pass):
    """Reduces the result of a reduction of the same array over some of the dimensions, in place of the array.

    The sum of a matrix is the sum of its columns' sums: when those are there, the matrix is not read again. HLO leaves
    the order of elements open. Sums and products of small floats are left alone, as the columns' are rounded.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    columns = f32[8] reduce(f32[64,8] x, zero), dimensions={0}, to_apply=sum
    all = f32[] reduce(x, zero), dimensions={0,1}, to_apply=sum
    ROOT r = (f32[8], f32[]) tuple(columns, all)
    ->
    columns = f32[8] reduce(x, zero), dimensions={0}, to_apply=sum
    all = f32[] reduce(columns, zero), dimensions={0}, to_apply=sum
    ROOT r = (f32[8], f32[]) tuple(columns, all)
    """

    name = "reduction-reuse"
    looks_for = frozenset({"reduce"})
    constraints = (
        Constraint("reduction-reuse", "tree-reduction-rewriter", "a reduction in two steps is not seen as one"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            of: dict[Instruction, list[Instruction]] = {}
            for i in c.instructions:
                if i.opcode == "reduce" and len(i.operands) == 2 and is_static(i):
                    of.setdefault(i.operands[0], []).append(i)
            for reduces in of.values():
                changed |= len(reduces) > 1 and _reuse(reduces, ctx)
        return changed


def _reuse(reduces: list[Instruction], ctx: PassContext) -> bool:
    """Let each go on from the one that leaves least to do."""
    changed = False
    done: dict[Instruction, set[int]] = {}  # which dimensions of the array each has reduced
    for i in sorted(reduces, key=lambda r: len(r.dimensions)):
        begun = min(_begun(i, done), key=lambda r: r.shape.num_elements, default=None)
        if begun is None:
            done[i] = set(i.dimensions)
            continue
        kept = [d for d in range(i.operands[0].shape.rank) if d not in done[begun]]
        left = tuple([n for n, d in enumerate(kept) if d in i.dimensions])
        ctx.decide(
            True,
            f"'{begun.name}' has reduced dimensions {sorted(done[begun])} of '{i.operands[0].name}' already",
            subject=i.name,
            object=begun.name,
            cost_before=float(i.operands[0].shape.byte_size),
            cost_after=float(begun.shape.byte_size),
        )
        more = i.clone([begun, i.operands[1]], i.shape, dimensions=left)
        home(i).replace(i, home(i).attach(more))
        done[more] = set(i.dimensions)
        changed = True
    return changed


def _begun(i: Instruction, done: dict[Instruction, set[int]]) -> list[Instruction]:
    """The elements of `done` that equal `i` up to some dimensions."""
    opcode, start = combiner(i.to_apply), splat_value(i.operands[1])
    if opcode is None or start is None or (opcode in _NEUTRAL and start != _NEUTRAL[opcode]):
        return []
    t = i.shape.element_type
    if t.is_float and t.bits < 32 and opcode in _NEUTRAL:
        return []
    return [
        r
        for r, dims in done.items()
        if dims < set(i.dimensions) and combiner(r.to_apply) == opcode and splat_value(r.operands[1]) == start
    ]
