"""topk-rewriter: a sort of which only the first few are read is a search for them."""

from __future__ import annotations

from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import S32
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static
from heron.records import dataclass


@register
@dataclass(frozen=True)
class TopkRewriter(Pass):
    """Finds stable sorts along the last dimension, with positions or without, of which only the first k are read.

    Floats must be compared in total order, as topk does: an order in which NaNs are no number's equal is not its.

    topk-decomposer puts back the sorts of which no kernel selects the first.

    before {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      m = s32[] parameter(2)
      n = s32[] parameter(3)
      ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER
    }

    positions = s32[2,8] iota(), iota_dimension=1
    s = (f32[2,8], s32[2,8]) sort(f32[2,8] x, positions), dimensions={1}, is_stable=true, to_apply=before
    v = f32[2,8] get-tuple-element(s), index=0
    values = f32[2,3] slice(v), slice={[0:2], [0:3]}
    p = s32[2,8] get-tuple-element(s), index=1
    places = s32[2,3] slice(p), slice={[0:2], [0:3]}
    ROOT t = (f32[2,3], s32[2,3]) tuple(values, places)
    ->
    k = (f32[2,3], s32[2,3]) topk(x), k=3, largest=true
    values = f32[2,3] get-tuple-element(k), index=0
    places = s32[2,3] get-tuple-element(k), index=1
    ROOT t = (f32[2,3], s32[2,3]) tuple(values, places)
    """

    name = "topk-rewriter"
    looks_for = frozenset({"sort"})
    constraints = (Constraint("topk-rewriter", "topk-decomposer", "it makes topk of sorts"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if i.opcode == "sort" and is_static(i)]:
            changed |= _rewrite(i)
        return changed


def _rewrite(i: Instruction) -> bool:
    c, x = i.parent, i.operands[0]
    last = x.shape.rank - 1
    if c is None or i.dimensions != (last,) or len(i.operands) > 2 or i.is_root:
        return False
    largest = _order(i.to_apply, len(i.operands))
    if largest is None or (len(i.operands) == 2 and not (i.is_stable and _is_positions(i.operands[1], last))):
        return False
    slices = _first_few(i)
    if not slices:
        return False
    k = max(s.shape.dims[last] for _, s in slices)
    dims = (*x.shape.dims[:-1], k)
    shapes = [array(x.shape.element_type, dims), array(S32, dims)]
    found = c.add("topk", [x], shape.tuple_(shapes), like=i, k=k, largest=largest)
    for n, s in slices:
        part = c.add("get-tuple-element", [found], shapes[n], like=s, index=n)
        if s.shape.dims != dims:
            part = c.add("slice", [part], s.shape, like=s, slice=s.attrs["slice"])
        c.replace(s, part)
    return True


def _order(comparator: Computation, arrays: int) -> bool | None:
    """Whether the largest come first; None when it is no order of the first array's values that topk knows."""
    root, parameters = comparator.root, comparator.parameters
    if root.opcode != "compare" or len(parameters) != 2 * arrays or root.direction not in ("GT", "LT"):
        return None
    a, b = parameters[:2]
    if a.shape.element_type.is_float and root.attrs.get("type") != "TOTALORDER":
        return None
    if root.operands == [a, b]:
        return root.direction == "GT"
    return root.direction == "LT" if root.operands == [b, a] else None


def _is_positions(i: Instruction, dimension: int) -> bool:
    return i.opcode == "iota" and i.shape.element_type is S32 and i.attrs["iota_dimension"] == dimension


def _first_few(i: Instruction) -> list[tuple[int, Instruction]]:
    """The slices that read `i`, each with which of its results; none when somebody reads more than the first few."""
    results = [(0, i)] if not i.shape.is_tuple else []
    if i.shape.is_tuple:
        for user in i.users:
            if user.opcode != "get-tuple-element" or user.is_root:
                return []
            results.append((user.attrs["index"], user))
    found: list[tuple[int, Instruction]] = []
    for n, result in results:
        for s in result.users:
            if s.opcode != "slice" or not _takes_first(s):
                return []
            found.append((n, s))
    return found


def _takes_first(s: Instruction) -> bool:
    *others, (start, limit, stride) = s.attrs["slice"]
    whole = s.operands[0].shape.dims
    if any(part != (0, size, 1) for part, size in zip(others, whole[:-1], strict=True)):
        return False
    return start == 0 and stride == 1 and limit < whole[-1]
