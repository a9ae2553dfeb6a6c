"""Common subexpressions and dead code: equal pure ops in scope are one, unused pure ops go.

Only ops without side effects that read no memory take part (arith, math, complex, apply_indexing, gpu ids);
equal calls are for `convert-pure-calls`, loads are left to LLVM, which knows aliasing.
"""

from __future__ import annotations

from xdsl.dialects import arith, complex, gpu, math, scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from heron.codegen.ir.builder import Key
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp, LoopOp, PureCallOp
from heron.codegen.ir.editing import erase, functions, ops_of
from heron.codegen.transforms.options import TransformOptions

_PURE = frozenset(op for dialect in (arith.Arith, math.Math, complex.Complex) for op in dialect.operations) | {
    ApplyIndexingOp,
    gpu.ThreadIdOp,
    gpu.BlockIdOp,
}
_REMOVABLE = _PURE | {PureCallOp, tensor.ExtractOp, tensor.EmptyOp}
_COMMUTATIVE = frozenset(
    {arith.AddiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.AddfOp, arith.MulfOp}
)


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Cleans every function of the module."""
    for function in functions(module):
        _block(function.body.block, {})


def _block(block: Block, known: dict[Key, Operation]) -> None:
    for op in ops_of(block):
        if type(op) in _PURE and not op.regions:
            _merge(op, known)
        else:
            for region in op.regions:
                for inner in region.blocks:
                    _block(inner, dict(known))
    op = block.last_op
    while op is not None:  # users first
        previous = op.prev_op
        if _is_dead(op):
            erase(op)
        op = previous


def _merge(op: Operation, known: dict[Key, Operation]) -> None:
    operands: tuple[SSAValue, ...] = tuple(op.operands)
    if len(operands) == 2 and type(op) in _COMMUTATIVE and id(operands[0]) > id(operands[1]):
        operands = (operands[1], operands[0])
    key = (type(op), operands, tuple(op.properties.items()), tuple(r.type for r in op.results))
    first = known.setdefault(key, op)
    if first is not op:
        for old, new in zip(op.results, first.results, strict=True):
            old.replace_all_uses_with(new)
        erase(op)


def _is_dead(op: Operation) -> bool:
    if not op.results or any(r.first_use is not None for r in op.results):
        return False
    if type(op) in _REMOVABLE:
        return True
    if isinstance(op, (scf.IfOp, scf.ForOp, LoopOp)):
        return all(_pure_region(block) for region in op.regions for block in region.blocks)
    return False


def _pure_region(block: Block) -> bool:
    for op in block.ops:
        if op.next_op is None:
            return True  # the terminator
        if op.regions or type(op) not in _REMOVABLE:
            return False
    return True
