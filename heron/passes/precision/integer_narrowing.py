"""integer-narrowing: small sums of truth values and bytes are computed in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from heron.analysis.values.splat import splat_value
from heron.hlo.facts import reindexes
from heron.hlo.ir import literal, types
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import constant, splat
from heron.records import dataclass

#: the least and the largest number that an integer can be
Range: TypeAlias = tuple[int, int]

#: the types that are tried, narrowest first
_TYPES = (types.S8, types.U8, types.S16, types.U16, types.S32, types.U32)
#: instructions of a sum at most: ranges of longer ones fit no narrow type
_MOST = 512


@register
@dataclass(frozen=True)
class IntegerNarrowing(Pass):
    """Computes integers in the narrowest type that all of them fit, where the result is only compared or converted.

    They begin as conversions of narrower types and as constants: truth values that are counted, bytes of an image. A
    vector holds four times as many bytes as words.

    a = s32[8] convert(pred[8] p)
    b = s32[8] convert(pred[8] q)
    n = s32[8] add(a, b)
    two = s32[] constant(2)
    t = s32[8] broadcast(two), dimensions={}
    ROOT r = pred[8] compare(n, t), direction=EQ
    ->
    a = s8[8] convert(pred[8] p)
    b = s8[8] convert(pred[8] q)
    n = s8[8] add(a, b)
    two = s8[] constant(2)
    t = s8[8] broadcast(two), dimensions={}
    ROOT r = pred[8] compare(n, t), direction=EQ
    """

    name = "integer-narrowing"
    looks_for = frozenset({"convert"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            # users first: the whole of a sum is narrowed, not a part of it
            for i in reversed(c.post_order()):
                if i.opcode in _RANGES and i.parent is c and i.shape.is_array:
                    changed |= _narrow(c, i, ctx)
        return changed


def _narrow(c: Computation, root: Instruction, ctx: PassContext) -> bool:
    t = root.shape.element_type
    if not t.is_integer or t.bits < 16 or root.is_root or not root.users:
        return False
    if not all(_is_end(u, root) for u in root.users):
        return False
    ranges = _tree(root)
    if ranges is None:
        return False
    others = [int(splat_value(o)) for u in root.users if u.opcode == "compare" for o in u.operands if o is not root]
    low = min([r[0] for r in ranges.values()] + others)
    high = max([r[1] for r in ranges.values()] + others)
    found = next((n for n in _TYPES if n.bits < t.bits and _fits((low, high), n)), None)
    if found is None or not all(_fits(r, t) for r in ranges.values()):
        return False
    ctx.decide(True, f"from {low} to {high}: {found}, not {t}", subject=root.name)
    _rewrite(c, root, ranges, found)
    return True


def _is_end(user: Instruction, root: Instruction) -> bool:
    """Whether a user of a sum takes its numbers alone, of whatever type: it compares them with a number, or converts
    them."""
    if user.opcode == "convert":
        return True
    if user.opcode != "compare" or user.operands[0] is user.operands[1]:
        return False
    (other,) = (o for o in user.operands if o is not root)
    return splat_value(other) is not None


def _tree(root: Instruction) -> dict[Instruction, Range] | None:
    """The instructions that a sum is computed from, operands first, and their ranges; None where one is not known, or
    is used elsewhere."""
    ranges: dict[Instruction, Range] = {}
    stack = [root]
    while stack:
        i = stack[-1]
        left = [] if _is_start(i) else [o for o in i.operands if o not in ranges and o.shape.element_type.is_integer]
        if left and i not in ranges:
            stack += left
            if len(stack) + len(ranges) > _MOST:
                return None
            continue
        stack.pop()
        found = _range(i, ranges)
        if found is None:
            return None
        ranges[i] = found
    inner = [i for i in ranges if i is not root and not _is_start(i)]
    return ranges if all(u in ranges for i in inner for u in i.users) else None


def _is_start(i: Instruction) -> bool:
    return i.opcode == "convert" or i.opcode == "constant"


def _range(i: Instruction, ranges: dict[Instruction, Range]) -> Range | None:
    if i.opcode == "constant":
        value = splat_value(i)
        return None if value is None else (int(value), int(value))
    if i.opcode == "convert":
        source = i.operands[0].shape.element_type
        return _limits(source) if source.kind == "pred" or source.is_integer and source.bits >= 8 else None
    if not (i.opcode in _RANGES or reindexes(i)) or i.control_predecessors or i.control_successors:
        return None
    given = [ranges.get(o) for o in i.operands if o.shape.element_type.is_integer]
    if any(r is None for r in given):
        return None
    known = [r for r in given if r is not None]
    return known[0] if reindexes(i) else _RANGES[i.opcode](known)


def _limits(t: ElementType) -> Range:
    if t.kind == "pred":
        return 0, 1
    return (-(1 << t.bits - 1), (1 << t.bits - 1) - 1) if t.is_signed else (0, (1 << t.bits) - 1)


def _fits(r: Range, t: ElementType) -> bool:
    low, high = _limits(t)
    return low <= r[0] and r[1] <= high


def _sum(given: Sequence[Range]) -> Range:
    (a, b), (c, d) = given
    return a + c, b + d


def _difference(given: Sequence[Range]) -> Range:
    (a, b), (c, d) = given
    return a - d, b - c


def _negative(given: Sequence[Range]) -> Range:
    return -given[0][1], -given[0][0]


def _least(given: Sequence[Range]) -> Range:
    (a, b), (c, d) = given
    return min(a, c), min(b, d)


def _largest(given: Sequence[Range]) -> Range:
    (a, b), (c, d) = given
    return max(a, c), max(b, d)


def _any(given: Sequence[Range]) -> Range:
    return min(r[0] for r in given), max(r[1] for r in given)


#: ops on integers of which the range follows from those of their operands
_RANGES: dict[str, Callable[[Sequence[Range]], Range]] = {
    "add": _sum,
    "subtract": _difference,
    "negate": _negative,
    "minimum": _least,
    "maximum": _largest,
    "select": _any,
    "concatenate": _any,
    "pad": _any,
}


def _rewrite(c: Computation, root: Instruction, ranges: dict[Instruction, Range], t: ElementType) -> None:
    made: dict[Instruction, Instruction] = {}
    for i in ranges:
        if i.opcode == "constant":
            made[i] = constant(c, literal.of(i.attrs["literal"].array.astype(t.dtype)), like=i)
        else:
            operands = [i.operands[0]] if i.opcode == "convert" else [made.get(o, o) for o in i.operands]
            made[i] = c.add(i.opcode, operands, i.shape.with_type(t), like=i, **i.attrs)
    for user in list(root.users):
        operands = [made[root] if o is root else o for o in user.operands]
        if user.opcode == "compare":
            operands = [o if o is made[root] else splat(c, o.shape.with_type(t), splat_value(o)) for o in operands]
            new = c.add("compare", operands, user.shape, like=user, direction=user.attrs["direction"])
        else:
            new = c.add("convert", operands, user.shape, like=user)
        c.replace(user, new)
