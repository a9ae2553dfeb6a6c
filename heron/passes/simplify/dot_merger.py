"""dot-merger: products that share an operand are one product."""

from __future__ import annotations

from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static
from heron.records import dataclass

_SIDES = ("lhs", "rhs")


@register
@dataclass(frozen=True)
class DotMerger(Pass):
    """Makes dots of the same left or right operand one dot of the others' concatenation, of which each gets its slice.

    One larger product fills the machine better than several small ones, such as those of queries, keys and values. The
    dots must be independent, and all but one small: their operands and results at most ``most`` bytes. Joining costs a
    kernel that copies: with more than ``joined`` bytes it takes longer than is gained. Every element is the same sum as
    before.

    a = f32[8,4] dot(f32[8,16] x, f32[16,4] p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    b = f32[8,6] dot(x, f32[16,6] q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = (f32[8,4], f32[8,6]) tuple(a, b)
    ->
    pq = f32[16,10] concatenate(p, q), dimensions={1}
    d = f32[8,10] dot(x, pq), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    a = f32[8,4] slice(d), slice={[0:8], [0:4]}
    b = f32[8,6] slice(d), slice={[0:8], [4:10]}
    ROOT r = (f32[8,4], f32[8,6]) tuple(a, b)
    """

    name = "dot-merger"
    most: int = 64 << 20
    joined: int = 4 << 20

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            if sum(i.opcode == "dot" for i in c.instructions) > 1:
                changed |= self._merge_in(c)
        return changed

    def _merge_in(self, c: Computation) -> bool:
        groups = _alike([i for i in c.post_order() if i.opcode == "dot" and _may_merge(i)])
        if not groups:
            return False
        order, changed = Reachability(c), False
        for shared, group in groups:
            left = [i for i in group if i.parent is c]  # the others are part of another group's product
            while left:
                together = self._independent(left, 1 - shared, order)
                left = [i for i in left if i not in together]
                if len(together) > 1:
                    _merge(c, together, shared, order)
                    changed = True
        return changed

    def _independent(self, dots: list[Instruction], side: int, order: Reachability) -> list[Instruction]:
        """The first of the dots, and the others that may be one with it."""
        chosen, size, joined = dots[:1], _bytes(dots[0]), dots[0].operands[side].shape.byte_size
        for i in dots[1:]:
            more = i.operands[side].shape.byte_size
            if min(size, _bytes(i)) > self.most or joined + more > self.joined:
                continue
            if not any(order.connected(i, other) for other in chosen):
                chosen.append(i)
                size, joined = size + _bytes(i), joined + more
        return chosen


def _may_merge(i: Instruction) -> bool:
    held = i.control_predecessors or i.control_successors or "sharding" in i.extras
    return len(i.operands) == 2 and not held and is_static(i)


def _alike(dots: list[Instruction]) -> list[tuple[int, list[Instruction]]]:
    """Dots that differ in nothing but one operand and its only free dimension, with the number of the other operand."""
    groups: dict[tuple[object, ...], list[Instruction]] = {}
    for i in dots:
        types = tuple(x.shape.element_type for x in (*i.operands, i))
        attributes = str(sorted((k, str(v)) for k, v in (i.attrs | i.extras).items()))
        for shared, x in enumerate(i.operands):
            other = i.operands[1 - shared]
            if (d := _free(i, 1 - shared)) is not None:
                sizes = other.shape.dims[:d] + other.shape.dims[d + 1 :]
                groups.setdefault((shared, x, d, sizes, types, attributes), []).append(i)
    return [(key[0], group) for key, group in groups.items() if len(group) > 1]  # type: ignore[misc]


def _free(i: Instruction, side: int) -> int | None:
    """The dimension of an operand that is neither batch nor summed, if there is one only."""
    taken = {*i.attrs.get(f"{_SIDES[side]}_batch_dims", ()), *i.attrs.get(f"{_SIDES[side]}_contracting_dims", ())}
    free = [d for d in range(i.operands[side].shape.rank) if d not in taken]
    return free[0] if len(free) == 1 else None


def _bytes(i: Instruction) -> int:
    return sum(x.shape.byte_size for x in (*i.operands, i))


def _merge(c: Computation, dots: list[Instruction], shared: int, order: Reachability) -> None:
    first, side = dots[0], 1 - shared
    joined = c.add("concatenate", [i.operands[side] for i in dots], like=first, dimensions=(_free(first, side),))
    operands = [first.operands[0], joined] if side else [joined, first.operands[1]]
    # batch dimensions come first in the result, then the free ones of the left, then those of the right operand
    at = first.shape.rank - 1 if side else len(first.attrs.get("lhs_batch_dims", ()))
    sizes = [i.shape.dims[at] for i in dots]
    dims = (*first.shape.dims[:at], sum(sizes), *first.shape.dims[at + 1 :])
    product = c.add("dot", operands, array(first.shape.element_type, dims), like=first, **first.attrs)
    product.extras = dict(first.extras)
    for i in dots[1:]:
        order.fuse(first, i)
    start = 0
    for i, size in zip(dots, sizes, strict=True):
        part = [(0, n, 1) for n in product.shape.dims]
        part[at] = (start, start + size, 1)
        c.replace(i, c.add("slice", [product], i.shape, like=i, slice=tuple(part)))
        start += size
