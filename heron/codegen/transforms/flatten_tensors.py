"""Tensors of any rank → tensors of rank 1, in the order they lie in memory; each access has one simplified index.

The index is one `xla_gpu.apply_indexing` over loop variables and thread ids: what it was made of is composed first, so
that a division here and a product there cancel.

    %a, %b = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 8, d0 mod 8), …"(%i)
    %v = tensor.extract %t[%a, %b] : tensor<4x8xf32>
    ->
    %v = tensor.extract %t[%i] : tensor<32xf32>

Every kernel on arrays of rank 2 or more has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.analysis.indexing import Const, Dim, Expr, IndexingMap, Simplifier
from heron.codegen.ir.builder import Builder, Constants, Key
from heron.codegen.ir.dialects.xla_gpu import AtomicLoadOp, AtomicRMWOp, AtomicStoreOp, FetchAddOp, TransposeBlockOp
from heron.codegen.ir.editing import apply_indexing, retype
from heron.codegen.transforms.lib.linear_index import LinearIndexer
from heron.codegen.transforms.options import TransformOptions
from heron.codegen.transforms.simplify_affine import drop_unused


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Flattens every tensor of the module, in signatures too.

    Raises:
        HeronError: GEN120 for a tensor of unknown size, or a layout that is no order of the dimensions.
    """
    for function in module.ops:
        if not isinstance(function, FuncOp):
            continue
        if function.body.blocks:
            block = function.body.block
            _Accesses(block).rewrite(block, {})
            drop_unused(block)
            _retype(block)
        given = function.function_type
        inputs, outputs = ([flat_type(t) for t in types] for types in (given.inputs, given.outputs))
        function.properties["function_type"] = FunctionType.from_lists(inputs, outputs)


@lru_cache(maxsize=4096)
def flat_type(type_: Attribute) -> Attribute:
    """The tensor type of rank 1 with as many elements; any other type as it is."""
    if not isinstance(type_, TensorType) or type_.get_num_dims() == 1:
        return type_
    return TensorType(type_.element_type, [prod(type_.get_shape())])


_ONE_ACCESS = frozenset({tensor.ExtractOp, tensor.InsertOp, AtomicRMWOp, AtomicLoadOp, AtomicStoreOp, FetchAddOp})
#: accesses whose first operand is the value written
_WRITES = frozenset({tensor.InsertOp, AtomicStoreOp, FetchAddOp})


class _Accesses:
    """The accesses of one function."""

    def __init__(self, entry: Block) -> None:
        self.constants = Constants(entry)
        self.indexer = LinearIndexer()

    def rewrite(self, block: Block, known: dict[Key, SSAValue]) -> None:
        """Gives every access in the block a linear index; `known` are those in scope."""
        op = block.first_op
        while op is not None:
            kind = type(op)
            if kind in _ONE_ACCESS:
                first = 1 if kind in _WRITES else 0
                target, indices = op.operands[first], op.operands[first + 1 :]
                op.operands = [*op.operands[: first + 1], self.index(target, indices, op, known)]
            elif type(op) is TransposeBlockOp:
                places = ((op.source, op.source_indices), (op.target, op.target_indices))
                op.operands = [*op.operands[:2], *(self.index(t, indices, op, known) for t, indices in places)]
            for region in op.regions:
                for inner in region.blocks:
                    self.rewrite(inner, dict(known))
            op = op.next_op

    def index(
        self, target: SSAValue, indices: Sequence[SSAValue], before: Operation, known: dict[Key, SSAValue]
    ) -> SSAValue:
        """The linear index of an access, made before that op unless it is there already."""
        assert isinstance(target.type, TensorType) and before.parent is not None
        e, ranges = self.indexer.linear(target.type, indices)
        if isinstance(e, Const):
            return self.constants.integer(e.value)
        if isinstance(e, Dim):
            return self.indexer.leaf(e)
        builder = Builder(before.parent, self.constants, before=before, known=known)
        return builder.once((e,), lambda: self._apply(e, ranges))

    def _apply(self, e: Expr, ranges: Simplifier) -> Operation:
        used = sorted(v.index for v in e.variables() if isinstance(v, Dim))
        renumber: list[Expr | None] = [None] * (used[-1] + 1)
        for n, v in enumerate(used):
            renumber[v] = Dim(n)
        m = IndexingMap([e.substitute(renumber)], [ranges.range_of(Dim(v)) for v in used])
        return apply_indexing(m, [self.indexer.leaf(Dim(v)) for v in used])


def _retype(block: Block) -> None:
    for value in block.args:
        retype(value, flat_type(value.type))
    for op in block.ops:
        for result in op.results:
            if type(result.type) is TensorType:
                retype(result, flat_type(result.type))
                if type(op) is arith.ConstantOp:
                    _reshape(op)
        for region in op.regions:
            for inner in region.blocks:
                _retype(inner)


def _reshape(op: arith.ConstantOp) -> None:
    value, type_ = op.properties["value"], op.results[0].type
    assert isinstance(value, DenseIntOrFPElementsAttr) and isinstance(type_, TensorType)
    op.properties["value"] = DenseIntOrFPElementsAttr(type_, value.data)
