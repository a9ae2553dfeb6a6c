"""Making fusion instructions of planned groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from heron.analysis.fusion.iteration_space import hero_of
from heron.hlo.facts import is_over_operand
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import tuple_


def fuse(roots: Sequence[Instruction], members: Collection[Instruction], prefix: str = "") -> Instruction:
    """Replace `roots` by a fusion that computes `members`; several roots become a tuple with its parts taken out.

    Members nobody needs any more are removed. The fusion's operands are in order of first use.
    """
    home = roots[0].parent
    assert home is not None and home.module is not None
    main = hero_of(roots)
    name = f"fused_{main.opcode.replace('-', '_')}" if not prefix else f"{prefix}{main.opcode.replace('-', '_')}"
    body, operands = outlined(roots, members, name)
    home.module.add_computation(body)
    kind, given = kind_and_name(main)
    name = (prefix + main.opcode).replace("-", "_") if prefix else given
    fusion = home.add("fusion", operands, body.root.shape, name, kind=kind, calls=body)
    fusion.metadata = main.metadata
    for n, root in enumerate(roots):
        new = fusion if len(roots) == 1 else home.add("get-tuple-element", [fusion], root.shape, index=n)
        new.metadata = root.metadata
        root.replace_uses_with(new)
    for root in roots:
        home.remove_dead_from(root)
    return fusion


def kind_and_name(hero: Instruction) -> tuple[str, str]:
    """The kind of a fusion and the name it gets after the instruction that its kernel is shaped after."""
    by_input = is_over_operand(hero)
    name = f"{'input' if by_input else 'loop'}_{hero.opcode}_fusion"
    return "kInput" if by_input else "kLoop", name.replace("-", "_")


def outlined(
    roots: Sequence[Instruction], members: Collection[Instruction], name: str
) -> tuple[Computation, list[Instruction]]:
    """The computation of `roots` from `members`, in no module yet, and its operands."""
    body = Computation(name)
    order = inside_order(roots, members)
    clones: dict[Instruction, Instruction] = {}
    operands: dict[Instruction, None] = {}
    for i in order:
        for operand in i.operands:
            if operand not in members and operand not in operands:
                clones[operand] = body.add_parameter(len(operands), operand.shape)
                operands[operand] = None
    for i in order:
        clones[i] = body.attach(i.clone([clones[o] for o in i.operands]))
    outputs = [clones[r] for r in roots]
    body.root = outputs[0] if len(roots) == 1 else body.add("tuple", outputs, tuple_([r.shape for r in roots]))
    return body, list(operands)


def inside_order(roots: Sequence[Instruction], members: Collection[Instruction]) -> list[Instruction]:
    """The members the roots need, operands first."""
    done: dict[Instruction, None] = {}
    stack = list(reversed(roots))
    while stack:
        i = stack[-1]
        if i not in done:
            before = len(stack)
            for o in reversed(i.operands):
                if o in members and o not in done:
                    stack.append(o)
            if len(stack) > before:
                continue
            done[i] = None
        stack.pop()
    return list(done)
