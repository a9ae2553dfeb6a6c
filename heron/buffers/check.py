"""Running a scheduled module inside its assigned buffers: wrong sharing shows as wrong values.

Every instruction computes by the evaluator, but reads its operands from and writes its results to the bytes the
assignment gave them, in schedule order. Scratch begins filled with a pattern; parameters that are not donated and
constants must come out unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.analysis.fusion.in_place import in_place_pairs
from heron.analysis.graph.alias import Hold
from heron.analysis.graph.dataflow import TRANSPARENT, Tree, Value
from heron.buffers.assignment import BufferAssignment
from heron.buffers.asynchronous import Asynchronous
from heron.buffers.heap import unit_of
from heron.errors import HeronError
from heron.evaluator import Evaluator
from heron.hlo.facts import is_given
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.meaning.bits import from_memory

POISON = 0xA5


def run_in_buffers(module: Module, assignment: BufferAssignment, inputs: Sequence[Any]) -> Any:
    """The entry's result for `inputs` (arrays, or nested tuples of them, one per parameter).

    Raises BUF007 when something was written that must not be, or an in-place pair has two places.
    """
    return _Machine(module, assignment, inputs).run()


class _Machine:
    def __init__(self, module: Module, assignment: BufferAssignment, inputs: Sequence[Any]) -> None:
        self.module, self.a = module, assignment
        self.ev = Evaluator(module)
        self.memory = [np.full(x.size, POISON, np.uint8) for x in assignment.allocations]
        entry = module.entry
        for p in entry.parameters:
            self._store(assignment.flow.at[p], p.shape, inputs[p.attrs["number"]])
        for x in assignment.allocations:
            if x.kind == "constant" and x.literal is not None:
                self.memory[x.number][:] = _bytes(x.literal.array)
        self.before = {x.number: self.memory[x.number].copy() for x in assignment.allocations if x.is_read_only}

    def run(self) -> Any:
        self._run(self.module.entry)
        for n, old in self.before.items():
            if not np.array_equal(old, self.memory[n]):
                raise HeronError("BUF007", f"{self.a.allocations[n].name} was overwritten")
        root = self.module.entry.root
        return self._load(self._outputs(self.a.flow.at[root]), root.shape)

    def _outputs(self, root: Tree) -> Tree:
        """The root's values as the caller sees them: in the outputs' own allocations."""
        flat = iter(self.a.flow.outputs)

        def exchange(tree: Tree) -> Tree:
            if isinstance(tree, tuple):
                return tuple(map(exchange, tree))
            return next(flat) if tree is not None else None

        return exchange(root)

    def _run(self, c: Computation) -> None:
        assert self.module.schedule is not None
        for i in self.module.schedule[c]:
            if i.opcode in TRANSPARENT or is_given(i):
                continue
            self._step(i)

    def _step(self, i: Instruction) -> None:
        at = self.a.flow.at
        if i.opcode == "while":
            condition, body = i.attrs["condition"], i.attrs["body"]
            self._run(condition)
            while bool(self._value(condition.root)):
                self._run(body)
                self._run(condition)
        elif i.opcode == "call":
            self._run(i.attrs["to_apply"])
        elif i.opcode == "conditional":
            chosen = self._value(i.operands[0])
            branches = i.called
            if i.operands[0].shape.element_type.name == "pred":
                n = 0 if bool(chosen) else 1
            else:
                n = int(chosen) if 0 <= int(chosen) < len(branches) else len(branches) - 1
            self._run(branches[n])
        else:
            self._check_pairs(i)
            values = [self._value(o) for o in i.operands]
            self._store(at[i], i.shape, i.op.evaluate(self.ev, i, *values))

    def _check_pairs(self, i: Instruction) -> None:
        for pair in in_place_pairs(i):
            source = self.a.slice_of(i.operands[pair.operand], pair.operand_index)
            target = self.a.slice_of(i, pair.output_index)
            if source != target:
                raise HeronError("BUF007", f"'{i.name}' updates in place, but {source} is not {target}")

    def _value(self, i: Instruction) -> Any:
        return self._load(self.a.flow.at[i], i.shape)

    def _view(self, v: Value, shape: Shape) -> np.ndarray:
        """The bytes of `v` as an array of `shape`, in its layout: a bitcast's may differ from the value's own."""
        s = self.a.slices[v]
        raw = self.memory[s.allocation][s.offset : s.offset + s.size]
        return from_memory(raw.view(shape.element_type.dtype), shape.dims, shape.layout)

    def _load(self, tree: Tree, shape: Shape) -> Any:
        if isinstance(tree, tuple):
            return tuple(self._load(t, s) for t, s in zip(tree, shape.tuple_shapes or (), strict=True))
        return None if tree is None else self._view(tree, shape).copy()

    def _store(self, tree: Tree, shape: Shape, value: Any) -> None:
        if isinstance(tree, tuple):
            for t, s, v in zip(tree, shape.tuple_shapes or (), value, strict=True):
                self._store(t, s, v)
        elif tree is not None:
            self._view(tree, shape)[...] = np.asarray(value).reshape(shape.dims)


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)


def prove(assignment: BufferAssignment) -> None:
    """Check that no two sets of values that are held at one tick overlap in memory, by looking at all pairs that
    touch. Raises BUF008 naming the two values."""
    a = assignment
    by_allocation: dict[int, list[Hold]] = {}
    for standing in a.sets.sets():
        for hold in a.sets.holds(standing):
            by_allocation.setdefault(a.slices[hold[2]].allocation, []).append(hold)
    for holds in by_allocation.values():
        holds.sort(key=lambda h: h[0])
        active: list[Hold] = []
        for hold in holds:
            active = [h for h in active if h[1] >= hold[0]]
            for other in active:
                _check_pair(a, other, hold)
            active.append(hold)
    _prove_beside(a)


def _prove_beside(a: BufferAssignment) -> None:
    """The same for what runs at an unknown time between an async-start and its done."""
    beside = Asynchronous(a.sets.liveness.timeline)
    sets = a.sets.sets() if beside.windows else {}
    for standing, values in sets.items():
        for start in beside.starts(values):
            first, last = beside.windows[start]
            for other, others in sets.items():
                held = next((h for h in a.sets.holds(other) if h[0] <= last and h[1] >= first), None)
                if held is not None and start not in beside.starts(others):
                    _check_pair(a, (first, last, standing), held)


def _check_pair(a: BufferAssignment, one: Hold, two: Hold) -> None:
    if a.sets.find(one[2]) is a.sets.find(two[2]) or not a.slices[one[2]].overlaps(a.slices[two[2]]):
        return
    raise HeronError(
        "BUF008",
        f"'{one[2].name}' and '{two[2].name}' are both live at tick {two[0]} and overlap",
        why=f"{a.slices[one[2]]} and {a.slices[two[2]]}",
    )


def misaligned(assignment: BufferAssignment) -> list[Value]:
    """Values whose offset is no multiple of what theirs should be."""
    return [v for v, s in assignment.slices.items() if s.offset % unit_of(v.size, assignment.alignment)]
