"""Rules for func, scf and gpu ids: structured control flow written straight as basic blocks with phis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import func, gpu, scf
from xdsl.dialects.builtin import ComplexType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.llvm.emit import Emitter, rule
from heron.codegen.llvm.inline import is_long
from heron.codegen.llvm.loop_hints import (
    is_scalar,
    is_written_out,
    known_steps,
    loop_metadata,
    surely_runs,
    tests_both_around,
    whole,
)

_REGISTERS: dict[type, tuple[str, str]] = {
    gpu.ThreadIdOp: ("tid", "thread"),
    gpu.BlockIdOp: ("ctaid", "block"),
    gpu.BlockDimOp: ("ntid", "thread"),
    gpu.GridDimOp: ("nctaid", "block"),
}


def _values(e: Emitter, operands: Sequence[SSAValue]) -> list[str]:
    return [e.names[v] for v in operands]


@rule(scf.YieldOp)
def _yield(e: Emitter, op: scf.YieldOp) -> None:
    e.yielded = _values(e, op.operands)


@rule(scf.ForOp)
def _for(e: Emitter, op: scf.ForOp) -> None:
    """The loop with its test at the head, or at the end where it surely runs. Increment is ``nsw``: it never wraps."""
    lower, upper, step, *initial = op.operands
    block = op.regions[0].blocks[0]
    carried = block.args[1:]
    runs = surely_runs(e.names[lower], e.names[upper])  # LLVM would bring it into this form, step by step
    before, body, done = e.label, e.fresh_label("body"), e.fresh_label("done")
    head = body if runs else e.fresh_label("head")
    text, bound = e.type(block.args[0].type), e.names[upper]
    starts = [_parts(e, v.type, e.names[v]) for v in (lower, *initial)]
    e.out.append(f"  br label %{head}")
    e.start(head)
    parts = [[e.fresh() for _ in start] for start in starts]
    phis = len(e.out)
    e.out += [""] * sum(map(len, parts))
    names = [_together(e, v, found) for v, found in zip(block.args, parts, strict=True)]
    if not runs:
        test = e.fresh()
        e.out.append(f"  {test} = icmp slt {text} {names[0]}, {bound}")
        e.out.append(f"  br i1 {test}, label %{body}, label %{done}")
        e.start(body)
    calls, loops, copies = len(e.called), e.loops, e.copies
    e.block(block)
    is_innermost, called = e.loops == loops, e.called[calls:]
    if is_innermost and is_written_out(e, op, len(e.out) - phis, called):  # the loop around is the innermost then
        e.copies += sum(map(is_long, called)) * (known_steps(e, op) - 1)
        if not tests_both_around(op):
            e.out[phis : phis + sum(map(len, parts))] = _phis(e, block.args, parts, [(before, starts)])
            _other_steps(e, op)
            e.out.append(f"  br label %{done}")
            e.start(done)
            e.names.update(zip(op.results, e.yielded, strict=True))
            return
        metadata = f", !llvm.loop {e.distinct_metadata(whole(e))}"
    else:
        scalar = is_innermost and is_scalar(e, op)
        metadata = loop_metadata(e, op, called if is_innermost else (), e.copies - copies, scalar)
        e.loops += 1
    advanced = [e.fresh(), *(e.yielded if carried else [])]
    e.out.append(f"  {advanced[0]} = add nsw {text} {names[0]}, {e.names[step]}")
    ends = [_parts(e, v.type, name) for v, name in zip(block.args, advanced, strict=True)]
    if runs:
        test = e.fresh()
        e.out.append(f"  {test} = icmp slt {text} {advanced[0]}, {bound}")
        e.out.append(f"  br i1 {test}, label %{head}, label %{done}{metadata}")
    else:
        e.out.append(f"  br label %{head}{metadata}")
    e.out[phis : phis + sum(map(len, parts))] = _phis(e, block.args, parts, [(before, starts), (e.label, ends)])
    e.start(done)
    for result, name in zip(op.results, (advanced if runs else names)[1:], strict=True):
        e.names[result] = name


def _parts(e: Emitter, t: Attribute, name: str) -> list[str]:
    """A value as what a loop carries: a complex number as its parts, since LLVM has no vectors of pairs."""
    if not isinstance(t, ComplexType):
        return [name]
    parts = [e.fresh(), e.fresh()]
    e.out += [f"  {part} = extractvalue {e.type(t)} {name}, {n}" for n, part in enumerate(parts)]
    return parts


def _together(e: Emitter, value: SSAValue, parts: Sequence[str]) -> str:
    """The name of a value that a loop carries as these parts."""
    if len(parts) == 1:
        e.names[value] = parts[0]
        return parts[0]
    text, part = e.type(value.type), e.type(cast("ComplexType", value.type).element_type)
    half, name = e.fresh(), e.define(value)
    e.out.append(f"  {half} = insertvalue {text} poison, {part} {parts[0]}, 0")
    e.out.append(f"  {name} = insertvalue {text} {half}, {part} {parts[1]}, 1")
    return name


def _phis(
    e: Emitter,
    values: Sequence[SSAValue],
    parts: Sequence[Sequence[str]],
    sources: Sequence[tuple[str, Sequence[Sequence[str]]]],
) -> list[str]:
    """The phis of values that a loop carries as `parts`; ``sources``: labels, and the parts that come from there."""
    found: list[str] = []
    for n, (value, names) in enumerate(zip(values, parts, strict=True)):
        t = value.type.element_type if isinstance(value.type, ComplexType) else value.type
        for k, name in enumerate(names):
            incoming = ", ".join(f"[ {given[n][k]}, %{label} ]" for label, given in sources)
            found.append(f"  {name} = phi {e.type(t)} {incoming}")
    return found


def _other_steps(e: Emitter, op: scf.ForOp) -> None:
    """The steps of a loop after its first, one after the other.

    A hint would have LLVM do it, but only after it has moved tests that do not change out of the loop, with a copy for
    each outcome: branches in the loop around, which then has no vectors.
    """
    lower, upper, step = (int(e.names[v]) for v in op.operands[:3])
    place, *carried = (block := op.regions[0].blocks[0]).args
    for at in range(lower + step, upper, step):
        e.names[place] = str(at)
        e.names.update(zip(carried, e.yielded, strict=True))
        e.block(block)


@rule(scf.IfOp)
def _if(e: Emitter, op: scf.IfOp) -> None:
    condition = e.names[op.operands[0]]
    then_block = op.regions[0].blocks[0]
    else_block = op.regions[1].blocks[0] if op.regions[1].blocks else None
    then, done = e.fresh_label("then"), e.fresh_label("endif")
    otherwise = e.fresh_label("else") if else_block is not None else done
    e.out.append(f"  br i1 {condition}, label %{then}, label %{otherwise}")
    arms = [(then, then_block)] + ([(otherwise, else_block)] if else_block is not None else [])
    incoming = [_arm(e, label, block, done) for label, block in arms]
    e.start(done)
    _merge(e, op, incoming)


def _arm(e: Emitter, label: str, block: Block, done: str) -> tuple[str, list[str]]:
    """One region as a chain of blocks ending in a jump to ``done``; returns its last label and what it yields."""
    e.start(label)
    e.yielded = []
    e.block(block)
    e.out.append(f"  br label %{done}")
    return e.label, e.yielded


def _merge(e: Emitter, op: Operation, incoming: list[tuple[str, list[str]]]) -> None:
    for position, result in enumerate(op.results):
        text = e.type(result.type)
        pairs = ", ".join(f"[ {values[position]}, %{label} ]" for label, values in incoming)
        e.out.append(f"  {e.define(result)} = phi {text} {pairs}")


@rule(scf.IndexSwitchOp)
def _switch(e: Emitter, op: scf.IndexSwitchOp) -> None:
    done = e.fresh_label("endswitch")
    labels = [e.fresh_label("case") for _ in op.regions]  # the default region comes first
    argument = e.typed(op.operands[0])
    text = argument.split(" ")[0]
    values = op.properties["cases"].get_values()  # type: ignore[attr-defined]
    cases = " ".join(f"{text} {value}, label %{label}" for value, label in zip(values, labels[1:], strict=True))
    e.out.append(f"  switch {argument}, label %{labels[0]} [ {cases} ]")
    incoming = [_arm(e, label, region.blocks[0], done) for label, region in zip(labels, op.regions, strict=True)]
    e.start(done)
    _merge(e, op, incoming)


@rule(scf.WhileOp)
def _while(e: Emitter, op: scf.WhileOp) -> None:
    """`before` is the loop head; its scf.condition decides between `after` (which jumps back) and leaving."""
    test_block, body_block = op.regions[0].blocks[0], op.regions[1].blocks[0]
    before, head, body, done = e.label, e.fresh_label("while"), e.fresh_label("do"), e.fresh_label("endwhile")
    starts = _values(e, op.operands)
    e.out.append(f"  br label %{head}")
    e.start(head)
    names = [e.define(v) for v in test_block.args]
    phis = len(e.out)
    e.out += [""] * len(names)
    e.block(test_block)
    condition, *passed = e.yielded
    e.out.append(f"  br i1 {condition}, label %{body}, label %{done}")
    for value, name in zip(body_block.args, passed, strict=True):
        e.names[value] = name
    e.start(body)
    e.yielded = []
    e.block(body_block)
    e.out.append(f"  br label %{head}{loop_metadata(e, op)}")
    for position, (value, name) in enumerate(zip(test_block.args, names, strict=True)):
        incoming = f"[ {starts[position]}, %{before} ], [ {e.yielded[position]}, %{e.label} ]"
        e.out[phis + position] = f"  {name} = phi {e.type(value.type)} {incoming}"
    e.start(done)
    for result, name in zip(op.results, passed, strict=True):
        e.names[result] = name


@rule(scf.ConditionOp)
def _condition(e: Emitter, op: scf.ConditionOp) -> None:
    e.yielded = _values(e, op.operands)


@rule(func.ReturnOp)
def _return(e: Emitter, op: func.ReturnOp) -> None:
    operands = op.operands
    if not operands:
        e.out.append("  ret void")
        return
    if len(operands) == 1:
        e.out.append(f"  ret {e.typed(operands[0])}")
        return
    text = "{ " + ", ".join(e.type(v.type) for v in operands) + " }"
    current = "poison"
    for position, value in enumerate(operands):
        name = e.fresh()
        e.out.append(f"  {name} = insertvalue {text} {current}, {e.typed(value)}, {position}")
        current = name
    e.out.append(f"  ret {text} {current}")


@rule(func.CallOp)
def _call(e: Emitter, op: func.CallOp) -> None:
    name = op.callee.root_reference.data
    results = [e.type(r.type) for r in op.results]
    result = "void" if not results else results[0] if len(results) == 1 else "{ " + ", ".join(results) + " }"
    operands = [(e.type(v.type), e.names[v]) for v in op.operands]
    if name in e.defined:
        text = ", ".join(f"{t} {v}" for t, v in operands)
        bound = e.fresh() if results else ""
        apart = " noinline" if name in e.apart else ""
        e.out.append(f"  {f'{bound} = ' if results else ''}call {result} @{name}({text}){apart}")
    else:
        bound = (e.library if name.startswith("heron.") else e.call)(name, result, operands)
    if len(results) == 1:
        e.names[op.results[0]] = bound
        return
    for position, value in enumerate(op.results):
        e.out.append(f"  {e.define(value)} = extractvalue {result} {bound}, {position}")


@rule(*_REGISTERS)
def _special_register(e: Emitter, op: Operation) -> None:
    """Thread and block ids, with their range when the launch geometry is known (it removes bounds checks)."""
    register, group = _REGISTERS[type(op)]
    axis = op.properties["dimension"].data.value  # type: ignore[attr-defined]
    count = e.geometry.get(f"{group} {axis}")
    if register.startswith("n") and count is not None:
        e.names[op.results[0]] = str(count)
        return
    if count == 1:
        e.names[op.results[0]] = "0"
        return
    name = f"llvm.nvvm.read.ptx.sreg.{register}.{axis}"
    span = f"range(i32 0, {count}) " if count is not None else ""
    narrow = e.fresh() if e.index_bits > 32 else e.define(op.results[0])
    e.out.append(f"  {narrow} = call {span}i32 @{name}()")
    if e.index_bits > 32:
        e.out.append(f"  {e.define(op.results[0])} = zext nneg i32 {narrow} to i{e.index_bits}")


@rule(gpu.BarrierOp)
def _barrier(e: Emitter, op: gpu.BarrierOp) -> None:
    e.call("llvm.nvvm.barrier.cta.sync.aligned.all", "void", [("i32", "0")])
