"""Which operand a kernel reads in step with what it writes, so that both may use one buffer."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape, ShapeIndex

#: (instruction, operand number, output index) → may that output overwrite the operand's buffer as it is computed?
CanShare = Callable[[Instruction, int, ShapeIndex], bool]

#: ops that read element k of the (row-major) operand for element k of the result
_STEP = frozenset({"bitcast", "reshape", "copy", "convert", "bitcast-convert"})


def reads_in_step(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether `i`, as one loop over the elements of its outputs, reads element k of that operand only to compute
    element k of its outputs, and the output at `output_index` has elements of the same size.
    """
    source, target = i.operands[operand].shape, i.shape.at(output_index)
    if not source.is_array or not same_steps(source, target):
        return False
    if i.opcode == "sort":  # sorts what it is given where it is
        return output_index == ((operand,) if i.shape.is_tuple else ())
    if i.opcode != "fusion":
        return i.op.is_elementwise and sum(o is i.operands[operand] for o in i.operands) == 1
    if i.operands.count(i.operands[operand]) > 1:
        return False
    body = i.attrs["calls"]
    parameter = body.parameters[operand]
    return used_in_step(parameter, i.shape)


def used_in_step(parameter: Instruction, result: Shape) -> bool:
    """Whether all that a fusion of shape `result` computes from a parameter is elementwise over as many elements."""
    source = parameter.shape
    if result.is_tuple and any(s.num_elements != source.num_elements for _, s in result.leaves()):
        return False
    work = [parameter]
    seen: set[Instruction] = set()
    while work:
        i = work.pop()
        for user in i.users:
            if user in seen or user.opcode == "tuple":
                continue
            if user.shape.num_elements != source.num_elements:
                return False
            if not (user.op.is_elementwise or user.opcode in _STEP):
                return False
            seen.add(user)
            work.append(user)
    return True


def same_steps(a: Shape, b: Shape) -> bool:
    """Same number of elements of the same size in the same order of memory."""
    if not b.is_array or a.num_elements != b.num_elements:
        return False
    if a.element_type.byte_size != b.element_type.byte_size:
        return False
    layouts = [s.layout is None or s.layout.is_default for s in (a, b)]
    return all(layouts) or (a.layout is b.layout and a.dims == b.dims)
