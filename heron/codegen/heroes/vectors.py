"""A GPU thread's elements in three steps: read all, compute one by one, write all.

Many functions branch (tanh, sine, pow): with a branch between them, neighbouring reads do not become one 128-bit
access. Where such a function is in a fusion the elements therefore go through a small vector:

    loop s { v = insert(in[i(s)], v, s) }   loop s { w = insert(f(v[s]), w, s) }   loop s { out[i(s)] = w[s] }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import vector
from xdsl.dialects.builtin import DenseArrayBase, VectorType, i64
from xdsl.ir import Attribute, SSAValue

from heron.analysis.indexing.expr import dims
from heron.analysis.indexing.hlo_maps import Index, moves_elements, operand_index, to_memory
from heron.analysis.indexing.simplify import simplifier
from heron.codegen.elemental.movement import scalar_constant
from heron.codegen.heroes.base import Entry, Output
from heron.codegen.heroes.iteration import GpuPlan, gpu_map
from heron.codegen.heroes.space import concatenated_part
from heron.codegen.mlir_types import scalar_type
from heron.codegen.partition import Partition
from heron.hlo import types
from heron.hlo.instruction import Instruction
from heron.hlo.op import Trait
from heron.hlo.types import ElementType

#: more vectors than this would cost registers
MAX_READS = 8
#: functions that are straight code in f32
_STRAIGHT = frozenset({"exponential", "logistic", "sqrt", "rsqrt", "log"})
#: MLIR's mark for "position given by an operand"
_DYNAMIC: dict[str, Attribute] = {"static_position": DenseArrayBase.from_list(i64, [-(1 << 63)])}

#: a parameter and where it is read, as expressions over the dimensions of the loop's shape
Read = tuple[Instruction, Index]


def reads(outputs: Sequence[Output], ends: Sequence[tuple[int, int]], partition: Partition) -> list[Read] | None:
    """The reads every element makes, whatever its index, if the fusion should go through vectors; else None.

    ``ends``: between which bounds each dimension of the index lies.
    """
    instructions = [i for f in [*partition.entries, *partition.functions.values()] for i in f.instructions]
    if not any(_branches(i) for i in instructions):
        return None
    if any(o.shape.element_type.is_complex for o in outputs):
        return None
    ranges = simplifier(tuple(ends))
    found: dict[Read, None] = {}
    seen: set[Read] = set()
    stack: list[Read] = [(o.instruction, dims(len(ends))) for o in outputs]
    while stack:
        i, index = stack.pop()
        if (i, index) in seen or i in partition.functions:
            continue
        seen.add((i, index))
        if i.opcode == "parameter" and not i.shape.element_type.is_complex:
            found[i, index] = None
        elif i.opcode == "concatenate" and (part := concatenated_part(i, index, ranges)) is not None:
            stack.append(part)
        elif i.opcode != "parameter" and moves_elements(i):
            for n, operand in enumerate(i.operands):
                stack.append((operand, tuple(ranges.simplify(e) for e in operand_index(i, n, index))))
    return list(found) if len(found) <= MAX_READS else None


def _branches(i: Instruction) -> bool:
    if i.opcode == "remainder":
        return i.shape.element_type.is_float
    straight = i.opcode in _STRAIGHT and i.shape.element_type is not types.F64
    return i.has(Trait.TRANSCENDENTAL) and not straight


def vector_loops(
    entry: Entry,
    sizes: Sequence[int],
    index_at: Callable[[Index], Index],
    plan: GpuPlan,
    outputs: Sequence[Output],
    wanted: Sequence[Read],
    block: SSAValue,
    tensors: Sequence[SSAValue],
) -> list[SSAValue]:
    """The `tensors` of `outputs` after a thread of `block` has done its elements of a box of `sizes`.

    ``index_at``: the outputs' index at a place in the box.
    """
    e = entry.e
    m = gpu_map(sizes, plan)
    ids = [entry.thread_id(), block]

    def places(place: Index) -> list[Index]:
        index = index_at(place)
        return [e.simplify(tuple(x.substitute(index) for x in where)) for _, where in wanted]

    def read(place: Index, carried: Sequence[SSAValue], symbols: Sequence[SSAValue]) -> list[SSAValue]:
        values = [e.value(i, at) for (i, _), at in zip(wanted, places(place), strict=True)]
        return [_put(entry, v, c, symbols[0]) for v, c in zip(values, carried, strict=True)]

    def compute(place: Index, carried: Sequence[SSAValue], symbols: Sequence[SSAValue]) -> list[SSAValue]:
        for (i, _), at, loaded in zip(wanted, places(place), vectors, strict=True):
            e.provide(i, at, _get(entry, loaded, symbols[0]))
        index = e.simplify(index_at(place))
        values = [o.of(e.value(o.instruction, index)) for o in outputs]
        return [_put(entry, v, c, symbols[0]) for v, c in zip(values, carried, strict=True)]

    def write(place: Index, carried: Sequence[SSAValue], symbols: Sequence[SSAValue]) -> list[SSAValue]:
        index = e.simplify(index_at(place))
        stores = zip(results, carried, outputs, strict=True)
        return [e.insert(_get(entry, r, symbols[0]), t, to_memory(o.shape, index)) for r, t, o in stores]

    vectors = e.map_loop(m, ids, sizes, [_empty(entry, i.shape.element_type, plan) for i, _ in wanted], read)
    results = e.map_loop(m, ids, sizes, [_empty(entry, o.shape.element_type, plan) for o in outputs], compute)
    return e.map_loop(m, ids, sizes, tensors, write)


def _empty(entry: Entry, t: ElementType, plan: GpuPlan) -> SSAValue:
    type_ = VectorType(scalar_type(t), [plan.vector])
    return entry.e.b.op(vector.BroadcastOp, scalar_constant(entry.e, 0, t), type=type_)


def _put(entry: Entry, value: SSAValue, target: SSAValue, at: SSAValue) -> SSAValue:
    return entry.e.b.op(vector.InsertOp, value, target, at, type=target.type, properties=_DYNAMIC)


def _get(entry: Entry, source: SSAValue, at: SSAValue) -> SSAValue:
    assert isinstance(source.type, VectorType)
    return entry.e.b.op(vector.ExtractOp, source, at, type=source.type.element_type, properties=_DYNAMIC)
