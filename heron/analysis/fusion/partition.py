"""Partitioner: cuts a fused computation into functions, so that no value is computed twice at one place.

A function computes its root at a given index. An instruction belongs to the function of its users as long as all of
them read it at the same index in the same region; one that a function reads at several indices becomes the root of a
function of its own, called once an index. ``log -> transpose -> add(log, transpose)`` gives two functions: ``log``,
called twice, and the entry. Instructions that cost next to nothing (constants, broadcasts of parameters, …) are
repeated instead. A value that a few functions share, each at one index, is repeated in each: if it were a function too,
so would be what it shares with the next one, and calls would double with every step of a chain such as a random
number's rounds.

Source: the idea of XLA's computation partitioner (https://openxla.org/xla/emitters).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field
from typing import TypeAlias

from heron.analysis.indexing.expr import Const, Dim, Expr
from heron.analysis.indexing.hlo_maps import moves_elements, operand_index
from heron.analysis.indexing.simplify import simplifier
from heron.hlo.facts import has_start_operands, having, is_expensive, is_tuple_op, opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: where an instruction is read: in which index space, and at which index of it
Access: TypeAlias = tuple[object, tuple[Expr, ...]]

#: how many cheap elementwise ops a repeated instruction may cost
_REPEAT_LIMIT = 2
#: how many functions may each have their own copy of what they share
_COPIES = 4
#: stands for any further index an operand is read at
_AGAIN: tuple[Expr, ...] = (Const(-1),)
_LEAVES = opcodes(lambda op: op.max_operands == 0)


@dataclass(slots=True)
class Function:
    """A function of the partition. ``dims``: sizes of its index arguments. ``instructions``: what it computes itself.

    ``calls``: roots of the functions it calls. ``parameters``: the tensors it needs, for itself and for its callees.
    """

    name: str
    root: Instruction
    dims: tuple[int, ...]
    instructions: list[Instruction] = field(default_factory=list)
    calls: list[Instruction] = field(default_factory=list)
    parameters: list[Instruction] = field(default_factory=list)


@dataclass(slots=True)
class Partition:
    """``entries``: what the emitter's own loops compute, in line; ``functions``: by root, callees first."""

    entries: list[Function]
    functions: dict[Instruction, Function]
    #: of instructions that belong to one place: the index they are read at there
    accesses: dict[Instruction, list[Access]]

    def __str__(self) -> str:
        lines = []
        for f in [*self.entries, *self.functions.values()]:
            arguments = ", ".join([*(p.name for p in f.parameters), *(f"[{n}]" for n in f.dims)])
            lines.append(f"{f.name}({arguments}) -> {f.root.name}:")
            lines += [f"  {i.name} = {i.opcode}({', '.join(o.name for o in i.operands)})" for i in f.instructions]
            lines += [f"  calls {self.functions[c].name}" for c in f.calls]
        return "\n".join(lines)


def partition(
    roots: Sequence[Instruction],
    boundaries: Collection[Instruction] = (),
    provided: Collection[Instruction] = (),
) -> Partition:
    """Cut what `roots` compute into functions.

    Args:
        roots: what the emitter computes in its own loops; roots of equal dimensions share one loop and so one index.
        boundaries: instructions that must be functions, however they are used.
        provided: instructions whose values the emitter supplies (a hero's result in its epilogue); they are leaves.
    """
    order = _post_order(roots, provided)
    cheap = _cheap(order)
    accesses: dict[Instruction, list[Access]] = {i: [] for i in order}
    for root in roots:
        sizes = index_sizes(root.shape)
        _add(accesses, root, (("entry", sizes), own_index(sizes)))
    in_line = _readers(order, provided)
    functions: dict[Instruction, Function] = {}
    for i in reversed(order):
        found = accesses[i]
        if i in provided or i in cheap:
            continue
        if i in boundaries or (_is_shared(found) and not _only_moves(i) and i not in in_line):
            sizes = index_sizes(i.shape)
            functions[i] = Function("", i, sizes)
            found = [((i, sizes), own_index(sizes))]
        for space, index in found:
            for n, operand in enumerate(i.operands):
                for access in _operand_accesses(i, n, space, index):
                    _add(accesses, operand, access)
    return _describe(roots, order, functions, accesses, provided)


def _is_shared(found: Sequence[Access]) -> bool:
    """Whether an instruction that is read so is to be a function."""
    return len(found) > min(_COPIES, len({space for space, _ in found}))


def _only_moves(i: Instruction) -> bool:
    """Whether an element of an instruction is one of its operand's: its place is best known where it is read."""
    return len(i.operands) == 1 and moves_elements(i) and not i.op.is_elementwise


def index_sizes(shape: Shape) -> tuple[int, ...]:
    """The dimensions an instruction is indexed by; a tuple of equally shaped results has those of its first part."""
    while shape.tuple_shapes is not None:
        if not shape.tuple_shapes:
            return ()
        shape = shape.tuple_shapes[0]
    return shape.dims


def own_index(sizes: Sequence[int]) -> tuple[Expr, ...]:
    """The index at which loops over these sizes stand. It is 0 where a loop has one step, as after a reshape."""
    return tuple(Const(0) if size == 1 else Dim(d) for d, size in enumerate(sizes))


