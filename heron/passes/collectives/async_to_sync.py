"""async-to-sync: asynchronous ops become what they begin."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.facts import begun_by, continues_async
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import inline, splat
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AsyncToSync(Pass):
    """Replaces ops that begin work by that work, done at once, and ops that wait for it by its result.

    What a start gives (the operands, the results, contexts) becomes a tuple of those. What had to come before or after
    either still has to. Starts and dones are made anew, by `async-collective-creator`, where something else may run
    meanwhile. Sends and receives, alone or in groups, and permutes that write slices in place stay.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    s = f32[8] all-reduce-start(f32[8] x), to_apply=sum
    n = f32[8] negate(x)
    d = f32[8] all-reduce-done(s)
    ROOT r = f32[8] add(d, n)
    ->
    all-reduce = f32[8] all-reduce(x), to_apply=sum
    n = f32[8] negate(x)
    ROOT r = f32[8] add(all-reduce, n)
    """

    name = "async-to-sync"
    constraints = (
        Constraint("async-to-sync", "trivial-collective-remover", "that looks at collectives"),
        Constraint("async-to-sync", "async-collective-creator", "that makes pairs anew"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [
            i
            for c in module.non_fusion_computations()
            for i in c.post_order()
            if i.opcode in _RULES and i.attrs.get("slice_sizes") is None
        ]
        stays = {i for i in found if _stays(i)}
        for i in found:
            if i in stays or not ctx.may_fire("sync", "async_to_sync.py", i):
                continue
            home = i.parent
            assert home is not None
            value = _RULES[i.opcode](i)
            _keep_order(i, value)
            home.replace(i, value)
            if i.parent is home:
                home.remove(i)
        if len(found) > len(stays):
            module.remove_unused_computations()
        return len(found) > len(stays)


def _stays(i: Instruction) -> bool:
    """Whether a done waits for a start that stays, or a start begins transfers, which only a done ends."""
    if i.opcode == "async-start" or continues_async(i):
        return any(inner.has(Trait.CHANNEL) for inner in begun_by(i).instructions)
    return i.opcode == "collective-permute-done" and i.operands[0].attrs.get("slice_sizes") is not None


def _keep_order(i: Instruction, value: Instruction) -> None:
    """Let what stands for `i` be ordered as it was, or those around it among themselves where it is older than `i`."""
    new = value.operands[1] if value.opcode == "tuple" and len(value.operands) > 1 else value
    if i.opcode.endswith("-start") and i.opcode != "async-start" and new.opcode == i.opcode.removesuffix("-start"):
        for before in i.control_predecessors:
            new.add_control_predecessor(before)
        for after in i.control_successors:
            after.add_control_predecessor(new)
    i.drop_control_edges()


# -- what stands for each op -------------------------------------------------------------------------------------------
def _begun(i: Instruction, shape: Shape) -> Instruction:
    """The op that a start begins, done at once."""
    assert i.parent is not None
    opcode = i.opcode.removesuffix("-start")
    made = i.parent.add(opcode, i.operands, shape, opcode, like=i, **i.attrs)
    made.extras = dict(i.extras)
    return made


def _tuple(i: Instruction, parts: list[Instruction | list[Instruction]]) -> Instruction:
    """A value of the shape of `i` that begins with those parts; contexts behind them are 0."""
    assert i.parent is not None and i.shape.tuple_shapes is not None
    c, made = i.parent, list[Instruction]()
    for part, shape in zip(parts, i.shape.tuple_shapes, strict=False):
        made.append(c.add("tuple", part, shape, like=i) if isinstance(part, list) else part)
    made += [splat(c, s, 0) for s in i.shape.tuple_shapes[len(parts) :]]
    return c.add("tuple", made, i.shape, like=i)


def _async_start(i: Instruction) -> Instruction:
    operands = list(i.operands)
    assert i.parent is not None
    # a call in its place, which is then made in line: that keeps its order among others
    call = i.parent.add("call", operands, i.calls.root.shape, like=i, to_apply=i.calls)
    for before in i.control_predecessors:
        call.add_control_predecessor(before)
    for after in i.control_successors:
        after.add_control_predecessor(call)
    whole = _tuple(i, [operands, call])
    inline(call, i.calls, operands)
    return whole


def _moving_start(i: Instruction) -> Instruction:
    operands = list(i.operands) if i.shape.at((0,)).is_tuple else i.operands[0]
    return _tuple(i, [operands, _begun(i, i.shape.at((1,)))])


def _copy_start(i: Instruction) -> Instruction:
    assert i.shape.tuple_shapes is not None
    return _tuple(i, [_begun(i, i.shape.tuple_shapes[0]), i.operands[0]])


def _operand(i: Instruction) -> Instruction:
    return i.operands[0]


def _result(i: Instruction) -> Instruction:
    return part_of(i.operands[0], (1,))


_RULES: dict[str, Callable[[Instruction], Instruction]] = {
    "all-reduce-start": lambda i: _begun(i, i.shape),
    "all-reduce-done": _operand,
    "all-gather-start": _moving_start,
    "all-gather-done": _result,
    "collective-permute-start": _moving_start,
    "collective-permute-done": _result,
    "async-start": _async_start,
    "async-update": _operand,
    "async-done": _result,
    "copy-start": _copy_start,
    "copy-done": lambda i: part_of(i.operands[0], (0,)),
}
