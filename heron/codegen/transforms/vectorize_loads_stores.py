"""Loops over a thread's 2, 4 or 8 neighbouring elements read them at once before, and write them at once after.

A read `t[start + s]` in a loop over s, with `start` a multiple of the loop's length, becomes a vector read before the
loop and `vector.extract` in it. A write whose tensor the loop carries becomes `vector.insert` into a carried vector and
a vector write after the loop. LLVM joins neighbouring accesses only where no branch stands between them; this also
does where one does (tanh, sine, pow), and where elements are less than a byte (pred, s4), which LLVM leaves alone. What
is read under a condition stays as it is: it may be out of bounds.

    %r = scf.for %s = 0 to 4 iter_args(%o = %out) { %v = tensor.extract %in[%i * 4 + %s] ; … insert %w into %o[…] }
    ->
    %v4 = vector.transfer_read %in[%i * 4]
    %w4 = scf.for %s = 0 to 4 iter_args(%c = dense<0>) { %v = vector.extract %v4[%s] ; … vector.insert %w, %c[%s] }
    %r = vector.transfer_write %w4, %out[%i * 4]

GPU kernels only; on the CPU LLVM vectorises whole loops. It matters to elementwise
kernels with enough elements for several a thread (`gelu_bf16`, `transformer_block`).
"""

from __future__ import annotations

from functools import cache, lru_cache

from xdsl.dialects import arith, scf, tensor, vector
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BFloat16Type,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    Float8E3M4Type,
    Float8E4M3B11FNUZType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E4M3Type,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    ModuleOp,
    TensorType,
    VectorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from heron.analysis.indexing import Add, Const, Dim, Expr, IndexingMap
from heron.codegen.ir import origins
from heron.codegen.ir.builder import Constants, integer_comparison
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.editing import apply_indexing, constant_value, functions, ops_of, replace, retype, walk_blocks
from heron.codegen.ir.types import I1
from heron.codegen.transforms.lib.buffers import byte_size, factor, storage_type
from heron.codegen.transforms.lib.math_names import FUNCTIONS
from heron.codegen.transforms.options import TransformOptions

#: elements one access may have, and bytes
LENGTHS = (2, 4, 8, 16)
MAX_BYTES = 16
#: rounds that loops inside the loop may make: it is written out, and they with it
MOST_INSIDE = 32
#: operations of all rounds together, and how many a function (exp, sin, …) counts for: of rounds that compute so much,
#: wide accesses gain nothing, and their code takes long to make and much of the instruction cache
MOST_WORK = 1024
FUNCTION_WORK = 24
#: no complex numbers, which are two values each; no scales (f8E8M0FNU), which are never zero
_ELEMENTS = (
    IntegerType, Float16Type, BFloat16Type, Float32Type, Float64Type, Float8E3M4Type, Float8E4M3Type, Float8E4M3FNType,
    Float8E4M3B11FNUZType, Float8E4M3FNUZType, Float8E5M2Type, Float8E5M2FNUZType,
)  # fmt: skip
#: MLIR's mark for "position given by an operand"
DYNAMIC: dict[str, Attribute] = {"static_position": DenseArrayBase.from_list(i64, [-(1 << 63)])}


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Vectorises the accesses of every such loop of a GPU kernel."""
    if not options.is_gpu:
        return
    for function in functions(module):
        constants = Constants(function.body.block)
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if isinstance(op, scf.ForOp) and _is_light(op):
                    _Loop(op, constants).rewrite()


def _is_light(loop: scf.ForOp) -> bool:
    """Whether the loop has a vector's length and writing it out stays small."""
    rounds = trip_count(loop)
    return rounds in LENGTHS and _iterations(loop) <= MOST_INSIDE and rounds * _work(loop.body.block) <= MOST_WORK


def _work(block: Block) -> int:
    return sum(FUNCTION_WORK if type(op) in FUNCTIONS else 1 for inner in walk_blocks(block) for op in inner.ops)


