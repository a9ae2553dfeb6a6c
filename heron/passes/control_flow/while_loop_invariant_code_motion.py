"""while-loop-invariant-code-motion: what every round would compute alike is computed once, before the loop."""

from __future__ import annotations

from heron.analysis.values.trip_count import trip_count
from heron.hlo.facts import calls_function, having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.control_flow.model.loop_state import add_elements, invariant_elements, is_plain, reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_movable, own_body
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass

#: costs next to nothing in a kernel of its users, or only names things: goes out only with what needs it
_MOVES = having(Trait.REINDEXES, Trait.TUPLE, Trait.GENERATED) | {"constant"}


@register
@dataclass(frozen=True)
class WhileLoopInvariantCodeMotion(Pass):
    """Computes before a loop what depends only on state that no round changes, and carries the result instead.

    Carried state is in memory as long as the loop runs, so an instruction stays where its result has more than
    ``size_inflation_ratio`` times the bytes of what it is computed from. Where a function such as exp is computed, its
    result may have ``function_inflation_ratio`` times these bytes, as long as it has at most ``most_bytes``.
    Broadcasts, reshapes, slices and the like are no work: they go out only as part of what is. Side effects,
    collectives and what control edges order stay. The condition runs at least once, so its work goes out too where
    arrays are read: numbers computed from numbers are left to while-condition-to-body.

    body {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      k = f32[4] get-tuple-element(s), index=1
      e = f32[4] exponential(k)
      v = f32[4] get-tuple-element(s), index=2
      w = f32[4] multiply(v, e)
      ROOT t = (s32[], f32[4], f32[4]) tuple(next, k, w)
    }

    condition {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(n, ten), direction=LT
    }

    zero = s32[] constant(0)
    init = (s32[], f32[4], f32[4]) tuple(zero, f32[4] x, f32[4] y)
    ROOT loop = (s32[], f32[4], f32[4]) while(init), condition=condition, body=body
    ->
    body {
      s = (s32[], f32[4], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      k = f32[4] get-tuple-element(s), index=1
      v = f32[4] get-tuple-element(s), index=2
      e = f32[4] get-tuple-element(s), index=3
      w = f32[4] multiply(v, e)
      ROOT t = (s32[], f32[4], f32[4], f32[4]) tuple(next, k, w, e)
    }

    condition {
      s = (s32[], f32[4], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(n, ten), direction=LT
    }

    e = f32[4] exponential(x)
    init = (s32[], f32[4], f32[4], f32[4]) tuple(zero, x, y, e)
    loop = (s32[], f32[4], f32[4], f32[4]) while(init), condition=condition, body=body
    a = s32[] get-tuple-element(loop), index=0
    b = f32[4] get-tuple-element(loop), index=1
    c = f32[4] get-tuple-element(loop), index=2
    ROOT r = (s32[], f32[4], f32[4]) tuple(a, b, c)
    """

    name = "while-loop-invariant-code-motion"
    looks_for = frozenset({"while"})
    size_inflation_ratio: float = 1.0
    function_inflation_ratio: float = 2.0
    most_bytes: int = 1 << 20

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.post_order():  # inner loops before those around them
            for i in c.instructions:
                if i.opcode == "while" and i.parent is c and is_plain(i) and trip_count(i, most=1) not in (0, 1):
                    changed |= self._hoist(i, i.body, ctx)
                    changed |= self._hoist(i, i.condition, ctx)
        return changed

    def _hoist(self, loop: Instruction, c: Computation, ctx: PassContext) -> bool:
        """Move what is invariant in `c`, the body or the condition of the loop."""
        invariant, stays = self._invariant(c, invariant_elements(loop))
        found = _carried(c, invariant, stays)
        if c is loop.condition:
            found = [i for i in found if _reads_array(i)]
        if not found:
            return False
        for i in found:
            ctx.decide(True, "computed alike in every round, now once", subject=i.name, object=loop.name)
        own = own_computations(loop)
        found = [own[i] for i in found]
        home = found[0].parent
        assert home is not None
        outside = _Outside(loop, home)
        first = len(loop.shape.tuple_shapes or ())
        add_elements(loop, [outside.of(i) for i in found])
        for n, i in enumerate(found, first):
            home.replace(i, part_of(home.parameters[0], (n,)))
        return True

    def _invariant(self, c: Computation, elements: list[int]) -> tuple[set[Instruction], set[Instruction]]:
        """The instructions that may move before the loop: invariant, and not much larger than what they are computed
        from; those among them that only move with what needs them."""
        read = reads(c.parameters[0]) or {}
        found = {i for n in elements for i in read.get(n, ())}
        sources: dict[Instruction, frozenset[Instruction]] = {i: frozenset((i,)) for i in found}
        functions, stays = set[Instruction](), set[Instruction]()
        for i in c.post_order():
            if i in found or i is c.root or not all(o in found for o in i.operands) or not is_movable(i):
                continue
            needs = frozenset((i,)) if i.opcode == "constant" else frozenset().union(*(sources[o] for o in i.operands))
            if calls_function(i) or any(o in functions for o in i.operands):
                functions.add(i)
            if i.opcode not in _MOVES:
                size, given = i.shape.total_bytes, sum(s.shape.total_bytes for s in needs)
                grows = size > self.size_inflation_ratio * given
                if grows and (size > self.function_inflation_ratio * given or size > self.most_bytes):
                    continue
                if grows and i not in functions:
                    stays.add(i)
            found.add(i)
            sources[i] = needs
        return found, stays


def _carried(c: Computation, invariant: set[Instruction], stays: set[Instruction]) -> list[Instruction]:
    """The work among `invariant` whose results the rest of `c` needs, straight or behind what `stays`."""
    needed: dict[Instruction, None] = {}
    work = [o for i in c.instructions if i not in invariant for o in i.operands if o in invariant]
    seen: set[Instruction] = set()
    while work:
        i = work.pop()
        if i in seen:
            continue
        seen.add(i)
        if i in stays or i.opcode in _MOVES:
            work += [o for o in i.operands if o in invariant]
        else:
            needed[i] = None
    return [i for i in c.instructions if i in needed]


def _reads_array(i: Instruction) -> bool:
    """Whether anything that `i` is computed from is more than one number."""
    seen, work = {i}, [i]
    while work:
        for o in work.pop().operands:
            if o.opcode == "parameter" or o in seen:
                continue
            if not o.shape.is_scalar:
                return True
            seen.add(o)
            work.append(o)
    return False


class _Outside:
    """Copies of the instructions of a loop's body or condition before the loop."""

    def __init__(self, loop: Instruction, c: Computation) -> None:
        assert loop.parent is not None
        self.caller, self.init = loop.parent, loop.operands[0]
        self.state = c.parameters[0]
        self.copies: dict[Instruction, Instruction] = {}

    def of(self, i: Instruction) -> Instruction:
        """The copy of `i`, made with all it is computed from where it is not there yet."""
        work = [i]
        while work:
            j = work[-1]
            if j in self.copies:
                work.pop()
            elif j.opcode == "get-tuple-element" and j.operands[0] is self.state:
                self.copies[j] = part_of(self.init, (j.attrs["index"],))
            elif missing := [o for o in j.operands if o not in self.copies]:
                work += missing
            else:
                self.copies[j] = self.caller.attach(j.clone([self.copies[o] for o in j.operands]))
                own_body(self.copies[j])
        return self.copies[i]
