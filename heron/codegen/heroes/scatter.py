"""The scatter emitter: updates combined into the operand's own buffer, which the output shares.

GPU: a thread an update element; combinations are atomic unless the indices are unique or the combiner just takes the
update. CPU: the updates one after the other, window elements innermost; work items are parts of the window, so that no
two of them touch one element. A window that does not lie inside the operand whole is dropped, as HLO says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.dialects.xla_gpu import AtomicRMWOp, YieldOp
from heron.codegen.elemental import FunctionEmitter, Value
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.movement import scalar_to_index
from heron.codegen.heroes.base import Entry, Fusion, entry, hero
from heron.codegen.heroes.iteration import gpu_loops, plan_gpu
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.mlir_types import INDEX
from heron.codegen.partition import partition
from heron.errors import HeronError
from heron.hlo.instruction import Instruction
from heron.hlo.shape import scalar
from heron.targets import Target

#: window elements a CPU work item takes at least
MIN_PART = 64
_VIEWS = frozenset({"bitcast", "reshape", "copy", "tuple", "get-tuple-element"})


@hero("scatter")
class ScatterEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        found = Scatter.of(_only_scatter(fusion))
        roots = list(dict.fromkeys([*found.updates, found.indices]))
        roots += [o for o in found.operands if o.opcode != "parameter"]
        frame = entry(fusion, partition(roots), name, target)
        for n, operand in enumerate(found.operands):
            if operand.opcode == "parameter":
                frame.aliases[n] = operand.number
        return _emit_gpu(frame, found) if frame.is_gpu else _emit_cpu(frame, found)


def _only_scatter(fusion: Fusion) -> Instruction:
    """The scatter that all outputs are. Raises GEN130 when there is anything else."""
    found: list[Instruction] = []
    for output in fusion.outputs:
        i = output.instruction
        while i.opcode in _VIEWS and i.shape.element_type is i.operands[0].shape.element_type:
            i = i.operands[0]
        if i.opcode != "scatter" or (found and i is not found[0]):
            raise HeronError(
                "GEN130",
                "a kernel with a scatter has no other outputs",
                where=str(output.instruction),
                why="the scatter writes into its operand's buffer",
            )
        found.append(i)
    return found[0]


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
    def takes_update(self) -> bool:
        """Whether the combiner gives the updates as they are."""
        root, n = self.i.to_apply.root, len(self.operands)
        results = root.operands if root.opcode == "tuple" else [root]
        return all(r.opcode == "parameter" and r.number == n + k for k, r in enumerate(results))

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
    while i.opcode in ("bitcast", "reshape", "copy") and i.operands[0].opcode == "parameter":
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


def _combine(
    frame: Entry, s: Scatter, where: Index, values: Sequence[Value], tensors: Sequence[SSAValue]
) -> list[SSAValue]:
    """The updates combined into the tensors at `where`, not atomically."""
    e = frame.e
    current = [e.extract(t, where) for t in tensors]
    result = apply(e, s.i.to_apply, [*current, *values])
    results = result if isinstance(result, tuple) and s.i.shape.is_tuple else (result,)
    return [e.insert(v, t, where) for v, t in zip(results, tensors, strict=True)]


# -- CPU ---------------------------------------------------------------------------------------------------------------


def _emit_cpu(frame: Entry, s: Scatter) -> Kernel:
    e = frame.e
    _copy_computed_operands(frame, s)
    parts, part = _window_parts(s)
    outputs = list(frame.outputs)
    block = Block(arg_types=[INDEX, *(v.type for v in outputs)])
    item = e.variable(block.args[0], 0, parts - 1)
    window_sizes = [s.sizes[d] for d in s.window]
    if part:
        window_sizes[-1] = part

    def update(batch: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        first: list[Expr] = [Const(0)] * len(s.sizes)
        for d, v in zip(s.batch, batch, strict=True):
            first[d] = v
        if part:
            first[s.window[-1]] = item * part
        start, constraints = s.place(e, e.simplify(tuple(first)))

        def element(window: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            index = list(first)
            for d, v in zip(s.window, window, strict=True):
                index[d] = index[d] + v
            at = e.simplify(tuple(index))
            where, _ = s.place(e, at)
            values = [e.value(u, at) for u in s.updates]
            return _combine(frame, s, where, values, tensors)

        def inside(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            return e.loop(window_sizes, tensors, element) if window_sizes else element((), tensors)

        return e.loop([], carried, inside, lambda _: constraints)

    with e.region(block):
        batch_sizes = [s.sizes[d] for d in s.batch]
        results = e.loop(batch_sizes, block.args[1:], update) if batch_sizes else update((), block.args[1:])
        e.b.terminate(scf.YieldOp, results)
    if prod(s.sizes):
        assert frame.lo is not None and frame.hi is not None
        op = scf.ForOp.create(
            operands=[frame.lo, frame.hi, e.b.integer(1), *outputs],
            result_types=[v.type for v in outputs],
            regions=[Region(block)],
        )
        frame.outputs[:] = e.b.add(op).results
    return frame.finish(Launch(work_items=parts), "scatter", {"parts": str(parts)})


def _window_parts(s: Scatter) -> tuple[int, int]:
    """Into how many parts the last window dimension is cut for the work items, and their length (0: not cut)."""
    if not s.window or any(o.opcode != "parameter" for o in s.operands):
        return 1, 0
    length = s.sizes[s.window[-1]]
    if prod(s.sizes) < 1 << 15:
        return 1, 0
    for parts in (16, 8, 4, 2):
        if length % parts == 0 and length // parts >= MIN_PART:
            return parts, length // parts
    return 1, 0


def _copy_computed_operands(frame: Entry, s: Scatter) -> None:
    """An operand computed in the fusion is written to the output before the updates."""
    for n, operand in enumerate(s.operands):
        if operand.opcode == "parameter":
            continue

        def element(index: Index, carried: Sequence[SSAValue], operand: Instruction = operand) -> list[SSAValue]:
            return [frame.e.insert(frame.e.value(operand, index), carried[0], index)]

        frame.outputs[n : n + 1] = frame.e.loop(operand.shape.dims, [frame.outputs[n]], element)


# -- GPU ---------------------------------------------------------------------------------------------------------------


def _emit_gpu(frame: Entry, s: Scatter) -> Kernel:
    for operand in s.operands:
        if operand.opcode != "parameter":
            raise HeronError(
                "GEN131",
                "a GPU scatter updates an operand that is computed in the same kernel",
                where=str(s.i),
                hint="compute the operand in a kernel before",
            )
    if not prod(s.sizes):
        return frame.finish(Launch(), "scatter", {"elements": "0"})
    atomic = not (s.i.unique_indices or s.takes_update)
    if atomic and len(s.operands) > 1:
        raise HeronError(
            "GEN132",
            "a scatter of several arrays with a combiner needs unique indices on a GPU",
            where=str(s.i),
            why="one atomic update changes one element",
            hint="the scatter-expander pass turns it into a loop",
        )
    e = frame.e
    plan = plan_gpu(prod(s.sizes), s.updates[0].shape.element_type.bits, frame.target)
    write = _atomic if atomic else _combine

    def body(index: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        where, constraints = s.place(e, index)

        def inside(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            values = [e.value(u, index) for u in s.updates]
            return write(frame, s, where, values, tensors)

        return e.loop([], carried, inside, lambda _: constraints)

    frame.outputs[:] = gpu_loops(frame, s.sizes, plan, frame.outputs, body)
    return frame.finish(plan.launch, "scatter", {"updates": "atomic" if atomic else "plain"})


def _atomic(
    frame: Entry, s: Scatter, where: Index, values: Sequence[Value], tensors: Sequence[SSAValue]
) -> list[SSAValue]:
    """The update combined into the tensor's element atomically."""
    e, shape = frame.e, scalar(s.i.shape.element_type)
    block = Block(arg_types=[tensors[0].type.element_type])  # type: ignore[attr-defined]
    with e.region(block):
        current = e.unpack(iter(block.args), shape)
        result = apply(e, s.i.to_apply, [current, *values])
        e.b.terminate(YieldOp, e.pack(result, shape))
    op = AtomicRMWOp(tensors[0], e.index_values(where), block)
    return [e.b.add(op).results[0]]
