"""all-reduce-cross-combiner: two sums with linear work between them are one sum behind that work."""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.replication import replicated_values
from heron.hlo.facts import combiner, linear_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.passes.collectives.all_reduce_folder import joined
from heron.passes.collectives.model.grouping import among, free_channels
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceCrossCombiner(Pass):
    """Leaves out the first of two all-reduces of sums, where what is computed between them is linear in it.

    Both sums are then done by the second, in larger groups. The groups must be rows and columns of those, and whatever
    else the work between reads must be equal on all devices. An array that is added there is counted once for each
    member of the first groups, so it is divided by their size, a power of two.

    HloModule example, replica_count=4

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[4,2] all-reduce(f32[4,2] x), replica_groups={{0,1},{2,3}}, to_apply=sum
    t = f32[2,4] transpose(p), dimensions={1,0}
    n = f32[2,4] negate(t)
    ROOT q = f32[2,4] all-reduce(n), replica_groups={{0,2},{1,3}}, to_apply=sum
    ->
    HloModule example, replica_count=4

    t = f32[2,4] transpose(x), dimensions={1,0}
    n = f32[2,4] negate(t)
    ROOT q = f32[2,4] all-reduce(n), replica_groups={{0,1,2,3}}, to_apply=sum
    """

    name = "all-reduce-cross-combiner"
    constraints = (
        Constraint("all-reduce-folder", "all-reduce-cross-combiner", "sums that follow each other are one by then"),
        Constraint("all-reduce-cross-combiner", "all-reduce-splitter", "that makes two sums of one"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            found = [i for i in c.instructions if i.opcode == "all-reduce" and _adds(i)]
            if len(found) < 2:
                continue
            equal = replicated_values(c, module)
            for i in found:
                path = _path(i, equal) if i.parent is c else []
                groups = joined(device_groups(path[-1], module), device_groups(i, module)) if path else None
                if groups is None or not _may_divide(path, module):
                    continue
                _sum_once(i, path, groups, module, channels)
                ctx.decide(True, "summed with a later sum", subject=path[-1].name)
                changed = True
        return changed


def _adds(i: Instruction) -> bool:
    return is_alone(i) and combiner(i.to_apply) == "add"


def _path(i: Instruction, equal: set[Instruction]) -> list[Instruction]:
    """The linear ops from the operand of `i` back to an all-reduce, which is the last; empty where there is none."""
    path: list[Instruction] = []
    at = i.operands[0]
    while len(at.users) == 1 and not at.is_root and not (at.control_predecessors or at.control_successors):
        path.append(at)
        if at.opcode == "all-reduce":
            return path if len(path) > 1 and _adds(at) else []
        group = next((g for g in linear_groups(at) if _summed(at, g, equal) is not None), None)
        if group is None:
            return []
        n = _summed(at, group, equal)
        assert n is not None
        at = at.operands[n]
    return []


def _summed(i: Instruction, group: tuple[int, ...], equal: set[Instruction]) -> int | None:
    """The only operand that differs between devices, if it is one of the group."""
    differing = [n for n, o in enumerate(i.operands) if o not in equal]
    return differing[0] if len(differing) == 1 and differing[0] in group else None


def _added(i: Instruction, after: Instruction) -> list[Instruction]:
    """The operands of `i` that are added to what comes from `after`."""
    n = i.operands.index(after)
    group = next(g for g in linear_groups(i) if n in g)
    return [i.operands[m] for m in group if m != n]


def _may_divide(path: list[Instruction], module: Module) -> bool:
    """Whether nothing is added on the way, or floats that can be divided by the size of the first groups."""
    added = [o for i, after in zip(path, path[1:], strict=False) for o in _added(i, after)]
    sizes = {len(g) for g in device_groups(path[-1], module)}
    exact = len(sizes) == 1 and all(size & (size - 1) == 0 for size in sizes)
    return not added or exact and all(o.shape.element_type.is_float for o in added)


def _sum_once(i: Instruction, path: list[Instruction], groups: Groups, module: Module, channels: Iterator[int]) -> None:
    c, first = i.parent, path[-1]
    assert c is not None
    share = 1 / len(device_groups(first, module)[0])
    old, new = first, first.operands[0]
    for op in reversed(path[:-1]):
        shared = {
            o: c.add("multiply", [o, splat(c, o.shape, share)], o.shape, like=o) for o in dict.fromkeys(_added(op, old))
        }
        made = op.clone([new if o is old else shared.get(o, o) for o in op.operands])
        old, new = op, c.attach(made)
    c.replace(i, c.add("all-reduce", [new], i.shape, like=i, **among(i, groups, module, channels)))
