"""Ops that need whole rows or matrices, each apart: sort, topk, fft, scan, decompositions, batch norms."""

from __future__ import annotations

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction

_WHOLE = FactorKind.NEED_REPLICATION


@rule("sort")
def sort(i: Instruction) -> OpRule:
    """Rows are whole. Shardings do not propagate along them where no other dimension could take their axes."""
    b = RuleBuilder.of(i)
    dims, (row,) = b.operands[0], i.dimensions
    is_alone = all(size == 1 for d, size in enumerate(dims) if d != row)
    return b.same(dims, _whole(len(dims), [row]), is_blocked=is_alone).build()


@rule("topk")
def topk(i: Instruction) -> OpRule:
    """Rows, the last dimension, are whole; nothing propagates along them, for the results are shorter."""
    return whole_rows(i)


def whole_rows(i: Instruction) -> OpRule:
    """The last dimension is whole, and so are those in which the results have other sizes; others pass through."""
    b = RuleBuilder.of(i)
    x, y = b.operands[0], b.results[0]
    for d, (size, made) in enumerate(zip(x, y, strict=True)):
        kind = FactorKind.PASS_THROUGH if size == made and d < len(x) - 1 else _WHOLE
        b.add(size, d, d, kind, is_blocked=kind is _WHOLE)
    return b.build()


def whole_matrices(i: Instruction) -> OpRule:
    """The last two dimensions of the first operand are matrices, those before them count matrices in all arrays."""
    b = RuleBuilder.of(i)
    x = b.operands[0]
    batch = len(x) - 2
    b.same(x[:batch])
    for d in range(batch, len(x)):
        operands, results = ([d if dims == x else None for dims in side] for side in (b.operands, b.results))
        b.add(x[d], operands, results, _WHOLE)
    return b.build()


@rule("fft")
def fft(i: Instruction) -> OpRule:
    """Transformed dimensions, the last ones, are whole."""
    b = RuleBuilder.of(i)
    x, y = b.operands[0], b.results[0]
    for d, size in enumerate(x):
        kind = FactorKind.PASS_THROUGH if d < len(x) - len(i.fft_length) else _WHOLE
        b.add(size, d, d, kind, is_blocked=kind is _WHOLE and size != y[d])
    return b.build()


@rule("scan")
def scan(i: Instruction) -> OpRule:
    """The scanned dimension is whole; a computation of its own kind may do anything with the others."""
    b = RuleBuilder.of(i)
    carries = i.num_carries
    (row,) = i.dimensions
    arrays, made = len(b.operands) - carries, len(b.results) - carries
    if arrays + made:
        size = b.operands[0][row] if arrays else b.results[0][row]
        operands = [row] * arrays + [None] * carries
        b.add(size, operands, [row] * made + [None] * carries, _WHOLE)
    return b.build()


@rule("cholesky")
def cholesky(i: Instruction) -> OpRule:
    """Matrices are whole."""
    dims = i.shape.dims
    return RuleBuilder.of(i).same(dims, _whole(len(dims), [len(dims) - 2, len(dims) - 1])).build()


@rule("triangular-solve")
def triangular_solve(i: Instruction) -> OpRule:
    """Matrices are whole.

    Of the equation ``op(a) x = b`` (or ``x op(a) = b``) one dimension of `a` is that of `b`, the other that of `x`.
    """
    b = RuleBuilder.of(i)
    a, right = b.operands
    rows, columns = len(a) - 2, len(a) - 1
    b.same(a[:-2])
    turned = i.transpose_a in ("TRANSPOSE", "ADJOINT")
    outer, inner = (columns, rows) if turned == i.left_side else (rows, columns)
    shared, free = (rows, columns) if i.left_side else (columns, rows)
    own = (a[outer], (outer, shared), None)
    other = (right[free], (None, free), free)
    for size, operands, result in (own, other) if i.left_side else (other, own):
        b.add(size, operands, result, _WHOLE)
    return b.add(a[inner], (inner, None), shared, _WHOLE).build()


def _whole(rank: int, dims: list[int]) -> list[FactorKind]:
    return [_WHOLE if d in dims else FactorKind.PASS_THROUGH for d in range(rank)]


# -- batch norms -----------------------------------------------------------------------------------------------------
@rule("batch-norm-inference", "batch-norm-training", "batch-norm-grad")
def batch_norm(i: Instruction) -> OpRule:
    """Features pass through.

    So do the other dimensions in inference. Training takes means over them, and they are whole.
    """
    b = RuleBuilder.of(i)
    big = [n == 0 or o.shape.rank == len(b.operands[0]) != 1 for n, o in enumerate(i.operands)]
    if i.opcode == "batch-norm-grad":
        big[-1] = True
    is_one = len(b.results) == 1
    for d, size in enumerate(b.operands[0]):
        is_feature = d == i.feature_index
        vector = 0 if is_feature else None
        kind = FactorKind.PASS_THROUGH if is_feature or is_one else _WHOLE
        results = [d, *[vector] * (len(b.results) - 1)]
        b.add(size, [d if is_big else vector for is_big in big], results, kind)
    return b.build()
