"""topk-decomposer: the k largest elements by a sort of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron.analysis.fusion.selection import is_selection
from heron.analysis.fusion.sort_tiles import tile_for
from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR
from heron.hlo.ir.types import S32, ElementType
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, reshape, scalar
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass

#: widths of types that have a value after all others
_PADDED = (16, 32, 64)


@register
@dataclass(frozen=True)
class TopkDecomposer(Expander):
    """Writes topk, the op and the custom call of that name, as a stable sort with positions, cut off after k.

    Floats are compared in total order, so NaNs of positive sign are the largest; of equals the earlier comes first.
    With ``selects``, those that a CPU kernel selects in one pass over the rows stay, as the op. With ``tiles``, rows
    longer than a GPU block can hold are cut into parts that it can: what is first in each part is the next row to look
    through. A kernel each time instead of all those of a long sort.

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
    tiles: bool = False
    selects: bool = False
    opcodes = frozenset({"topk", "custom-call"})
    dynamic = True
    constraints = (Constraint("topk-decomposer", "stable-sort-expander", "it makes stable sorts", all_runs=True),)

    def matches(self, i: Instruction) -> bool:
        if i.opcode == "topk":
            return not (self.selects and is_selection(i))
        # a call of another form is nobody's, and refused when code is made
        return i.custom_call_target == "TopK" and len(i.operands) == 1 and len(i.shape.tuple_shapes or ()) == 2

    def expand(self, i: Instruction) -> Instruction:
        c, (x,) = i.parent, i.operands
        assert c is not None and c.module is not None
        dims, d = x.shape.dims, x.shape.rank - 1
        largest, t, k = bool(i.attrs.get("largest", True)), x.shape.element_type, i.shape.at((0,)).dims[-1]
        tile = tile_for(t.byte_size + S32.byte_size)
        if self.tiles and is_static(i) and dims[d] > tile and 2 * k <= tile and t.bits in _PADDED:
            return _in_tiles(i, x, k, tile, largest)
        positions = _sized(c.add("iota", [], array(S32, dims), like=i, iota_dimension=d), x)
        comparator = c.module.add_computation(_comparator(t, largest))
        line = [x, positions]
        return c.add("tuple", _first(i, line, k, comparator, is_stable=True), like=i)


def _in_tiles(i: Instruction, x: Instruction, k: int, tile: int, largest: bool) -> Instruction:
    """The first `k` of parts of rows, until what is left of a row is one part."""
    c, t = x.parent, x.shape.element_type
    assert c is not None and c.module is not None
    comparator = c.module.add_computation(_with_tie_break(_comparator(t, largest)))
    *rows, n = x.shape.dims
    line = [x, c.add("iota", [], array(S32, (*rows, n)), like=i, iota_dimension=len(rows))]
    # what fills up the last part comes after everything: no value is beyond it, and its positions are past the end
    beyond = [scalar(c, t, _beyond(t, largest)), scalar(c, S32, (1 << 31) - 1)]
    while n > tile:
        parts = -(-n // tile)
        size = -(-n // parts)
        for m, fill in enumerate(beyond):
            if parts * size > n:
                padding = (*((0, 0, 0) for _ in rows), (0, parts * size - n, 0))
                shape_ = array(line[m].shape.element_type, (*rows, parts * size))
                line[m] = c.add("pad", [line[m], fill], shape_, like=i, padding=padding)
            line[m] = reshape(line[m], (*rows, parts, size))
        line = [reshape(p, (*rows, parts * k)) for p in _first(i, line, k, comparator)]
        n = parts * k
    return c.add("tuple", _first(i, line, k, comparator), like=i)


def _first(
    i: Instruction, line: list[Instruction], k: int, comparator: Computation, is_stable: bool = False
) -> list[Instruction]:
    """The first `k` along the last dimension of what `line` is when sorted."""
    c, dims = line[0].parent, line[0].shape.dims
    assert c is not None
    d = len(dims) - 1
    result = shape.tuple_([o.shape.with_default_layout() for o in line])
    stable: dict[str, Any] = {"is_stable": True} if is_stable else {}
    both = c.add("sort", line, result, like=i, dimensions=(d,), to_apply=comparator, **stable)
    window = tuple((0, n, 1) for n in (*dims[:d], k))
    parts: list[Instruction] = []
    for n, o in enumerate(line):
        part = c.add("get-tuple-element", [both], result.at((n,)), index=n)
        cut = shape.array(o.shape.element_type, (*dims[:d], k), dynamic=(*o.shape.dynamic[:d], False))
        parts.append(c.add("slice", [part], cut.with_default_layout(), like=i, slice=window))
    return parts


def _beyond(t: ElementType, largest: bool) -> object:
    """The value that comes after all others: as bits, the last in total order for floats."""
    words = np.dtype(f"u{t.byte_size}")
    ones = (1 << t.bits) - 1
    if t.is_float:
        return np.array(ones if largest else ones >> 1, words).view(t.dtype)[()]
    info = np.iinfo(t.dtype)
    return np.array(info.min if largest else info.max, t.dtype)[()]


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


def _with_tie_break(c: Computation) -> Computation:
    """The comparator with the smaller position first among equals."""
    a, b, m, n = c.parameters
    before = c.root
    first = c.add("compare", [m, n], PRED_SCALAR, direction="LT")
    equal = c.add("compare", [a, b], PRED_SCALAR, **{**before.attrs, "direction": "EQ"})
    c.root = c.add("select", [equal, first, before], PRED_SCALAR)
    return c
