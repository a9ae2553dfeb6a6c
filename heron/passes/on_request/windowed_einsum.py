"""windowed-einsum: products with gathered or scattered arrays go around a ring, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.devices.groups import device_groups
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.hlo.ir.types import S32
from heron.passes.collectives.model.grouping import free_channels, permuted
from heron.passes.collectives.model.places import device_number, looked_up, starts_at
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WindowedEinsum(Pass):
    """Replaces a dot of an all-gather, and a reduce-scatter of a dot, by dots of parts with permutes between them.

    Each device multiplies the part that it has while it hands the part on to its neighbour in the group. A part of a
    gathered dimension gives a part of the result, or a summand of it where the dot contracts that dimension. Of a
    scattered result each device adds its summand to what comes around. ``least_bytes``: of the smallest gathered or
    scattered array that is done in this way; ``most_devices``: of the largest group, for the parts are straight code.

    HloModule example, replica_count=2

    g = f32[4,3] all-gather(f32[2,3] x), dimensions={0}
    ROOT d = f32[4,5] dot(g, f32[3,5] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    ...
    """

    name = "windowed-einsum"
    least_bytes: int = 0
    most_devices: int = 16

    def run(self, module: Module, ctx: PassContext) -> bool:
        # a permute's ids are partitions of one replica, or replicas of one partition
        if module.replica_count != 1 and module.num_partitions != 1:
            return False
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode == "dot":
                    side = next((n for n, o in enumerate(i.operands) if self._fits(o, module, "all-gather")), None)
                    new = None if side is None else _of_gathered(i, side, _Ring(i.operands[side], module, channels))
                elif self._fits(i, module, "reduce-scatter") and _is_sum_of_dot(i):
                    new = _scattered(i, _Ring(i, module, channels))
                else:
                    continue
                if new is not None:
                    c.replace(i, new)
                    ctx.decide(True, "parts go around a ring of devices", subject=i.name)
                    changed = True
        return changed

    def _fits(self, i: Instruction, module: Module, opcode: str) -> bool:
        if i.opcode != opcode or not is_alone(i) or (i.channel_id is not None) != (module.num_partitions > 1):
            return False
        if opcode == "all-gather" and (len(i.users) > 1 or i.is_root):
            return False
        sizes = {len(g) for g in device_groups(i, module)}
        if len(sizes) != 1 or not 1 < max(sizes) <= self.most_devices:
            return False
        return max(i.shape.byte_size, i.operands[0].shape.byte_size) >= self.least_bytes


class _Ring:
    """The devices of each group of a collective, in a ring."""

    def __init__(self, i: Instruction, module: Module, channels: Iterator[int]) -> None:
        c = i.parent
        assert c is not None
        self.c, self.module, self._channels = c, module, channels
        self.groups: Groups = device_groups(i, module)
        self.size = len(self.groups[0])
        self._number = device_number(c, module)

    def passed(self, x: Instruction, by: int) -> Instruction:
        """The value of the device `by` places further on in the group."""
        n = self.size
        pairs = [(group[(k + by) % n], device) for group in self.groups for k, device in enumerate(group)]
        return permuted(x, pairs, self.module, self._channels)

    def start(self, by: int, length: int) -> Instruction:
        """The start of the part, of that length, of the device `by` places further on."""
        n = self.size
        starts = {device: (k + by) % n * length for group in self.groups for k, device in enumerate(group)}
        return looked_up(self.c, self._number, [starts[d] for d in sorted(starts)], S32)

    def part(self, x: Instruction, dim: int, by: int, length: int) -> Instruction:
        """The part of `x` along a dimension that is that device's."""
        dims = tuple(length if d == dim else n for d, n in enumerate(x.shape.dims))
        starts = starts_at(x, dim, self.start(by, length), x.shape.rank)
        return self.c.add("dynamic-slice", [x, *starts], x.shape.with_dims(dims), like=x, dynamic_slice_sizes=dims)


def _dimensions(dot: Instruction, side: int) -> tuple[list[int], list[int]]:
    """The batch and the contracting dimensions of one operand."""
    name = ("lhs", "rhs")[side]
    return list(dot.attrs.get(f"{name}_batch_dims") or ()), list(dot.attrs.get(f"{name}_contracting_dims") or ())


def _free(dot: Instruction, side: int) -> list[int]:
    """The dimensions of an operand that are the result's, in its order there."""
    batch, contracted = _dimensions(dot, side)
    return [d for d in range(dot.operands[side].shape.rank) if d not in batch and d not in contracted]


def _result_dimension(dot: Instruction, side: int, dim: int) -> int | None:
    """The dimension of the result that is dimension `dim` of an operand; None where it is contracted."""
    batch, contracted = _dimensions(dot, side)
    if dim in contracted:
        return None
    if dim in batch:
        return batch.index(dim)
    return len(batch) + (len(_free(dot, 0)) if side else 0) + _free(dot, side).index(dim)


def _of_gathered(dot: Instruction, side: int, ring: _Ring) -> Instruction:
    c, gathered, other = ring.c, dot.operands[side], dot.operands[1 - side]
    part, dim = gathered.operands[0], gathered.dimensions[0]
    length, to = part.shape.dims[dim], _result_dimension(dot, side, dim)
    shared = [
        list(zip(a, b, strict=True)) for a, b in zip(_dimensions(dot, side), _dimensions(dot, 1 - side), strict=True)
    ]
    along = next((b for pairs in shared for a, b in pairs if a == dim), None)  # the other's, where both have it
    result = None if to is None else splat(c, dot.shape, 0)
    for n in range(ring.size):
        beside = other if along is None else ring.part(other, along, n, length)
        operands = [part, beside] if side == 0 else [beside, part]
        dims = tuple(length if d == to else size for d, size in enumerate(dot.shape.dims))
        one = c.add("dot", operands, dot.shape.with_dims(dims), like=dot, **dot.attrs)
        if n + 1 < ring.size:
            part = ring.passed(part, 1)
        if to is not None and result is not None:
            starts = starts_at(dot, to, ring.start(n, length), dot.shape.rank)
            result = c.add("dynamic-update-slice", [result, one, *starts], dot.shape, like=dot)
        else:
            result = one if result is None else c.add("add", [result, one], dot.shape, like=dot)
    assert result is not None
    return result


def _is_sum_of_dot(i: Instruction) -> bool:
    (dot,) = i.operands
    alone = dot.opcode == "dot" and len(dot.users) == 1 and not dot.is_root
    return alone and combiner(i.to_apply) == "add" and not (dot.control_predecessors or dot.control_successors)


def _scattered(i: Instruction, ring: _Ring) -> Instruction | None:
    """Each device's part of the sum of all dots; a part comes around to its device with the last summand."""
    c, (dot,), (to,) = ring.c, i.operands, i.dimensions
    length = i.shape.dims[to]
    places = [(s, d) for s in (0, 1) for d in range(dot.operands[s].shape.rank) if _result_dimension(dot, s, d) == to]
    total: Instruction | None = None
    for n in range(1, ring.size + 1):
        operands = list(dot.operands)
        for side, dim in places:
            operands[side] = ring.part(operands[side], dim, -n, length)
        one = c.add("dot", operands, i.shape, like=dot, **dot.attrs)
        total = one if total is None else c.add("add", [ring.passed(total, -1), one], i.shape, like=i)
    return total
