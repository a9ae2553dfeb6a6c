"""async-collective-creator: collectives begin with one op and end with another, so that others may run between."""

from __future__ import annotations

from heron.hlo.facts import done_of, having, opcodes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import tuple_
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass

#: collectives with a -start and a -done of their own
_OWN = opcodes(lambda op: Trait.COLLECTIVE in op.traits and f"{op.name}-start" in done_of())
#: those that are wrapped: an async-start runs a computation of just this op
_WRAPPED = having(Trait.COLLECTIVE) - _OWN - set(done_of()) - set(done_of().values())


@register
@dataclass(frozen=True)
class AsyncCollectiveCreator(Pass):
    """Replaces every collective by an op that begins it and one that waits for its result.

    A scheduler may then put other work between the two; until one does, they stand side by side. Instructions that had
    to come before the collective come before its start; those that had to follow it follow its done. Permutes that
    write slices in place stay as they are.

    HloModule example, replica_count=1

    ROOT g = f32[8] all-gather(f32[8] x), dimensions={0}
    ->
    s = (f32[8], f32[8]) all-gather-start(x), dimensions={0}
    ROOT d = f32[8] all-gather-done(s)
    """

    name = "async-collective-creator"
    constraints = (
        Constraint("async-collective-creator", "memory-scheduler", "what it makes must be scheduled"),
        Constraint("async-collective-creator", "latency-hiding-scheduler", "that moves what this makes"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        computations = module.non_fusion_computations()
        found = [i for c in computations for i in c.instructions if i.opcode in _OWN or i.opcode in _WRAPPED]
        if not found:
            return False
        begun = {i.calls for c in computations for i in c.instructions if i.opcode == "async-start"}
        changed = False
        for i in found:
            if i.parent in begun or i.attrs.get("slice_sizes") is not None:
                continue
            if i.opcode in _OWN:
                _replace(module, i, _own_start(i), f"{i.opcode}-done")
            else:
                _replace(module, i, _wrapped_start(module, i), "async-done")
            ctx.decide(True, "begun and waited for by ops of their own", subject=i.name)
            changed = True
        return changed


def _own_start(i: Instruction) -> Instruction:
    assert i.parent is not None
    shape = i.shape
    if i.opcode != "all-reduce":  # the value has the operands in it, for they must stay until the end
        given = i.operands[0].shape if len(i.operands) == 1 else tuple_(tuple(o.shape for o in i.operands))
        shape = tuple_((given, i.shape))
    name = f"{i.opcode}-start"
    return i.parent.add(name, i.operands, shape, name, like=i, **i.attrs)


def _wrapped_start(module: Module, i: Instruction) -> Instruction:
    assert i.parent is not None
    body = Computation("async_computation")
    parameters = [body.add_parameter(n, o.shape, "async_param") for n, o in enumerate(i.operands)]
    body.root = body.attach(i.clone(parameters))
    body.root.extras.clear()
    module.add_computation(body)
    return i.parent.add("async-start", i.operands, None, f"{i.opcode}-start", like=i, calls=body)


def _replace(module: Module, i: Instruction, start: Instruction, done_opcode: str) -> None:
    c = i.parent
    assert c is not None
    start.extras.update({k: v for k, v in i.extras.items() if k != "sharding"})
    done = c.add(done_opcode, [start], i.shape, f"{i.opcode}-done", like=i)
    for before in i.control_predecessors:
        start.add_control_predecessor(before)
    for after in i.control_successors:
        after.add_control_predecessor(done)
    order = (module.schedule or {}).get(c)
    if order is not None:
        at = order.index(i)
        order[at : at + 1] = [start, done]
    i.replace_uses_with(done)
    c.remove(i)
