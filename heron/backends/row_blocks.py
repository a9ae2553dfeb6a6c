"""A fusion done in blocks of rows becomes its products and kernels, with what is between them in a thread's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from heron.analysis.fusion.row_blocks import RowBlocks, Value, outputs_of, row_blocks_of, source, steps_of, value_of
from heron.analysis.fusion.sharing import may_share_buffer, operands_overwritten
from heron.analysis.graph.donation import donated_parameters
from heron.buffers.assignment import Slice
from heron.codegen.emit import emit_fusion
from heron.codegen.kernel import Kernel
from heron.hlo.calls.gemm_shape import gemm_shape
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex
from heron.runtime.thunks import GemmThunk, KernelThunk, RowBlocksThunk, Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def row_blocks(lowering: Lowering, i: Instruction, cut: RowBlocks) -> list[Thunk]:
    """The one thunk of the fusion."""
    steps = steps_of(i)
    columns = _columns(steps)
    parts = cut.batch * cut.rows * (columns // cut.width if cut.width else 1)
    places = _places(i, steps, lambda index: lowering.slice(i, index))

    def place(operand: Instruction) -> Slice:
        inner = source(operand)
        return lowering.slice(i.operands[inner.number]) if inner.opcode == "parameter" else places[value_of(operand)]

    def emit(step: Instruction, name: str) -> list[Kernel]:
        return [emit_fusion(step, name, lowering.target, parts=parts)]

    thunks: list[GemmThunk | KernelThunk] = []
    for step in steps:
        if step.opcode == "dot":
            thunks.append(lowering.product(step, place(step.operands[0]), place(step.operands[1]), places[step, 0]))
            continue
        args = (*map(place, step.operands), *(places[value] for value, _ in _results(step)))
        key = ("rows", fingerprint(step.calls), parts)
        made = lowering.run(step, key, lambda name, step=step: emit(step, name), args)
        thunks += [t for t in made if isinstance(t, KernelThunk)]
    turned = frozenset(n for n, s in enumerate(steps) if s.opcode == "dot" and source(s.operands[1]) in steps)
    return [RowBlocksThunk(tuple(thunks), cut, columns, turned, lowering.buffers.scratch[i], i.name)]


def scratch_bytes(i: Instruction, threads: int) -> int:
    """The scratch memory for that many threads of a row-block fusion; 0 for any other instruction."""
    cut = row_blocks_of(i)
    if cut is None:
        return 0
    steps = steps_of(i)
    places = _places(i, steps, lambda index: Slice(0, 0, 0))
    sizes = RowBlocksThunk.bytes_of(places.values(), cut, _columns(steps))
    return RowBlocksThunk.COUNTER + threads * sum(sizes.values())


def _may_overwrite(i: Instruction, values: Iterable[Value]) -> bool:
    """Whether the fusion may be the last to read one of those of its operands."""
    return any(not _lives_on(i.operands[parameter.number]) for parameter, _ in values)


def _lives_on(i: Instruction) -> bool:
    """Whether a value surely lives until its computation ends: it is the caller's, or a part of the result."""
    while i.opcode == "bitcast":
        i = i.operands[0]
    c = i.parent
    if c is None:
        return False
    if i.opcode == "parameter" and c.is_entry:
        return c.module is not None and (i.number, ()) not in donated_parameters(c.module)
    return c.root.opcode == "tuple" and i in c.root.operands


def _columns(steps: list[Instruction]) -> int:
    """Columns of the first product's result, which are those of all blocks that are no whole rows."""
    return gemm_shape(next(s for s in steps if s.opcode == "dot")).n


def _results(step: Instruction) -> list[tuple[Value, ShapeIndex]]:
    """The arrays a step computes, and which part of its result each is."""
    return [((step, n), index) for n, (index, _) in enumerate(step.shape.leaves())]


def _places(i: Instruction, steps: list[Instruction], output: Callable[[ShapeIndex], Slice]) -> dict[Value, Slice]:
    """The places of the steps' arrays: the fusion's outputs, or a thread's memory (allocations numbered from -1 down).
    An array that a kernel reads in step with its output shares the output's place if it has no other user. An output
    that may share memory with an operand of the fusion keeps that place: it saves more."""
    places = {value: output(index) for value, index in outputs_of(i).items()}
    outputs = set(places)
    reads = [value_of(o) for step in steps for o in step.operands]
    for step in reversed(steps):
        for value, index in _results(step):
            if value not in places:
                places[value] = Slice(-1 - len(places), 0, step.shape.at(index).byte_size)
            if step.opcode == "dot":
                continue
            if value in outputs and _may_overwrite(i, operands_overwritten(step, index, reads)):
                continue
            for n, operand in enumerate(step.operands):
                given = value_of(operand)
                is_free = given[0] in steps and given not in places and reads.count(given) == 1
                if is_free and may_share_buffer(step, n, index):
                    places[given] = places[value]
                    break
    return places