def _readers(order: Sequence[Instruction], provided: Collection[Instruction]) -> set[Instruction]:
    """The instructions that provided values flow into; these values are there in the emitter's own loops only."""
    found: set[Instruction] = set()
    for i in order if provided else ():
        if i not in provided and any(o in provided or o in found for o in i.operands):
            found.add(i)
    return found


def _add(accesses: dict[Instruction, list[Access]], i: Instruction, access: Access) -> None:
    found = accesses[i]
    if access not in found:
        found.append(access)


def _post_order(roots: Iterable[Instruction], leaves: Collection[Instruction]) -> list[Instruction]:
    """The instructions that the roots need, operands first; nothing below `leaves`."""
    order: list[Instruction] = []
    seen: set[Instruction] = set()
    stack: list[tuple[Instruction, bool]] = [(r, False) for r in reversed(list(roots))]
    while stack:
        i, ready = stack.pop()
        if ready:
            order.append(i)
            continue
        if i in seen:
            continue
        seen.add(i)
        stack.append((i, True))
        if i not in leaves:
            stack.extend((o, False) for o in reversed(i.operands) if o not in seen)
    return order


def _operand_accesses(i: Instruction, n: int, space: object, index: tuple[Expr, ...]) -> list[Access]:
    """The places at which `i`, computed at `index` of `space`, reads operand `n`."""
    operand = i.operands[n]
    if is_tuple_op(i):
        return [(space, index)]
    if index is _AGAIN and _only_moves(i):
        return [(space, _AGAIN)]
    if moves_elements(i):
        read = operand_index(i, n, index)
        if read is not index and not i.op.is_elementwise:
            sizes = space[1] if isinstance(space, tuple) else ()
            ranges = simplifier(tuple((0, size - 1) for size in sizes))
            read = tuple(ranges.simplify(e) for e in read)
        return [(space, read)]
    if operand.shape.rank == 0 and i.opcode in _SCALARS_IN_PLACE:
        return [(space, ())]
    sizes = index_sizes(operand.shape)
    own = ((i, n), sizes)
    if i.opcode == "gather" and n == 1 and len(i.start_index_map) > 1:  # one read for each part of the index vector
        return [(own, own_index(sizes)), (own, _AGAIN)]
    if n and i.opcode == "call":
        return [(own, own_index(sizes)), (own, _AGAIN)]
    return [(own, own_index(sizes))]


#: ops that read their scalar operands where they stand themselves, outside any region they open
_SCALARS_IN_PLACE = having(Trait.REDUCES) | opcodes(has_start_operands)


def _cheap(order: Sequence[Instruction]) -> set[Instruction]:
    """The instructions of `order` (operands first) for which recomputation is cheaper than a call."""
    costs: dict[Instruction, int] = {}
    for i in order:
        cost = _REPEAT_LIMIT + 1
        if i.opcode in _LEAVES:
            cost = 0
        elif i.op.is_elementwise:
            if not is_expensive(i):
                cost = 1 + sum(costs.get(o, cost) for o in i.operands)
        elif moves_elements(i):
            cost = costs.get(i.operands[0], cost)
        costs[i] = min(cost, _REPEAT_LIMIT + 1)
    return {i for i, cost in costs.items() if cost <= _REPEAT_LIMIT}


def _describe(
    roots: Sequence[Instruction],
    order: list[Instruction],
    functions: dict[Instruction, Function],
    accesses: dict[Instruction, list[Access]],
    provided: Collection[Instruction],
) -> Partition:
    """Name the functions and say what each computes, calls and needs."""
    callees_first = {i: functions[i] for i in order if i in functions}
    names: set[str] = set()
    entries: list[Function] = []
    for root in roots:
        if root not in callees_first or not any(e.root is root for e in entries):
            entries.append(Function("entry" if not entries else f"entry_{len(entries)}", root, index_sizes(root.shape)))
    for i, f in callees_first.items():
        f.name = _unique(i.name.replace("-", "_").replace(".", "_"), names)
        _fill(f, callees_first, provided)
    for f in entries:
        _fill(f, callees_first, provided)
    return Partition(entries, callees_first, accesses)


def _unique(name: str, taken: set[str]) -> str:
    found, n = name, 1
    while found in taken:
        n += 1
        found = f"{name}_{n}"
    taken.add(found)
    return found


def _fill(f: Function, functions: dict[Instruction, Function], provided: Collection[Instruction]) -> None:
    leaves = {*provided, *functions} - {f.root}
    if f.root in functions and functions[f.root] is not f:
        leaves.add(f.root)  # an entry whose root is a function only calls it
    for i in _post_order([f.root], leaves):
        if i in functions and functions[i] is not f:
            f.calls.append(i)
        elif i not in provided:
            f.instructions.append(i)
    needed = {i for i in f.instructions if i.opcode == "parameter"}
    needed.update(p for c in f.calls for p in functions[c].parameters)
    f.parameters = sorted(needed, key=lambda p: p.attrs["number"])
    f.instructions = [i for i in f.instructions if i.opcode != "parameter"]
