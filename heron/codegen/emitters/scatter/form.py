"""What a scatter is made of, and where its updates go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from heron.analysis.fusion import scatter_order as facts
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import FunctionEmitter, Value
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.movement import scalar_to_index
from heron.codegen.emitters.base import Entry
from heron.hlo.ir.instruction import Instruction


@dataclass(frozen=True, slots=True)
class Scatter:
    """A scatter taken apart. ``batch``: update dimensions that count updates; ``window``: those inside one."""

    i: Instruction
    operands: tuple[Instruction, ...]
    indices: Instruction
    updates: tuple[Instruction, ...]
    batch: tuple[int, ...]
    window: tuple[int, ...]

    @staticmethod
    def of(i: Instruction) -> Scatter:
        n = len(i.operands) // 2
        updates = tuple(i.operands[n + 1 :])
        window = tuple(i.update_window_dims)
        batch = tuple(d for d in range(updates[0].shape.rank) if d not in window)
        operands = tuple(_without_views(o) for o in i.operands[:n])
        return Scatter(i, operands, i.operands[n], updates, batch, window)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dimensions of the updates."""
        return self.updates[0].shape.dims

    @property
    def target_dims(self) -> tuple[int, ...]:
        """The dimensions of the operands."""
        return self.i.operands[0].shape.dims

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The dimensions of the updates that count them."""
        return tuple(self.sizes[d] for d in self.batch)

    @property
    def takes_update(self) -> bool:
        """Whether the combiner gives the updates as they are."""
        return facts.takes_update(self.i)

    def index(self, batch: Index, window: Index) -> Index:
        """The index into the updates."""
        index: list[Expr] = [Const(0)] * len(self.sizes)
        for d, e in (*zip(self.batch, batch, strict=True), *zip(self.window, window, strict=True)):
            index[d] = e
        return tuple(index)

    def place(self, e: FunctionEmitter, index: Index) -> tuple[Index, list[Constraint]]:
        """Where the update element at `index` goes, and what must hold for its window to lie inside."""
        i, dims = self.i, self.target_dims
        gone = {*i.inserted_window_dims, *(i.input_batching_dims or ())}
        where: list[Expr] = [Const(0)] * len(dims)
        sizes = [1] * len(dims)
        for at, d in zip(self.window, [d for d in range(len(dims)) if d not in gone], strict=True):
            where[d], sizes[d] = index[at], self.sizes[at]
        batch_index = [index[d] for d in self.batch]
        batching = zip(i.input_batching_dims or (), i.scatter_indices_batching_dims or (), strict=True)
        for d, at in batching:
            where[d] = batch_index[at - (at > i.index_vector_dim)]
        constraints: list[Constraint] = []
        for component, d in enumerate(i.scatter_dims_to_operand_dims):
            read = list(batch_index)
            if i.index_vector_dim < self.indices.shape.rank:
                read.insert(i.index_vector_dim, Const(component))
            start = _start(e, self.indices, tuple(read))
            constraints.append((start, 0, dims[d] - sizes[d]))
            where[d] = where[d] + start
        return e.simplify(tuple(where)), constraints


def _without_views(i: Instruction) -> Instruction:
    """The array that a view shows. A copy is one of its own: its original stays as it is."""
    while i.opcode in ("bitcast", "reshape") and i.operands[0].opcode == "parameter":
        i = i.operands[0]
    return i


def _start(e: FunctionEmitter, indices: Instruction, read: Index) -> Expr:
    """A start index as a variable of the range its type has (64-bit ones are cut to 62 bits)."""
    t = indices.shape.element_type
    read = e.simplify(read)

    def make() -> Expr:
        value = scalar_to_index(e, e.value(indices, read), t)
        bits = min(t.bits, 62)
        lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if t.is_signed else (0, (1 << bits) - 1)
        if t.is_unsigned and t.bits == 64:
            lo = -(1 << 62)  # the largest values turn negative and so fall outside as well
        return e.variable(value, lo, hi)

    return e.once(("scatter start", indices, read), make)


def combined(frame: Entry, s: Scatter, current: Sequence[Value], values: Sequence[Value]) -> tuple[Value, ...]:
    """The elements of all operands with one more update."""
    result = apply(frame.e, s.i.to_apply, [*current, *values])
    return result if isinstance(result, tuple) and s.i.shape.is_tuple else (result,)


def combine(
    frame: Entry, s: Scatter, where: Index, values: Sequence[Value], tensors: Sequence[SSAValue]
) -> list[SSAValue]:
    """The updates combined into the tensors at `where`, not atomically."""
    e = frame.e
    results = combined(frame, s, [e.extract(t, where) for t in tensors], values)
    return [e.insert(v, t, where) for v, t in zip(results, tensors, strict=True)]
