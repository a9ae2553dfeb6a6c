"""A function of a GPU kernel whose indices all fit into 32 bits computes them in 32 bits.

A GPU adds and multiplies 32 bits at a time. The step marks the function when the ranges of all its indices, and of all
parts of their expressions, are known and small, and none goes to another function; the LLVM translation then writes
`index` as i32, and addresses are widened where memory is accessed. Data that becomes an index counts by its type: an
i64 that nothing clamps leaves the function as it is.

    func.func @k(…) { %a = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 128 + d1), domain: d0 in [0, 999], …"(%b, %t) … }
    ->
    func.func @k(…) attributes {heron.index_bits = 32 : i64} { … }

It matters to all kernels but those on arrays of 2^30 elements and more.
"""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block

from heron.analysis.indexing import Expr, IndexingMap, Simplifier
from heron.analysis.indexing.expr import BinaryExpr
from heron.codegen.ir.builder import int_attr
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.editing import functions
from heron.codegen.ir.types import I64
from heron.codegen.transforms.lib.ranges import Range, Ranges
from heron.codegen.transforms.options import TransformOptions

#: what an index may be
WHOLE: Range = (-(1 << 31), (1 << 31) - 1)
#: what expressions and loop variables may be: there is room for a step more and for sums that simplify-affine divides
SMALL: Range = (-(1 << 30), 1 << 30)
ATTRIBUTE = "heron.index_bits"


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Marks every such function."""
    if not options.is_gpu:
        return
    for function in functions(module):
        if _is_narrow(function.body.block, Ranges()):
            function.attributes[ATTRIBUTE] = int_attr(32, I64)


def _is_narrow(block: Block, ranges: Ranges) -> bool:
    for value in block.args:
        if type(value.type) is IndexType and not _inside(ranges.of(value), SMALL):
            return False
    for op in block.ops:
        if type(op) is ApplyIndexingOp:
            if not _map_fits(op.map):
                return False
            continue
        if type(op) is func.CallOp and any(type(v.type) is IndexType for v in op.operands):
            return False
        for value in op.results:
            if type(value.type) is IndexType and not _inside(ranges.of(value), WHOLE):
                return False
        for region in op.regions:
            if region.blocks and not _is_narrow(region.block, ranges):
                return False
    return True


def _inside(r: Range, limit: Range) -> bool:
    return limit[0] <= r[0] and r[1] <= limit[1]


@lru_cache(maxsize=4096)
def _map_fits(m: IndexingMap) -> bool:
    """Whether every part of the map's expressions is small."""
    ranges = m.simplifier
    return all(_expr_fits(ranges.simplify(e), ranges) for e in m.results)


def _expr_fits(e: Expr, ranges: Simplifier) -> bool:
    if not _inside(ranges.range_of(e), SMALL):
        return False
    return not isinstance(e, BinaryExpr) or (_expr_fits(e.lhs, ranges) and _expr_fits(e.rhs, ranges))
