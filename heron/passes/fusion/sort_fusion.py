"""sort-fusion: what a sort reads is computed as it is read, and only what is wanted of it is stored."""

from __future__ import annotations

from heron.analysis.fusion.roles import is_producer, is_view
from heron.analysis.fusion.sort_tiles import fits_tile
from heron.hlo.facts import is_expensive
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.rewriting.building import is_static
from heron.records import dataclass

#: instructions that may be computed once more for a sort, when others read the result too
_AGAIN = 16


@register
@dataclass(frozen=True)
class SortFusion(Pass):
    """Fuses a sort with what its operands are computed by, and with slices of its results, where a kernel can do that.

    The first kernel of a sort on the GPU reads each element once: what nobody else reads is computed there, and what
    others read too if that takes little arithmetic and reads no more than the result. A row that fits into a block's
    shared memory is sorted by one kernel, which stores only results that are read, and only the part that is read: of
    the k largest of a row no other element is written.

    greater {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      m = s32[] parameter(2)
      n = s32[] parameter(3)
      ROOT g = pred[] compare(a, b), direction=GT, type=TOTALORDER
    }

    it = s32[2,8] iota(), iota_dimension=1
    s = (f32[2,8], s32[2,8]) sort(f32[2,8] x, it), dimensions={1}, to_apply=greater
    p = s32[2,8] get-tuple-element(s), index=1
    ROOT k = s32[2,3] slice(p), slice={[0:2], [0:3]}
    ->
    greater {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      m = s32[] parameter(2)
      n = s32[] parameter(3)
      ROOT g = pred[] compare(a, b), direction=GT, type=TOTALORDER
    }

    sorting {
      x = f32[2,8] parameter(0)
      it = s32[2,8] iota(), iota_dimension=1
      s = (f32[2,8], s32[2,8]) sort(x, it), dimensions={1}, to_apply=greater
      p = s32[2,8] get-tuple-element(s), index=1
      ROOT k = s32[2,3] slice(p), slice={[0:2], [0:3]}
    }

    ROOT f = s32[2,3] fusion(f32[2,8] x), kind=kInput, calls=sorting
    """

    name = "sort-fusion"
    max_instructions: int = 200
    constraints = (
        Constraint("sort-fusion", "instruction-fusion", "what a sort computes as it reads may need no kernel"),
        Constraint("sort-fusion", "priority-fusion", "what a sort computes as it reads may need no kernel"),
        Constraint("sort-fusion", "fusion-wrapper", "wrapped ops are not fused any more"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in [i for i in c.instructions if i.opcode == "sort"]:
                if (i.users or i.is_root) and is_static(i) and not i.control_predecessors and not i.control_successors:
                    changed |= self._fuse(i, ctx)
        return changed

    def _fuse(self, i: Instruction, ctx: PassContext) -> bool:
        inside = computed_inside(i, ctx, self.max_instructions)
        results = _results(i) if fits_tile(i) else [i]
        if not inside and results == [i]:
            return False
        parts_read = (o for r in results if r is not i for o in r.operands if o.opcode == "get-tuple-element")
        members = {i, *inside, *results, *parts_read}
        parts = sum(r is not i for r in results)
        why = f"{len(inside)} instructions are computed as it reads"
        ctx.decide(True, why + (f", {parts} parts of its results stored" if parts else ""), subject=i.name)
        ctx.trace.became[i.name] = fuse(results, members).name
        return True


def computed_inside(i: Instruction, ctx: PassContext, most: int) -> set[Instruction]:
    """The instructions, within a limit, that a sort or scan can compute as it reads its operands."""
    inside: set[Instruction] = set()
    stack = list(dict.fromkeys(i.operands))
    while stack:
        o = stack.pop()
        if o in inside or not is_producer(o) or len(inside) >= most:
            continue
        if all(u is i or u in inside for u in o.users) and not o.is_root:
            inside.add(o)
            stack.extend(o.operands)
            continue
        again = _cheap_again(o)
        inside |= again
        if not again:
            ctx.decide(False, "others read it too, and it is no less to read", subject=o.name, object=i.name)
    return inside


def _cheap_again(i: Instruction) -> set[Instruction]:
    """The producers of `i`, if they read fewer bytes than `i` has and are little work; else nothing."""
    found: set[Instruction] = set()
    given: set[Instruction] = set()
    stack = [i]
    while stack:
        o = stack.pop()
        if o in found or o in given:
            continue
        if not is_producer(o):
            given.add(o)
        elif len(found) < _AGAIN and o.opcode != "gather" and not is_expensive(o):
            found.add(o)
            stack.extend(o.operands)
        else:
            return set()
    return found if sum(o.shape.byte_size for o in given) <= i.shape.byte_size else set()


def _results(i: Instruction) -> list[Instruction]:
    """The values read of a sort: its parts, or slices of them along the rows; else the sort itself."""
    if i.is_root:
        return [i]
    parts = [i] if i.shape.is_array else list(i.users)
    if any(p is not i and p.opcode != "get-tuple-element" for p in parts):
        return [i]
    found: list[Instruction] = []
    for part in parts:
        readers = list(part.users)
        if readers and not part.is_root and all(_is_part_of_rows(r, i.dimensions[0]) for r in readers):
            found += readers
        elif part is i:
            return [i]
        else:
            found.append(part)
    whole = all(f.opcode == "get-tuple-element" for f in found)
    return [i] if whole and len(found) == len(i.operands) else found


def _is_part_of_rows(i: Instruction, d: int) -> bool:
    if i.opcode != "slice" or is_view(i) or i.control_predecessors or i.control_successors:
        return False
    dims = i.operands[0].shape.dims
    return all(w[2] == 1 if k == d else w == (0, dims[k], 1) for k, w in enumerate(i.attrs["slice"]))
