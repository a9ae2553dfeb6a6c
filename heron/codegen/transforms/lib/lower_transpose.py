"""xla_gpu.transpose_block → vector loads, shuffles (`heron.codegen.turning`), vector stores.

Elements travel as integers of their width. Blocks of more than the machine's vectors are turned part by part.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseArrayBase, IntegerType, VectorType, i32
from xdsl.ir import Attribute, SSAValue

from heron.codegen.ir.builder import Builder
from heron.codegen.ir.dialects.xla_gpu import TransposeBlockOp
from heron.codegen.transforms.lib.buffers import byte_size, offset, raw_load, raw_store
from heron.codegen.turning import rounds


def lower(
    op: TransposeBlockOp,
    element: Attribute,
    pointers: tuple[SSAValue, SSAValue],
    alignments: tuple[int, int],
    vector_bits: int,
    builder: Builder,
) -> None:
    """Emits the op.

    Args:
        element: the element type of both tensors.
        pointers: where the block starts in source and target; `alignments`: of these addresses, in bytes.
        vector_bits: the most bits of a row that is turned at once; 0: any number.
    """
    n, steps = op.size.value.data, (op.source_step.value.data, op.target_step.value.data)
    bytes_ = byte_size(element)
    integer = IntegerType(8 * bytes_)
    side = min(n, vector_bits // (8 * bytes_)) if vector_bits else n
    row_type = VectorType(integer, [side])
    between = side * bytes_ if side < n else 0
    source, target = (gcd(a, step * bytes_, between) for a, step in zip(alignments, steps, strict=True))

    def place(tensor: int, row: int, column: int) -> SSAValue:
        return offset(pointers[tensor], integer, row * steps[tensor] + column, builder)

    for top in range(0, n, side):
        for left in range(0, n, side):
            rows = [raw_load(place(0, top + k, left), row_type, source, builder) for k in range(side)]
            for shuffles in rounds(side, 8 * bytes_):
                rows = [_shuffled(rows[s.first], rows[s.second], s.order, row_type, builder) for s in shuffles]
            for k, row in enumerate(rows):
                raw_store(row, place(1, left + k, top), target, builder)


def _shuffled(a: SSAValue, b: SSAValue, order: tuple[int, ...], type_: VectorType, builder: Builder) -> SSAValue:
    op = llvm.ShuffleVectorOp.create(operands=(a, b), result_types=(type_,), properties={"mask": _mask(order)})
    return builder.add(op).results[0]


@lru_cache(maxsize=256)
def _mask(order: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i32, order)
