"""Loops that index a vector by their variable are unrolled whole.

A vector lives in registers only where positions in it are constants. The step marks the loop; LLVM writes its
iterations out, which takes a fiftieth of the time that copying them here would, and is told to however large they are.

    scf.for %s = %c0 to %c4 step %c1 { %v = vector.extract %v4[%s] … }
    ->
    scf.for … { … } {heron.full_unroll}

Other loops are left to LLVM, which knows what iterations cost: it unrolls those of a reduction, and ptxas then moves
the loads of several iterations to the front.
"""

from __future__ import annotations

from xdsl.dialects import scf, vector
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from heron.codegen.transforms.build import functions, walk_blocks
from heron.codegen.transforms.options import TransformOptions
from heron.codegen.transforms.vectorize_loads_stores import trip_count

#: iterations a loop that is written out may have
MOST = 16


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Marks every such loop."""
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in block.ops:
                if isinstance(op, (vector.ExtractOp, vector.InsertOp)):
                    _mark(op)


def _mark(op: vector.ExtractOp | vector.InsertOp) -> None:
    positions = op.operands[1 if isinstance(op, vector.ExtractOp) else 2 :]
    for position in positions:
        loop = position.owner.parent_op() if not hasattr(position, "op") else None
        if isinstance(loop, scf.ForOp) and position is loop.body.block.args[0] and 0 < (trip_count(loop) or 0) <= MOST:
            loop.attributes["heron.full_unroll"] = UnitAttr()
