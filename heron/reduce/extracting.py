"""One instruction of a program, with all that it calls, as a program of its own with the values it has there."""

from __future__ import annotations

from heron.evaluator.walker import Watcher
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.tools.cloning import CloneContext
from heron.hlo.verifier import verify
from heron.reduce.case import Case
from heron.reduce.draft import can_be_given
from heron.reduce.edits.windows import is_fixed
from heron.reduce.recorded import Recorded


def extract(case: Case, chosen: Instruction, on_value: Watcher | None = None) -> Case:
    """The program that computes `chosen`, an instruction of any computation of the case, from its operands.

    Operands become parameters with the values that the evaluator gives them, at first if it gives several, as in a
    loop; constants stay. ``on_value``: told of each value on the way.

    Raises the verifier's rule where the instruction means nothing by itself, such as the second half of an asynchronous
    op.
    """
    recorded = Recorded(case.module, case.inputs, on_value=on_value)
    module = Module(chosen.name)
    module.set_counts(case.module.replica_count, case.module.num_partitions)
    entry, copies = Computation("entry"), CloneContext(module, "")
    module.add_computation(entry, entry=True)
    inputs = []
    for o in dict.fromkeys(chosen.operands):
        if is_fixed(o) or not (can_be_given(o) or o.opcode == "parameter"):
            _copy(entry, copies, o)
            continue
        copies.instructions[o] = entry.add_parameter(len(entry.parameters), o.shape, o.name)
        inputs += recorded.of(o.name, o.shape)
    entry.root = _copy(entry, copies, chosen)
    verify(module)
    return Case(module, tuple(inputs))


def _copy(entry: Computation, copies: CloneContext, i: Instruction) -> Instruction:
    """`i` in the new program, behind what it needs that is there not yet."""
    for o in i.operands:
        if o not in copies.instructions:
            _copy(entry, copies, o)
    return entry.attach(copies.instruction(i))
