"""Entry arguments that point to the same slice of memory become one.

An output argument with `xla_gpu.alias = N` shares the buffer of argument N: what goes through that argument then goes
through the output, which alone names the memory and stays `noalias`.

    @k(%in: !llvm.ptr {llvm.noalias}, %out: !llvm.ptr {llvm.noalias, xla_gpu.alias = 0}) { %v = llvm.load %in … }
    ->
    @k(%in: !llvm.ptr {}, %out: !llvm.ptr {llvm.noalias, xla_gpu.alias = 0}) { %v = llvm.load %out … }

It matters to every kernel that updates in place: elementwise ones whose input dies (`transformer_block`), scatters
(`embedding_grad`), dynamic-update-slices (`kv_decode`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp

from heron.codegen.ir.editing import argument_attributes, functions, set_argument_attributes
from heron.codegen.transforms.options import TransformOptions


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Merges the arguments of every function that has lowered to pointers."""
    for function in functions(module):
        _merge(function)


def _merge(function: FuncOp) -> None:
    arguments = function.body.block.args
    attributes = argument_attributes(function)
    merged = False
    for output, facts in zip(arguments, attributes, strict=True):
        alias = facts.get("xla_gpu.alias")
        if not isinstance(alias, IntegerAttr) or not 0 <= alias.value.data < len(arguments):
            continue
        shared = arguments[alias.value.data]
        if shared is output or shared.type != output.type:
            continue
        shared.replace_all_uses_with(output)
        for name in ("llvm.noalias", "llvm.readonly"):
            attributes[alias.value.data].pop(name, None)
        merged = True
    if merged:
        set_argument_attributes(function, attributes)
