"""Kernels that look elements up at places made of data use gather instructions where these are quicker than LLVM knows.

Without them LLVM reads element after element, and computes the places one by one, too. Elements that are evenly apart
are quicker one by one.

    func.func @k(…)                                                               reads table[load index[%i]]
    ->
    func.func @k(…) attributes {llvm.attr.target-features = "…,+fast-gather"}

CPU kernels only (`TransformOptions.gathers`).
"""

from __future__ import annotations

from xdsl.dialects import arith, llvm, scf
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from heron.codegen.ir.accesses import address_of, is_apart, sources_of
from heron.codegen.ir.editing import functions, ops_of, walk_blocks
from heron.codegen.transforms.options import TransformOptions

#: what makes a number data: places without it are sums and products of steps
_DATA = (llvm.LoadOp, arith.FPToSIOp, arith.FPToUIOp, arith.XOrIOp)


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Marks the functions of the module."""
    if not options.gathers:
        return
    for function in functions(module):
        if _looks_up(function):
            function.attributes["llvm.attr.target-features"] = StringAttr(options.gathers)


def _looks_up(function: FuncOp) -> bool:
    return any(
        isinstance(op, llvm.LoadOp) and _is_data(op, loop)
        for block in walk_blocks(function.body.block)
        if isinstance(loop := block.parent_op(), scf.ForOp)
        for op in ops_of(block)
    )


def _is_data(op: llvm.LoadOp, loop: Operation) -> bool:
    """Whether the place of a load in a loop depends on data."""
    address = address_of(op)
    if not is_apart(address, loop) or not isinstance(address.owner, Operation):
        return False
    return any(isinstance(v.owner, _DATA) for v in sources_of(address.owner))