def trip_count(loop: scf.ForOp) -> int | None:
    """The trip count of the loop, if it counts from 0 by 1 to a constant."""
    lower, upper, step = (constant_value(v) for v in loop.operands[:3])
    return upper if lower == 0 and step == 1 else None


def _iterations(op: Operation) -> int:
    """The number of iterations of the loops inside an op."""
    total = 0
    for inner in (inner for region in op.regions for block in region.blocks for inner in block.ops if inner.regions):
        if isinstance(inner, scf.ForOp):
            rounds = trip_count(inner)
            total += rounds * max(1, _iterations(inner)) if rounds is not None else MOST_INSIDE + 1
        else:
            total += MOST_INSIDE + 1 if isinstance(inner, scf.WhileOp) else _iterations(inner)
    return total


class _Loop:
    def __init__(self, loop: scf.ForOp, constants: Constants) -> None:
        self.loop, self.constants = loop, constants
        self.body: Block = loop.body.block
        self.variable = self.body.args[0]
        self.length = trip_count(loop) or 0
        block = loop.parent
        assert block is not None
        self.block = block
        self.starts: dict[SSAValue, SSAValue | None] = {}

    def rewrite(self) -> None:
        vectors: dict[tuple[SSAValue, SSAValue], SSAValue] = {}
        for op in ops_of(self.body):
            if type(op) is tensor.ExtractOp:
                self._read(op, vectors)
        for position, arg in enumerate(self.body.args[1:]):
            self._write(position, arg)

    def _read(self, op: tensor.ExtractOp, vectors: dict[tuple[SSAValue, SSAValue], SSAValue]) -> None:
        source, *indices = op.operands
        type_ = self._vector_type(source.type)
        if type_ is None or len(indices) != 1 or self._is_inside(source):
            return
        start = self._start(indices[0])
        if start is None:
            return
        found = vectors.get((source, start))
        if found is None:
            operands = (source, start, self._zero(op.results[0].type))
            read = vector.TransferReadOp.create(
                operands=operands, result_types=(type_,), properties=_access(1, 1, 1, 0)
            )
            self.block.insert_op_before(read, self.loop)
            if origins.noted is not None:
                origins.noted.note(read, op)
            found = vectors[source, start] = read.results[0]
        element = vector.ExtractOp.create(
            operands=(found, self.variable), result_types=(type_.element_type,), properties=DYNAMIC
        )
        self.body.insert_op_before(element, op)
        replace(op, [self._computed(element.results[0], op.results[0].type, op)])

    def _write(self, position: int, carried: SSAValue) -> None:
        """Turns the carried tensor into a vector if all the loop does with it is to write its element each time."""
        last = self.body.last_op
        assert last is not None
        end = last.operands[position]
        type_ = self._vector_type(carried.type)
        op = end.owner
        if type_ is None or not isinstance(op, tensor.InsertOp) or op.parent is not self.body:
            return
        if op.operands[1] is not carried or not carried.has_one_use() or not end.has_one_use():
            return
        start = self._start(op.operands[2]) if len(op.operands) == 3 else None
        if start is None:
            return
        tensor_type, target = carried.type, self.loop.operands[3 + position]
        retype(carried, type_)
        operands = (self._cast(arith.ExtUIOp, op.operands[0], type_.element_type, op), carried, self.variable)
        insert = vector.InsertOp.create(operands=operands, result_types=(type_,), properties=DYNAMIC)
        self.body.insert_op_before(insert, op)
        replace(op, insert.results)
        self.loop.operands[3 + position] = self._zeros(type_)
        result = self.loop.results[position]
        write = vector.TransferWriteOp.create(
            operands=(result, target, start), result_types=(tensor_type,), properties=_access(1, 1, 1, 0)
        )
        retype(result, type_)
        self.block.insert_op_after(write, self.loop)
        if origins.noted is not None:
            origins.noted.note(write, insert)
        result.replace_uses_with_if(write.results[0], lambda use: use.operation is not write)

    def _start(self, index: SSAValue) -> SSAValue | None:
        """The start of a run of the loop's elements, if the index is `start + variable` with `start` well aligned."""
        if index not in self.starts:
            self.starts[index] = self._find_start(index)
        return self.starts[index]

    def _find_start(self, index: SSAValue) -> SSAValue | None:
        if index is self.variable:
            return self.constants.integer(0)
        if not isinstance(index, OpResult) or not isinstance(index.op, ApplyIndexingOp):
            return None
        m, operands = index.op.map, list(index.op.operands)
        if m.constraints or m.syms or m.rt_vars or self.variable not in operands:
            return None
        position = operands.index(self.variable)
        rest = _without(m.results[index.index], Dim(position))
        if (
            rest is None
            or factor(rest) % self.length
            or any(self._is_inside(v) for v in operands if v is not self.variable)
        ):
            return None
        if isinstance(rest, Const):
            return self.constants.integer(rest.value)
        numbers = iter(range(len(operands)))
        renumber: list[Expr | None] = [None if n == position else Dim(next(numbers)) for n in range(len(operands))]
        kept = [n for n in range(len(operands)) if n != position]
        start = IndexingMap([rest.substitute(renumber)], [m.dims[n] for n in kept])
        op = apply_indexing(start, [operands[n] for n in kept])
        self.block.insert_op_before(op, self.loop)
        return op.results[0]

    def _is_inside(self, value: SSAValue) -> bool:
        owner = value.owner
        return owner is self.body or (isinstance(owner, Operation) and owner.parent is self.body)

    def _vector_type(self, type_: Attribute) -> VectorType | None:
        return _vector_type(type_, self.length) if isinstance(type_, TensorType) else None

    def _computed(self, stored: SSAValue, type_: Attribute, before: Operation) -> SSAValue:
        """An element as it is computed with, from one as it is stored."""
        if type_ != I1:
            return self._cast(arith.TruncIOp, stored, type_, before)
        op = integer_comparison("ne", stored, self.constants.integer(0, stored.type))
        self.body.insert_op_before(op, before)
        return op.results[0]

    def _cast(self, kind: type[Operation], value: SSAValue, type_: Attribute, before: Operation) -> SSAValue:
        """The element as computed or as stored: an element of less than a byte is a byte in memory."""
        if value.type == type_:
            return value
        op = kind.create(operands=(value,), result_types=(type_,))
        self.body.insert_op_before(op, before)
        return op.results[0]

    def _zero(self, element: Attribute) -> SSAValue:
        """The padding a vector read names; the read is in bounds, so that it is never used."""
        if isinstance(element, IntegerType):
            return self.constants.integer(0, element)
        return self.constants.floating(0.0, element)

    def _zeros(self, type_: VectorType) -> SSAValue:
        zero = 0 if isinstance(type_.element_type, IntegerType) else 0.0
        value = DenseIntOrFPElementsAttr.from_list(type_, [zero])  # pyright: ignore
        return self.constants.dense(value, type_)


@lru_cache(maxsize=1024)
def _vector_type(type_: TensorType, length: int) -> VectorType | None:
    """The vector of that many elements as memory holds them, if one access takes so many."""
    element = type_.element_type
    if not isinstance(element, _ELEMENTS) or length * byte_size(element) > MAX_BYTES:
        return None
    return VectorType(storage_type(element), [length])


def _without(e: Expr, variable: Expr) -> Expr | None:
    """`e - variable`, where `variable` is a term of the sum `e` and occurs nowhere else in it."""
    if e == variable:
        return Const(0)
    if not isinstance(e, Add):
        return None
    for part, other in ((e.lhs, e.rhs), (e.rhs, e.lhs)):
        if variable in other.variables():
            continue
        rest = _without(part, variable)
        return None if rest is None else rest + other
    return None


@cache
def _access(*segments: int) -> dict[str, Attribute]:
    """Properties of an access in bounds along the one dimension."""
    return {
        "in_bounds": ArrayAttr([BoolAttr.from_bool(True)]),
        "permutation_map": AffineMapAttr(AffineMap.identity(1)),
        "operandSegmentSizes": DenseArrayBase.from_list(i32, segments),
    }
