"""horizontal-fusion: small independent loops and reductions become one kernel, each with blocks of its own."""

from __future__ import annotations

from collections import deque

from heron.analysis.cost.code_size import CodeLimit, code_limit, fusion_code, op_code
from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.analysis.fusion.iteration_space import joinable_outputs, space_of, sums_inside, uses
from heron.analysis.graph.reachability import Reachability
from heron.hlo.facts import having, moves_elements, shapes_kernel
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.join import join_kernels
from heron.records import dataclass
from heron.targets import Target, get

#: what takes no step of its own
_FREE = having(Trait.GIVEN, Trait.TUPLE, Trait.FORWARDS) | {"after-all"}

#: bytes in and out of a kernel that can be done anywhere at no cost
_TINY = 4096


@register
@dataclass(frozen=True)
class HorizontalFusion(Pass):
    """Joins kernels that have nothing to do with each other, where launching them takes longer than running them.

    The updates of an optimiser are hundreds of small loops; as one kernel they cost one launch, each output with blocks
    of its own. Joined are loops and reductions as far from the end of the program (by the longest chain of steps), so
    that none can need another; at most one of a kernel's parts is large enough to be worth a launch. Those that do the
    same to other arrays are dealt out evenly, so that most kernels are equal and are compiled once. A kernel of a few
    numbers only, such as a loop's counter, that finds no partner there goes into the nearest kernel it does not depend
    on. Limits: ``max_arguments``, the arrays a kernel's 4 KiB of parameters can name, and ``max_loops``, the code of a
    kernel.

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
        target = ctx.target if isinstance(ctx.target, Target) and ctx.target.is_gpu else get(self.target)
        changed = False
        for c in module.non_fusion_computations():
            for group in self._groups(c, target):
                if not ctx.may_fire("join", "horizontal_fusion.py", group[0]):
                    return changed
                names = [i.name for i in group]
                made = join_kernels(group)
                ctx.trace.became.update(dict.fromkeys(names, made.name))
                ctx.decide(
                    True,
                    f"{len(group)} kernels that need nothing of each other",
                    subject=made.name,
                    object=", ".join(names),
                    cost_before=len(group),
                    cost_after=1,
                )
                changed = True
        return changed

    def _groups(self, c: Computation, target: Target) -> list[list[Instruction]]:
        """Kernels of `c` to join, in order of execution."""
        order = c.post_order()
        height = heights(order)
        levels: dict[int, tuple[list[Instruction], list[Instruction], list[Instruction]]] = {}
        groups: list[list[Instruction]] = []
        for i in order:
            if not joinable_outputs(i) or _has_hero(i):
                continue
            walk = space_of(i)
            if walk is not None:
                kind = 0 if walk.reduced else 2 if sums_inside(i) else 1
                levels.setdefault(height[i], ([], [], []))[kind].append(i)
            else:
                groups.append([i])
        for reductions, loops, summing in levels.values():
            # a kernel with reductions is shaped after them, so that no loop beside them may have a sum inside
            together = ([*reductions, *loops], summing) if reductions else ([*loops, *summing],)
            for kernels in together:
                groups += self._pack(kernels, target)
        if any(len(g) == 1 and _is_tiny(g[0]) for g in groups):
            self._give_hosts(c, groups, height)
        position = {i: n for n, i in enumerate(order)}
        return [sorted(g, key=position.__getitem__) for g in groups if len(g) > 1]

    def _give_hosts(self, c: Computation, groups: list[list[Instruction]], height: dict[Instruction, int]) -> None:
        """Put tiny kernels that found nobody at their level into the nearest kernel they have nothing to do with."""
        reach = Reachability(c)
        for g in groups:
            for i in g[1:]:
                reach.fuse(g[0], i)
        for g in groups:
            if len(g) != 1 or not _is_tiny(g[0]):
                continue
            i = g[0]
            if sums_inside(i):
                continue
            # what the tiny one may overwrite must not be read later
            late = [u for o in i.operands for u in o.users if u is not i] if _makes_state(i, c) else []
            for host in sorted((h for h in groups if h), key=lambda h: abs(height[h[0]] - height[i])):
                room = self.max_arguments - sum(map(_arguments, host))
                if host is g or room < _arguments(i) or reach.connected(i, host[0]):
                    continue
                if not any(reach.reaches(host[0], u) for u in late):
                    reach.fuse(host[0], i)
                    host.append(i)
                    g.clear()
                    break

    def _pack(self, loops: list[Instruction], target: Target) -> list[list[Instruction]]:
        """Deal the loops out to kernels, to each as many of every kind: then most kernels are equal, and compiled once.

        A large loop takes small ones along, never another large one. Those that find no company come alone.
        """
        kinds: dict[str, deque[Instruction]] = {}
        large: list[Instruction] = []
        for i in loops:
            if estimate(kernel_cost(i, target.is_gpu), target).bound == "launch":
                kinds.setdefault(_kind(i), deque()).append(i)
            else:
                large.append(i)
        each = max(1, self.max_loops // max(1, len(kinds)))
        groups: list[list[Instruction]] = []
        while kinds:
            group = [large.pop()] if large else []
            room, code = self.max_arguments - sum(map(_arguments, group)), _Code(code_limit(target))
            for i in group:
                code.take(i)
            for kind, waiting in list(kinds.items()):
                for _ in range(each):
                    if not waiting or len(group) == self.max_loops or room < _arguments(waiting[0]):
                        break
                    if not code.take(waiting[0]):
                        break
                    room -= _arguments(waiting[0])
                    group.append(waiting.popleft())
                if not waiting:
                    del kinds[kind]
            groups.append(group)
        return groups + [[i] for i in large]


class _Code:
    """The code of a joined kernel. Numbers that several kernels compute from the same ones are computed once."""

    def __init__(self, limit: CodeLimit) -> None:
        self.limit, self.total = limit, 0.0
        self.known: set[tuple[tuple[Instruction, ...], tuple[str, ...]]] = set()

    def take(self, i: Instruction) -> bool:
        """Take a kernel in if its code fits, or if there is none yet; whether it is in."""
        inside = i.attrs["calls"].instructions if i.opcode == "fusion" else ()
        scalar = [x for x in inside if x.shape.is_scalar and x.op.is_elementwise]
        numbers = tuple(o for o in i.operands if o.shape.is_scalar), tuple(x.opcode for x in scalar)
        more = fusion_code(i, self.limit)
        if numbers in self.known:
            more -= sum(op_code(x, self.limit) for x in scalar)
        if self.total and self.total + more > self.limit.most:
            return False
        self.total += more
        self.known.add(numbers)
        return True


def _is_tiny(i: Instruction) -> bool:
    """Whether a loop moves so few bytes that it may run anywhere."""
    sizes = [s.byte_size for x in (i, *i.operands) for _, s in x.shape.leaves()]
    return not i.control_predecessors and space_of(i) is not None and sum(sizes) <= _TINY


def _makes_state(i: Instruction, c: Computation) -> bool:
    """Whether a kernel makes the next state of a loop, which is to lie where the state it is made from does."""
    return not c.is_entry and any(u is c.root for u in uses(i))


def _has_hero(i: Instruction) -> bool:
    """Whether the whole kernel would be shaped after one op of this loop, or the loop goes along rows."""
    inside = i.attrs["calls"].instructions if i.opcode == "fusion" else (i,)
    heroes = filter(shapes_kernel, inside)
    return any(moves_elements(x) or x.opcode == "reduce" and _is_spread(x) for x in heroes)


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
