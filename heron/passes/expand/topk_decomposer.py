"""topk-decomposer: the k largest elements by a sort of all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heron.hlo import shape
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.shape import PRED_SCALAR
from heron.hlo.types import S32, ElementType
from heron.passes.base import Constraint
from heron.passes.building import array
from heron.passes.expand.expander import Expander
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class TopkDecomposer(Expander):
    """Writes topk, the op and the custom call of that name, as a stable sort with positions, cut off after k.

    Floats are compared in total order, so NaNs of positive sign are the largest; of equals the earlier comes first.

    ROOT t = (f32[2,3], s32[2,3]) topk(f32[2,8] x), k=3, largest=true
    ->
    before {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      m = s32[] parameter(2)
      n = s32[] parameter(3)
      ROOT r = pred[] compare(a, b), direction=GT, type=TOTALORDER
    }

    positions = s32[2,8] iota(), iota_dimension=1
    s = (f32[2,8], s32[2,8]) sort(x, positions), dimensions={1}, is_stable=true, to_apply=before
    v = f32[2,8] get-tuple-element(s), index=0
    values = f32[2,3] slice(v), slice={[0:2], [0:3]}
    p = s32[2,8] get-tuple-element(s), index=1
    places = s32[2,3] slice(p), slice={[0:2], [0:3]}
    ROOT t = (f32[2,3], s32[2,3]) tuple(values, places)
    """

    name = "topk-decomposer"
    opcodes = frozenset({"topk", "custom-call"})
    dynamic = True
    constraints = (Constraint("topk-decomposer", "stable-sort-expander", "it makes stable sorts", all_runs=True),)

    def matches(self, i: Instruction) -> bool:
        return i.opcode == "topk" or i.custom_call_target == "TopK"

    def expand(self, i: Instruction) -> Instruction:
        c, (x,) = i.parent, i.operands
        assert c is not None and c.module is not None
        dims, d = x.shape.dims, x.shape.rank - 1
        positions = _sized(c.add("iota", [], array(S32, dims), like=i, iota_dimension=d), x)
        largest = bool(i.attrs.get("largest", True))
        comparator = c.module.add_computation(_comparator(x.shape.element_type, largest))
        both = [x, positions]
        result = shape.tuple_([o.shape.with_default_layout() for o in both])
        line = c.add("sort", both, result, like=i, dimensions=(d,), is_stable=True, to_apply=comparator)
        wanted = i.shape.at((0,)).dims
        window = tuple((0, n, 1) for n in wanted)
        parts: list[Instruction] = []
        for n in range(len(both)):
            part = c.add("get-tuple-element", [line], result.at((n,)), index=n)
            parts.append(c.add("slice", [part], i.shape.at((n,)).with_default_layout(), like=i, slice=window))
        return c.add("tuple", parts, like=i)


def _sized(positions: Instruction, x: Instruction) -> Instruction:
    """As many positions as there are elements."""
    c = x.parent
    assert c is not None
    for d, marked in enumerate(x.shape.dynamic):
        if marked:
            size = c.add("get-dimension-size", [x], dimensions=(d,))
            positions = c.add("set-dimension-size", [positions, size], dimensions=(d,))
    return positions


def _comparator(t: ElementType, largest: bool) -> Computation:
    """Whether the first of two values comes before the second; positions, parameters 2 and 3, do not matter."""
    c = Computation("before")
    values = [c.add_parameter(n, shape.scalar(t)) for n in range(2)]
    for n in range(2, 4):
        c.add_parameter(n, shape.scalar(S32))
    attrs: dict[str, Any] = {"direction": "GT" if largest else "LT"}
    if t.is_float:
        attrs["type"] = "TOTALORDER"
    c.root = c.add("compare", values, PRED_SCALAR, **attrs)
    return c
