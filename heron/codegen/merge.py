"""Many kernels in one MLIR module, so that the transforms and LLVM run once for a whole program."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr

from heron.codegen.ir.editing import ops_of, ops_within
from heron.codegen.kernel import Kernel


def merge(kernels: Iterable[Kernel]) -> ModuleOp:
    """Move the functions of all kernels into one module. Kernel names must differ; helpers are renamed on a clash.

    The kernels' own modules are empty afterwards.
    """
    kernels = list(kernels)
    merged = ModuleOp([])
    taken = {k.name for k in kernels}
    for kernel in kernels:
        functions = ops_of(kernel.module.body.block)
        renamed: dict[str, str] = {}
        for op in functions:
            if isinstance(op, func.FuncOp) and op.sym_name.data != kernel.name:
                name = op.sym_name.data
                if name in taken:
                    renamed[name] = name = _free(name, taken)
                    op.properties["sym_name"] = StringAttr(name)
                taken.add(name)
        if renamed:
            _rename_calls(kernel.module, renamed)
        for op in functions:
            op.detach()
            merged.body.block.add_op(op)
    return merged


def _free(name: str, taken: set[str]) -> str:
    n = 1
    while f"{name}_{n}" in taken:
        n += 1
    return f"{name}_{n}"


def _rename_calls(module: ModuleOp, renamed: dict[str, str]) -> None:
    for op in ops_within(module):
        for key, value in op.properties.items():
            if isinstance(value, SymbolRefAttr) and value.root_reference.data in renamed:
                op.properties[key] = SymbolRefAttr(renamed[value.root_reference.data])
