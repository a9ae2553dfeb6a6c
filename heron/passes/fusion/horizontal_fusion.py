"""horizontal-fusion: small independent loops become one kernel, each with blocks of its own."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.hlo.computation import Computation
from heron.hlo.fingerprint import fingerprint
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.context import PassContext
from heron.passes.fusion.join import join_kernels
from heron.passes.fusion.walk import walk_of
from heron.passes.registry import register
from heron.targets import Target, get

#: what takes no step of its own
_FREE = frozenset({"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency"})

#: ops that kernels of elementwise results may be shaped after
_HEROES = frozenset({"transpose", "concatenate"})


@register
@dataclass(frozen=True)
class HorizontalFusion(Pass):
    """Joins loops that have nothing to do with each other, where launching them takes longer than running them.

    The updates of an optimiser are hundreds of small loops; as one kernel they cost one launch, each output with blocks
    of its own. Joined are loops as far from the end of the program (by the longest chain of steps), so that none can
    need another; at most one of a kernel's loops is large enough to be worth a launch. Loops that do the same to other
    arrays are dealt out evenly, so that most kernels are equal and are compiled once. Limits: ``max_arguments``, the
    arrays a kernel's 4 KiB of parameters can name, and ``max_loops``, the code of a kernel.

    a = f32[8] negate(f32[8] x)
    b = s32[] negate(s32[] y)
    ROOT t = (f32[8], s32[]) tuple(a, b)
    ->
    body {
      p = f32[8] parameter(0)
      q = s32[] parameter(1)
      n = f32[8] negate(p)
      m = s32[] negate(q)
      ROOT r = (f32[8], s32[]) tuple(n, m)
    }
    f = (f32[8], s32[]) fusion(x, y), kind=kLoop, calls=body
    a = f32[8] get-tuple-element(f), index=0
    b = s32[] get-tuple-element(f), index=1
    ROOT t = (f32[8], s32[]) tuple(a, b)
    """

    name = "horizontal-fusion"
    max_arguments: int = 480
    max_loops: int = 24
    target: str = "sm_90"
    constraints = (
        Constraint("multi-output-fusion", "horizontal-fusion", "kernels that read the same arrays gain more together"),
        Constraint("horizontal-fusion", "copy-insertion", "in-place updates are decided on whole kernels"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        target = ctx.target if isinstance(ctx.target, Target) and ctx.target.kind == "gpu" else get(self.target)
        changed = False
        for c in module.non_fusion_computations():
            for group in self._groups(c, target, ctx):
                names = [i.name for i in group]
                made = join_kernels(group)
                ctx.trace.became.update(dict.fromkeys(names, made.name))
                ctx.decide(
                    True,
                    f"{len(group)} loops that need nothing of each other",
                    subject=made.name,
                    object=", ".join(names),
                    cost_before=len(group),
                    cost_after=1,
                )
                changed = True
        return changed

    def _groups(self, c: Computation, target: Target, ctx: PassContext) -> list[list[Instruction]]:
        """Loops of `c` to join, in order of execution."""
        order = c.post_order()
        height = heights(order)
        levels: dict[int, list[Instruction]] = {}
        for i in order:
            walk = walk_of(i)
            if walk is not None and not walk.reduced and not _has_hero(i):
                levels.setdefault(height[i], []).append(i)
        groups: list[list[Instruction]] = []
        for loops in levels.values():
            if len(loops) > 1:
                groups += self._pack(loops, target)
        return groups

    def _pack(self, loops: list[Instruction], target: Target) -> list[list[Instruction]]:
        """Deal the loops out to kernels, to each as many of every kind: then most kernels are equal, and compiled once.

        A large loop takes small ones along, never another large one.
        """
        kinds: dict[str, deque[Instruction]] = {}
        large: list[Instruction] = []
        for i in loops:
            if estimate(kernel_cost(i, target.kind == "gpu"), target).bound == "launch":
                kinds.setdefault(_kind(i), deque()).append(i)
            else:
                large.append(i)
        each = max(1, self.max_loops // max(1, len(kinds)))
        groups: list[list[Instruction]] = []
        while kinds:
            group = [large.pop()] if large else []
            room = self.max_arguments - sum(map(_arguments, group))
            for kind, waiting in list(kinds.items()):
                for _ in range(each):
                    if not waiting or len(group) == self.max_loops or room < _arguments(waiting[0]):
                        break
                    room -= _arguments(waiting[0])
                    group.append(waiting.popleft())
                if not waiting:
                    del kinds[kind]
            groups.append(group)
        return [g for g in groups if len(g) > 1]


def _has_hero(i: Instruction) -> bool:
    """Whether the whole kernel would be shaped after one op of this loop, or the loop goes along rows."""
    inside = i.attrs["calls"].instructions if i.opcode == "fusion" else (i,)
    return any(x.opcode in _HEROES or x.opcode == "reduce" and _is_spread(x) for x in inside)


def _is_spread(reduce: Instruction) -> bool:
    """Whether results of a reduction are read for more elements than there are results."""
    results = (reduce.shape.tuple_shapes or (reduce.shape,))[0].num_elements
    work, seen = [reduce], {reduce}
    while work:
        for user in work.pop().users:
            if user.shape.is_array and user.shape.num_elements > results:
                return True
            if user not in seen:
                seen.add(user)
                work.append(user)
    return False


def _kind(i: Instruction) -> str:
    """Equal for loops that do the same to other arrays."""
    if i.opcode == "fusion":
        return fingerprint(i.attrs["calls"])
    return f"{i.opcode} {i.attrs} {i.shape} {[o.shape for o in i.operands]}"


def _arguments(i: Instruction) -> int:
    return len(i.operands) + sum(1 for _ in i.shape.leaves())


def heights(order: list[Instruction]) -> dict[Instruction, int]:
    """For each instruction the number of steps on the longest way from it to the end; along a way they fall."""
    height: dict[Instruction, int] = {}
    for i in reversed(order):
        below = max((height[u] for u in (*i.users, *i.control_successors)), default=0)
        height[i] = below + (i.opcode not in _FREE)
    return height
