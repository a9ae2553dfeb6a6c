"""while-loop-unroller: short loops of elementwise work become straight code."""

from __future__ import annotations

from heron.analysis.values.trip_count import Counter, counter_of
from heron.hlo.facts import having
from heron.hlo.ir import literal
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import constant, own_body
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass

#: a loop of so few rounds is one kernel or none: what is left over would be as much as the loop
_FEW_ROUNDS = 8
#: ops that are not elementwise, but go into one kernel with what uses them; or only name things
_MOVES = having(Trait.REINDEXES, Trait.GENERATED) | {"dynamic-slice"}
_NAMES = having(Trait.GIVEN, Trait.TUPLE)


@register
@dataclass(frozen=True)
class WhileLoopUnroller(Pass):
    """Replaces a loop by as many copies of its body as it has rounds, where those can become one kernel.

    A loop puts its state into memory after each round, and each round starts kernels of its own; elementwise rounds
    in a row need neither. Loops whose bodies hold other work (products, reductions, updates in place, …) gain nothing
    that would pay for the longer program and stay. ``max_trips`` and ``max_instructions``: rounds, and instructions of
    all rounds together that compute something, above which a loop stays: one kernel of a thousand instructions still
    compiles in a fraction of a second.

    With ``only_fusible=False`` loops of any work are unrolled. With ``factor=k`` a loop stays one, but its body becomes
    k rounds, so that what two rounds do can overlap or be done together; rounds that are left over come before it.
    ``most_code=n``: a loop of many rounds with more than n instructions in all stays one as well, with as many rounds
    in its body as make at most n / 2, two at least. One kernel of many rounds compiles slowly, and its values do not
    fit the registers.

    body {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      v = f32[4] get-tuple-element(s), index=1
      k = f32[4] get-tuple-element(s), index=2
      w = f32[4] multiply(v, k)
      ROOT t = (s32[], f32[4], f32[4]) tuple(next, k, w)
    }

    condition {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      two = s32[] constant(2)
      ROOT c = pred[] compare(n, two), direction=LT
    }

    zero = s32[] constant(0)
    init = (s32[], f32[4], f32[4]) tuple(zero, f32[4] x, f32[4] y)
    loop = (s32[], f32[4], f32[4]) while(init), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(loop), index=2
    ->
    w1 = f32[4] multiply(x, y)
    ROOT w2 = f32[4] multiply(y, w1)
    """

    name = "while-loop-unroller"
    looks_for = frozenset({"while"})
    max_trips: int = 64
    max_instructions: int = 1000
    only_fusible: bool = True
    factor: int = 0
    most_code: int = 0

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.post_order():  # inner loops before those around them
            for i in c.instructions:
                counter = counter_of(i) if i.opcode == "while" and i.parent is c else None
                if counter is None:
                    continue
                factor = self._factor(i, counter)
                why_not = self._refusal(i, counter, factor)
                rounds = _rounds(counter, factor)
                told = f"{rounds} rounds, {rounds * work(i.body)} instructions in all"
                part = f"{factor} of {counter.trips} rounds at a time, {factor * work(i.body)} instructions"
                ctx.decide(not why_not, why_not or (part if factor > 1 else told), subject=i.name)
                if not why_not:
                    if factor > 1:
                        _unroll_by(i, counter, factor)
                    else:
                        _unroll(i, counter)
                    changed = True
        if changed:
            module.remove_unused_computations()
        return changed

    def _factor(self, loop: Instruction, counter: Counter) -> int:
        """The rounds that become one round of a loop; at most 1 where all of them become straight code."""
        size, trips = work(loop.body), counter.trips
        if self.factor > 1 or not self.most_code or trips <= _FEW_ROUNDS or trips * size <= self.most_code:
            return self.factor
        most = max(2, min(self.most_code // (2 * size), trips // 2))
        # with nothing left over, if that takes half as many rounds or more
        return next((k for k in range(most, max(1, most // 2 - 1), -1) if trips % k == 0), most)

    def _refusal(self, loop: Instruction, counter: Counter, factor: int) -> str:
        """Why the loop stays a loop; empty when it need not."""
        if factor > counter.trips:
            return f"runs {counter.trips} times, which is less than {factor}"
        rounds = _rounds(counter, factor)
        if rounds > self.max_trips:
            return f"runs {rounds} times, which is more than {self.max_trips}"
        instructions = rounds * work(loop.body)
        if instructions > self.max_instructions:
            return f"would become {instructions} instructions, which is more than {self.max_instructions}"
        size = work(loop.body)
        is_long = counter.trips > self.max_trips or counter.trips * size > self.max_instructions
        if factor > self.factor and is_long and factor * size > self.most_code // 2:
            return f"a round is {size} instructions, of which {factor * size} at a time would gain little"
        ordered = loop.control_predecessors or loop.control_successors
        if ordered or any(i.has_side_effect for i in loop.condition.instructions):
            return "something must happen before or after it"
        for i in loop.body.instructions:
            if i.control_predecessors or i.control_successors or i.has_side_effect:
                return f"'{i.name}' must happen in its order"
            if self.only_fusible and not _fuses(i):
                return f"its rounds could not become one kernel: '{i.name}' is a {i.opcode}"
        return ""


def _rounds(counter: Counter, factor: int) -> int:
    """The number of copies of the body."""
    return factor + counter.trips % factor if factor > 1 else counter.trips


def work(c: Computation) -> int:
    """The number of instructions of `c` that compute something."""
    return sum(i.opcode not in _NAMES for i in c.instructions)


def _fuses(i: Instruction) -> bool:
    return i.op.is_elementwise or i.opcode in _MOVES or i.opcode in _NAMES


def _unroll(loop: Instruction, counter: Counter) -> None:
    """Put the rounds in place of the loop; the state never becomes a tuple where only its elements are used."""
    caller = loop.parent
    assert caller is not None
    elements = _first_rounds(loop, counter, counter.trips)
    for user in list(loop.users):
        if user.opcode == "get-tuple-element":
            caller.replace(user, elements[user.attrs["index"]])
    if loop.parent is not caller:  # nobody needed it any more
        return
    if loop.users or loop.is_root:
        caller.replace(loop, caller.add("tuple", elements, loop.shape, like=loop))
    else:
        caller.remove(loop)


def _first_rounds(loop: Instruction, counter: Counter, count: int) -> list[Instruction]:
    """So many rounds before the loop; the state's elements after them."""
    caller, elements = loop.parent, list(loop.operands[0].operands)  # a counted loop starts from a tuple
    assert caller is not None
    element_type = elements[counter.index].shape.element_type
    for n in range(count):
        elements = _round(caller, loop.body, elements, loop)
        value = literal.scalar(element_type, counter.start + (n + 1) * counter.step)
        elements[counter.index] = constant(caller, value, like=loop)
    return elements


def _unroll_by(loop: Instruction, counter: Counter, factor: int) -> None:
    """Let each round of the loop be `factor` of them, with the rounds that are left over before the loop."""
    caller, body = loop.parent, loop.body
    assert caller is not None and caller.module is not None
    init = loop.operands[0]
    elements = _first_rounds(loop, counter, counter.trips % factor)
    loop.set_operand(0, caller.add("tuple", elements, loop.shape, like=init))
    caller.remove_dead_from(init)
    longer = caller.module.add_computation(Computation(body.name))
    parameter = longer.add_parameter(0, body.parameters[0].shape, body.parameters[0].name)
    parameter.extras = dict(body.parameters[0].extras)
    elements = [part_of(parameter, (n,)) for n in range(len(elements))]
    for _ in range(factor):
        elements = _round(longer, body, elements, loop)
    longer.root = longer.add("tuple", elements, body.root.shape, like=body.root)
    longer.root.extras = dict(body.root.extras)
    loop.attrs["body"] = longer
    loop.extras.pop("backend_config", None)  # a trip count that is no longer true


def _round(caller: Computation, body: Computation, elements: list[Instruction], loop: Instruction) -> list[Instruction]:
    """One copy of the body in `caller`, given the state's elements; the elements after it."""
    parameter = body.parameters[0]
    copies: dict[Instruction, Instruction] = {}
    for i in body.post_order():
        if i.opcode == "get-tuple-element" and i.operands[0] is parameter:
            copies[i] = elements[i.attrs["index"]]
        elif i is parameter:
            if any(user.opcode != "get-tuple-element" for user in i.users):
                copies[i] = caller.add("tuple", elements, loop.shape, like=loop)
        elif i is not body.root:
            copies[i] = caller.attach(i.clone([copies[o] for o in i.operands]))
            own_body(copies[i])
    return [copies[o] for o in body.root.operands]
