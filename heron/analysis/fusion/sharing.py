"""Finds the operand that a kernel reads in step with its output, so that both may use one buffer.

A kernel may overwrite what it reads in step. A lone reduction visits each element once, and stores outputs of the
reduced array's shape as it goes. A reduction of all elements to one ends in one thread, which computes all that is made
of scalars before it stores any. A row-wise kernel takes all reductions of a row before it stores any of it, and what it
stores reads the row in step.
"""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.fusion.analysis import MIN_REDUCED_ON_CPU, analyse
from heron.analysis.fusion.in_step import feeds_reduces, outputs_in_step, reads_in_step, same_steps, used_in_step
from heron.analysis.fusion.row_blocks import Value, outputs_of, row_blocks_of, steps_of, value_of
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex


def may_share_buffer(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether the output of `i` at `output_index` may overwrite the buffer of that operand as it is computed."""
    if reads_in_step(i, operand, output_index):
        return not output_index or i.opcode != "fusion" or _in_one_step(i, operand, output_index[0])
    if i.opcode != "fusion" or i.operands.count(i.operands[operand]) > 1:
        return False
    if i.attrs.get("kind") == "kCustom":
        return row_blocks_of(i) is not None and _step_overwrites(i, operand, output_index)
    source, target = i.operands[operand].shape, i.shape.at(output_index)
    if not source.is_array or not same_steps(source, target):
        return False
    body = i.attrs["calls"]
    parameter = body.parameters[operand]
    if output_index and source.num_elements == 1 and used_in_step(parameter) is not None:
        return analyse(i).sweep.is_to_one
    if not body.remembered(("feeds reduces", operand), lambda: feeds_reduces(parameter)):
        return False
    sweep = analyse(i).sweep
    return sweep.is_rowwise or bool(output_index) and sweep.is_lone


def _in_one_step(i: Instruction, operand: int, output: int) -> bool:
    """Whether all outputs made from an operand that is read in step are stored in the step that stores `output`.

    The parts of a kernel with reductions run in any order, and so do the results of one. None may read an element that
    another one overwrites.
    """
    body = i.attrs["calls"]
    if all(inside.opcode != "reduce" for inside in body.instructions) or i.attrs.get("kind") == "kCustom":
        return True
    # of all machines' kernels the one with the most parts
    steps = body.remembered("steps", lambda: analyse(i, least=MIN_REDUCED_ON_CPU).sweep.steps)
    return not steps or all(steps[n] == steps[output] for n in outputs_in_step(body, operand) or ())


# -- fusions done in blocks of rows ------------------------------------------------------------------------------------


def _step_overwrites(i: Instruction, operand: int, output_index: ShapeIndex) -> bool:
    """Whether only the kernel inside that computes the output reads the operand, and may overwrite it."""
    value = next((v for v, index in outputs_of(i).items() if index == output_index), None)
    if value is None or value[0].opcode == "dot":
        return False
    reads = [value_of(o) for step in steps_of(i) for o in step.operands]
    index: ShapeIndex = (value[1],) if value[0].shape.is_tuple else ()
    return (i.calls.parameters[operand], 0) in operands_overwritten(value[0], index, reads)


def operands_overwritten(step: Instruction, index: ShapeIndex, reads: list[Value]) -> Iterator[Value]:
    """The operands of the whole fusion that only this step reads, and may overwrite with its output at an index.

    ``reads``: what all steps read.
    """
    for n, operand in enumerate(step.operands):
        value = value_of(operand)
        if value[0].opcode == "parameter" and reads.count(value) == 1 and may_share_buffer(step, n, index):
            yield value
