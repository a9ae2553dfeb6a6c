"""xla_gpu.transpose_block → vector loads, shuffles, vector stores.

An n x n block is turned in log2 n rounds; each interleaves row i with row i + n/2 into rows 2i and 2i + 1. With the
bits of (row, column) written side by side a round rotates them by one place, so that log2 n rounds swap row and
column. Elements travel as integers of their width.
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


def lower(
    op: TransposeBlockOp,
    element: Attribute,
    pointers: tuple[SSAValue, SSAValue],
    alignments: tuple[int, int],
    builder: Builder,
) -> None:
    """Emits the op.

    Args:
        element: the element type of both tensors.
        pointers: where the block starts in source and target; `alignments`: of these addresses, in bytes.
    """
    n, source_step, target_step = (p.value.data for p in (op.size, op.source_step, op.target_step))
    bytes_ = byte_size(element)
    integer = IntegerType(8 * bytes_)
    row_type = VectorType(integer, [n])
    alignment = gcd(alignments[0], source_step * bytes_)
    rows = [
        raw_load(offset(pointers[0], integer, k * source_step, builder), row_type, alignment, builder) for k in range(n)
    ]
    half = n // 2
    for _ in range(n.bit_length() - 1):
        pairs = [(rows[k], rows[k + half]) for k in range(half)]
        rows = [_interleave(a, b, part, row_type, builder) for a, b in pairs for part in range(2)]
    alignment = gcd(alignments[1], target_step * bytes_)
    for k, row in enumerate(rows):
        raw_store(row, offset(pointers[1], integer, k * target_step, builder), alignment, builder)


def _interleave(a: SSAValue, b: SSAValue, part: int, type_: VectorType, builder: Builder) -> SSAValue:
    """The elements of the first (part 0) or second halves of two rows, in turn."""
    properties: dict[str, Attribute] = {"mask": _mask(type_.get_shape()[0], part)}
    op = llvm.ShuffleVectorOp.create(operands=(a, b), result_types=(type_,), properties=properties)
    return builder.add(op).results[0]


@lru_cache(maxsize=64)
def _mask(n: int, part: int) -> Attribute:
    first = part * n // 2
    return DenseArrayBase.from_list(i32, [k for c in range(first, first + n // 2) for k in (c, c + n)])
