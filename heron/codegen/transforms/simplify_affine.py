"""xla_gpu.apply_indexing → arith on `index`.

    %r = xla_gpu.apply_indexing "(d0)[s0] -> (d0 * 4 + s0 floordiv 2), …"(%i)[%s]
    ->
    %a = arith.muli %i, %c4 ; %b = arith.shrui %s, %c1 ; %r = arith.addi %a, %b

Equal subexpressions in scope are made once. Ops nobody uses are dropped.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from heron.analysis.indexing import Dim, Expr
from heron.codegen.ir.builder import Builder, Constants, Key
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.editing import erase, functions, replace
from heron.codegen.transforms.lib.emit_expr import emit
from heron.codegen.transforms.options import TransformOptions


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Lowers every apply_indexing of the module."""
    for function in functions(module):
        drop_unused(function.body.block)
        _block(function.body.block, {}, Constants(function.body.block))


def _block(block: Block, known: dict[Key, SSAValue], constants: Constants) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        if type(op) is ApplyIndexingOp:
            replace(op, lower(op, Builder(block, constants, before=op, known=known)))
        for region in op.regions:
            for inner in region.blocks:
                _block(inner, dict(known), constants)
        op = following


def drop_unused(block: Block) -> None:
    """Removes apply_indexing ops without users, users before what they use."""
    op = block.last_op
    while op is not None:
        previous = op.prev_op
        for region in op.regions:
            for inner in region.blocks:
                drop_unused(inner)
        if type(op) is ApplyIndexingOp and all(r.first_use is None for r in op.results):
            erase(op)
        op = previous


def lower(op: ApplyIndexingOp, builder: Builder) -> list[SSAValue]:
    """The op's results as arith values made at `place`."""
    m, operands = op.map, op.operands
    n = len(m.dims)

    def leaf(e: Expr) -> SSAValue:
        return operands[e.index if isinstance(e, Dim) else n + e.index]  # pyright: ignore[reportAttributeAccessIssue]

    simplifier = m.simplifier
    values: list[SSAValue] = []
    for e, result in zip(m.results, op.results, strict=True):
        values.append(result if result.first_use is None else emit(simplifier.simplify(e), leaf, simplifier, builder))
    return values
