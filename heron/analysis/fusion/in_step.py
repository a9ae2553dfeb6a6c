"""Reads in step: a kernel reads element k of an operand only to compute element k of an output."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, ShapeIndex


def reads_in_step(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether `i`, as one loop over the elements of its outputs, reads that operand in step with all its outputs, and
    the output at `output_index` has elements of the same size.
    """
    source, target = i.operands[operand].shape, i.shape.at(output_index)
    if not source.is_array or not same_steps(source, target):
        return False
    if facts.works_on_own_operand(i):
        return output_index == ((operand,) if i.shape.is_tuple else ())
    if i.opcode != "fusion":
        return i.op.is_elementwise and sum(o is i.operands[operand] for o in i.operands) == 1
    if i.operands.count(i.operands[operand]) > 1:
        return False
    body = i.attrs["calls"]
    reached = outputs_in_step(body, operand)
    if reached is None:
        return False
    roots = facts.root_parts(body)
    if len(roots) == 1:
        return True
    # another loop of the kernel may run before or after: it must not read what this one overwrites
    loops = body.remembered("loops", lambda: loop_groups(roots))
    written = loops[output_index[0]]
    return all(loops[n] == written for n in reached)


def outputs_in_step(body: Computation, operand: int) -> list[int] | None:
    """The numbers of the outputs among what `used_in_step` finds; None where it does."""

    def find() -> list[int] | None:
        reached = used_in_step(body.parameters[operand])
        return None if reached is None else [n for n, r in enumerate(facts.root_parts(body)) if r in reached]

    return body.remembered(("outputs in step", operand), find)


def used_in_step(parameter: Instruction) -> set[Instruction] | None:
    """The instructions that a fusion computes from a parameter, itself included; None unless all of them are
    elementwise over as many elements."""
    return _reached(parameter, through_reduces=False)


def feeds_reduces(parameter: Instruction) -> bool:
    """Whether a fusion computes from a parameter only reductions of elementwise results over as many elements, and
    those results."""
    reached = _reached(parameter, through_reduces=True)
    return reached is not None and any(user.opcode == "reduce" for i in reached for user in i.users)


def _reached(parameter: Instruction, through_reduces: bool) -> set[Instruction] | None:
    """As `used_in_step`. ``through_reduces``: reduces may use the results; what follows a reduce is not looked at."""
    size = parameter.shape.num_elements
    work, seen = [parameter], {parameter}
    while work:
        i = work.pop()
        for user in i.users:
            if user in seen or user.opcode == "tuple" and user.is_root:
                continue
            if through_reduces and user.opcode == "reduce":
                if i in user.operands[len(user.operands) // 2 :]:
                    return None
                continue
            if not user.shape.is_array or user.shape.num_elements != size:
                return None
            if not (user.op.is_elementwise or facts.is_view(user)):
                return None
            if user.opcode == "bitcast" and not same_steps(i.shape, user.shape):
                return None  # another order of memory: a transpose
            seen.add(user)
            work.append(user)
    return seen


def loop_groups(roots: Sequence[Instruction]) -> list[int]:
    """For each output of a loop kernel the number of the loop that computes it.

    Two outputs share a loop if they have equal dimensions and depend on a common array. Single-element outputs of equal
    dimensions always share one.
    """
    groups = list(range(len(roots)))
    seen: dict[tuple[Instruction, tuple[int, ...]], int] = {}

    def standing(n: int) -> int:
        while groups[n] != n:
            n = groups[n]
        return n

    scalars: dict[tuple[int, ...], int] = {}
    for n, root in enumerate(roots):
        dims, work = _dims(root), [root]
        if prod(dims) == 1:
            groups[n] = scalars.setdefault(dims, n)
            continue
        while work:
            i = work.pop()
            known = seen.get((i, dims))
            if known is None:
                seen[i, dims] = n
                work += (o for o in i.operands if not o.shape.is_array or o.shape.num_elements > 1)
            else:
                a, b = standing(known), standing(n)
                groups[max(a, b)] = min(a, b)
    return [standing(n) for n in range(len(roots))]


def _dims(root: Instruction) -> tuple[int, ...]:
    return (root.shape.tuple_shapes or (root.shape,))[0].dims


def same_steps(a: Shape, b: Shape) -> bool:
    """Same number of elements of the same size in the same order of memory."""
    if not b.is_array or a.num_elements != b.num_elements:
        return False
    if a.element_type.byte_size != b.element_type.byte_size:
        return False
    layouts = [s.layout is None or s.layout.is_default for s in (a, b)]
    return all(layouts) or (a.layout is b.layout and a.dims == b.dims)
